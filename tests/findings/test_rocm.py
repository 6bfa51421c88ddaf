"""On AMD GPUs findings speak of HIP, of ROCm's libraries and settings, and of the chip's own parts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from analyze.findings import RULES, Finding, Rule
from analyze.findings.rocm import translate
from analyze.findings.rule import Case
from analyze.metrics import Measures
from analyze.report import build_report
from analyze.trace import Trace
from tests.builder import TraceBuilder
from tests.findings.test_rules import REPLAYED, WINDOW, case, measures

__all__ = ["measures"]  # the fixture
OF_CUDA = re.compile(
    r"\bcuda[A-Z]\w*|(?<!torch\.cuda\.)CUDA|(?i:nvidia)|cuDNN|cuBLAS|\bNCCL|\bnccl|[Tt]ensor core|TF32|allow_tf32|"
    r"float32_matmul|multiprocessor|CUPTI|notes/cuda"
)


def texts(finding: Finding) -> str:
    basis = finding.saving.basis if finding.saving else ""
    return " ".join(
        (finding.title, finding.observed, finding.why, finding.change, finding.exceptions, finding.link, basis)
    )


def on(name: str, made: Case) -> Case:
    return replace(made, device=replace(made.device, name=name))


@pytest.mark.parametrize("rule", REPLAYED, ids=lambda rule: rule.id)
def test_no_finding_on_an_amd_gpu_speaks_of_cuda(measures: Measures, rule: Rule) -> None:
    made = case(measures, rule, WINDOW // 4, name="hipFree")
    plain, finding = rule.judge(on("NVIDIA H100", made)), rule.judge(on("AMD Instinct MI300X", made))
    assert isinstance(plain, Finding)
    assert isinstance(finding, Finding)
    assert not OF_CUDA.search(texts(finding)), OF_CUDA.search(texts(finding))
    assert texts(plain) == texts(rule.judge(on("", made)))  # type: ignore[arg-type]
    if rule.id in ("allocator-stall", "launch-bound", "layout", "exposed-copies"):
        assert texts(plain) != texts(finding)


def test_the_words_of_every_rule_have_a_translation() -> None:
    for rule in RULES:
        for text in (rule.what, rule.why, rule.fix, rule.exceptions, rule.measured):
            assert not OF_CUDA.search(translate(text)), (rule.id, text)


@pytest.mark.parametrize(
    ("said", "on_rocm"),
    [
        (
            "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
            "PYTORCH_HIP_ALLOC_CONF=expandable_segments:True (since ROCm 7 and PyTorch 2.12)",
        ),
        ("cudaMalloc, cudaFree, cudaHostAlloc", "hipMalloc, hipFree, hipHostMalloc"),
        ("nvidia-smi -lgc to lock clocks", "rocm-smi --setperfdeterminism MHZ to lock clocks"),
        ("https://docs.nvidia.com/deploy/nvidia-smi/", "https://rocm.docs.amd.com/projects/rocm_smi_lib/en/latest/"),
        ("https://docs.pytorch.org/docs/stable/notes/cuda.html", "https://docs.pytorch.org/docs/stable/notes/hip.html"),
        ('torch.set_float32_matmul_precision("high"), or autocast to half precision', "autocast to half precision"),
        # PyTorch keeps these names on ROCm
        ("torch/cuda/memory.py(170): empty_cache", "torch/cuda/memory.py(170): empty_cache"),
        ('tensor.to("cuda", non_blocking=True)', 'tensor.to("cuda", non_blocking=True)'),
        ("no torch.cuda.synchronize() in the loop", "no torch.cuda.synchronize() in the loop"),
    ],
)
def test_names(said: str, on_rocm: str) -> None:
    assert translate(said) == on_rocm


@pytest.mark.parametrize(("api", "words"), [("hipLaunchKernel", "HIP graphs"), ("cudaLaunchKernel", ", CUDAGraph,")])
def test_calls_tell_the_platform_where_the_device_has_no_name(api: str, words: str, tmp_path: Path) -> None:
    """Ten kernels of 5 us, launched every 50: 45 us of each 50 are idle."""
    builder = TraceBuilder()
    builder.metadata = {"schemaVersion": 1}
    for number in range(10):
        builder.run("own", (50 * number, 5), (50 * number + 6, 5), api=api)
    diagnosis = build_report(Trace.load(builder.write(tmp_path / "t.json"))).diagnosis
    (finding,) = (f for f in diagnosis.findings if f.id == "launch-bound")
    assert words in finding.change
