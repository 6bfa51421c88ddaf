"""Broken traces by the thousand: no traceback, no hang, no figure that cannot be, no row lost in silence.

    python -m tests.fuzz --count 10000

Each input is a sound trace with something wrong: in the tree of its values, in its bytes, in its encoding or in how it
is packed. The program may refuse it with one sentence; or report on it, and then the report has to hold what always
holds (`invariants`).
"""

from tests.fuzz.runner import Failure, Outcome, run

__all__ = ["Failure", "Outcome", "run"]
