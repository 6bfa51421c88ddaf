"""Precision and matrix-unit use, read from markers in kernel names.

Two kinds of markers. Matrix kernels spell their types in identifiers (`s16816gemm_bf16`, `nvjet_tst`, `Cijk_..._HHS_BH`);
everything else is a C++ template whose type arguments are the tensor's, with fp32 beside a 16-bit type only as the type the
arithmetic is done in.
"""

from __future__ import annotations

import re

from analyze.kernels.names import KernelName

MATRIX_CATEGORIES = frozenset({"gemm", "convolution", "attention", "moe"})

_NVJET = re.compile(r"^nvjet_(?:sm\d+_)?([a-z]+)(_tf32)?_")
_NVJET_INPUT = (
    ("qq", "fp8"),
    ("oo", "fp4"),
    ("t", "bf16"),
    ("h", "fp16"),
    ("d", "fp64"),
    ("i", "int8"),
    ("s", "fp32"),
)
_TENSILE = re.compile(
    r"^cijk_a[a-z]+_b[a-z]+_([a-z0-9]+(?:_[a-z]+)*?)(?:_bias|_has?_|_mt\d|_mi\d|_post|_us|_sav|_sab|_as_|_b_|_bh|_|$)"
)
_TENSILE_INPUT = (
    ("f8", "fp8"),
    ("b8", "fp8"),
    ("i8", "int8"),
    ("4xi8", "int8"),
    ("sx", "tf32"),
    ("s_mx", "tf32"),
    ("s", "fp32"),
    ("b", "bf16"),
    ("h", "fp16"),
    ("d", "fp64"),
    ("z", "fp64"),
    ("c", "fp32"),
)
_XMMA_TYPES = r"tf32|bf16|f16|f32|f64|e4m3|e5m2|e2m1|i8|i32|u8"
_XMMA = re.compile(
    rf"_(?:{_XMMA_TYPES})(?:{_XMMA_TYPES})_({_XMMA_TYPES})(?:{_XMMA_TYPES})_(?:{_XMMA_TYPES})(?:_|$)"
)
_TRTLLM_GEN = re.compile(
    r"^(?:bmm|gemm)_(?:[a-z0-9]+)_(mx|)(e4m3|e2m1|bfloat16|fp16|fp32|int4)((?:mx)?(?:e4m3|e2m1|bfloat16|fp16)|)_"
)
_SHAPE = re.compile(r"([sdhi])(884|1688|16816|8816|16832|161616|16864)(?=[a-z_])")
_SIMT = re.compile(r"(?:^|[_<:])(gc|[sdczhi])gemm(?:3m)?(?=_|ex|kernel|<|$)")
_SIMT_PRECISION = {"gc": "fp32", "s": "fp32", "d": "fp64", "c": "fp32", "z": "fp64", "h": "fp16", "i": "int8"}
_CANONICAL = {
    "f32": "fp32",
    "tf32": "tf32",
    "bf16": "bf16",
    "bfloat16": "bf16",
    "f16": "fp16",
    "fp16": "fp16",
    "fp32": "fp32",
    "f64": "fp64",
    "e4m3": "fp8",
    "e5m2": "fp8",
    "e2m1": "fp4",
    "i8": "int8",
    "u8": "int8",
    "i32": "unknown",
    "int4": "mixed",
}

_EMULATED_FP32 = re.compile(r"bf16x[39]|3xtf32|tf32x3|fastf32")
_MIXED_INPUT = re.compile(r"a16w(?:fp|int)?[48]|w[48]a16|bf16xmxfp4|fp8xmxfp4|int4|uint4|nf4")
_IDENTIFIER_MARKERS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"fp4|e2m1|(?<![a-z0-9])f4|float4_e2m1"), "fp4"),
    (re.compile(r"fp8|(?<![a-z0-9])f8|e4m3|e5m2|float_?8|a\d+w8"), "fp8"),
    (re.compile(r"int8(?!_t)|(?<![a-z0-9])[isu]8(?![0-9])|imma"), "int8"),
    (re.compile(r"tf32"), "tf32"),
    (re.compile(r"bf16|bfloat16|df16b|bhalf"), "bf16"),
    (re.compile(r"f16|fp16|(?<![a-z])half|float16|df16_"), "fp16"),
    (re.compile(r"hmma"), "fp16"),
    (re.compile(r"fp64|(?<![a-z0-9])f64|(?<![a-z])double"), "fp64"),
    (re.compile(r"fp32|(?<![a-z0-9])f32|(?<![a-z])float(?![0-9_]\d*_e)|sgemm|scudnn"), "fp32"),
)
_TYPE_MARKERS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"float8_e\dm\d|fp8_e\dm\d|__nv_fp8"), "fp8"),
    (re.compile(r"bfloat16|(?<![a-z0-9])bf16|df16b"), "bf16"),
    (
        re.compile(r"(?<![a-z])half(?![a-z])|__half|half_t|float16_t|(?<![a-z0-9])f?p?16_t|df16_|_float16"),
        "fp16",
    ),
    (re.compile(r"(?<![a-z])float(?![a-z_]|8|16)|(?<![a-z])float[24](?![0-9])"), "fp32"),
    (re.compile(r"(?<![a-z])double(?![a-z_])"), "fp64"),
)
_MANGLED_TYPE = re.compile(r"<(?:li\d+e)*(?:[a-z]*?)(f|d)(?=li\d|lb\d|[fdis]*e)")
_MANGLED_BF16 = re.compile(r"e(?:tt|ttft)")
_CAST = re.compile(
    r"loadwithcast|storewithcast|tofloat32_copy|float(?:16|8_\w+|32)_copy_kernel|gpu_kernel_impl<[^<]*direct_copy|gpu_kernel_impl<[^<]*copy_device"
)
_QUANT_FP8 = re.compile(r"fp8|f8|e4m3|e5m2|float8|blockscalequantizationtype")
_QUANT_INT8 = re.compile(r"int8")

_MATRIX_UNIT = re.compile(
    r"[sdhi](?:884|1688|16816|8816|16832|161616|16864)(?:[a-z_]|$)|tensor\d+x\d+x\d+|warpgroupsize|[hiq]g?mma|wgmma|tensorop|wmma|"
    r"xdl|mfma|gtcx?\d?_|gmma|tcgen05|umma|_mi\d+x\d+x|tcgen|dpas|joint_matrix|xmx|collectivemma"
)
_NO_MATRIX_UNIT = re.compile(r"simt|ffma|ff_main|fma_|scudnn|gemv")
_TENSILE_NO_MATRIX = re.compile(r"^cijk_.*_mt\d+x\d+x\d+_(?!mi\d)")


def precision_of(kernel: KernelName, category: str) -> str:
    """Give the precision that the name states for this kind of kernel, `unknown` where it states none."""
    if category in {"memcpy", "memset"}:
        return "unknown"
    if category in {"gemm", "convolution"} or category == "attention":
        found = _matrix_precision(kernel.text)
        return found if found != "unknown" else _outside_precision(kernel)
    if category == "moe":
        return _moe_precision(kernel)
    if category == "quantization":
        return _quantization_precision(kernel)
    if category == "communication":
        return _first(_IDENTIFIER_MARKERS, kernel.text) if "int8" not in kernel.text else "unknown"
    if kernel.name.startswith("triton_"):
        return "unknown"
    return _type_precision(kernel.text, category)


def uses_matrix_unit(kernel: KernelName, category: str) -> bool | None:
    """Say whether the name shows tensor cores, matrix cores or XMX at work; None where it cannot be told."""
    if category not in MATRIX_CATEGORIES:
        return False
    text = kernel.text
    if _MATRIX_UNIT.search(text):
        return True
    simt = _SIMT.search(text)
    if simt or _NO_MATRIX_UNIT.search(text) or _TENSILE_NO_MATRIX.search(text):
        return False
    if category == "convolution" and _matrix_precision(text) == "fp32":
        return False
    return None


def _matrix_precision(text: str) -> str:
    for read in (_nvjet, _tensile, _xmma, _trtllm_gen):
        found = read(text)
        if found:
            return found
    if _EMULATED_FP32.search(text):
        return "fp32"
    if _MIXED_INPUT.search(text):
        return "mixed"
    shape = _SHAPE.search(text)
    marked = _first(_IDENTIFIER_MARKERS, text)
    if shape:
        return _shape_precision(shape.group(1), shape.group(2), marked)
    simt = _SIMT.search(text)
    if simt:
        return _SIMT_PRECISION[simt.group(1)]
    if marked in {"unknown", "fp32"}:
        return _mangled_precision(text) or marked
    return marked


def _nvjet(text: str) -> str | None:
    match = _NVJET.match(text)
    if match is None:
        return None
    if match.group(2):
        return "tf32"
    return next(
        (precision for prefix, precision in _NVJET_INPUT if match.group(1).startswith(prefix)), "unknown"
    )


def _tensile(text: str) -> str | None:
    match = _TENSILE.match(text)
    if match is None:
        return None
    letters = text[match.start(1) :]
    return next((precision for prefix, precision in _TENSILE_INPUT if letters.startswith(prefix)), "unknown")


def _xmma(text: str) -> str | None:
    match = _XMMA.search(text)
    return _CANONICAL[match.group(1)] if match else None


def _trtllm_gen(text: str) -> str | None:
    match = _TRTLLM_GEN.match(text)
    if match is None:
        return None
    first = match.group(1) + match.group(2)
    second = match.group(3) or first
    return _CANONICAL[match.group(2)] if first == second else "mixed"


def _shape_precision(accumulator: str, shape: str, marked: str) -> str:
    """Input precision of an MMA kernel: a dtype in the name, else what the shape and accumulator leave possible."""
    if marked not in {"unknown", "fp32"}:
        return marked
    if accumulator == "h" or shape in {"884", "161616"}:
        return "fp64" if accumulator == "d" else "fp16"
    if accumulator == "d":
        return "fp64"
    if accumulator == "i":
        return "int8"
    return "tf32" if shape == "1688" else "unknown"


def _mangled_precision(text: str) -> str | None:
    if _MANGLED_BF16.search(text):
        return "bf16"
    return None


def _outside_precision(kernel: KernelName) -> str:
    """Read the parameter list too when a truncated or bare name leaves nothing else."""
    if "<" in kernel.text or "Params)" not in kernel.raw:
        return _mangled_type(kernel.text)
    return _matrix_precision(kernel.raw.lower())


def _moe_precision(kernel: KernelName) -> str:
    is_matrix = "gemm" in kernel.text or "fmoe" in kernel.text
    return _matrix_precision(kernel.text) if is_matrix else _type_precision(kernel.text, "moe")


def _quantization_precision(kernel: KernelName) -> str:
    raw = kernel.raw.lower()
    if _QUANT_FP8.search(raw):
        return "fp8"
    return "int8" if _QUANT_INT8.search(raw) else _first(_IDENTIFIER_MARKERS[:1], raw)


def _type_precision(text: str, category: str) -> str:
    if _CAST.search(text):
        return (
            "mixed"
            if category in {"copy_layout", "elementwise", "activation"}
            else _first(_TYPE_MARKERS, text)
        )
    found = _first(_TYPE_MARKERS, text[text.find("<") :]) if "<" in text else "unknown"
    return found if found != "unknown" else _mangled_type(text)


def _mangled_type(text: str) -> str:
    match = _MANGLED_TYPE.search(text)
    return {"f": "fp32", "d": "fp64"}[match.group(1)] if match else "unknown"


def _first(markers: tuple[tuple[re.Pattern[str], str], ...], text: str) -> str:
    return next((precision for pattern, precision in markers if pattern.search(text)), "unknown")
