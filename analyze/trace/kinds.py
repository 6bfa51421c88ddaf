"""Inputs that are no PyTorch trace: each recognised by its content and named in one sentence."""

from __future__ import annotations

from pathlib import Path

from analyze.errors import NotATraceError

RECORD_HINT = "Record one with `capture`, or with torch.profiler and export_chrome_trace('trace.json.gz')."
_LISTED_TRACES = 8

_MAGIC: tuple[tuple[bytes, str, str], ...] = (
    (b"\x89PNG", "a PNG image", RECORD_HINT),
    (b"\xff\xd8\xff", "a JPEG image", RECORD_HINT),
    (b"%PDF", "a PDF document", RECORD_HINT),
    (
        b"SQLite format 3",
        "an SQLite database, as `nsys export` writes",
        "Analyse it with `nsys stats`; " + RECORD_HINT,
    ),
    (b"BZh", "compressed with bzip2", "Unpack it first: `bunzip2 FILE`."),
    (b"\xfd7zXZ", "compressed with xz", "Unpack it first: `unxz FILE`."),
    (b"\xff\xfe", "text in UTF-16", "Convert it to UTF-8: `iconv -f UTF-16 -t UTF-8 FILE`."),
    (b"\xfe\xff", "text in UTF-16", "Convert it to UTF-8: `iconv -f UTF-16 -t UTF-8 FILE`."),
    (b"\x7fELF", "a program", RECORD_HINT),
    (
        b"\x0a",
        "a Perfetto protobuf trace",
        "Only the Chrome JSON that torch.profiler exports can be read. " + RECORD_HINT,
    ),
)
_PICKLE_PROTOCOLS = range(2, 6)
_JSON_KINDS: tuple[tuple[tuple[bytes, ...], str, str], ...] = (
    ((b'"rocprofiler-sdk-tool"',), "JSON from rocprofv3", RECORD_HINT),
    (
        (b'"schema"', b'"nodes"'),
        "a PyTorch execution trace (operators and tensors, no times on a device)",
        RECORD_HINT,
    ),
    ((b'"segments"', b'"device_traces"'), "a memory snapshot in JSON", RECORD_HINT),
    (
        (b'"tool"', b'"gpuledger"', b'"definitions"'),
        "a gpuledger report, not a trace",
        "Pass the trace it was made from.",
    ),
)


def refuse_other_kind(first: bytes, name: str) -> None:
    """Raise when the first bytes belong to a known format that is no JSON.

    Raises:
        NotATraceError: names the format and says what to do.
    """
    if len(first) > 1 and first[0] == 0x80 and first[1] in _PICKLE_PROTOCOLS:
        raise NotATraceError(
            f"{name} is a Python pickle, probably a memory snapshot, and not a trace.",
            "Pickles from strangers are never executed here. " + RECORD_HINT,
        )
    for magic, kind, hint in _MAGIC:
        if first.startswith(magic) and not (magic == b"\x0a" and first.lstrip()[:1] in b"{["):
            raise NotATraceError(f"{name} is {kind}.", hint)
    text = first.lstrip()
    if text[:1] == b"<":
        raise NotATraceError(f"{name} is an HTML or XML document.", RECORD_HINT)
    if text[:1] not in (b"{", b"["):
        raise NotATraceError(f"{name} is not JSON: it begins with neither '{{' nor '['.", RECORD_HINT)


def refuse_json_without_events(head: bytes, name: str) -> NotATraceError:
    """The error for a JSON document that has no `traceEvents`."""
    for marks, kind, hint in _JSON_KINDS:
        if all(mark in head for mark in marks):
            return NotATraceError(f"{name} is {kind}.", hint)
    return NotATraceError(f"{name} is JSON without `traceEvents`: no profiler trace.", RECORD_HINT)


def refuse_other_writer(name: str, writer: str) -> NotATraceError:
    """The error for Chrome-trace JSON that another program wrote."""
    return NotATraceError(
        f"{name} is Chrome-trace JSON from {writer}, not from the PyTorch profiler.",
        "Supported are traces of torch.profiler (Kineto), PyTorch 1.8 and newer. " + RECORD_HINT,
    )


def refuse_folder(place: Path) -> NotATraceError:
    """The error for a folder: it lists the traces inside."""
    found = sorted(p for p in place.iterdir() if p.name.endswith((".json", ".json.gz")) and p.is_file())
    if not found:
        return NotATraceError(f"{place} is a folder without .json or .json.gz files.", "Pass one trace file.")
    listed = "".join(f"\n  {path}" for path in found[:_LISTED_TRACES])
    more = f"\n  and {len(found) - _LISTED_TRACES} more" if len(found) > _LISTED_TRACES else ""
    return NotATraceError(f"{place} is a folder.", f"Pass one of its files:{listed}{more}")
