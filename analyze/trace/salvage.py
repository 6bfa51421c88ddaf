"""Damaged pieces: every event that can be read is, known defects of writers are repaired, and the rest is counted."""

from __future__ import annotations

import json
import re
from typing import Any

from analyze.trace.decode import Damage, Decoded, event_of
from analyze.trace.numbers import decimal_of, integer_of

_REPAIR_LIMIT = 1 << 16  # no event that is worth repairing is longer, and repairs take time with the length
_DEEPEST = 32  # levels that are kept of an event that is nested deeper than a parser goes
_SCAN = json.JSONDecoder(strict=False, parse_float=decimal_of, parse_int=integer_of)
_FAILURES = (ValueError, RecursionError)

# Behind the `]` of the list stands another list, or a key, the end or another document and no row before a list.
_SECOND_LIST = re.compile(r"\][\s}]*\[\s*\{")
_LIST_END = re.compile(r'\](?:[\s}]*,\s*"|[\s}]*\Z|\s*\}\s*\{)')
_LIST = re.compile(r'"traceEvents"\s*:')
_ROW = re.compile(r'\{\s*"(?:ph|cat|ts|pid|args)"\s*:')
_STRAY_END = re.compile(r"\][\s,\]]*(?=\{)")
_ANY_SEPARATOR = re.compile(r"\}\s*,\s*\{")
_EVENT = re.compile(r'\{\s*"(?:ph|cat|name|pid|tid|ts|dur|args|id)"\s*:')
_ODD_TEXT = re.compile("[\x00-\x1f\ufffd\ud800-\udfff]")
_NAME = re.compile(r'("name"\s*:\s*")(.{0,4096}?)("\s*,\s*"(?:ph|cat|pid|tid|ts|dur|args|id)"\s*:)', re.DOTALL)
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)
_REPAIRS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r'\\(?!["\\/bfnrt]|u[0-9a-fA-F]{4})'), r"\\\\"),  # Windows paths
    (re.compile(r":\s*(0x[0-9a-fA-F]+)"), r': "\1"'),  # bare hexadecimal numbers of early ROCm
    (re.compile(r":\s*[-+]?(?:inf|nan)\b"), ": null"),
    (re.compile(r",(\s*[}\]])"), r"\1"),
)


def salvage(piece: bytes, separator: bytes, *, exact_text: bool) -> tuple[Decoded, bytes | None]:
    """Every event of a damaged piece that can be read.

    Args:
        piece: the piece.
        separator: the text that the file has between two events.
        exact_text: times are kept as text.

    Returns:
        The events, and the text from the `]` that ends the list, or None when the list does not end here.
    """
    text = piece.decode("utf-8", "replace")
    mark = "}" + separator.decode() + "{"
    damage = Damage()
    found = Decoded([], damage)
    at = 0
    while True:
        at = _skip(text, at)
        if at >= len(text):
            return found, None
        if text[at] == "]":
            if _ends_list(text, at):
                return found, text[at:].encode()
            at = _resume(text, at, mark)
            continue
        row, at = _next_row(text, at, mark, damage)
        if row is not None:
            found.events.append(event_of(row, damage.odd, exact_text=exact_text))


def _ends_list(text: str, at: int) -> bool:
    """Whether a `]` ends the list of events rather than being a stray one."""
    if _SECOND_LIST.match(text, at):
        return True
    if not _LIST_END.match(text, at):
        return False
    another = _LIST.search(text, at)
    return _ROW.search(text, at, another.start() if another else len(text)) is None


def _next_row(text: str, at: int, mark: str, damage: Damage) -> tuple[dict[str, Any] | None, int]:
    """The event at a place, None where it is lost, and where to go on."""
    end = _end_of_event(text, at, mark)
    try:
        row, stop = _sound_row(text, at, end)
    except RecursionError:
        shallow, stop = _shallow(text, at)
        if shallow is not None:
            damage.odd.note("args", "nested too deep")
            return shallow, stop
        end = stop if stop > at else end
        _lose(text[at:end], damage)
        return None, end
    if stop < 0:
        row, rest = _mended_row(text[at:end], damage)
        return row, end - rest
    if not isinstance(row, dict):
        damage.lose(text[at:stop])
        return None, stop
    names = (row.get(key) for key in ("name", "cat", "pid", "tid"))
    damage.repaired += any(isinstance(name, str) and _ODD_TEXT.search(name) is not None for name in names)
    return row, stop


def _sound_row(text: str, at: int, end: int) -> tuple[Any, int]:
    """What stands at a place as it is, with its end; -1 for the end where it is not sound.

    The event's likely end is tried first, because the cost of a failure grows with the text behind it.

    Raises:
        RecursionError: it is nested deeper than a parser goes.
    """
    for limit in (end, at + _REPAIR_LIMIT, len(text)):
        try:
            row, stop = _SCAN.raw_decode(text[at:limit])
        except ValueError:
            continue
        return row, at + stop
    return None, -1


def _lose(text: str, damage: Damage) -> None:
    """Count an event that cannot be read, and those behind it in the same text."""
    damage.lose(text, 1 + len(_EVENT.findall(text, 1)))


def _mended_row(text: str, damage: Damage) -> tuple[dict[str, Any] | None, int]:
    """The event of a text that is no JSON, None where it is lost, and how many characters behind it are left."""
    row, rest = _mend(text)
    if not isinstance(row, dict):
        _lose(text, damage)
        return None, 0
    damage.repaired += 1
    if text.endswith(rest):
        return row, len(rest)
    swallowed = len(_EVENT.findall(rest))
    if swallowed:
        damage.lose(rest, swallowed)
    return row, 0


def _shallow(text: str, at: int) -> tuple[dict[str, Any] | None, int]:
    """An event that is nested too deep, without the values that are, and its end; None where it does not end."""
    level, kept, begin = 0, "", at
    following = _ROW.search(text, at + 1)  # an event that does not end before the next one begins does not end
    for token in _TOKEN.finditer(text, at, following.start() if following else len(text)):
        if token[0] in "[{":
            level += 1
            if level == _DEEPEST + 1:
                kept += text[begin : token.start()] + "null"
        elif token[0] in "]}":
            level -= 1
            if level == _DEEPEST:
                begin = token.end()
            if level == 0:
                break
    else:
        return None, -1
    try:
        row, _ = _SCAN.raw_decode(kept + text[begin : token.end()])
    except ValueError:
        return None, -1
    return (row if isinstance(row, dict) else None), token.end()


def _end_of_event(text: str, at: int, mark: str) -> int:
    """Where a damaged event ends at the latest: at the file's own separator, or one of any layout if that is far."""
    end = text.find(mark, at, at + _REPAIR_LIMIT)
    if end < 0:
        other = _ANY_SEPARATOR.search(text, at, at + _REPAIR_LIMIT)
        end = other.start() if other else min(at + _REPAIR_LIMIT, len(text)) - 1
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


def _mend(text: str) -> tuple[Any, str]:
    """Try the known writer defects one after the other; None when none of them is the cause. Also what is left over."""
    repaired = _NAME.sub(lambda m: m[1] + json.dumps(_unescape(m[2]))[1:-1] + m[3], text)
    for pattern, replacement in ((None, ""), *_REPAIRS):
        if pattern is not None:
            repaired = pattern.sub(replacement, repaired)
        try:
            row, stop = _SCAN.raw_decode(repaired)
        except _FAILURES:
            continue
        return row, repaired[stop:]
    return None, text[1:]


def _unescape(name: str) -> str:
    """The name behind the writer's escapes, as far as there are sound ones."""
    return name.replace('\\"', '"').replace("\\\\", "\\")
