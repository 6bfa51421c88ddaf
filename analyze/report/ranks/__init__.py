"""A job of many ranks in, report out."""

from analyze.report.ranks.build import RanksReport, build_ranks_report

__all__ = ["RanksReport", "build_ranks_report"]
