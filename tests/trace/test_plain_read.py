"""Every column of every table equals that of a plain reading of the whole document."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from analyze.trace.read import read
from tests.golden import SAMPLES
from tests.oracles.plain_read import read_plainly


def check(path: Path) -> None:
    expected = read_plainly(path)
    recording = read(path)
    threads = list(recording.frames["threads"].select("pid", "tid").iter_rows())
    for name, rows in expected.items():
        frame = recording.frames[name].with_columns(pl.col(pl.Categorical).cast(pl.String))
        assert frame.height == len(rows), name
        for column in frame.columns:
            found = frame[column].to_list()
            if column == "thread":
                found = [threads[code] for code in found]
            assert found == [row[column] for row in rows], (path.name, name, column)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda p: p.name)
def test_samples(path: Path) -> None:
    check(path)


SMALL = [
    "a100_alexnet_sync_events", "a100_triton", "cpu_only_ops", "cpu_only_rank34", "first_schema_inference",
    "h100_bert_small", "h100_qwen_0_5b", "h100_vit_base_bf16", "mi210_gpu_only", "mi250_toy_training",
    "mi300_sglang_decode", "mi300_vit_base_bf16", "mi300_vllm_decode_graph", "ranks/rank-0", "ranks/rank-1",
]  # fmt: skip
LARGE = [
    "a100_nccl_training", "a100_training_control", "a100_training_rank0", "h100_owlv2_large", "mi300_resnet_training",
    "mi300_stable_diffusion_3_5", "v100_resnet_ns_resolution", "v100_training_memory_events", "v100_training_test",
]  # fmt: skip


@pytest.mark.parametrize("name", SMALL)
def test_reference_traces(name: str, shared: Path) -> None:
    check(shared / "traces" / f"{name}.json.gz")


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
def test_large_reference_traces(name: str, shared: Path) -> None:
    check(shared / "traces" / f"{name}.json.gz")
