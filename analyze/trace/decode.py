"""Pieces of JSON become events: typed and strict first, one rung more lenient at each failure."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import msgspec
import orjson

from analyze.trace.clock import NULL
from analyze.trace.metadata import Keys

_RAW_NULL = msgspec.Raw(b"")


class Args(msgspec.Struct, frozen=True, gc=False):
    """The args that some figure uses; all other keys are skipped without making objects."""

    device: Any = NULL
    stream: Any = NULL
    correlation: Any = NULL
    external_id: Any = msgspec.field(default=NULL, name="External id")
    external_id_1_8: Any = msgspec.field(default=NULL, name="external id")
    size_bytes: Any = msgspec.field(default=NULL, name="bytes")
    grid: msgspec.Raw = _RAW_NULL
    block: msgspec.Raw = _RAW_NULL
    registers: Any = msgspec.field(default=NULL, name="registers per thread")
    shared_memory_bytes: Any = msgspec.field(default=NULL, name="shared memory")
    graph: Any = msgspec.field(default=NULL, name="graph id")
    sequence: Any = msgspec.field(default=NULL, name="Sequence number")
    forward_thread: Any = msgspec.field(default=NULL, name="Fwd thread id")
    input_dims: msgspec.Raw = msgspec.field(default=_RAW_NULL, name="Input Dims")
    input_types: msgspec.Raw = msgspec.field(default=_RAW_NULL, name="Input type")
    concrete_inputs: msgspec.Raw = msgspec.field(default=_RAW_NULL, name="Concrete Inputs")
    python_id: Any = msgspec.field(default=NULL, name="Python id")
    parent_id: Any = msgspec.field(default=NULL, name="Python parent id")
    memory_bytes: Any = msgspec.field(default=NULL, name="Bytes")
    address: Any = msgspec.field(default=NULL, name="Addr")
    allocated_bytes: Any = msgspec.field(default=NULL, name="Total Allocated")
    reserved_bytes: Any = msgspec.field(default=NULL, name="Total Reserved")
    device_type: Any = msgspec.field(default=NULL, name="Device Type")
    device_index: Any = msgspec.field(default=NULL, name="Device Id")
    collective: Any = msgspec.field(default=None, name="Collective name")
    in_elements: Any = msgspec.field(default=NULL, name="In msg nelems")
    out_elements: Any = msgspec.field(default=NULL, name="Out msg nelems")
    element_type: Any = msgspec.field(default=None, name="dtype")
    label: Any = msgspec.field(default=None, name="name")


NO_ARGS = Args()


class Event(msgspec.Struct, gc=False):
    """One row of `traceEvents`."""

    ph: str = ""
    cat: str = ""
    name: str = ""
    pid: Any = None
    tid: Any = None
    ts: Any = None
    dur: Any = None
    args: Args = NO_ARGS


class TextEvent(Event, gc=False):
    """The same with the digits of `ts` kept: for absolute microseconds with a fraction."""

    ts: msgspec.Raw = _RAW_NULL


class _Document(Keys, kw_only=True):
    traceEvents: list[Event]  # noqa: N815 - the key's own spelling


class _TextDocument(Keys, kw_only=True):
    traceEvents: list[TextEvent]  # noqa: N815


@dataclass
class Damage:
    """What the lenient rungs did.

    Attributes:
        repaired: events whose text was mended; their names are approximate.
        lost: events that could not be read.
        cut: the document ends before its events do.
    """

    repaired: int = 0
    lost: int = 0
    cut: bool = False

    def __add__(self, later: Damage) -> Damage:
        """The damage of two stretches, the later one ending the document."""
        return Damage(self.repaired + later.repaired, self.lost + later.lost, later.cut)


@dataclass
class Decoder:
    """Decodes pieces of one document, and remembers how the document has to be read.

    Attributes:
        exact_text: times are kept as text.
        damage: what had to be mended so far.
    """

    exact_text: bool = False
    damage: Damage = field(default_factory=Damage)
    _list: msgspec.json.Decoder[list[Event]] = field(default_factory=lambda: msgspec.json.Decoder(list[Event]))
    _document: msgspec.json.Decoder[_Document] = field(default_factory=lambda: msgspec.json.Decoder(_Document))

    def keep_text(self) -> None:
        """From now on decode times as text."""
        self.exact_text = True
        self._list = msgspec.json.Decoder(list[TextEvent])
        self._document = msgspec.json.Decoder(_TextDocument)

    def piece(self, piece: bytes) -> list[Event] | None:
        """The events of a piece, or None when it is not a sequence of whole, sound events."""
        text = b"[" + piece + b"]"
        try:
            return self._list.decode(text)
        except msgspec.DecodeError:
            return self._from_objects(text)

    def last(self, piece: bytes, *, bare_list: bool) -> tuple[list[Event], dict[str, Any]] | None:
        """The events of the last piece and the keys after them, or None when it is not sound to its end."""
        try:
            if bare_list:
                return self._list.decode(b"[" + piece), {}
            document = self._document.decode(b'{"traceEvents":[' + piece)
        except msgspec.DecodeError:
            return None
        keys = {name: getattr(document, name) for name in Keys.__struct_fields__}
        return document.traceEvents, {name: value for name, value in keys.items() if value is not None}

    def salvage(self, piece: bytes, separator: bytes) -> tuple[list[Event], bytes | None]:
        """Every event of a damaged piece that can be read.

        Args:
            piece: the piece.
            separator: the text that the file has between two events.

        Returns:
            The events, and the text from the `]` that ends the list, or None when the list does not end here.
        """
        text = piece.decode("utf-8", "replace")
        mark = "}" + separator.decode() + "{"
        scan = json.JSONDecoder(strict=False, parse_float=Decimal)
        events: list[Event] = []
        at = 0
        while True:
            at = _skip(text, at)
            if at >= len(text):
                return events, None
            if text[at] == "]":
                if _LIST_END.match(text, at):
                    return events, text[at:].encode()
                at = _resume(text, at, mark)
                continue
            end = _end_of_event(text, at, mark)
            row, stop, swallowed = _read(scan, text, at, end)
            self.damage.lost += swallowed + (row is None)
            if row is not None:
                self.damage.repaired += stop < 0 or _ODD_TEXT.search(str(row.get("name"))) is not None
                events.append(self._event(row))
            at = stop if stop > at else end

    def _from_objects(self, text: bytes) -> list[Event] | None:
        try:
            rows = json.loads(text, parse_float=Decimal) if self.exact_text else orjson.loads(text)
        except ValueError:
            return None
        self.damage.lost += sum(not isinstance(row, dict) for row in rows)
        return [self._event(row) for row in rows if isinstance(row, dict)]

    def _event(self, row: dict[str, Any]) -> Event:
        """An event of a row whose values may have any type."""
        given = row.get("args")
        args = _args(given) if isinstance(given, dict) else NO_ARGS
        pid, tid = (value if isinstance(value, int | str) else None for value in (row.get("pid"), row.get("tid")))
        ph, cat, name = (_sound(str(row.get(key) or "")) for key in ("ph", "cat", "name"))
        ts = row.get("ts")
        ts = str(ts) if isinstance(ts, Decimal) else ts
        if self.exact_text:
            ts = msgspec.Raw(b"" if ts is None else str(ts).encode())
            return TextEvent(ph=ph, cat=cat, name=name, pid=pid, tid=tid, ts=ts, dur=row.get("dur"), args=args)
        return Event(ph=ph, cat=cat, name=name, pid=pid, tid=tid, ts=ts, dur=row.get("dur"), args=args)


def _args(given: dict[str, Any]) -> Args:
    values: dict[str, Any] = {}
    for spec in msgspec.structs.fields(Args):
        if spec.encode_name in given:
            value = given[spec.encode_name]
            values[spec.name] = (
                msgspec.Raw(json.dumps(value, default=str).encode()) if spec.type is msgspec.Raw else value
            )
    return Args(**values)


def _sound(text: str) -> str:
    """The text without lone surrogates, which no encoding can hold."""
    return text.encode("utf-8", "replace").decode()


def _end_of_event(text: str, at: int, mark: str) -> int:
    """Where a damaged event ends at the latest: at the file's own separator, or one of any layout if that is far."""
    end = text.find(mark, at, at + _MEND_LIMIT)
    if end < 0:
        other = _ANY_SEPARATOR.search(text, at, at + _MEND_LIMIT)
        end = other.start() if other else min(at + _MEND_LIMIT, len(text)) - 1
    return end + 1


def _resume(text: str, at: int, mark: str) -> int:
    """Where to go on behind a stray `]`: at the event right behind it, else behind the next end of an event."""
    stray = _STRAY_END.match(text, at)
    if stray:
        return stray.end()
    return _end_of_event(text, at, mark)


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n,":
        at += 1
    return at


def _read(scan: json.JSONDecoder, text: str, at: int, end: int) -> tuple[dict[str, Any] | None, int, int]:
    """One event at `at`: as it stands, with its end; else mended up to `end`, with -1 and how many events that took."""
    try:
        row, stop = scan.raw_decode(text, at)
    except (ValueError, RecursionError):
        row, rest = _mend(scan, text[at:end])
        return (row if isinstance(row, dict) else None), -1, len(_EVENT.findall(rest))
    return (row, stop, 0) if isinstance(row, dict) else (None, stop, 0)


_REPAIRS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r'\\(?!["\\/bfnrt]|u[0-9a-fA-F]{4})'), r"\\\\"),  # Windows paths
    (re.compile(r":\s*(0x[0-9a-fA-F]+)"), r': "\1"'),  # bare hexadecimal numbers of early ROCm
    (re.compile(r":\s*[-+]?(?:inf|nan)\b"), ": null"),
    (re.compile(r",(\s*[}\]])"), r"\1"),
)
_LIST_END = re.compile(r'\](?:\s*,\s*"|[\s}]*\Z)')  # anything else behind a `]` says that it is a stray one
_STRAY_END = re.compile(r"\][\s,\]]*(?=\{)")
_MEND_LIMIT = 1 << 16  # no event that is worth mending is longer, and mending takes time with the length
_ANY_SEPARATOR = re.compile(r"\}\s*,\s*\{")
_EVENT = re.compile(r'\{\s*"(?:ph|cat|name|pid|tid|ts|dur|args|id)"\s*:')
_ODD_TEXT = re.compile("[\x00-\x1f\ufffd]")
_NAME = re.compile(r'("name"\s*:\s*")(.{0,4096}?)("\s*,\s*"(?:ph|cat|pid|tid|ts|dur|args|id)"\s*:)', re.DOTALL)


def _mend(scan: json.JSONDecoder, text: str) -> tuple[Any, str]:
    """Try the known writer defects one after the other; None when none of them is the cause. Also what is left over."""
    mended = _NAME.sub(lambda m: m[1] + json.dumps(_unescape(m[2]))[1:-1] + m[3], text)
    for pattern, replacement in ((None, ""), *_REPAIRS):
        if pattern is not None:
            mended = pattern.sub(replacement, mended)
        try:
            row, stop = scan.raw_decode(mended)
        except (ValueError, RecursionError):
            continue
        return row, mended[stop:]
    return None, text[1:]


def _unescape(name: str) -> str:
    """The name behind the writer's escapes, as far as there are sound ones."""
    return name.replace('\\"', '"').replace("\\\\", "\\")
