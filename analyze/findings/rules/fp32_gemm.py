"""GEMMs in fp32 on CUDA cores, on a device that has something faster."""

from __future__ import annotations

from analyze.findings.finding import Outcome
from analyze.findings.rule import Case, Rule
from analyze.findings.words import fp32_products

_CHANGES = {
    "tf32": 'torch.set_float32_matmul_precision("high"), or autocast to bfloat16 or float16',
    "bf16": "autocast to bfloat16 or float16",
    "fp16": "autocast to float16, in training with a GradScaler",
}


def check(case: Case) -> Outcome:
    """What a faster precision would save on GEMMs; convolutions have a rule of their own."""
    return fp32_products(case, RULE, "GEMM", _CHANGES)


RULE = Rule(
    id="fp32-gemm",
    question="Do matrix multiplications run in FP32 instead of on tensor cores?",
    limit=0.01,
    what="GEMMs run in fp32 without tensor cores, though the GPU computes faster in TF32 or half.",
    why="Tensor cores multiply up to sixteen times as fast as CUDA cores on the same chip.",
    fix='torch.set_float32_matmul_precision("high"), or autocast to half precision',
    exceptions="The model needs full fp32 accuracy: check it. Small products are limited by memory or launches.",
    measured="Replay with these kernels shortened by the ratio of the GPU's dense peaks (gpus.toml): an upper bound.",
    link="https://docs.pytorch.org/docs/stable/notes/cuda.html",
    code_before="output = model(batch)",
    code_after="""\
with torch.autocast("cuda", dtype=torch.bfloat16):
    output = model(batch)""",
    check=check,
    costs=("fp32-products",),
)
