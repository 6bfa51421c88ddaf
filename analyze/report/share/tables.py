"""Every frame of a trace and every table of its report as files, for other scripts. See docs/tables.md."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import polars as pl
from msgspec import Struct

from analyze import schema
from analyze.blocks import Advice, Column, Kind, Table
from analyze.errors import OutputError
from analyze.report.about import TOOL
from analyze.report.files import refuse_no_folder
from analyze.report.report import Report

LIST = "tables.json"
FORMS = ("parquet", "csv")
_FRAMES: dict[str, schema.Schema] = {
    "threads": schema.THREADS, "ops": schema.OPS, "runtime": schema.RUNTIME, "activities": schema.LINKED,
    "launches": schema.LAUNCHES, "ranges": schema.RANGES, "frames": schema.FRAMES, "overhead": schema.OVERHEAD,
    "spans": schema.SPANS, "memory": schema.MEMORY, "steps": schema.STEPS, "collective_ops": schema.COLLECTIVE_OPS,
}  # fmt: skip
_KINDS: dict[Kind, tuple[pl.DataType | type[pl.DataType], str, str]] = {
    Kind.TEXT: (pl.String, "", "text"),
    Kind.CODE: (pl.String, "", "a name from the trace"),
    Kind.TIME: (pl.Int64, "_ns", "nanoseconds"),
    Kind.COUNT: (pl.Float64, "", "a number"),
    Kind.SHARE: (pl.Float64, "_share", "a share, 0 to 1"),
    Kind.BAR: (pl.Float64, "_bar", "a share, 0 to 1, as drawn"),
    Kind.MEMORY: (pl.Int64, "_bytes", "bytes"),
    Kind.FIGURE: (pl.String, "", "a number with its unit, as text"),
}
_WORDS = re.compile(r"[^a-z0-9]+")
_FORMULA = r"^[=+\-@\t\r]"


class _File(Struct, frozen=True):
    """A frame under the name of its file, with the meaning of each column."""

    name: str
    title: str
    frame: pl.DataFrame
    meanings: tuple[str, ...]


def write_tables(report: Report, folder: str | Path, form: str, *, force: bool = False) -> int:
    """Write all tables, and `tables.json`, which says what each column of each file is.

    Args:
        report: the report, whose trace is taken too.
        folder: where to; it is made where it is missing.
        form: parquet or csv.
        force: replace any file.

    Returns:
        How many tables were written.

    Raises:
        OutputError: a file there is not from here, or the folder cannot be written.
    """
    place, tables = Path(folder), [*_trace_frames(report), *_report_tables(report)]
    files = {f"{table.name}.{form}": table for table in tables}
    check_folder(place, force=force)
    _refuse_files(place, [*files, LIST], force=force)
    try:
        place.mkdir(parents=True, exist_ok=True)
        for name, table in files.items():
            half = place / f".{name}.half"
            if form == "parquet":
                table.frame.write_parquet(half)
            else:
                _inert(table.frame).write_csv(half)
            half.replace(place / name)
        (place / LIST).write_text(_described(files), encoding="utf-8")
    except OSError as error:
        raise OutputError(f"{folder} cannot be written: {error.strerror or error}.", "Check the folder.") from error
    return len(files)


def check_folder(folder: str | Path, *, force: bool = False) -> None:
    """Refuse a folder for tables before a long file is read.

    Raises:
        OutputError: it is a file, or holds a list of tables that is not from here.
    """
    refuse_no_folder(folder)
    _refuse_files(Path(folder), [LIST], force=force)


def _refuse_files(place: Path, names: list[str], *, force: bool) -> None:
    """Refuse to replace what is not in the list that this program left there."""
    ours = _listed(place)
    for name in names:
        if (place / name).exists() and name not in ours and not force:
            raise OutputError(
                f"{place / name} exists and is no table of {TOOL}.", "Choose another folder, or pass --force."
            )


def _listed(place: Path) -> set[str]:
    try:
        found = json.loads((place / LIST).read_text(encoding="utf-8"))
        return {LIST, *found["files"]} if found["tool"] == TOOL else set()
    except (OSError, ValueError, KeyError, TypeError):
        return set()


def _described(files: dict[str, _File]) -> str:
    listed = {
        name: {
            "title": table.title,
            "rows": table.frame.height,
            "columns": [
                {"name": column, "type": str(dtype), "meaning": meaning}
                for (column, dtype), meaning in zip(table.frame.schema.items(), table.meanings, strict=True)
            ],
        }
        for name, table in files.items()
    }
    return json.dumps({"tool": TOOL, "files": listed}, indent=1, ensure_ascii=False) + "\n"


def _trace_frames(report: Report) -> Iterator[_File]:
    trace = report.measures.trace
    for name, columns in _FRAMES.items():
        frame: pl.DataFrame = getattr(trace, name)
        yield _File(
            f"trace_{name}",
            f"frame `{name}` of the trace",
            frame.select(schema.names(columns)),
            tuple(column.meaning for column in columns),
        )


def _report_tables(report: Report) -> Iterator[_File]:
    """The ledger, and every table of every section, numbered where two have one name."""
    yield _File(
        "report_ledger",
        "where the window goes",
        report.ledger,
        ("what the device did", "nanoseconds", "share of the window, 0 to 1", "the device idles in it"),
    )
    seen: dict[str, int] = {}
    for name, table in _tables(report):
        seen[name] = seen.get(name, 0) + 1
        yield _as_frame(name if seen[name] == 1 else f"{name}_{seen[name]}", table)


def _tables(report: Report) -> Iterator[tuple[str, Table]]:
    for section in report.page.sections:
        for block in section.blocks:
            if isinstance(block, Table):
                yield f"report_{_slug(section.id)}_{_slug(block.title)}", block
            elif isinstance(block, Advice):
                for one in block.suggestions:
                    for table in one.evidence:
                        yield f"finding_{_slug(one.id)}_{_slug(table.title)}", table


def _as_frame(name: str, table: Table) -> _File:
    names: list[str] = []
    for column in table.columns:
        base = _column_name(column)
        names.append(base if base not in names else f"{base}_{len(names) + 1}")
    data = {
        name: pl.Series([_cell(row[i], column.kind) for row in table.rows], dtype=_KINDS[column.kind][0])
        for i, (name, column) in enumerate(zip(names, table.columns, strict=True))
    }
    meanings = tuple(f"{column.head or 'rows'}: {_KINDS[column.kind][2]}" for column in table.columns)
    return _File(name, table.title, pl.DataFrame(data), meanings)


def _cell(value: str | float | None, kind: Kind) -> str | int | float | None:
    """A cell as its column's type; a text in a column of numbers says that there is none."""
    if _KINDS[kind][0] is pl.String:
        return None if value is None else str(value)
    if value is None or isinstance(value, str):
        return None
    return round(value) if _KINDS[kind][0] is pl.Int64 else float(value)


def _column_name(column: Column) -> str:
    name, ending = _slug(column.head) or "column", _KINDS[column.kind][1]
    return name if name.endswith(ending) else name + ending


def _slug(text: str) -> str:
    return _WORDS.sub("_", text.lower()).strip("_")[:60]


def _inert(frame: pl.DataFrame) -> pl.DataFrame:
    """Texts that a spreadsheet would run as a formula begin with an apostrophe."""
    texts = [name for name, dtype in frame.schema.items() if dtype in (pl.String, pl.Categorical)]
    return frame.with_columns(
        pl.when(pl.col(name).cast(pl.String).str.contains(_FORMULA))
        .then("'" + pl.col(name).cast(pl.String))
        .otherwise(pl.col(name).cast(pl.String))
        .alias(name)
        for name in texts
    )
