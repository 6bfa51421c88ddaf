"""A trace that can be given away: by lists of what stays, so that nothing unknown passes. See docs/redaction.md."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec

from analyze.report.redact.policy import Redaction
from analyze.report.redact.traces import columns
from analyze.report.share.kinds import Taken
from analyze.report.share.rows import Row
from analyze.trace.classes import LEGACY_PID, MEMORY_NAME, RowKind, is_phase, row_of, table_of

_Text = Callable[[str], str]
_NUMBER = re.compile(rb"-?\d[\d.eE+-]*|true|false|null")
_NUMBER_TEXT = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|-?inf|nan|N/A|true|false|0x[0-9a-fA-F]+|")
_ROW_KEYS = frozenset(("ph", "cat", "name", "pid", "tid", "ts", "dur", "id", "bp", "s", "args"))
_COLUMN_ARGS = {
    "Input Dims": "input_dims", "Input type": "input_types", "Concrete Inputs": "concrete_inputs",
    "grid": "grid", "block": "block", "Collective name": "collective", "dtype": "element_type",
    "Process Group Name": "group", "Process Group Description": "group_description",
    "Process Group Ranks": "group_ranks",
}  # fmt: skip
_NUMBER_ARGS = frozenset(
    (
        "device", "stream", "correlation", "External id", "external id", "bytes", "registers per thread",
        "shared memory", "graph id", "graph node id", "Sequence number", "Fwd thread id", "Python id",
        "Python parent id", "Python module id", "Bytes", "Addr", "Total Allocated", "Total Reserved", "Device Type",
        "Device Id", "In msg nelems", "Out msg nelems", "Group size", "Seq", "Src Rank", "Dst Rank", "Rank", "context",
        "queued", "blocks per SM", "warps per SM", "est. achieved occupancy %", "cbid", "cid", "Ev Idx",
        "Record function id", "Input Strides", "memory bandwidth (GB/s)", "priority", "sort_index", "Trace iteration",
        "wait_on_stream", "wait_on_cuda_event_record_corr_id", "wait_on_cuda_event_id", "fromDevice", "inDevice",
        "toDevice", "finished", "kind", "size", "num_warps", "num_stages", "Profiler Event Index",
    )
)  # fmt: skip
_TABLES = {
    RowKind.OP: "ops", RowKind.API: "runtime", RowKind.ACTIVITY: "activities", RowKind.RANGE: "ranges",
    RowKind.FRAME: "frames", RowKind.OVERHEAD: "overhead", RowKind.SPAN: "spans",
}  # fmt: skip
_IDS = re.compile(rf"Spans|Traces|{LEGACY_PID}|CUDA functions|(?:Trace )?PyTorch Profiler(?: \(\d+\))?|-?\d+|"
                  r"stream -?\d+ ?| ?node_id:\d+, thread_id:\d+ ?|GPU \d+ Counters|")  # fmt: skip
_GROUPED = re.compile(r"\[(?P<group>.*)\] (?P<pid>.*)", re.DOTALL)
_META = ("process_name", "process_labels", "process_sort_index", "thread_name", "thread_sort_index")
_LABEL = re.compile(r"python\d?(?:\.\d+)?|GPU \d+|CPU|stream -?\d+ ?(?:\(sync\))?|thread \d+|\d+|")
_VIEWS = frozenset(
    (
        "ac2g", "fwdbwd", "async_gpu", "async", "launch", "forward_backward", "fwd_bwd", "cpu_to_cuda", "Event Sync",
        "Stream Wait Event", "Stream Sync", "Context Sync", MEMORY_NAME, "[OutOfMemory]", "Record Window End",
    )
)  # fmt: skip


class Sharing:
    """Takes rows and keys, returns them redacted, and counts what went.

    Attributes:
        redaction: what has a pseudonym.
        taken: what went.
    """

    def __init__(self, redaction: Redaction) -> None:
        self.redaction = redaction
        self.taken = Taken()
        self._columns = columns(redaction)
        self._known: dict[tuple[str, bytes], tuple[msgspec.Raw, bool]] = {}

    def row(self, row: Row) -> Row:
        """One row: known keys only, each text by its kind."""
        for key in row.keys() - _ROW_KEYS:
            self.taken.drop("unknown row key", f"{key}={_readable(row[key])}")
        ph, cat, name = (_text(row.get(key)) for key in ("ph", "cat", "name"))
        kind = row_of(ph, cat, name, _text(row.get("pid")))
        if kind in (RowKind.IGNORED, RowKind.UNKNOWN):
            kind = table_of(cat) if table_of(cat) in _TABLES else kind
        table = _TABLES.get(kind, "")
        found: Row = {}
        for key, raw in row.items():
            if key == "args":
                found[key] = self._args(raw, table, meta=kind is RowKind.META)
            elif key in ("ts", "dur"):
                found[key] = self._changed(key, _NO_NUMBER, raw, _number)
            elif key == "name":
                how = self._name_of(table, cat, meta=kind is RowKind.META)
                found[key] = self._changed(f"name {table} {cat} {kind}", "name", raw, how)
            elif key in _ROW_KEYS:
                found[key] = self._changed(key, _KINDS[key], raw, getattr(self, f"_{key}"))
        return found

    def _args(self, raw: msgspec.Raw, table: str, *, meta: bool) -> msgspec.Raw:
        try:
            args: Row = msgspec.json.decode(raw, type=Row)
        except (msgspec.MsgspecError, RecursionError):
            return self._changed("args", "argument value", raw, _number)  # of the same kind, which makes the row odd
        found: Row = {}
        for key, value in args.items():
            how = self._arg(key, table, meta=meta)
            if how is None:
                self.taken.drop("argument", f"{key}={_readable(value)}")
            else:
                found[key] = self._changed(f"args {table} {key}", "argument value", value, how)
        return msgspec.Raw(msgspec.json.encode(found))

    def _arg(self, key: str, table: str, *, meta: bool) -> Callable[[Any], Any] | None:
        """What happens to the value of an argument, None where it goes."""
        if meta:
            return self._label if key in ("name", "labels") else _number if key == "sort_index" else None
        if key in _NUMBER_ARGS:
            return _number
        column = _COLUMN_ARGS.get(key)
        where = table if (table, column) in self._columns else "collective_ops" if table else ""
        how = self._columns.get((where, column)) if column else None
        if how is None and column in ("grid", "block"):
            how = self.redaction.shape
        if how is None:
            return None
        of_text = how
        if column in ("input_dims", "input_types", "concrete_inputs", "grid", "block"):
            return lambda value: msgspec.Raw((of_text(msgspec.json.encode(value).decode()) or '""').encode())
        return lambda value: of_text(value) if isinstance(value, str) else _number(value)

    def _changed(self, key: str, kind: str, raw: msgspec.Raw, how: Callable[[Any], Any]) -> msgspec.Raw:
        """A value through a function, once for each text; counted where it changed."""
        text = bytes(raw)
        if _NUMBER.fullmatch(text):
            return raw
        known = self._known.get((key, text))
        if known is None:
            value = msgspec.json.decode(text)
            made = how(value)
            known = msgspec.Raw(msgspec.json.encode(made)), not isinstance(made, msgspec.Raw) and made != value
            if isinstance(made, msgspec.Raw):
                known = made, msgspec.json.decode(made) != value
            if len(self._known) > _MOST_KNOWN:
                self._known.clear()
            self._known[key, text] = known
            if known[1]:
                self.taken.look(_readable(raw))
        self.taken.changed[kind] += known[1]
        return known[0]

    def _name_of(self, table: str, cat: str, *, meta: bool) -> Callable[[Any], Any]:
        how: _Text = self._columns.get((table, "name"), _view)
        if cat.lower() in ("gpu_user_annotation", "user"):
            how = self.redaction.range
        if meta:
            how = _meta
        return lambda value: how(value) if isinstance(value, str) else _number(value)

    def _cat(self, value: Any) -> Any:
        if not isinstance(value, str):
            return _number(value)
        known = row_of("X", value, "", "") is not RowKind.UNKNOWN or table_of(value) is RowKind.IGNORED
        return value if known else self.redaction.pseudonym("category", value)

    def _ph(self, value: Any) -> Any:
        if not isinstance(value, str):
            return _number(value)
        return value if is_phase(value) or not value else "?"

    def _bp(self, value: Any) -> Any:
        return value if value == "e" else ""

    def _s(self, value: Any) -> Any:
        return value if value in ("g", "t", "p") else "t"

    def _id(self, value: Any) -> Any:
        if not isinstance(value, str):
            return _number(value)
        return value if _NUMBER_TEXT.fullmatch(value) else self.redaction.pseudonym("id", value)

    def _pid(self, value: Any) -> Any:
        if not isinstance(value, str):
            return _number(value)
        grouped = _GROUPED.fullmatch(value)
        if grouped is not None:
            return f"[{self.redaction.process(grouped['group'])}] {self._pid(grouped['pid'])}"
        return value if _IDS.fullmatch(value) else self.redaction.pseudonym("process", value)

    def _tid(self, value: Any) -> Any:
        if not isinstance(value, str):
            return _number(value)
        return value if _IDS.fullmatch(value) else self.redaction.pseudonym("thread", value)

    def _label(self, value: Any) -> Any:
        if not isinstance(value, str):
            return _number(value)
        if _LABEL.fullmatch(value):
            return value
        found = re.match(r"thread -?\d+", value)
        return found[0] if found else "process"


_NO_NUMBER = "text in place of a number"
_KINDS = {"ph": "phase", "cat": "category", "pid": "process name", "tid": "thread name", "id": "id", "bp": _NO_NUMBER,
          "s": _NO_NUMBER}  # fmt: skip
_MOST_KNOWN = 1 << 17


def _meta(name: str) -> str:
    return name if name in _META else "metadata"


def _view(name: str) -> str:
    return name if name in _VIEWS else "row"


def _readable(raw: msgspec.Raw) -> str:
    return bytes(raw).decode("utf-8", "replace")


def _text(raw: msgspec.Raw | None) -> str:
    try:
        value = None if raw is None else msgspec.json.decode(raw)
    except (msgspec.MsgspecError, RecursionError):
        return ""
    return value if isinstance(value, str) else ""


def _number(value: Any) -> Any:
    """Numbers, truth values and lists of them; of texts those that are a number. The type stays: rows depend on it."""
    if isinstance(value, str):
        return value if _NUMBER_TEXT.fullmatch(value) else ""
    if isinstance(value, list):
        return [_number(item) for item in value]
    return {} if isinstance(value, dict) else value
