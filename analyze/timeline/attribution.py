"""Which op each activity was launched by, and what it was for (docs/definitions.md, Work)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, wraps
from typing import Any, TypeVar

import numpy as np
import polars as pl
from msgspec import Struct, field

from analyze.arrays import Int64
from analyze.kernels import classify_name, op_category
from analyze.timeline.autograd import around_through_autograd
from analyze.timeline.callers import chains
from analyze.timeline.calls import API, OP, CallTree
from analyze.trace import Trace
from analyze.trace.nesting import NO_ROW

_IDS_ARE_CORRELATIONS = 0.5  # PyTorch 1.12 to 2.2 write the correlation on all kernels, later ones only by chance
_KIND_OF_KERNEL = {"family": pl.String, "precision": pl.String, "tensor_core": pl.Boolean, "fused": pl.Boolean}
_Found = TypeVar("_Found")


class Attribution(Struct, frozen=True, dict=True):
    """The activities of the selection with the calls that launched them.

    Attributes:
        tree: the calls.
        around: what stands around each call: its caller, and for calls of the backward engine their forward op.
        work: timed activities, schema `LINKED`, with `call` (the launching op or range in `tree`, null without one),
            `op_category` (what the op is for; null where none says so), and the kernel name's own `family`,
            `precision`, `tensor_core` and `fused`.
        kept: what `once` has computed of it.
    """

    tree: CallTree
    around: Int64
    work: pl.DataFrame
    kept: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def device_ns(self) -> Int64:
        """Per call the device time of the activities that it launched itself."""
        own = np.zeros(len(self.tree), dtype=np.int64)
        linked = self.work.filter(pl.col("call").is_not_null())
        np.add.at(own, linked["call"].to_numpy(), linked["dur_ns"].to_numpy())
        return own

    @cached_property
    def total_ns(self) -> int:
        """Durations of all activities added up."""
        return int(self.work["dur_ns"].sum())


def once(compute: Callable[[Trace, Attribution], _Found]) -> Callable[[Trace, Attribution], _Found]:
    """Compute something of an attribution when it is first asked for: measures and what-ifs share it."""

    @wraps(compute)
    def kept(trace: Trace, found: Attribution) -> _Found:
        if compute.__name__ not in found.kept:
            found.kept[compute.__name__] = compute(trace, found)
        shared: _Found = found.kept[compute.__name__]
        return shared

    return kept


def attribute(trace: Trace, tree: CallTree, activities: pl.DataFrame) -> Attribution:
    """Give each timed activity its op and its purpose.

    The op is the innermost one around the launch call, on its thread; without one the op of the External id, where
    the file's External ids are op ids (not where several programs share them). A graph launch stands for all its
    activities.

    Source: docs/trace-formats.md.
    """
    work = activities.filter("timed")
    call = _by_launch(trace, tree, work)
    missing = call == NO_ROW
    shared = trace.recording.programs is not None
    if missing.any() and not shared and external_ids_are_ops(trace.activities):
        call[missing] = _by_external_id(trace, tree, work)[missing]
    numbered = pl.Series(call)
    numbered = numbered.set(numbered == NO_ROW, None)
    around = around_through_autograd(trace, tree)
    return Attribution(
        tree,
        around,
        work.with_columns(
            call=numbered,
            op_category=_purposes(tree, call, around),
            **_kernel_kinds(work),
        ),
    )


def external_ids_are_ops(activities: pl.DataFrame) -> bool:
    """Whether the External ids of kernels are ids of ops: in older files they repeat the correlation."""
    kernels = activities.filter(pl.col("external_id").is_not_null() & pl.col("correlation").is_not_null())
    same = (kernels["external_id"] == kernels["correlation"]).sum()
    return kernels.height > 0 and same < _IDS_ARE_CORRELATIONS * kernels.height


def _by_launch(trace: Trace, tree: CallTree, work: pl.DataFrame) -> Int64:
    api = np.append(tree.of_rows(API, trace.runtime.height), NO_ROW)
    launch = work["launch"].cast(pl.Int64).fill_null(NO_ROW).to_numpy()
    return _owners(tree, api[launch])


def _by_external_id(trace: Trace, tree: CallTree, work: pl.DataFrame) -> Int64:
    ops = pl.DataFrame({"external_id": trace.ops["external_id"], "call": tree.of_rows(OP, trace.ops.height)})
    ops = ops.filter((pl.col("call") != NO_ROW) & pl.col("external_id").is_not_null()).unique(
        "external_id", keep="first"
    )
    joined = work.select("external_id").join(ops, on="external_id", how="left", maintain_order="left")
    return _owners(tree, joined["call"].fill_null(NO_ROW).to_numpy())


def _owners(tree: CallTree, call: Int64) -> Int64:
    """The op or range of each call, `NO_ROW` for none."""
    owner: Int64 = np.append(tree.owner, NO_ROW)[call]
    return owner


def _kernel_kinds(work: pl.DataFrame) -> dict[str, pl.Series]:
    """What the names say, kernels only: copies and memsets compute nothing."""
    key = ["recorded_name", "kind"]
    names = work.select(key).unique()
    kinds = [classify_name(name or "") for name in names["recorded_name"].cast(pl.String)]
    found = names.with_columns(
        pl.Series(field, [getattr(kind, field) for kind in kinds], dtype=dtype)
        for field, dtype in _KIND_OF_KERNEL.items()
    )
    joined = work.select(key).join(found, on=key, how="left", maintain_order="left", nulls_equal=True)
    kernel = work["kind"].cast(pl.String) == "kernel"
    return {field: joined[field].set(~kernel, None) for field in _KIND_OF_KERNEL}


def _purposes(tree: CallTree, call: Int64, around: Int64) -> pl.Series:
    """What each call is for, by its own name and those around it; null where none says so or there is no call."""
    found = chains(tree, call, around)
    purposes = [op_category(names) if names else None for names in found.names]
    return pl.Series(purposes, dtype=pl.String).gather(found.number)
