"""What most measures stand on: the host's states, the devices' timelines, gaps with their parts, work with its ops."""

from __future__ import annotations

import polars as pl
from msgspec.structs import replace

from analyze.metrics.causes import Delays, add_causes
from analyze.metrics.question import Answers, Question
from analyze.timeline import CallTree, Host, device_timelines, partition_gaps
from analyze.timeline.attribution import Attribution, attribute
from analyze.trace import Timed


def _gaps(answers: Answers) -> list[pl.DataFrame]:
    """The gaps of each device with their parts, the costs of blocking calls and the causes of launch-bound time."""
    blocking = answers.ask(HOST).blocking
    return add_causes(answers.ask(DELAYS), [cost_of_syncs(gap, blocking) for gap in answers.ask(GAPS)])


def _partitioned(answers: Answers) -> list[pl.DataFrame]:
    """The gaps of each device with their parts."""
    host = answers.ask(HOST)
    return [partition_gaps(line, host) for line in answers.ask(TIMELINES)]


def cost_of_syncs(gaps: pl.DataFrame, blocking: pl.DataFrame) -> pl.DataFrame:
    """Add to each gap the blocking call that it began in (row of `blocking`) and the two costs."""
    began_in_gap = pl.col("launch_start_ns").is_between(pl.col("start_ns"), pl.col("end_ns")).fill_null(value=False)
    call = Timed(blocking).innermost(gaps["thread"], gaps["start_ns"])
    length = pl.col("end_ns") - pl.col("start_ns")
    call_ns = blocking["dur_ns"].gather(call) if blocking.height else pl.Series([None] * gaps.height, dtype=pl.Int64)
    hit = began_in_gap & pl.col("call").is_not_null() & pl.col("thread").is_not_null()
    return (
        gaps.with_columns(call=call, call_ns=call_ns)
        .with_columns(
            after_sync_ns=pl.when(hit).then(length).otherwise(0),
            exposed_sync_ns=pl.when(hit).then(pl.min_horizontal(length, "call_ns")).otherwise(0),
        )
        .with_columns(call=pl.when(hit).then("call"))
        .drop("call_ns")
    )


def _attribution(answers: Answers) -> Attribution:
    """The selected activities with op and purpose, and with `at`, their row among all timed ones."""
    trace, selection = answers.trace, answers.selection
    work = attribute(trace, CallTree.of(trace), selection.activities)
    at = selection.chosen.filter(trace.activities["timed"]).arg_true()
    return replace(work, work=work.work.with_columns(at=at.cast(pl.Int64)))


HOST = Question("host-states", lambda a: Host(a.trace))
TIMELINES = Question("timelines", lambda a: device_timelines(a.trace.activities, a.selection.activities))
DELAYS = Question("delays", lambda a: Delays(a.trace, a.ask(HOST), a.definitions.long_gap_ns))
GAPS = Question("partitioned-gaps", _partitioned)
GAP_PARTS = Question("idle-parts", _gaps)
ATTRIBUTION = Question("attribution", _attribution)
