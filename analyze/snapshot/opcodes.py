"""Which pickles may be loaded at all: every opcode is looked at before the first object is made.

A memory snapshot needs lists, dicts, tuples, texts and small numbers. Everything else that a pickle can ask for
(imports, calls, bytes, huge numbers, huge lengths) is refused here, by an allow-list. A plain loop over the opcodes
of a real file takes fifteen times as long as loading it; the regular expression below takes whole runs of them.
"""

from __future__ import annotations

import re

from analyze.errors import SnapshotError

MOST_TEXT_BYTES = 1 << 16
_MOST_INT_BYTES = 9  # 2^64 - 1 as a signed little-endian number
_BYTES_PER_CONTAINER = 4  # an event takes forty bytes or more, a list of frames ten
_FREE_CONTAINERS = 1 << 16
_BYTES_PER_PUT = 3  # an object and its number in the memo
_RUN = 4000  # opcodes per match: bounds what the regular expression engine remembers
_SHORT_TEXTS = 64

_UNSAFE = "asks Python to import or run something"
_REFUSED = {
    **dict.fromkeys("cRboi\x81\x92\x93\x82\x83\x84PQ", _UNSAFE),
    **dict.fromkeys("LI\x8b", "holds an integer of more than 64 bits or in text form"),
    **dict.fromkeys("BCTUVSF\x8d\x8e\x96\x97\x98", "holds bytes, or a text of unheard-of length"),
}


def _counted(lengths: range) -> bytes:
    """A length byte and that many bytes."""
    return b"(?:" + b"|".join(re.escape(bytes([n])) + b".{%d}" % n for n in lengths) + b")"


_SAFE = re.compile(
    b"(?:"
    + b"|".join(
        (
            rb"h.|j....|K.|M..|J....|q.",  # memo, small integers
            rb"[]})(Nustaeld\x85-\x89\x94]",  # containers, None, True, False, memo
            rb"\x8a" + _counted(range(_MOST_INT_BYTES + 1)),
            rb"\x8c" + _counted(range(_SHORT_TEXTS)),
            rb"G.{8}",
        )
    )
    + b"){1,%d}" % _RUN,
    re.DOTALL,
)


def check_opcodes(data: bytes, name: str) -> int:
    """Look at every opcode of a pickle.

    Args:
        data: the pickle.
        name: the file, for the error.

    Returns:
        Where the pickle ends: the position after its STOP.

    Raises:
        SnapshotError: it asks for something that no memory snapshot holds, or ends too early.
    """
    if sum(data.count(opcode) for opcode in _CONTAINERS) > len(data) // _BYTES_PER_CONTAINER + _FREE_CONTAINERS:
        raise SnapshotError(
            f"{name} consists of little but nested empty containers, as no memory snapshot does.", _HINT
        )
    match = _SAFE.match
    at, end = 0, len(data)
    while at < end:
        run = match(data, at)
        if run is not None:
            at = run.end()
            continue
        opcode = data[at]
        if opcode == _STOP:
            return at + 1
        at = _step(data, at, opcode, name)
        if at > end:
            break
    raise SnapshotError(
        f"{name} ends in the middle of its records: the snapshot was not written to its end.",
        "Copy it again, or record it again.",
    )


_STOP = ord(".")
_CONTAINERS = (b"]", b"}", b"\x85", b"\x86", b"\x87")
_HINT = "Record one with `capture`, or with torch.cuda.memory._dump_snapshot('snapshot.pickle')."


def _step(data: bytes, at: int, opcode: int, name: str) -> int:
    """The position after one opcode that the runs leave out, its length or index checked.

    Raises:
        SnapshotError: no snapshot has such an opcode, or not with such an argument.
    """
    if opcode == 0x80:  # PROTO
        return at + 2
    if opcode == 0x8C:  # SHORT_BINUNICODE
        return at + 2 + (data[at + 1] if at + 1 < len(data) else 0)
    if opcode == ord("X"):
        length = int.from_bytes(data[at + 1 : at + 5], "little")
        if length > MOST_TEXT_BYTES:
            raise SnapshotError(f"{name} holds a text of {length:,} bytes, as no memory snapshot does.", _HINT)
        return at + 5 + length
    if opcode == 0x95:  # FRAME
        length = int.from_bytes(data[at + 1 : at + 9], "little")
        if length > len(data) - at - 9:
            raise SnapshotError(
                f"{name} ends in the middle of its records: {length:,} bytes are announced and "
                f"{max(len(data) - at - 9, 0):,} are there.",
                "Copy it again, or record it again.",
            )
        return at + 9
    if opcode == ord("r"):  # LONG_BINPUT: the unpickler makes room for every index below it
        index = int.from_bytes(data[at + 1 : at + 5], "little")
        if index > at // _BYTES_PER_PUT + 1:
            raise SnapshotError(
                f"{name} numbers an object {index:,} where there can be at most {at // _BYTES_PER_PUT + 1:,}.", _HINT
            )
        return at + 5
    raise SnapshotError(_refusal(data, at, opcode, name), _HINT)


def _refusal(data: bytes, at: int, opcode: int, name: str) -> str:
    from pickletools import opcodes

    known = next((one for one in opcodes if one.code == chr(opcode)), None)
    if known is None:
        return f"{name} is no sound pickle: there is no opcode {opcode:#04x} (at byte {at:,})."
    if opcode == 0x8A:
        length = data[at + 1] if at + 1 < len(data) else 0
        if at + 2 + length > len(data):
            return f"{name} ends in the middle of a number."
        return f"{name} holds an integer of {length} bytes, as no memory snapshot does."
    if known.name in _FIXED:
        return f"{name} ends in the middle of its records (opcode {known.name} at byte {at:,})."
    reason = _REFUSED.get(chr(opcode), "has an odd instruction")
    if reason is _UNSAFE:
        return f"{name} {reason} (opcode {known.name}), as no memory snapshot does; nothing of it was executed."
    return f"{name} {reason}, as no memory snapshot does (opcode {known.name})."


_FIXED = ("BINGET", "LONG_BINGET", "BININT1", "BININT2", "BININT", "BINPUT", "BINFLOAT")
