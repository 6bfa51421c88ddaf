"""Pieces of JSON become events: typed and strict first, one rung more lenient at each failure.

Every value is checked here by its type: the strict rung refuses a piece with a value of another type, and the lenient
ones leave such a value out and count it (`Odd`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import msgspec
import orjson
from msgspec import Struct, field

from analyze.trace.clock import NULL
from analyze.trace.metadata import Keys, values_of
from analyze.trace.numbers import decimal_of, integer_of
from analyze.trace.odd import Odd, is_absent, shown
from analyze.trace.texts import sound

_RAW_NULL = msgspec.Raw(b"")
_Scalar = int | float | str | None


class Args(msgspec.Struct, frozen=True, gc=False):
    """The args that some figure uses; all other keys are skipped without making objects."""

    device: _Scalar = NULL
    stream: _Scalar = NULL
    correlation: _Scalar = NULL
    external_id: _Scalar = msgspec.field(default=NULL, name="External id")
    external_id_1_8: _Scalar = msgspec.field(default=NULL, name="external id")
    size_bytes: _Scalar = msgspec.field(default=NULL, name="bytes")
    grid: msgspec.Raw = _RAW_NULL
    block: msgspec.Raw = _RAW_NULL
    registers: _Scalar = msgspec.field(default=NULL, name="registers per thread")
    shared_memory_bytes: _Scalar = msgspec.field(default=NULL, name="shared memory")
    graph: _Scalar = msgspec.field(default=NULL, name="graph id")
    sequence: _Scalar = msgspec.field(default=NULL, name="Sequence number")
    forward_thread: _Scalar = msgspec.field(default=NULL, name="Fwd thread id")
    input_dims: msgspec.Raw = msgspec.field(default=_RAW_NULL, name="Input Dims")
    input_types: msgspec.Raw = msgspec.field(default=_RAW_NULL, name="Input type")
    concrete_inputs: msgspec.Raw = msgspec.field(default=_RAW_NULL, name="Concrete Inputs")
    python_id: _Scalar = msgspec.field(default=NULL, name="Python id")
    parent_id: _Scalar = msgspec.field(default=NULL, name="Python parent id")
    memory_bytes: _Scalar = msgspec.field(default=NULL, name="Bytes")
    address: _Scalar = msgspec.field(default=NULL, name="Addr")
    allocated_bytes: _Scalar = msgspec.field(default=NULL, name="Total Allocated")
    reserved_bytes: _Scalar = msgspec.field(default=NULL, name="Total Reserved")
    device_type: _Scalar = msgspec.field(default=NULL, name="Device Type")
    device_index: _Scalar = msgspec.field(default=NULL, name="Device Id")
    collective: _Scalar = msgspec.field(default=None, name="Collective name")
    in_elements: _Scalar = msgspec.field(default=NULL, name="In msg nelems")
    out_elements: _Scalar = msgspec.field(default=NULL, name="Out msg nelems")
    element_type: _Scalar = msgspec.field(default=None, name="dtype")
    group: _Scalar = msgspec.field(default=None, name="Process Group Name")
    group_description: _Scalar = msgspec.field(default=None, name="Process Group Description")
    group_ranks: msgspec.Raw = msgspec.field(default=_RAW_NULL, name="Process Group Ranks")
    group_size: _Scalar = msgspec.field(default=NULL, name="Group size")
    group_sequence: _Scalar = msgspec.field(default=NULL, name="Seq")
    source_rank: _Scalar = msgspec.field(default=NULL, name="Src Rank")
    target_rank: _Scalar = msgspec.field(default=NULL, name="Dst Rank")
    label: _Scalar = msgspec.field(default=None, name="name")


NO_ARGS = Args()
_ARGS = tuple((spec.encode_name, spec.name, spec.type is msgspec.Raw) for spec in msgspec.structs.fields(Args))


class Event(msgspec.Struct, gc=False):
    """One row of `traceEvents`."""

    ph: str = ""
    cat: str = ""
    name: str = ""
    pid: int | str | None = None
    tid: int | str | None = None
    ts: _Scalar = None
    dur: _Scalar = None
    args: Args = NO_ARGS


class TextEvent(Event, gc=False):
    """The same with the digits of `ts` kept: for absolute microseconds with a fraction."""

    ts: msgspec.Raw = _RAW_NULL  # type: ignore[assignment]


class _Document(Keys, kw_only=True):
    traceEvents: list[Event]  # noqa: N815 - the key's own spelling


class _TextDocument(Keys, kw_only=True):
    traceEvents: list[TextEvent]  # noqa: N815


class Damage(Struct):
    """What the lenient rungs did.

    Attributes:
        repaired: events whose text was repaired; their names are approximate.
        lost: events that could not be read.
        cut: the document ends before its events do.
        example: the beginning of the first lost event.
        odd: values that were left out.
    """

    repaired: int = 0
    lost: int = 0
    cut: bool = False
    example: str = ""
    odd: Odd = field(default_factory=Odd)

    def __add__(self, later: Damage) -> Damage:
        """The damage of two stretches, the later one ending the document."""
        return Damage(
            self.repaired + later.repaired,
            self.lost + later.lost,
            later.cut,
            self.example or later.example,
            self.odd + later.odd,
        )

    def lose(self, text: str, count: int = 1) -> None:
        """Count events that could not be read."""
        self.lost += count
        self.example = self.example or ascii(text[:_SHOWN])


class Decoded(Struct):
    """What a piece holds.

    Attributes:
        events: its rows.
        damage: what that took, None where the piece is sound.
    """

    events: list[Event]
    damage: Damage | None = None


_SHOWN = 60
_EXACT = 2**53
_FAILURES = (msgspec.DecodeError, RecursionError)


class Decoder:
    """Decodes pieces of one document, and remembers how the document has to be read.

    Attributes:
        exact_text: times are kept as text.
    """

    def __init__(self) -> None:
        self.exact_text = False
        self._list: msgspec.json.Decoder[list[Event]] = msgspec.json.Decoder(list[Event])
        self._document: msgspec.json.Decoder[Any] = msgspec.json.Decoder(_Document)

    def keep_text(self) -> None:
        """From now on decode times as text."""
        self.exact_text = True
        self._list = msgspec.json.Decoder(list[TextEvent])
        self._document = msgspec.json.Decoder(_TextDocument)

    def piece(self, piece: bytes) -> Decoded | None:
        """The events of a piece, or None when it is not a sequence of whole, sound events."""
        text = b"[" + piece + b"]"
        try:
            return Decoded(self._list.decode(text))
        except _FAILURES:
            return self._from_objects(text)

    def last(self, piece: bytes, *, bare_list: bool) -> tuple[Decoded, dict[str, Any]] | None:
        """The events of the last piece and the keys after them, or None when it is not sound to its end."""
        if b'"traceEvents"' in piece:
            return None  # a second list, or what looks like one
        try:
            if bare_list:
                return Decoded(self._list.decode(b"[" + piece)), {}
            document = self._document.decode(b'{"traceEvents":[' + piece)
        except _FAILURES:
            return None
        return Decoded(document.traceEvents), values_of(document)

    def _from_objects(self, text: bytes) -> Decoded | None:
        try:
            rows = loads(text) if self.exact_text else orjson.loads(text)
        except (ValueError, RecursionError):
            return None
        return events_of(rows, exact_text=self.exact_text)


def loads(text: bytes) -> Any:
    """JSON with the digits of its numbers."""
    return json.loads(text, parse_float=decimal_of, parse_int=integer_of)


def events_of(rows: list[Any], *, exact_text: bool) -> Decoded:
    """The events of rows whose values may have any type; what is no row is lost."""
    found = Decoded([], Damage())
    assert found.damage is not None
    sound_rows = [row for row in rows if isinstance(row, dict)]
    found.events = [event_of(row, found.damage.odd, exact_text=exact_text) for row in sound_rows]
    if len(sound_rows) < len(rows):
        first = next(row for row in rows if not isinstance(row, dict))
        found.damage.lose(shown(first), len(rows) - len(sound_rows))
    return found


def event_of(row: Mapping[str, Any], odd: Odd, *, exact_text: bool) -> Event:
    """An event of a row whose values may have any type."""
    ph, cat, name = (_text(row, key, odd) for key in ("ph", "cat", "name"))
    pid, tid = (_identity(row, key, odd) for key in ("pid", "tid"))
    ts, dur = (_scalar(key, row.get(key), odd) for key in ("ts", "dur"))
    args = _args(row.get("args"), odd)
    ts = str(ts) if isinstance(ts, Decimal) else ts
    if exact_text:
        raw = msgspec.Raw(b"" if ts is None else sound(str(ts)).encode())
        return TextEvent(ph=ph, cat=cat, name=name, pid=pid, tid=tid, ts=raw, dur=dur, args=args)
    return Event(ph=ph, cat=cat, name=name, pid=pid, tid=tid, ts=ts, dur=dur, args=args)


def _text(row: Mapping[str, Any], key: str, odd: Odd) -> str:
    value = row.get(key)
    if isinstance(value, str):
        return sound(value)
    if value is None:
        return ""
    if key == "name" and isinstance(value, int | float | Decimal):
        return str(value)
    odd.note(key, value)
    return ""


def _identity(row: Mapping[str, Any], key: str, odd: Odd) -> int | str | None:
    """A process or thread: a number or a text."""
    value: Any = row.get(key)
    if isinstance(value, str):
        return sound(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, float | Decimal) and -_EXACT < value < _EXACT and value == int(value):
        return int(value)
    if value is not None:
        odd.note(key, value)
    return None


def _scalar(key: str, value: Any, odd: Odd) -> Any:
    if isinstance(value, str):
        return sound(value)
    if value is None or (isinstance(value, int | float | Decimal) and not isinstance(value, bool)):
        return value
    odd.note(key, value)
    return None


def _args(given: Any, odd: Odd) -> Args:
    if not given or not isinstance(given, dict):
        if given:
            odd.note("args", given)
        return NO_ARGS
    values: dict[str, Any] = {}
    for key, name, raw in _ARGS:
        if key in given:
            values[name] = _raw(key, given[key], odd) if raw else _scalar(key, given[key], odd)
    return Args(**values)


def _raw(key: str, value: Any, odd: Odd) -> msgspec.Raw:
    """A value as JSON text again."""
    if is_absent(value):
        return _RAW_NULL
    try:
        return msgspec.Raw(orjson.dumps(value, default=float))
    except (TypeError, ValueError):  # deeper than 254 levels, lone surrogates, integers beyond 64 bits
        odd.note(key, value)
        return _RAW_NULL
