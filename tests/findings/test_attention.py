"""Unfused attention: by hand it goes to PyTorch's function; where that function ran unfused, what keeps kernels out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.builder import TraceBuilder
from tests.findings.test_blame import GEMM, found, judged

SOFTMAX = "void (anonymous namespace)::softmax_warp_forward<float, float, float, 8, false, false>(float*)"
NAMES = {"c10::BFloat16": "bf16", "float": "fp32", "double": "fp64"}


def attention(element: str, head: int, *, mask: bool, recorded: bool = True, around: str = "math") -> TraceBuilder:
    """Two batched products of 100 us around a softmax of 80 us, inside one call of PyTorch's function."""
    given: dict[str, Any] = {}
    if recorded:
        tensor, attn_mask = [2, 8, 256, head], [2, 1, 256, 256] if mask else []
        given = {
            "Input Dims": [tensor, tensor, tensor, attn_mask, [], [], [], []],
            "Input type": [element, element, element, "bool" if mask else "", "Scalar", "Scalar", "", "Scalar"],
        }
    builder = TraceBuilder().op("aten::scaled_dot_product_attention", 0, 60, **given)
    builder.op(f"aten::_scaled_dot_product_attention_{around}", 1, 58, **given)
    for at, (op, kernel, start, dur) in enumerate(
        [("aten::bmm", GEMM, 70, 100), ("aten::softmax", SOFTMAX, 171, 80), ("aten::bmm", GEMM, 252, 100)]
    ):
        builder.op(op, 2 + 12 * at, 10).run(kernel, (3 + 12 * at, 5), (start, dur))
    return builder


@pytest.mark.parametrize(
    ("element", "head", "mask", "words", "silent"),
    [
        ("double", 64, False, "attention in bf16 or fp16: no fused kernel takes fp64; no sdpa_kernel", "pad"),
        ("c10::BFloat16", 60, False, "pad the head size 60 to a multiple of 8; no sdpa_kernel", "mask"),
        ("c10::BFloat16", 64, True, "is_causal=True or no mask where that is what the mask says; no", "pad"),
        ("c10::BFloat16", 64, False, "no sdpa_kernel(SDPBackend.MATH) around it; under sdpa_kernel", "pad"),
        ("float", 60, False, "bf16 or fp16, since in fp32 only the memory-efficient kernel runs; no", "pad"),
        ("float", 62, False, "pad the head size 62 to a multiple of 4; bf16 or fp16", "mask"),
    ],
)
def test_what_keeps_fused_kernels_out(
    element: str, head: int, mask: bool, words: str, silent: str, tmp_path: Path
) -> None:
    finding = found(judged(attention(element, head, mask=mask), tmp_path))["unfused-attention"]
    assert finding.change.startswith(words)
    assert silent not in finding.change
    assert "F.scaled_dot_product_attention" not in finding.change
    given = f"{NAMES[element]}, head size {head}, {'with' if mask else 'without'} a mask."
    assert finding.observed.endswith(f"100.0% of it runs in aten::_scaled_dot_product_attention_math: {given}")


def test_without_recorded_shapes_nothing_is_said_about_them(tmp_path: Path) -> None:
    finding = found(judged(attention("float", 64, mask=True, recorded=False), tmp_path))["unfused-attention"]
    assert finding.observed.endswith("what it was given is not recorded (record_shapes=True).")
    assert finding.change.startswith("no sdpa_kernel(SDPBackend.MATH) around it")


def test_another_function_is_sent_to_pytorchs_own(tmp_path: Path) -> None:
    finding = found(judged(attention("float", 64, mask=False, around="by_hand"), tmp_path))["unfused-attention"]
    assert finding.change == 'F.scaled_dot_product_attention, attn_implementation="sdpa"'
