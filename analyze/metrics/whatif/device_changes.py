"""What the device could spare: precision, chains, casts, dropout, short kernels."""

from __future__ import annotations

import numpy as np
import polars as pl
from msgspec.structs import replace

from analyze.metrics.fusion import casts, chain_links
from analyze.metrics.precision import lacks, with_precision
from analyze.metrics.symptoms import has_backward
from analyze.metrics.vocabulary import NOTHING_FASTER
from analyze.metrics.whatif.host_changes import launch_work
from analyze.metrics.whatif.scenario import Scenario, WhatIfInputs, of_activities
from analyze.timeline import Change
from analyze.trace.nesting import NO_ROW

_PRODUCTS = ("gemm", "convolution")
# By the kernel, or by the op that launched a plain GEMM: the switches and libraries are those of convolutions.
_CONVOLVES = (pl.col("category") == "convolution") | (pl.col("op_category").cast(pl.String) == "convolution").fill_null(
    value=False
)
_TERA = 10**12
_HALF = ("bf16", "fp16")


def fp32_products(inputs: WhatIfInputs) -> Scenario | None:
    """GEMMs on CUDA cores in fp32, at the ratio of the GPU's peaks, without those that convolutions run as."""
    return _in_fp32(inputs, ~_CONVOLVES)


def fp32_convolutions(inputs: WhatIfInputs) -> Scenario | None:
    """Convolutions on CUDA cores in fp32, likewise; depthwise ones are limited by memory, not by arithmetic."""
    found = _in_fp32(inputs, _CONVOLVES & (pl.col("family") != "direct"))
    accumulates = inputs.abilities is not None and not inputs.abilities.units
    if found is None or not accumulates:
        return found
    # PyTorch has cuDNN accumulate convolutions in fp32: without tensor cores half precision is no faster.
    return replace(found, change=Change(), note="", precision=NOTHING_FASTER)


def _in_fp32(inputs: WhatIfInputs, of: pl.Expr) -> Scenario | None:
    on_cuda_cores = (pl.col("precision") == "fp32") & ~pl.col("tensor_core").fill_null(value=True)
    abilities = inputs.abilities
    better = None if abilities is None else next(iter(abilities.faster), NOTHING_FASTER)
    return _faster(inputs, _products(inputs).filter(of & on_cuda_cores), "fp32", better)


def asked_precision(inputs: WhatIfInputs) -> Scenario | None:
    """GEMMs and convolutions that ran in a slower precision than was asked for, at the ratio of the GPU's peaks."""
    recorded = inputs.trace.metadata.recorded
    if recorded is None or recorded.precision not in ("tf32", *_HALF):
        return None
    slower = {"tf32": ("fp32",), "fp16": ("fp32", "tf32"), "bf16": ("fp32", "tf32")}[recorded.precision]
    rows = _products(inputs).filter(pl.col("precision").is_in(slower))
    if recorded.precision == "tf32":
        rows = rows.filter(~pl.col("tensor_core").fill_null(value=False))  # 3xTF32 is a choice of its own
    better = NOTHING_FASTER if lacks(inputs.abilities, recorded.precision) else recorded.precision
    return _faster(inputs, rows, str(rows["precision"].mode()[0]) if rows.height else "", better)


def _products(inputs: WhatIfInputs) -> pl.DataFrame:
    rows = with_precision(inputs.trace, inputs.work)
    return rows.with_columns(pl.col("name", "op").cast(pl.String)).filter(pl.col("category").is_in(_PRODUCTS))


def _faster(inputs: WhatIfInputs, rows: pl.DataFrame, used: str, better: str | None) -> Scenario | None:
    """The rows at the peak of a better precision; without known peaks nothing changes and the note is empty."""
    peaks = inputs.gpu.flops_per_s if inputs.gpu else {}
    before, after = peaks.get(used, 0), peaks.get(better or "", 0)
    change, note = Change(), ""
    if inputs.gpu and before and after:
        new = np.rint(rows["dur_ns"].to_numpy() * min(before / after, 1)).astype(np.int64)
        change = inputs.shortened(rows, new)
        note = f"{inputs.gpu.name}: {before / _TERA:g} TFLOP/s in {used}, {after / _TERA:g} in {better}"
    scenario = of_activities(rows, change, note)
    units = inputs.abilities.units if inputs.abilities else ""
    return scenario and replace(scenario, precision=better or "", units=units)


def fusible_chains(inputs: WhatIfInputs) -> Scenario | None:
    """Chains of memory-bound kernels, each replaced by one pass that takes as long as its longest kernel."""
    links = chain_links(inputs.trace, inputs.work).with_columns(pl.col("name", "op").cast(pl.String))
    if not links.height:
        return None
    longest = links.with_columns(rank=pl.col("dur_ns").rank("ordinal", descending=True).over("run"))
    gone = longest.filter(pl.col("rank") > 1)
    scenario = of_activities(links, inputs.without(gone))
    dispatch = inputs.dispatch(links, links["dur_ns"])
    return scenario and replace(scenario, count=int(links["run"].n_unique()), dispatch=dispatch)


def autocast_casts(inputs: WhatIfInputs) -> Scenario | None:
    """Kernels that change types for autocast."""
    rows = inputs.rows.with_columns(cast=casts(inputs.trace, inputs.work)).filter(pl.col("cast") == "autocast")
    return of_activities(rows, inputs.without(rows))


def dropout(inputs: WhatIfInputs) -> Scenario | None:
    """Dropout kernels in a file without a backward pass."""
    if has_backward(inputs.trace):
        return None
    by_name = pl.col("name").str.contains("(?i)dropout") | pl.col("op").fill_null("").str.contains("dropout")
    rows = inputs.rows.filter((pl.col("kind") == "kernel") & by_name)
    return of_activities(rows, inputs.without(rows))


def short_kernels(inputs: WhatIfInputs) -> Scenario | None:
    """The gaps between short kernels that follow each other on a stream; of long ones only what a gap usually takes."""
    work, limit = inputs.schedule.work, inputs.definitions.short_kernel_ns
    kernel = inputs.schedule.activities["kind"].cast(pl.String).to_numpy() == "kernel"
    short = kernel & (work.dur_ns < limit)
    follows = short & (work.before != NO_ROW) & np.append(short, False)[work.before]
    rows = inputs.rows.filter(pl.Series(follows).gather(inputs.rows["at"])) if inputs.rows.height else inputs.rows
    at = rows["at"].to_numpy()
    rest = np.maximum(work.gap_ns[at] - inputs.schedule.device_gap_ns, 0)
    found = of_activities(rows, Change(gaps=dict(zip(at.tolist(), rest.tolist(), strict=True))))
    return found and replace(found, dispatch=inputs.dispatch(rows, pl.Series(work.gap_ns[at] - rest)))


def launches(inputs: WhatIfInputs) -> Scenario | None:
    """What `launch_work` removes, with how the activities came that end the gaps of their devices."""
    found = launch_work(inputs)
    if found is None:
        return None
    rows = inputs.rows.sort("device", "start_ns", maintain_order=True)
    reach = pl.col("end_ns").cum_max().shift().over("device")
    idle = rows.select(idle=(pl.col("start_ns") - reach).clip(0).fill_null(0))["idle"]
    short = idle.clip(0, inputs.definitions.long_gap_ns)
    return replace(found, dispatch=inputs.dispatch(rows, short))
