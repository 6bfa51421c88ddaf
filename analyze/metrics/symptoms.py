"""Signs that need no replay: grids that do not fill the device, and a graph that is recorded for no backward pass."""

from __future__ import annotations

import polars as pl
from msgspec import Struct

from analyze.metrics.foundations import ATTRIBUTION
from analyze.metrics.question import Question
from analyze.timeline.attribution import Attribution
from analyze.trace import Trace, matching

_BACKWARD = r"^autograd::engine::|Backward\d*$"
_ENOUGH = 0.5  # of kernel time: below it the kernels with a grid do not speak for all
# Work whose grid says nothing about its size: collectives, copies as kernels, and libraries that choose the number of
# blocks by the device (persistent and stream-K kernels, DeepEP and DeepGEMM on some of the multiprocessors).
_NOT_BY_SIZE = ("communication", "memcpy", "memset")
_CHOSEN_GRID = (
    r"(?i)persist|stream_?k|_sk[1-9]\d*_|^nvjet|deep_?gemm|deep_?ep\b|marlin|splitkv_mla|FlashAttn\w*Sm(?:90|100)|"
    r"TmaWarpSpecialized|TmaGmma|warpgroupsize"
)
_TRAINING_NORM = r"(?i)batch_?norm_(collect_statistics|stats|transform_input|backward)|bn_fw_tr|BatchNormFwdTrain"


class Symptoms(Struct, frozen=True):
    """Signs, over all devices.

    Attributes:
        kernel_ns: durations of the kernels whose grid and device size are recorded; 0 where that is so of less than
            half of kernel time.
        underfilled_ns: of them, of kernels with fewer blocks than the device has multiprocessors, whose grid follows
            from the work.
        backward: the file holds a backward pass.
        graph_ops: ops that record a graph for a backward pass.
        ops: timed framework ops.
        norm_kernels: kernels of batch normalization in training mode.
        memory_bytes: memory of the devices, 0 where not recorded or where they differ.
    """

    kernel_ns: int
    underfilled_ns: int
    backward: bool
    graph_ops: int
    ops: int
    norm_kernels: int
    memory_bytes: int


def has_backward(trace: Trace) -> bool:
    """Whether a backward pass is in the file."""
    return bool(matching(trace.ops["name"], _BACKWARD).any())


def _graph_ops(trace: Trace) -> int:
    """Ops that record a graph, custom autograd Functions apart.

    An op that makes a node takes the next number of its thread. Where gradients are allowed but nothing requires one,
    the number never moves on. A custom Function takes one each time it runs, also without gradients: its op carries
    the name of a class, not of a namespace.
    """
    numbered = trace.ops.filter(pl.col("sequence").is_not_null())
    name = pl.col("name").cast(pl.String)
    custom = ~name.str.contains("::", literal=True)
    by_thread = numbered.group_by("thread").agg(numbers=pl.col("sequence").n_unique(), custom=custom.sum())
    nodes = by_thread.filter(pl.col("numbers").cast(pl.Int64) - 1 > pl.col("custom").cast(pl.Int64))
    return numbered.filter(~custom).height if nodes.height else 0


def measure_symptoms(trace: Trace, found: Attribution) -> Symptoms:
    """The signs in the selection's kernels and the file's ops."""
    kernels = found.work.filter(pl.col("kind").cast(pl.String) == "kernel")
    sized = _with_blocks(trace, kernels)
    sizes = {device.memory_bytes for device in trace.metadata.devices}
    known_ns = int(sized["dur_ns"].sum())
    by_size = ~matching(sized["name"], _CHOSEN_GRID) & ~sized["category"].cast(pl.String).is_in(_NOT_BY_SIZE)
    small = sized.filter(by_size & (sized["blocks"] < sized["sms"]))
    return Symptoms(
        kernel_ns=known_ns if known_ns >= _ENOUGH * int(kernels["dur_ns"].sum()) else 0,
        underfilled_ns=int(small["dur_ns"].sum()),
        backward=has_backward(trace),
        graph_ops=_graph_ops(trace),
        ops=trace.ops.height,
        norm_kernels=int(kernels["name"].cast(pl.String).str.contains(_TRAINING_NORM).sum()),
        memory_bytes=sizes.pop() if len(sizes) == 1 else 0,
    )


def _with_blocks(trace: Trace, kernels: pl.DataFrame) -> pl.DataFrame:
    """The kernels with `blocks` of their grid and `sms` of their device, where both are known."""
    sizes = {d.id: d.multiprocessors for d in trace.metadata.devices}
    common = set(sizes.values())
    only = common.pop() if len(common) == 1 else 0
    numbers = pl.col("grid").cast(pl.String).str.extract_all(r"\d+").list.eval(pl.element().cast(pl.Int64).product())
    grids = kernels.select("grid").unique().with_columns(blocks=numbers.list.first())
    sized = kernels.join(grids, on="grid", how="left", maintain_order="left").with_columns(
        sms=pl.col("device").replace_strict(sizes, default=only, return_dtype=pl.Int64),
    )
    return sized.filter((pl.col("sms") > 0) & pl.col("blocks").is_not_null() & (pl.col("blocks") > 0))


QUESTION = Question("symptoms", lambda a: measure_symptoms(a.trace, a.ask(ATTRIBUTION)))
