"""What `capture --batch-sweep` measured, sweep.json, as a document: latency and throughput by batch size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from analyze.blocks import Column, Kind, Page, Section, Table
from analyze.report.about import SCHEMA_VERSION, TOOL, program_version
from analyze.report.commands import quoted_path
from analyze.report.notebook import Shown
from analyze.report.plain import contract, frame, plain
from analyze.report.stored import read_stored
from analyze.trace.recorded import as_count, as_number, as_text
from analyze.trace.stream import name_of
from analyze.units import duration, percent

_KEYS = {"rows", "saturated_batch_size", "settings"}
_MOST_ROWS = 1_000


class SweepRow(Struct, frozen=True):
    """One batch size.

    Attributes:
        batch_size: samples per forward.
        p50_ns: median latency of a forward; None where memory did not suffice.
        p90_ns: 90th percentile.
        min_ns: shortest latency.
        max_ns: longest latency.
        samples_per_s: batch size over the median latency.
        peak_allocated_bytes: most device memory that tensors held, None where it was not recorded.
        steady: the warm-up became steady, None where too few iterations ran to say.
    """

    batch_size: int
    p50_ns: int | None
    p90_ns: int | None
    min_ns: int | None
    max_ns: int | None
    samples_per_s: float | None
    peak_allocated_bytes: int | None
    steady: bool | None


class SweepInfo(Struct, frozen=True):
    """What was measured.

    Attributes:
        name: base name of the file.
        model: timm name or module:function, empty where not recorded.
        precision: fp32, tf32, fp16 or bf16.
        device: name of the device, empty where not recorded.
        saturated_batch_size: the smallest batch with at least `saturated_share` of the highest throughput.
        saturated_share: that share, 0 to 1.
        still_growing: it is the largest batch that was tried.
        ended_by: why larger batches were not tried, empty where all were.
    """

    name: str
    model: str
    precision: str
    device: str
    saturated_batch_size: int | None
    saturated_share: float | None
    still_growing: bool
    ended_by: str


class SweepReport(Shown, Struct, frozen=True):
    """One report on a batch sweep, independent of any format.

    Attributes:
        version: version of the program.
        sweep: what was measured.
        rows: by batch size.
        page: what text formats draw.
    """

    version: str
    sweep: SweepInfo
    rows: tuple[SweepRow, ...]
    page: Page

    def as_json(self) -> dict[str, Any]:
        """The report by the keys of its contract, `sweep_schema`."""
        return {**frame(self.version, self.page), "sweep": plain(self.sweep), "rows": plain(self.rows)}


def sweep_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of a report on a batch sweep."""
    keys = {"sweep": SweepInfo, "rows": list[SweepRow], "sections": list[dict[str, Any]], "tool": dict[str, str]}
    return contract("batch sweep report", keys)


def read_sweep(path: str | Path, *, redact: bool = False) -> SweepReport | None:
    """The report on a sweep.json, None for files that are something else.

    Args:
        path: the file.
        redact: leave out what names the model or the machine.
    """
    stored = read_stored(path)
    if stored is None or not stored.parts.keys() >= _KEYS:
        return None
    document = {key: msgspec.json.decode(raw) for key, raw in stored.parts.items()}
    listed = document["rows"] if isinstance(document["rows"], list) else []
    rows = tuple(sorted(filter(None, map(_row, listed[:_MOST_ROWS])), key=lambda row: row.batch_size))
    info = _info(document, name_of(str(path)), redact=redact)
    program = program_version()
    file = "" if redact else quoted_path(str(path))
    page = Page(
        subject="Batch sweep",
        name=info.name,
        about=_about(info, rows),
        verdict="memory",
        headline=_headline(info, rows),
        sentences=tuple(_sentences(info, rows)),
        whole=None,
        sections=(Section("batches", "Batch sizes", (_table(rows),)),) if rows else (),
        notices=(),
        not_measured=(),
        next_steps=(f"analyze {file} -o sweep.html",) if file else (),
        footer=f"{TOOL} {program}, report schema {SCHEMA_VERSION}",
    )
    return SweepReport(program, info, rows, page)


def _info(document: Mapping[str, Any], name: str, *, redact: bool) -> SweepInfo:
    settings, device = _mapping(document.get("settings")), _mapping(document.get("device"))
    share = as_number(document.get("saturated_share"))
    ended_by = as_text(document.get("ended_by"))
    return SweepInfo(
        name="sweep.json" if redact else name,
        model="" if redact else as_text(settings.get("model")),
        precision=as_text(settings.get("precision")),
        device=as_text(device.get("name")),
        saturated_batch_size=as_count(document.get("saturated_batch_size")),
        saturated_share=share if share is not None and share <= 1 else None,
        still_growing=document.get("still_growing") is True,
        ended_by="an error" if redact and ended_by else ended_by,
    )


def _row(value: object) -> SweepRow | None:
    row = _mapping(value)
    batch, latency = as_count(row.get("batch_size")), _mapping(row.get("latency"))
    if batch is None:
        return None
    times = {key: as_count(latency.get(key)) for key in ("p50_ns", "p90_ns", "min_ns", "max_ns")}
    steady = row.get("steady")
    return SweepRow(
        batch_size=batch,
        **times,
        samples_per_s=as_number(latency.get("throughput_samples_per_s")),
        peak_allocated_bytes=as_count(latency.get("peak_allocated_bytes")),
        steady=steady if isinstance(steady, bool) else None,
    )


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _about(info: SweepInfo, rows: tuple[SweepRow, ...]) -> str:
    sizes = ", ".join(str(row.batch_size) for row in rows) or "none"
    parts = (info.model, info.precision, info.device, f"batch sizes {sizes}")
    return ", ".join(part for part in parts if part)


def _headline(info: SweepInfo, rows: tuple[SweepRow, ...]) -> str:
    if not any(row.samples_per_s for row in rows):
        return "No batch was measured"
    if info.saturated_batch_size is None:
        return "Throughput by batch size"
    return f"{'Still growing' if info.still_growing else 'Saturated'} at batch {info.saturated_batch_size}"


def _sentences(info: SweepInfo, rows: tuple[SweepRow, ...]) -> Iterator[str]:
    fastest = max(rows, key=lambda row: row.samples_per_s or 0, default=None)
    if fastest is None or not fastest.samples_per_s or fastest.p50_ns is None:
        yield "The file holds no latency."
        return
    yield (
        f"Throughput is highest at batch {fastest.batch_size}: {fastest.samples_per_s:,.0f} samples/s, "
        f"at a median latency of {duration(fastest.p50_ns)}."
    )
    if info.still_growing:
        yield "That is still growing at the largest batch that was tried: a larger one may be faster."
    elif info.saturated_batch_size is not None and info.saturated_share is not None:
        yield (
            f"Batch {info.saturated_batch_size} is the smallest with at least {percent(info.saturated_share)} of that "
            "throughput."
        )
    full = [row.batch_size for row in rows if row.p50_ns is None]
    if full:
        yield f"Batch {full[0]} did not fit into memory."
    unsteady = [str(row.batch_size) for row in rows if row.steady is False]
    if unsteady:
        batches = f"batch {unsteady[0]}" if len(unsteady) == 1 else f"batches {', '.join(unsteady)}"
        yield f"The warm-up did not become steady at {batches}: another run may give other figures."
    if info.ended_by:
        yield f"The sweep ended early: {info.ended_by}"


def _table(rows: tuple[SweepRow, ...]) -> Table:
    most = max((row.samples_per_s or 0 for row in rows), default=0) or 1
    return Table(
        title="Latency and throughput",
        columns=(
            Column("batch", Kind.COUNT),
            Column("samples/s", Kind.COUNT),
            Column("of the highest", Kind.BAR),
            Column("p50", Kind.TIME),
            Column("p90", Kind.TIME),
            Column("min", Kind.TIME),
            Column("max", Kind.TIME),
            Column("peak allocated", Kind.MEMORY),
        ),
        rows=tuple(
            (
                row.batch_size, None if row.samples_per_s is None else round(row.samples_per_s),
                (row.samples_per_s or 0) / most, row.p50_ns, row.p90_ns, row.min_ns, row.max_ns,
                row.peak_allocated_bytes,
            )
            for row in rows
        ),
        brief=len(rows),
    )  # fmt: skip
