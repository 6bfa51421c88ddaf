"""The words of findings on AMD GPUs: APIs, settings, libraries and parts of the chip by the names they have there."""

from __future__ import annotations

import re

from msgspec.structs import replace

from analyze.findings.finding import Finding, Outcome

_WORDS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), word)
    for pattern, word in (
        # TF32 has no switch that holds for all libraries of ROCm, so no advice names one.
        (r'torch\.set_float32_matmul_precision\("high"\), or ', ""),
        (r"torch\.backends\.cudnn\.allow_tf32 = True, or ", ""),
        (r"set both allow_tf32 switches; ", ""),
        (r"in TF32 or half\b", "in half precision"),
        (r"up to sixteen times", "up to eight times"),  # fp16 on matrix cores against fp32 on vector units, gpus.toml
        (r"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF"),
        (r"expandable_segments:True", "expandable_segments:True (since ROCm 7 and PyTorch 2.12)"),
        (r"\bcuda(?:HostAlloc|MallocHost)\b", "hipHostMalloc"),
        (r"\bcudaFreeHost\b", "hipHostFree"),
        (r"\bcuda(?=[A-Z][a-z])", "hip"),
        (r"nvidia-smi -lgc\b", "rocm-smi --setperfdeterminism MHZ"),
        (r"nvidia-smi", "rocm-smi"),
        (r"(?<![.\w])CUDAGraph\b", "HIP graphs (torch.cuda.CUDAGraph)"),
        (r"CUDA events\b", "torch.cuda.Event"),
        (r"CUDA cores", "vector units"),
        (r"\bCUDA\b", "HIP"),
        (r"tensor cores", "matrix cores"),
        (r"Tensor cores", "Matrix cores"),
        (r"multiprocessors", "compute units"),
        (r"\bcuDNN\b", "MIOpen"),
        (r"\bcuBLAS(?:Lt)?\b", "hipBLASLt"),
        (r"\bNCCL\b", "RCCL"),
        (r"\bnccl-tests\b", "rccl-tests"),
        (r"\bCUPTI\b", "rocprofiler"),
        (r"(?<=^https://docs\.pytorch\.org/docs/stable/notes/)cuda(?=\.html$)", "hip"),
        (r"^https://docs\.nvidia\.com/deploy/rocm-smi/$", "https://rocm.docs.amd.com/projects/rocm_smi_lib/en/latest/"),
    )
)


def in_words_of_rocm(outcome: Outcome) -> Outcome:
    """An outcome as it reads on ROCm. PyTorch's own names stay: `torch.cuda` and "cuda" devices are HIP's there."""
    if not isinstance(outcome, Finding):
        return replace(outcome, reason=translate(outcome.reason))
    saving = outcome.saving and replace(outcome.saving, basis=translate(outcome.saving.basis))
    return replace(
        outcome,
        title=translate(outcome.title),
        observed=translate(outcome.observed),
        why=translate(outcome.why),
        change=translate(outcome.change),
        exceptions=translate(outcome.exceptions),
        link=translate(outcome.link),
        saving=saving,
    )


def translate(text: str) -> str:
    """A text with the names that ROCm has for what CUDA names in it."""
    for pattern, word in _WORDS:
        text = pattern.sub(word, text)
    return text
