"""JSON that is no trace of the PyTorch profiler: each document recognised by its keys and named in one sentence."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from analyze.errors import NotATraceError
from analyze.trace.foreign_formats import MEMORY_HINT, MEMORY_TIMELINE, RECORD_HINT, SAMPLE_BYTES, ForeignFormat

PROFILER_HINT = "Supported are traces of torch.profiler (Kineto), PyTorch 1.8 and newer. " + RECORD_HINT
_HATCHET = ForeignFormat("a profile of Triton Proton (hatchet: sums per kernel, no times)")
_BEGINNINGS: tuple[tuple[re.Pattern[bytes], ForeignFormat], ...] = (
    (re.compile(rb'\s*\[\s*\{\s*"(?:children|frame|metrics)"\s*:'), _HATCHET),
    (
        re.compile(rb"\s*\[\s*\[\s*-?\d+\s*,\s*[0-3]\s*,\s*-?\d+\s*,\s*\d+\s*\]"),
        ForeignFormat(MEMORY_TIMELINE, MEMORY_HINT),
    ),
    (re.compile(rb"\s*\[\s*\[\s*(?:-1|\d{10,})\s*[,\]]"), ForeignFormat(MEMORY_TIMELINE, MEMORY_HINT)),
    (re.compile(rb"\s*\[\s*\[\s*\]\s*,\s*\[\s*\]\s*\]"), ForeignFormat(MEMORY_TIMELINE + "; it is empty", MEMORY_HINT)),
    (re.compile(rb"\s*\{\s*\}\s*$"), ForeignFormat("an empty JSON object")),
    (re.compile(rb"\s*\[\s*\]\s*$"), ForeignFormat("an empty JSON list")),
)
_MARKS: tuple[tuple[tuple[bytes, ...], ForeignFormat], ...] = (
    ((b'"rocprofiler-sdk-tool"',), ForeignFormat("JSON from rocprofv3")),
    (
        (b'"schema"', b'"nodes"'),
        ForeignFormat("a PyTorch execution trace (operators and tensors, no times on a device)"),
    ),
    ((b'"segments"', b'"device_traces"'), ForeignFormat("a memory snapshot in JSON")),
    (
        (b'"tool"', b'"gpuledger"', b'"definitions"'),
        ForeignFormat("a gpuledger report, not a trace", "Pass the trace it was made from."),
    ),
    ((b'"string_table"',), ForeignFormat("a log of torch.compile from tlparse (no times on a device)")),
    ((b'"artifacts"', b'"url"'), ForeignFormat("a page list of tlparse (logs of torch.compile, no times on a device)")),
    ((b"speedscope.app/file-format-schema",), ForeignFormat("a speedscope profile")),
    (
        (b'"CudaEvent"',),
        ForeignFormat("a JSON export of Nsight Systems", "Analyse it with `nsys stats`. " + RECORD_HINT),
    ),
)
_WRITERS: tuple[tuple[re.Pattern[bytes], str], ...] = (  # Chrome-trace JSON whose rows would pass for ours
    (re.compile(rb'"call_stack"\s*:|"GPU cycle"'), "Triton Proton"),
    (re.compile(rb'"cat"\s*:\s*"dynamo_timed"'), "torch.compile's own log (tlparse, chromium_events.json)"),
)
_OURS = re.compile(rb'"(?:schemaVersion|deviceProperties|Ev Idx|External id|correlation|Python id)"')
_PROCESS_MARKS: tuple[tuple[str, str], ...] = (
    ("Ascend Hardware", "torch_npu (trace_view.json)"),
    ("/device:", "JAX or TensorFlow (XLA)"),
    ("/host:", "JAX or TensorFlow (XLA)"),
)


def refuse_document(first: bytes, name: str) -> None:
    """Raise when a JSON document begins as one that has no rows of the PyTorch profiler.

    Raises:
        NotATraceError: names the format and says what to do.
    """
    sample = first[:SAMPLE_BYTES]
    for pattern, kind in _BEGINNINGS:
        if pattern.match(sample):
            raise kind.refuse(name)
    if _OURS.search(sample):
        return
    for pattern, writer in _WRITERS:
        if pattern.search(sample):
            raise refuse_other_writer(name, writer)


def refuse_json_without_events(head: bytes, name: str) -> NotATraceError:
    """The error for a JSON document that has no `traceEvents`."""
    for marks, kind in _MARKS:
        if all(mark in head for mark in marks):
            return kind.refuse(name)
    return NotATraceError(f"{name} is JSON without `traceEvents`: no profiler trace.", RECORD_HINT)


def refuse_other_writer(name: str, writer: str) -> NotATraceError:
    """The error for Chrome-trace JSON that another program wrote."""
    return NotATraceError(f"{name} is Chrome-trace JSON from {writer}, not from the PyTorch profiler.", PROFILER_HINT)


def name_other_writer(rows: Mapping[str, int], unknown: Counter[str], processes: Mapping[object, str]) -> str | None:
    """The program that wrote a Chrome trace, None where it may be the PyTorch profiler.

    Args:
        rows: rows per table.
        unknown: rows of no known table by category, "" for complete events without one.
        processes: names of processes from the metadata rows.
    """
    if not rows["activities"]:
        for mark, writer in _PROCESS_MARKS:
            if any(name.startswith(mark) for name in processes.values()):
                return writer
    if not rows["ops"] and not rows["runtime"] and unknown.keys() & {"Session", "Node"}:
        return "ONNX Runtime"
    if any(rows.values()) or not unknown:
        return None
    return "VizTracer" if unknown.keys() & {"FEE", "fee"} else "an unknown program"
