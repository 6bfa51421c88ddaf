"""The rows of a document one piece at a time, each value as the text that the file has: no digit of a time changes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from analyze.errors import DamagedTraceError, NotATraceError
from analyze.trace.pieces import Layout, split
from analyze.trace.source import Source

Row = dict[str, msgspec.Raw]
_ROWS: msgspec.json.Decoder[list[Row]] = msgspec.json.Decoder(list[Row])
_KEYS: msgspec.json.Decoder[Row] = msgspec.json.Decoder(Row)
_FAILURES = (msgspec.MsgspecError, ValueError, RecursionError)


class Rows:
    """A document that is read once, piece by piece.

    Attributes:
        name: base name of the file.
        before: keys before the events; known once the first rows were taken.
        after: keys behind them; known once all rows were taken.
    """

    def __init__(self, path: str | Path, *, trusted: bool = False) -> None:
        self._source = Source(path, trusted=trusted)
        self.name = self._source.name
        self._layout = Layout(self.name)
        self.before: Row = {}
        self.after: Row = {}

    def pieces(self) -> Iterator[list[Row]]:
        """The rows of each piece of the file.

        Raises:
            DamagedTraceError: a part of the document is no JSON, or the document is cut.
        """
        pieces, waiting = split(self._source.blocks(), self._layout), b""
        piece = next(pieces)
        self.before = self._keys_before()
        for following in pieces:
            joined = waiting + (self._layout.separator if waiting else b"") + piece
            found = _rows(b"[" + joined + b"]")
            if found is None and waiting:
                raise self._damaged()
            waiting = joined if found is None else b""
            yield found or []
            piece = following
        yield self._last(waiting + (self._layout.separator if waiting else b"") + piece)

    def _last(self, piece: bytes) -> list[Row]:
        if self._source.cut is not None or b'"traceEvents"' in piece:
            raise self._damaged()
        if self._layout.bare_list:
            found = _rows(b"[" + piece)
        else:
            keys = _keys(b'{"traceEvents":[' + piece)
            found = None if keys is None else _rows(bytes(keys.pop("traceEvents")))
            self.after = keys or {}
        if found is None:
            raise self._damaged()
        return found

    def _keys_before(self) -> Row:
        if self._layout.bare_list:
            return {}
        found = _keys(self._layout.head + b"]}")
        if found is None:
            raise self._damaged()
        found.pop("traceEvents", None)
        return found

    def _damaged(self) -> DamagedTraceError:
        return DamagedTraceError(
            f"{self.name} is cut, or holds what is no valid JSON: no redacted copy can be proven equal to it.",
            "Export the trace again, or share a report of it: analyze TRACE --redact -o report.html",
        )


def _rows(text: bytes) -> list[Row] | None:
    try:
        return _ROWS.decode(text)
    except _FAILURES:
        found = _lenient(text)
        if not isinstance(found, list) or not all(isinstance(row, dict) for row in found):
            return None
        return [_raw(row) for row in found]


def _keys(text: bytes) -> Row | None:
    try:
        return _KEYS.decode(text)
    except _FAILURES:
        found = _lenient(text)
        return _raw(found) if isinstance(found, dict) else None


def _lenient(text: bytes) -> Any:
    """JSON with control characters, damaged bytes and numbers that are none; the digits of numbers stay."""
    try:
        return json.loads(
            text.decode("utf-8", "replace"), strict=False, parse_float=_digits, parse_int=_digits, parse_constant=str
        )
    except (ValueError, RecursionError):
        return None


def _digits(text: str) -> msgspec.Raw:
    return msgspec.Raw(text.encode())


def _raw(row: dict[str, Any]) -> Row:
    """Each value as text again.

    Raises:
        NotATraceError: a value cannot be written, which is so only where it is nested without end.
    """
    try:
        return {str(key): msgspec.Raw(msgspec.json.encode(value)) for key, value in row.items()}
    except _FAILURES as error:
        raise NotATraceError("A row of the trace cannot be written as JSON.", "Export the trace again.") from error
