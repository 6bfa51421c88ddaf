"""A trace without what `--redact` takes away: done to what was read, so that no figure and no sentence can hold it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import polars as pl
from msgspec.structs import replace

from analyze.metrics.collectives import ELEMENT_BYTES
from analyze.notices import Notice
from analyze.report.redact.policy import Redaction
from analyze.trace import Trace
from analyze.trace.metadata import JobInfo, Metadata
from analyze.trace.read import Recording
from analyze.trace.recorded import Recorded
from analyze.trace.stream import is_stream

_Text = Callable[[str], str]
_OVERHEAD = frozenset(
    (
        "Activity Buffer Request", "Instrumentation", "Resource", "Buffer Flush", "Command Buffer Full",
        "Driver Compiler", "Lazy Function Loading", "Runtime Triggered Module Loading", "Unrecognized", "Unknown",
    )
)  # fmt: skip
_COLLECTIVES = frozenset(
    (
        "allreduce", "allreduce_coalesced", "allreduce_sparse", "reduce", "_reduce_oop", "broadcast", "_broadcast_oop",
        "allgather", "_allgather_base", "all_gather", "allgather_coalesced", "allgather_into_tensor_coalesced",
        "reduce_scatter", "_reduce_scatter_base", "reduce_scatter_tensor_coalesced", "all_to_all", "all_to_allv",
        "alltoall", "alltoall_base", "gather", "scatter", "send", "recv", "recvAnySource", "barrier", "wait", "init",
    )
)  # fmt: skip
_SPAN = re.compile(r"(?:Iteration Start: )?PyTorch Profiler(?: \(\d+\))?|Record Window End|Profiling Iteration")
_QUOTED = re.compile(r"(?<![A-Za-z0-9])['\"`].*['\"`](?![A-Za-z])", re.DOTALL)
_PRECISIONS = ("fp32", "tf32", "fp16", "bf16")
_REPEATED = "repeated-ids"


def redacted_trace(trace: Trace, redaction: Redaction) -> Trace:
    """The trace with its texts redacted; its numbers stay."""
    return Trace(redacted_recording(trace.recording, redaction))


def redacted_recording(recording: Recording, redaction: Redaction) -> Recording:
    """The file as frames, with its texts redacted."""
    redaction.keep(names_of_calls(recording))
    programs = recording.programs
    if programs is not None:
        programs = replace(programs, names=tuple(redaction.number("process", name) for name in programs.names))
    name = redaction.file(recording.name)
    return replace(
        recording,
        name=name,
        path=recording.path if is_stream(recording.path) else name,
        metadata=_metadata(recording.metadata, redaction),
        frames={table: _frame(table, frame, redaction) for table, frame in recording.frames.items()},
        programs=programs,
        notices=tuple(
            programs.notice() if programs is not None and notice.id == _REPEATED else _unquoted(notice)
            for notice in recording.notices
        ),
    )


def names_of_calls(recording: Recording) -> frozenset[str]:
    """Names of ranges and frames that an op or an API call has too: one inside the other is one call, seen twice."""
    kept, replaced = (
        {str(name) for table in tables for name in recording.frames[table]["name"].unique().cast(pl.String)}
        for tables in (("ops", "runtime"), ("ranges", "frames"))
    )
    return frozenset(kept & replaced)


_GROUPS = ("", "default_pg", "mesh_tp", "mesh_dp", "mesh_pp", "mesh_cp", "mesh_ep", "tp", "dp", "pp", "cp", "ep")
_RANKS = re.compile(r'[\s,\[\]"]*(?:(?:\d+|\.\.\.)(?:[\s,\[\]"]+|\Z))*')


def columns(redaction: Redaction) -> Mapping[tuple[str, str], _Text]:
    """What happens to each column of text, by table and column. Columns of the same kind share their pseudonyms."""
    r = redaction
    return {
        **_of_collectives("activities", r),
        **_of_collectives("collective_ops", r),
        ("ops", "name"): r.kept,
        ("ops", "input_dims"): r.shape,
        ("ops", "input_types"): r.types,
        ("ops", "concrete_inputs"): r.values,
        ("runtime", "name"): r.kept,
        ("activities", "name"): r.kept,
        ("activities", "kind"): lambda kind: r.word(kind, ("kernel", "memcpy", "memset")),
        ("activities", "process"): r.process,
        ("activities", "grid"): r.shape,
        ("activities", "block"): r.shape,
        ("ranges", "name"): r.range,
        ("frames", "name"): r.frame,
        ("overhead", "name"): lambda name: r.word(name, _OVERHEAD, "overhead"),
        ("spans", "name"): lambda name: name if _SPAN.fullmatch(name) else "span",
        ("threads", "pid"): lambda pid: r.number("process", pid),
        ("threads", "tid"): lambda tid: r.number("thread", tid),
        ("threads", "process"): r.process,
    }


def _of_collectives(table: str, r: Redaction) -> dict[tuple[str, str], _Text]:
    """What a process group says of a collective, on kernels and on ops."""
    return {
        (table, "collective"): lambda name: r.word(name, _COLLECTIVES, "collective"),
        (table, "element_type"): lambda name: name if name.lower() in ELEMENT_BYTES else "",
        (table, "group"): r.group,
        (table, "group_description"): lambda text: text if text in _GROUPS else r.dimension(text) or "group",
        (table, "group_ranks"): lambda text: text if _RANKS.fullmatch(text) else "",
    }


def _frame(table: str, frame: pl.DataFrame, redaction: Redaction) -> pl.DataFrame:
    known = columns(redaction)
    made = [
        _mapped(frame[name], known[table, name])
        for name, dtype in frame.schema.items()
        if dtype in (pl.String, pl.Categorical)
    ]
    return frame.with_columns(made)


def _mapped(texts: pl.Series, how: _Text) -> pl.Series:
    """Each text through a function, once per text, in order of first appearance."""
    words = texts.cast(pl.String)
    distinct = words.unique(maintain_order=True).drop_nulls()
    table: dict[Any, str] = {word: how(word) for word in distinct}
    if not table:
        return texts
    replaced = words.replace_strict(list(table), list(table.values()), default=None, return_dtype=pl.String)
    made: pl.Series = replaced.cast(texts.dtype).alias(texts.name)
    return made


def _metadata(metadata: Metadata, redaction: Redaction) -> Metadata:
    devices = tuple(replace(device, name=redaction.device(device.name)) for device in metadata.devices)
    recorded = metadata.recorded
    job = JobInfo(metadata.job.rank)  # names of groups say what the program is
    return replace(
        metadata, devices=devices, job=job, recorded=None if recorded is None else _recorded(recorded, redaction)
    )


def _recorded(recorded: Recorded, redaction: Redaction) -> Recorded:
    return replace(
        recorded,
        model="",
        precision=redaction.word(recorded.precision, _PRECISIONS),
        torch=redaction.version(recorded.torch),
        warmup_reason="",
        unstable=("they were unstable",) if recorded.unstable else (),
    )


def _unquoted(notice: Notice) -> Notice:
    """A notice of the reader without the words of the file, which it quotes."""
    return replace(notice, text=_QUOTED.sub("(left out)", notice.text))
