"""The table of GPUs: names as profilers record them, and figures that hang together."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from analyze import gpus
from analyze.gpus import all_gpus, find_gpu

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

RECORDED = {
    ("NVIDIA A100-SXM4-40GB", 108): "A100 40GB",
    ("NVIDIA A100-SXM4-80GB", 108): "A100 80GB SXM",
    ("NVIDIA A100 80GB PCIe", 108): "A100 80GB PCIe",
    ("NVIDIA H100 80GB HBM3", 132): "H100 SXM",
    ("NVIDIA H100 PCIe", 114): "H100 PCIe",
    ("NVIDIA H200", 132): "H200 SXM",
    ("NVIDIA B200", 148): "B200",
    ("Tesla V100-SXM2-32GB", 80): "V100 SXM2",
    ("Tesla T4", 40): "T4",
    ("NVIDIA L4", 58): "L4",
    ("NVIDIA L40S", 142): "L40S",
    ("NVIDIA A10", 72): "A10",
    ("NVIDIA GeForce RTX 4090", 128): "RTX 4090",
    ("AMD Instinct MI300X", 304): "MI300X",
    ("AMD Instinct MI300X VF", 304): "MI300X",
    ("AMD Instinct MI250X / MI250", 104): "MI250",
    ("AMD Instinct MI250X / MI250", 110): "MI250X",
    ("AMD Instinct MI210", 104): "MI210",
}
UNKNOWN = [
    ("NVIDIA A10G", 80),
    ("NVIDIA GeForce RTX 3060 Laptop GPU", 30),
    ("NVIDIA GeForce RTX 3060 Ti", 38),
    ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", 14),
    ("NVIDIA A100-SXM4-40GB", 14),  # a partition under the card's own name
    ("AMD Instinct MI250X / MI250", 0),
    ("AMD Radeon Graphics", 104),
    ("AMD Instinct MI300X HF", 304),  # clocked otherwise
    ("Tesla V100-SXM3-32GB", 80),  # clocked otherwise than SXM2, no document
    ("Example GPU", 132),
    ("", 0),
]


@pytest.mark.parametrize(("recorded", "name"), RECORDED.items(), ids=str)
def test_recorded_names(recorded: tuple[str, int], name: str) -> None:
    gpu = find_gpu(*recorded)
    assert gpu is not None
    assert gpu.name == name


def test_cards_of_one_name_differ_in_memory() -> None:
    found = [find_gpu("NVIDIA GeForce RTX 3060", 28, memory) for memory in (12_622_168_064, 8_589_934_592, 0)]
    assert [gpu and gpu.name for gpu in found] == ["RTX 3060", None, None]


@pytest.mark.parametrize(("name", "sms"), UNKNOWN)
def test_unknown_is_unknown(name: str, sms: int) -> None:
    assert find_gpu(name, sms) is None


@pytest.mark.parametrize("gpu", all_gpus(), ids=lambda gpu: gpu.name)
def test_figures_hang_together(gpu: object) -> None:
    from analyze.gpus import Gpu

    assert isinstance(gpu, Gpu)
    peaks = gpu.flops_per_s
    assert gpu.source
    assert peaks["fp32"] <= peaks.get("tf32", peaks["fp16"]) <= peaks["fp16"] <= peaks.get("fp8", peaks["fp16"])
    assert peaks.get("bf16", peaks["fp16"]) == peaks["fp16"]
    assert 10**11 < gpu.bandwidth_bytes_per_s < 10**13
    ridge = peaks["fp32"] / gpu.bandwidth_bytes_per_s
    assert 5 < ridge < 150


def test_every_figure_names_its_document() -> None:
    content = tomllib.loads((Path(gpus.__file__).parent / "gpus.toml").read_text(encoding="utf-8"))
    used = set()
    for row in content["gpu"]:
        stated = [figure for figures in row["sources"].values() for figure in figures.split()]
        optional = ["memory"] if "memory" in row else []
        assert sorted(stated) == sorted(["sms", "bandwidth", *row["tflops"], *optional]), row["name"]
        used |= set(row["sources"])
    assert used == set(content["documents"])


def test_matrix_units_of_amd_have_their_own_fp32_rate() -> None:
    gpu = find_gpu("AMD Instinct MI300X", 304)
    assert gpu is not None
    assert gpu.peak("fp32", matrix_unit=True) == 163_400_000_000_000  # not a third of xf32
    assert gpu.source == "AMD CDNA 3 white paper, endnotes MI300-05A and MI300-11"  # what states the rates


def test_peaks_of_what_runs() -> None:
    gpu = find_gpu("NVIDIA A100-SXM4-40GB", 108)
    assert gpu is not None
    assert gpu.peak("fp32", matrix_unit=False) == 19_500_000_000_000
    assert gpu.peak("fp32", matrix_unit=True) == 52_000_000_000_000  # 3xTF32
    assert gpu.peak("fp16", matrix_unit=False) is None
    assert gpu.peak("unknown", matrix_unit=None) is None
