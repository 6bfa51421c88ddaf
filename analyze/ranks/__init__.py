"""Many ranks of one job: who is late, who waits for whom, and what being on time would give (ranks.md)."""

from analyze.ranks.job import Job, from_store, read_all
from analyze.ranks.joined import Joined
from analyze.ranks.rounds import LeftOut
from analyze.ranks.standing import Standing

__all__ = ["Job", "Joined", "LeftOut", "Standing", "from_store", "read_all"]
