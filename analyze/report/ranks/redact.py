"""Summaries of ranks without what only their owners should read: names of groups and folders, texts of findings."""

from __future__ import annotations

import polars as pl
from msgspec.structs import replace

from analyze.ranks.engine import Failure, Outcome
from analyze.ranks.summary import FileInfo, Summary
from analyze.report.redact import Redaction

_UNREAD = "could not be read"


def redact_outcome(outcome: Outcome, redaction: Redaction) -> Outcome:
    """The summaries with names of files alone, numbered groups, and findings by the id of their rule."""
    return replace(
        outcome,
        summaries=[_summary(one, redaction) for one in outcome.summaries],
        failures=[Failure(redaction.file(one.path), _UNREAD, one.foreign) for one in outcome.failures],
        unstored="the store cannot be written" if outcome.unstored else "",
    )


def _summary(one: Summary, redaction: Redaction) -> Summary:
    frames = {name: one.frames[name] for name in one.frames}
    names = [None if name is None else redaction.number("group", name) for name in frames["group"]["name"]]
    known = [redaction.dimension(text) for text in frames["group"]["description"]]
    frames["group"] = frames["group"].with_columns(
        pl.Series("name", names, dtype=pl.String), pl.Series("description", known, dtype=pl.String)
    )
    frames["pause"] = frames["pause"].clear()
    frames["work"] = frames["work"].with_columns(op=pl.lit(None, pl.String))
    frames["finding"] = frames["finding"].with_columns(title=pl.col("id"), change="analyze explain " + pl.col("id"))
    return Summary(_file(one.file, redaction), frames)


def _file(info: FileInfo, redaction: Redaction) -> FileInfo:
    return replace(
        info,
        path=redaction.file(info.path),
        world=info.world if info.world.isdecimal() else redaction.number("world", info.world) if info.world else "",
        trace_group=redaction.number("recording", info.trace_group) if info.trace_group else "",
        device=redaction.device(info.device),
        runtime=redaction.version(info.runtime),
        nccl=redaction.version(info.nccl),
        notices=(),
    )
