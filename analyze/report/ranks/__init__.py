"""A job of many ranks in, report out."""

from analyze.report.ranks.build import RanksReport, build_ranks_report
from analyze.report.ranks.gates import judged_ranks

__all__ = ["RanksReport", "build_ranks_report", "judged_ranks"]
