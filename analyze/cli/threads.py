"""How many threads the libraries start: a small trace is done before a pool of them has paid for itself."""

from __future__ import annotations

import os
from collections.abc import Sequence

_SMALL_BYTES = 32 << 20
_PACKED = (".gz", ".zst", ".zip")
_PACKING = 16  # packed traces are 10 to 20 times smaller


def spare_threads(paths: Sequence[str]) -> None:
    """Let Polars work in one thread where all files are small; it reads the setting when it is imported.

    A setting of the user's own stays.
    """
    try:
        sizes = [os.stat(path).st_size * (_PACKING if path.lower().endswith(_PACKED) else 1) for path in paths]
    except (OSError, ValueError):
        return  # standard input, or a file that is not there
    if sum(sizes) <= _SMALL_BYTES:
        os.environ.setdefault("POLARS_MAX_THREADS", "1")
