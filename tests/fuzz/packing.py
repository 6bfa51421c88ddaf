"""Mutations of what is around the text: bytes, encodings, compression, bombs."""

from __future__ import annotations

import bz2
import gzip
import io
import random
import zipfile
from dataclasses import dataclass

import zstandard

KINDS = ("cut", "flip", "delete", "duplicate", "insert", "swap")
_STRUCTURE = (
    b'"', b"{", b"}", b"[", b"]", b",", b":", b"\\", b"\n", b"\x00", b"\xff", b"NaN", b"1e999",
    b'"}, {"', b"null", b"]}", b"]}{", b"][",
)  # fmt: skip
_BOMB_BYTES = 300 << 20


@dataclass(frozen=True)
class Packed:
    """The bytes of a file.

    Attributes:
        data: them.
        what: what was done.
        whole: the document in it is as it was, so that every row must be accounted for.
        touched: how many rows may have been touched where it is not.
    """

    data: bytes
    what: str
    whole: bool = True
    touched: int = 0


def harm(data: bytes, r: random.Random) -> Packed:
    """Change a few bytes."""
    touched, done = 0, []
    for _ in range(r.choice((1, 1, 1, 3, 8))):
        kind, at, length = r.choice(KINDS), r.randrange(max(len(data), 1)), r.randint(1, 24)
        done.append(kind)
        touched += 4
        if kind == "cut":
            data, touched = data[: max(at, 1)], 10**9
        elif kind == "flip":
            data = data[:at] + bytes([data[at] ^ (1 << r.randrange(8))]) + data[at + 1 :] if data else data
        elif kind == "delete":
            data = data[:at] + data[at + length :]
        elif kind == "duplicate":
            data = data[: at + length] + data[at:]
        elif kind == "insert":
            data = data[:at] + r.choice(_STRUCTURE) + data[at:]
        else:
            length = min(length, len(data) // 2)
            other = r.randrange(max(len(data) - length, 1))
            low, high = min(at, other), max(at, other)
            length = min(length, high - low, len(data) - high)
            a, b = data[low : low + length], data[high : high + length]
            data = data[:low] + b + data[low + length : high] + a + data[high + length :]
            touched += 4
    return Packed(data, " + ".join(done), whole=False, touched=touched)


def encode(text: str, r: random.Random) -> Packed:
    """Another encoding of the same text, or one that is no UTF-8."""
    kind = r.choice(("bom", "utf-16", "utf-32", "crlf", "latin", "blanks", "nul", "garbage", "two boms"))
    data = text.encode("utf-8", "surrogatepass")
    if kind in ("utf-16", "utf-32"):
        return Packed(text.encode(kind, "surrogatepass"), kind, whole=False, touched=10**9)
    if kind == "crlf":
        return Packed(data.replace(b"\n", b"\r\n"), kind)
    if kind == "latin":
        return Packed(text.encode("latin-1", "replace"), kind, whole=False, touched=8)
    if kind == "nul":
        return Packed(data + b"\0" * r.choice((1, 4096)), kind, whole=False, touched=4)
    if kind == "garbage":
        return Packed(data + r.randbytes(200), kind, whole=False, touched=4)
    front = {"bom": b"\xef\xbb\xbf", "two boms": b"\xef\xbb\xbf" * 2, "blanks": b" \n\t\r" * 40}[kind]
    return Packed(front + data, kind, whole=kind != "two boms", touched=10**9)


def pack(data: bytes, r: random.Random) -> Packed:
    """Compress, and perhaps harm what came of it."""
    kind = r.choice(("gzip", "members", "zstd", "zip", "twice", "bz2", "level 0"))
    half = r.randrange(len(data) + 1)
    if kind == "members":
        done = gzip.compress(data[:half]) + gzip.compress(data[half:]) + b"\0" * r.choice((0, 512))
    elif kind == "zstd":
        done = zstandard.compress(data[:half]) + zstandard.compress(data[half:])
    elif kind == "zip":
        box = io.BytesIO()
        with zipfile.ZipFile(box, "w", zipfile.ZIP_DEFLATED) as archive:
            for i in range(r.choice((0, 1, 1, 1, 2))):
                archive.writestr(f"{i}.json", data)
        done = box.getvalue()
    elif kind == "bz2":
        done = bz2.compress(data)
    else:
        done = gzip.compress(gzip.compress(data) if kind == "twice" else data, 0 if kind == "level 0" else 6)
    if r.random() < 0.5:
        return Packed(done, kind)
    broken = harm(done, r)
    return Packed(broken.data, f"{kind}, then {broken.what}", whole=False, touched=10**9)


def bomb(data: bytes, r: random.Random) -> Packed:
    """A small file that grows by a hundred megabytes and more."""
    kind = r.choice(("blanks", "rows", "a name", "a tail", "nothing"))
    fill = {"blanks": b" ", "rows": b'{"ph":"X","cat":"kernel","name":"k","ts":1,"dur":1,"pid":0},', "a name": b"x",
            "a tail": b"0,", "nothing": b"\0"}[kind]  # fmt: skip
    front = {"a name": b'[{"name":"', "a tail": b'{"traceEvents":[],"x":[', "nothing": b""}.get(kind, b"[")
    packer, parts, size = zstandard.ZstdCompressor(level=1).compressobj(), [], 0
    parts.append(packer.compress(front))
    block = fill * max((1 << 20) // len(fill), 1)
    while size < _BOMB_BYTES:
        parts.append(packer.compress(block))
        size += len(block)
    parts.append(packer.compress(data))
    return Packed(b"".join([*parts, packer.flush()]), f"bomb of {kind}", whole=False, touched=10**9)
