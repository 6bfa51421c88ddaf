"""Many ranks of one job: who is late, who waits for whom, and what being on time would give (docs/ranks.md)."""

from typing import TYPE_CHECKING

from analyze.lazy import lazy_names

if TYPE_CHECKING:
    from analyze.ranks.job import Job, from_store, read_all
    from analyze.ranks.joined import Joined
    from analyze.ranks.rounds import LeftOut
    from analyze.ranks.standing import Standing

__all__ = [
    "Job",
    "Joined",
    "LeftOut",
    "Standing",
    "from_store",
    "read_all",
]

_PLACES = {
    "Job": "analyze.ranks.job",
    "Joined": "analyze.ranks.joined",
    "LeftOut": "analyze.ranks.rounds",
    "Standing": "analyze.ranks.standing",
    "from_store": "analyze.ranks.job",
    "read_all": "analyze.ranks.job",
}

__getattr__ = lazy_names(__name__, _PLACES)
