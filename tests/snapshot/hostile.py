"""Pickles that were made to harm, written opcode by opcode."""

from __future__ import annotations

import gzip
import os
import pickle
from typing import Any


def _bomb() -> bytes:
    """Sixty lists, each holding the one before twice: 2^60 elements in 388 bytes."""
    layers = (b"](h%ch%ceq%c" % (i, i, i + 1) for i in range(60))
    return b"\x80\x04]q\x00" + b"".join(layers) + b"."


def _in_segments(bomb: bytes) -> bytes:
    """The last of them where a snapshot has its segments."""
    return b"\x80\x04}(X\x04\x00\x00\x00junk](" + bomb[2:-1] + b"eX\x08\x00\x00\x00segmentsh\x3cu."


class _Call:
    def __reduce__(self) -> Any:
        return os.system, ("touch it-ran",)


def _itself() -> bytes:
    segments: dict[str, Any] = {"segments": []}
    segments["segments"].append(segments["segments"])
    return pickle.dumps(segments, 4)


def _shared_trace() -> bytes:
    """A thousand devices that share one list of a hundred thousand events: a hundred million from 200 KB."""
    event = {"action": "alloc", "addr": 1, "size": 1, "stream": 0}
    trace = [dict(event) for _ in range(10_000)]
    return pickle.dumps({"segments": [], "device_traces": [trace] * 1000}, 4)


def _shared_event() -> bytes:
    """One list that holds one event five million times, two bytes each."""
    event = b"}(X\x06\x00\x00\x00actionX\x05\x00\x00\x00allocX\x04\x00\x00\x00sizeK\x01u\x94"
    rows = b"](" + event + b"h\x00" * 1_500_000 + b"e"
    return b"\x80\x04}X\x0d\x00\x00\x00device_traces](" + rows + b"es."


HOSTILE: dict[str, tuple[bytes, str]] = {
    "a call": (pickle.dumps(_Call(), 4), "import or run something"),
    "a call in protocol 2": (pickle.dumps(_Call(), 2), "import or run something"),
    "a class": (b"\x80\x04ccollections\nOrderedDict\n)R.", "import or run something"),
    "an import by name on the stack": (b"\x80\x04\x8c\x02os\x8c\x06system\x93.", "import or run something"),
    "a persistent id": (b"\x80\x04K\x01Q.", "import or run something"),
    "an extension": (b"\x80\x02\x82\x01.", "import or run something"),
    "the billion laughs": (_bomb(), "same object twice"),
    "the billion laughs as segments": (_in_segments(_bomb()), "same object twice"),
    "a list within itself": (_itself(), "no dictionary"),
    "three million nested lists": (b"\x80\x04" + b"]" * 3_000_000 + b"a" * 2_999_999 + b".", "nested empty containers"),
    "nested lists, thinned out": (b"\x80\x04" + b"]K\x01a" * 20_000 + b"a" * 19_999 + b".", "no dictionary"),
    "nested tuples": (b"\x80\x04)" + b"\x85" * 3_000_000 + b".", "nested empty containers"),
    "a memo number of two thousand million": (b"\x80\x04]r\x00\x00\x00\x7f.", "numbers an object"),
    "a memo number as text": (b"\x80\x02]p2147483648\n.", "odd instruction"),
    "bytes of a terabyte": (b"\x80\x04\x8e" + (1 << 40).to_bytes(8, "little") + b"x.", "holds bytes, or a text"),
    "a text of a terabyte": (b"\x80\x04\x8d" + (1 << 40).to_bytes(8, "little") + b"x.", "holds bytes, or a text"),
    "a text of two gigabytes": (b"\x80\x04X" + (1 << 31).to_bytes(4, "little") + b"x.", "a text of"),
    "a frame of a terabyte": (b"\x80\x04\x95" + (1 << 40).to_bytes(8, "little") + b"N.", "in the middle"),
    "an integer of fifty megabytes": (
        b"\x80\x04\x8b" + (50_000_000).to_bytes(4, "little") + b"\x7f" * 50_000_000 + b".",
        "more than 64 bits",
    ),
    "an integer of two hundred bytes": (b"\x80\x04\x8a\xc8" + b"\x7f" * 200 + b".", "integer of 200 bytes"),
    "an integer of two million digits": (b"\x80\x02L" + b"9" * 2_000_000 + b"L\n.", "more than 64 bits"),
    "one trace for a thousand devices": (_shared_trace(), "same object twice"),
    "one event a million times": (_shared_event(), "same object twice"),
    "marks without an end": (b"\x80\x04" + b"(" * 5_000_000 + b".", "do not fit together"),
    "instructions that do not fit": (b"\x80\x04K\x01K\x02s.", "do not fit together"),
    "an unknown instruction": (b"\x80\x04\xff.", "no opcode 0xff"),
    "a gzip bomb": (gzip.compress(b"\x80\x04}" + b"\x00" * 300_000_000, 9), "times its size|no sound pickle"),
    "deep JSON": (b'{"segments": ' + b"[" * 1_000_000, "damaged JSON"),
    "an integer of JSON": (b'{"segments": [{"total_size": ' + b"9" * 500_000 + b"}]}", "no whole number|damaged JSON"),
    "a long text": (pickle.dumps({"segments": [{"segment_type": "x" * 70_000}]}, 4), "a text of"),
}  # fmt: skip
