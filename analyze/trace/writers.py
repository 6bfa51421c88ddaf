"""Who wrote a document, told by its rows; other programs' traces are named and refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from enum import Enum

import polars as pl

from analyze.trace.classes import LEGACY_PID
from analyze.trace.kinds import refuse_other_writer


class Writer(Enum):
    """The exporters whose documents can be analysed."""

    KINETO = "PyTorch profiler (Kineto)"
    LEGACY = "PyTorch autograd profiler without Kineto"


_PROCESS_MARKS: tuple[tuple[str, str], ...] = (
    ("Ascend Hardware", "torch_npu (trace_view.json)"),
    ("/device:", "JAX or TensorFlow (XLA)"),
    ("/host:", "JAX or TensorFlow (XLA)"),
)
_TABLES = ("ops", "runtime", "activities", "ranges", "frames", "spans", "memory")


def name_writer(
    file: str, frames: Mapping[str, pl.DataFrame], unknown: Counter[str], processes: Mapping[object, str]
) -> Writer:
    """Tell who wrote the document.

    Args:
        file: file name, for the message.
        frames: the tables.
        unknown: rows of no known table by category, "" for complete events without one.
        processes: names of processes from the metadata rows.

    Raises:
        NotATraceError: another program's trace.
    """
    if not frames["activities"].height:
        for mark, writer in _PROCESS_MARKS:
            if any(name.startswith(mark) for name in processes.values()):
                raise refuse_other_writer(file, writer)
    if any(frames[name].height for name in _TABLES):
        legacy = frames["threads"]["pid"].eq(LEGACY_PID).any()
        return Writer.LEGACY if legacy else Writer.KINETO
    if unknown:
        raise refuse_other_writer(file, "an unknown program")
    return Writer.KINETO
