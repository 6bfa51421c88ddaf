"""The table of GPUs: names as profilers record them, and figures that hang together."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from analyze import gpus
from analyze.gpus import Abilities, Gpu, all_gpus, find_abilities, find_gpu

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
    ("Tesla P100-PCIE-16GB", 56): "P100 PCIe 16GB",
    ("Tesla P100-PCIE-12GB", 56): "P100 PCIe 12GB",
    ("NVIDIA GeForce GTX 1080", 20): "GTX 1080",
    ("NVIDIA GeForce GTX 1080 Ti", 28): "GTX 1080 Ti",
    ("NVIDIA GeForce GTX 1660 SUPER", 22): "GTX 1660 SUPER",
    ("Tesla V100S-PCIE-32GB", 80): "V100S PCIe",
    ("NVIDIA A10G", 80): "A10G",
    ("NVIDIA A800-SXM4-80GB", 108): "A800 80GB SXM",
    ("NVIDIA RTX A4000", 48): "RTX A4000",
    ("NVIDIA RTX A5000", 64): "RTX A5000",
    ("NVIDIA GeForce RTX 3070", 46): "RTX 3070",
    ("NVIDIA GeForce RTX 3070 Ti", 48): "RTX 3070 Ti",
    ("NVIDIA GeForce RTX 3080", 68): "RTX 3080",
    ("NVIDIA GeForce RTX 3080 Ti", 80): "RTX 3080 Ti",
    ("NVIDIA GeForce RTX 4060", 24): "RTX 4060",
    ("NVIDIA GeForce RTX 4060 Ti", 34): "RTX 4060 Ti",
    ("NVIDIA GeForce RTX 4070", 46): "RTX 4070",
    ("NVIDIA GeForce RTX 4070 SUPER", 56): "RTX 4070 SUPER",
    ("NVIDIA GeForce RTX 4070 Ti", 60): "RTX 4070 Ti",
    ("NVIDIA GeForce RTX 4070 Ti SUPER", 66): "RTX 4070 Ti SUPER",
    ("NVIDIA GeForce RTX 4080 SUPER", 80): "RTX 4080 SUPER",
    ("NVIDIA GeForce RTX 5070 Ti", 70): "RTX 5070 Ti",
    ("NVIDIA GeForce RTX 5080", 84): "RTX 5080",
    ("NVIDIA L40", 142): "L40",
    ("NVIDIA RTX 6000 Ada Generation", 142): "RTX 6000 Ada",
    ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", 188): "RTX PRO 6000 Workstation",
    ("NVIDIA GH200 480GB", 132): "GH200 96GB",
    ("NVIDIA H20", 78): "H20",
    ("NVIDIA H800", 132): "H800 SXM",
    ("NVIDIA H200 NVL", 132): "H200 NVL",
    ("NVIDIA GB200", 152): "GB200",
    ("NVIDIA B300 SXM6 AC", 148): "B300",
    ("AMD Instinct MI355X", 256): "MI355X",
}
UNKNOWN = [
    ("NVIDIA GeForce RTX 3080 Ti Laptop GPU", 58),
    ("NVIDIA GeForce RTX 4090 Laptop GPU", 76),
    ("NVIDIA GeForce RTX 3080", 70),  # the 12 GB card
    ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", 16),
    ("NVIDIA H100 SXM5 MIG 1g.10gb", 16),
    ("NVIDIA RTX PRO 6000 Blackwell Server Edition", 188),
    ("AMD Instinct MI308X", 80),
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
def test_figures_hang_together(gpu: Gpu) -> None:
    peaks = gpu.flops_per_s
    half = peaks.get("fp16", peaks["fp32"])
    assert gpu.source
    assert peaks["fp32"] <= peaks.get("tf32", half) <= half <= peaks.get("fp8", half)
    assert peaks.get("bf16", half) == half
    if gpu.tensor_cores:
        assert half > 1.9 * peaks["fp32"], "with fp32 sums, even on GeForce cards"
    if "tf32" in peaks:
        assert peaks["tf32"] == pytest.approx(half / 2, rel=0.03), "chips multiply half precision twice as fast"
    if "fp8" in peaks:
        assert peaks["fp8"] == pytest.approx(half * 2, rel=0.02)
    if gpu.bandwidth_bytes_per_s:
        assert 10**11 < gpu.bandwidth_bytes_per_s < 10**13
        assert 5 < peaks["fp32"] / gpu.bandwidth_bytes_per_s < 150


def test_every_figure_names_its_document() -> None:
    content = tomllib.loads((Path(gpus.__file__).parent / "gpus.toml").read_text(encoding="utf-8"))
    used = set()
    for row in content["gpu"]:
        stated = [figure for figures in row["sources"].values() for figure in figures.split()]
        optional = [figure for figure in ("memory", "bandwidth") if figure in row]
        assert sorted(stated) == sorted(["sms", *row["tflops"], *optional]), row["name"]
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


@pytest.mark.parametrize(
    ("name", "capability", "units", "faster"),
    [
        ("Tesla P100-PCIE-16GB", (6, 0), "", ("fp16",)),
        ("Tesla P100-PCIE-16GB", None, "", ("fp16",)),
        ("Quadro GP100", (6, 0), "", ("fp16",)),
        ("NVIDIA GeForce GTX 1070 Ti", None, "", ()),
        ("NVIDIA GeForce GTX 1060 6GB", (6, 1), "", ()),
        ("NVIDIA GeForce GTX 1650", (7, 5), "", ()),
        ("Quadro T1000", (7, 5), "", ()),
        ("Tesla T4", (7, 5), "tensor cores", ("fp16",)),
        ("Tesla V100-SXM3-32GB", (7, 0), "tensor cores", ("fp16",)),
        ("NVIDIA GeForce RTX 3090", (8, 6), "tensor cores", ("bf16", "fp16")),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", (8, 9), "tensor cores", ("bf16", "fp16")),
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", (8, 0), "tensor cores", ("tf32", "bf16", "fp16")),
        ("AMD Instinct MI300X", (9, 4), "matrix cores", ("bf16", "fp16")),
    ],
)
def test_abilities(name: str, capability: tuple[int, int] | None, units: str, faster: tuple[str, ...]) -> None:
    assert find_abilities(find_gpu(name), name, capability) == Abilities(units, faster)


@pytest.mark.parametrize(
    ("name", "capability"), [("Example GPU", None), ("AMD Radeon Graphics", (9, 0)), ("NVIDIA Future", (99, 0))]
)
def test_abilities_that_are_not_known(name: str, capability: tuple[int, int] | None) -> None:
    assert find_abilities(None, name, capability) is None
