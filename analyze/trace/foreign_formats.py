"""Inputs that are no JSON, or no file at all: each recognised by its first bytes and named in one sentence."""

from __future__ import annotations

import csv
import re

from msgspec import Struct

from analyze.errors import NotATraceError, UnreadableError

RECORD_HINT = "Record one with `capture`, or with torch.profiler and export_chrome_trace('trace.json.gz')."
SAME_RUN_HINT = "Pass the trace of that run instead: prof.export_chrome_trace('trace.json.gz') writes it."
MEMORY_HINT = (
    "Pass the trace of that run, recorded with profile_memory=True, or a snapshot from "
    "torch.cuda.memory._dump_snapshot('snapshot.pickle')."
)
MEMORY_TIMELINE = "a memory timeline of torch.profiler (export_memory_timeline, deprecated), not a trace"
SAMPLE_BYTES = 1 << 16  # of the beginning of a file, for all that is recognised by a mark in its text
_TEXT_LINES = 8
_CSV_FIELDS = 3
_TAR_AT, _TAR_BLOCK = 257, 512


class ForeignFormat(Struct, frozen=True):
    """A format that is no trace.

    Attributes:
        what: "a PNG image": its name in a sentence.
        hint: what to pass instead.
    """

    what: str
    hint: str = RECORD_HINT

    def refuse(self, name: str) -> NotATraceError:
        """The error for a file of this kind."""
        return NotATraceError(f"{name} is {self.what}.", self.hint)


_NSYS_HINT = "Analyse it with `nsys stats`. " + RECORD_HINT
_MAGIC: tuple[tuple[bytes, ForeignFormat], ...] = (
    (b"\x89PNG", ForeignFormat("a PNG image")),
    (b"\xff\xd8\xff", ForeignFormat("a JPEG image")),
    (b"%PDF", ForeignFormat("a PDF document")),
    (b"BZh", ForeignFormat("compressed with bzip2", "Unpack it first: `bunzip2 FILE`.")),
    (b"\xfd7zXZ", ForeignFormat("compressed with xz", "Unpack it first: `unxz FILE`.")),
    (b"7z\xbc\xaf\x27\x1c", ForeignFormat("a 7z archive", "Unpack it and pass the trace inside: `7z x FILE`.")),
    (b"\xff\xfe", ForeignFormat("text in UTF-16", "Convert it to UTF-8: `iconv -f UTF-16 -t UTF-8 FILE`.")),
    (b"\xfe\xff", ForeignFormat("text in UTF-16", "Convert it to UTF-8: `iconv -f UTF-16 -t UTF-8 FILE`.")),
    (b"\x7fELF", ForeignFormat("a program")),
    (b"NVR\0", ForeignFormat("a report of Nsight Compute", "Analyse it with `ncu --import`. " + RECORD_HINT)),
    (b"PAR1", ForeignFormat("a Parquet table")),
    (b"\x93NUMPY", ForeignFormat("a NumPy array")),
)
_SUFFIXES: tuple[tuple[tuple[str, ...], ForeignFormat], ...] = (  # formats without a mark of their own
    ((".nsys-rep", ".qdrep", ".qdstrm"), ForeignFormat("a report of Nsight Systems", _NSYS_HINT)),
    (
        (".ncu-rep", ".ncu-repz"),
        ForeignFormat("a report of Nsight Compute", "Analyse it with `ncu --import`. " + RECORD_HINT),
    ),
    ((".msgpack",), ForeignFormat("a MessagePack document, as Triton Proton can write")),
)
_SQLITE: tuple[tuple[bytes, ForeignFormat], ...] = (
    (b"CUPTI_ACTIVITY_KIND", ForeignFormat("an SQLite export of Nsight Systems (`nsys export`)", _NSYS_HINT)),
    (b"rocpd_", ForeignFormat("an SQLite database of rocprofv3 (rocpd)")),
    (b"", ForeignFormat("an SQLite database, as `nsys export` writes", _NSYS_HINT)),
)
_HTML: tuple[tuple[bytes, ForeignFormat], ...] = (
    (b"GPU Memory Timeline HTML", ForeignFormat(MEMORY_TIMELINE, MEMORY_HINT)),
    (b"tlparse", ForeignFormat("a page of tlparse (logs of torch.compile, no times on a device)")),
    (b"Stack trie", ForeignFormat("a page of tlparse (logs of torch.compile, no times on a device)")),
    (b"MemoryViz", ForeignFormat("a page of torch.cuda._memory_viz", "Pass the snapshot that it was made from.")),
    (b"viztracer", ForeignFormat("a page of VizTracer (Python calls, no times on a device)")),
    (b"<svg", ForeignFormat("an SVG image")),
    (b"", ForeignFormat("an HTML or XML document")),
)
_TFEVENTS = ForeignFormat(
    "a TensorBoard event file",
    "tensorboard_trace_handler writes the trace beside it, as *.pt.trace.json. " + RECORD_HINT,
)
_XPLANE = ForeignFormat("a profile of JAX or TensorFlow (XSpace, *.xplane.pb)")
_PERFETTO = ForeignFormat(
    "a Perfetto protobuf trace", "Only the Chrome JSON that torch.profiler exports can be read. " + RECORD_HINT
)
_XPLANE_NAME = re.compile(rb"\x12.(?:/device:|/host:|Task Environment|#)", re.DOTALL)
_TABLE = ForeignFormat("the table that key_averages().table() prints, not a trace", SAME_RUN_HINT)
_STACKS = ForeignFormat("stacks as text (export_stacks, or another tool's flame graph), not a trace", SAME_RUN_HINT)
_FRAME = re.compile(r"\(\d+\):|;")
_TORCH_LOG = ForeignFormat("a log of torch.compile (TORCH_TRACE or TORCH_LOGS), as tlparse reads")
_TORCH_LOG_LINE = re.compile(r"[VDIWEC]\d{4} \d\d:\d\d:\d\d\.\d+ ")
_CSV = ForeignFormat("a table in CSV, not a trace", SAME_RUN_HINT)
_PICKLE_PROTOCOLS = range(2, 6)
_JSON = re.compile(rb'\{\s*(?:["}]|\Z)|\[\s*(?:[\[\]{"0-9-]|\Z)')
_URL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+://")


def refuse_other_kind(first: bytes, name: str) -> None:
    """Raise when the first bytes belong to a known format that is no JSON.

    Args:
        first: the beginning of the unpacked file.
        name: file name, for the message and for formats that have no mark.

    Raises:
        NotATraceError: names the format and says what to do.
    """
    text = first[:SAMPLE_BYTES].lstrip()
    if _JSON.match(text):
        return
    if len(first) > 1 and first[0] == 0x80 and first[1] in _PICKLE_PROTOCOLS:
        raise NotATraceError(
            f"{name} is a Python pickle, probably a memory snapshot, and not a trace.",
            "Pickles from strangers are never executed here. " + RECORD_HINT,
        )
    if is_tar(first):
        raise refuse_archive(name, "a tar archive", tar_members(first), "tar xf")
    kind = _by_mark(first) or _by_suffix(name)
    if kind is None and text[:1] == b"<":
        kind = _marked(_HTML, first[:SAMPLE_BYTES])
    kind = kind or _by_text(first[:SAMPLE_BYTES])
    if kind is not None:
        raise kind.refuse(name)
    raise NotATraceError(f"{name} is not JSON, but binary data of a kind that is not known here.", RECORD_HINT)


def _by_mark(first: bytes) -> ForeignFormat | None:
    """The format that a file's first bytes name."""
    if first.startswith(b"SQLite format 3"):
        return _marked(_SQLITE, first)
    if b"brain.Event:" in first[:64]:
        return _TFEVENTS
    if first[:1] == b"\x0a" and (len(first) == 1 or not _is_text(first[1:256])):
        return _XPLANE if _XPLANE_NAME.search(first[:64]) else _PERFETTO
    return next((kind for magic, kind in _MAGIC if first.startswith(magic)), None)


def _by_suffix(name: str) -> ForeignFormat | None:
    return next((kind for suffixes, kind in _SUFFIXES if name.lower().endswith(suffixes)), None)


def _marked(kinds: tuple[tuple[bytes, ForeignFormat], ...], text: bytes) -> ForeignFormat:
    """The first kind whose mark is in the text; the last one has no mark."""
    return next(kind for mark, kind in kinds if mark in text)


def _is_text(data: bytes) -> bool:
    return not any(byte < 0x20 and byte not in b"\t\n\r\f\x1b" for byte in data)


def _by_text(sample: bytes) -> ForeignFormat | None:
    """What a text is, by its first lines."""
    if not _is_text(sample[:4096]):
        return None
    lines = [line for line in sample.decode("utf-8", "replace").splitlines() if line.strip()]
    if len(sample) == SAMPLE_BYTES and len(lines) > 1:
        del lines[-1]  # it may be cut
    lines = lines[:_TEXT_LINES]
    if any("Self CPU" in line or "# of Calls" in line for line in lines):
        return _CSV if "," in lines[0] else _TABLE
    if lines and _TORCH_LOG_LINE.match(lines[0]):
        return _TORCH_LOG
    if lines and _are_stacks(lines):
        return _STACKS
    if _is_csv(lines):
        return _CSV
    return ForeignFormat("text, not JSON") if lines else None


def _are_stacks(lines: list[str]) -> bool:
    """Whether every line ends with a number, behind frames of which one at least shows as such."""
    parted = [line.rpartition(" ") for line in lines]
    return all(frames and number.isdigit() for frames, _, number in parted) and any(
        _FRAME.search(frames) for frames, _, _ in parted
    )


def _is_csv(lines: list[str]) -> bool:
    """Whether a head and a row have as many fields, three or more."""
    try:
        fields = [len(row) for row in csv.reader(lines[:2])]
    except csv.Error:
        return False
    return len(fields) > 1 and fields[0] == fields[1] >= _CSV_FIELDS


def is_tar(first: bytes) -> bool:
    """Whether the bytes begin a tar archive (POSIX or GNU)."""
    return first[_TAR_AT : _TAR_AT + 5] == b"ustar"


def tar_members(first: bytes) -> list[str]:
    """Names of the members whose headers lie in the first bytes of an archive."""
    found, at = [], 0
    while is_tar(first[at : at + _TAR_BLOCK]):
        header = first[at : at + _TAR_BLOCK]
        try:
            size = int(header[124:136].rstrip(b" \0") or b"0", 8)
        except ValueError:
            break
        if size < 0:
            break
        found.append(header[:100].rstrip(b"\0").decode("utf-8", "replace"))
        at += _TAR_BLOCK * (1 + -(-size // _TAR_BLOCK))
    return found


def refuse_archive(name: str, what: str, members: list[str], command: str) -> NotATraceError:
    """The error for an archive; it names a trace inside."""
    traces = [one for one in members if one.endswith((".json", ".json.gz", ".json.zst"))]
    inside = f"; pass {traces[0]} then" if traces else " and pass one trace"
    return NotATraceError(f"{name} is {what}.", f"Unpack it: `{command} {name}`{inside}.")


def refuse_url(path: str) -> UnreadableError | None:
    """The error for an address in place of a file, None for anything else."""
    if not _URL.match(path):
        return None
    hint = "Download the trace first, for example with `curl -L -o trace.json.gz URL`, and pass the file."
    return UnreadableError(f"{path} is a URL, and only files are read.", hint)
