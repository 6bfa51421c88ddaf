"""The synthetic files of sample_traces/ and how each is made."""

from __future__ import annotations

from tests.synthetic.vit import Plan

SAMPLES = {
    "vit_tiny_fp32_synthetic.json.gz": Plan(),
    "vit_tiny_fp16_small_batch_synthetic.json.gz": Plan(precision="fp16", batch=2, steps=3, loading_ns=150_000),
}
