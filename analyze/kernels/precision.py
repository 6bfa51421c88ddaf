"""Precision and matrix-unit use, read from the markers in kernel names.

There are two kinds of markers. Matrix kernels spell their operand types in identifiers (`s16816gemm_bf16`,
`nvjet_tst`, `Cijk_..._HHS_BH`). Everything else is a C++ template whose type arguments are those of the tensors; fp32
beside a 16-bit type is only the type that the arithmetic is done in.
"""

from __future__ import annotations

import re

from analyze.kernels.categories import WITH_PRECISION
from analyze.kernels.names import KernelName

Markers = tuple[tuple[re.Pattern[str], str], ...]

UNKNOWN = "unknown"


def _markers(*pairs: tuple[str, str]) -> Markers:
    return tuple((re.compile(pattern), precision) for pattern, precision in pairs)


_XMMA_TYPES = r"tf32|bf16|f16|f32|f64|e4m3|e5m2|e2m1|i8|i32|u8"
_XMMA = re.compile(rf"_(?:{_XMMA_TYPES})(?:{_XMMA_TYPES})_({_XMMA_TYPES})(?:{_XMMA_TYPES})_(?:{_XMMA_TYPES})(?:_|$)")
_TRTLLM_GEN = re.compile(
    r"^(?:bmm|gemm)_[a-z0-9]+_((?:mx)?(?:e4m3|e2m1|bfloat16|fp16|int4))((?:mx)?(?:e4m3|e2m1|bfloat16|"
    r"fp16|int4)|)_"
)
_TYPE_NAMES = {
    "f32": "fp32",
    "fp32": "fp32",
    "tf32": "tf32",
    "f64": "fp64",
    "i8": "int8",
    "u8": "int8",
    "i32": UNKNOWN,
    "bf16": "bf16",
    "bfloat16": "bf16",
    "f16": "fp16",
    "fp16": "fp16",
    "int4": "mixed",
    "e4m3": "fp8",
    "e5m2": "fp8",
    "mxe4m3": "fp8",
    "e2m1": "fp4",
    "mxe2m1": "fp4",
}

# Tried on names in which the type letters stand at a known place.
_POSITIONAL = _markers(
    (r"^nvjet_(sm\d+_)?[a-z]+_tf32_", "tf32"),
    (r"^nvjet_(sm\d+_)?qq", "fp8"),
    (r"^nvjet_(sm\d+_)?oo", "fp4"),
    (r"^nvjet_(sm\d+_)?t", "bf16"),
    (r"^nvjet_(sm\d+_)?h", "fp16"),
    (r"^nvjet_(sm\d+_)?d", "fp64"),
    (r"^nvjet_(sm\d+_)?i", "int8"),
    (r"^nvjet_(sm\d+_)?s", "fp32"),
    (r"(?:^|_)cijk_a[a-z]+_b[a-z]+_[fb]8", "fp8"),
    (r"(?:^|_)cijk_a[a-z]+_b[a-z]+_(4x)?i8", "int8"),
    (r"(?:^|_)cijk_a[a-z]+_b[a-z]+_(sx|s_mx|xs)", "tf32"),
    (r"(?:^|_)cijk_a[a-z]+_b[a-z]+_[sc]", "fp32"),
    (r"(?:^|_)cijk_a[a-z]+_b[a-z]+_b", "bf16"),
    (r"(?:^|_)cijk_a[a-z]+_b[a-z]+_h", "fp16"),
    (r"(?:^|_)cijk_a[a-z]+_b[a-z]+_[dz]", "fp64"),
    (r"(?:^|_)cijk_[sc](?:[sb]|_s)?b?_\w*postgsu", "fp32"),
    (r"(?:^|_)cijk_b(?:bs|_bs|ss)?_\w*postgsu", "bf16"),
    (r"(?:^|_)cijk_h(?:hs|_hs|ss|b)?_\w*postgsu", "fp16"),
    (r"(?:^|_)cijk_[dz]b?_\w*postgsu", "fp64"),
)

# fp32 results built from several low-precision products, and operands of two types.
_COMPOSED = _markers(
    (r"bf16x[39]|3xtf32|tf32x3|fastf32", "fp32"),
    (
        r"a16w(fp|int)?4|a8w4|w4a16|w8a16|bf16xmxfp4|fp8xmxfp4|(?<!p)int4(?!_t|\d)|nf4|qk_int\d?_(sv|pv)",
        "mixed",
    ),
)

_OPERAND_FLOATS = re.compile(r"float_(e4m3|e5m2|e2m1)")
_IDENTIFIERS = _markers(
    (r"fp4|e2m1|(?<![a-z0-9])f4|mxf4", "fp4"),
    (r"fp8|(?<![a-z0-9])f8|e4m3|e5m2|float_?8|a\d+w8", "fp8"),
    (r"int8(?!_t)|(?<![a-z0-9])[isu]8(?![0-9])|imma", "int8"),
    (r"tf(loat)?32", "tf32"),
    (r"bf16|bfloat16|bhalf", "bf16"),
    (r"f16|fp16|(?<![a-z])half|float16", "fp16"),
    (r"hmma", "fp16"),
    (r"fp64|(?<![a-z0-9])f64|(?<![a-z])double", "fp64"),
    (r"fp32|(?<![a-z0-9])f32|(?<![a-z])float(?![0-9]|_e)|scudnn", "fp32"),
)
_TEMPLATE_TYPES = _markers(
    (r"float8_e\dm\d|fp8_e\dm\d|__nv_fp8_e|float_e\dm\d", "fp8"),
    (r"bfloat16|bf16", "bf16"),
    (r"(?<![a-z])half(?![a-z])|half_t|float16_t|_float16|tensorptrf16", "fp16"),
    (r"(?<![a-z])float(?![a-z_]|8|16)|tensorptrf32", "fp32"),
    (r"(?<![a-z])double(?![a-z_])", "fp64"),
)
_QUANTIZED = _markers(
    (r"fp8|f8|e4m3|e5m2|float8|blockscalequantizationtype", "fp8"), (r"int8", "int8"), (r"fp4|e2m1", "fp4")
)

# Itanium codes of builtin and vendor types as first template arguments; ushort stands for bf16 in Composable Kernel.
_MANGLED = _markers(
    (r"DF16b|I(?:Li\d+E)?tt", "bf16"),
    (r"DF16_", "fp16"),
    (r"I(?:Li\d+E)?f(?=L[ib]\d|[fdisE])", "fp32"),
    (r"I(?:Li\d+E)?d(?=L[ib]\d|[fdisE])", "fp64"),
)

_CK_BF16 = re.compile(r"(?:^|\W)ck::.*unsigned short, unsigned short")  # the same types, demangled

_MMA_SHAPE = re.compile(r"([sdhi])(884|1688|16816|8816|16832|161616|16864)(?=[a-z_])")
_SIMT_GEMM = re.compile(r"(?:^|[_<:])(gc|[sdczhi])gemm(?:3m)?(?=_|ex|kernel|<|$)")
_SIMT_PRECISION = {"gc": "fp32", "s": "fp32", "d": "fp64", "c": "fp32", "z": "fp64", "h": "fp16", "i": "int8"}

_COPY_CAST = re.compile(r"withcast|tofloat32_copy|float(?:16|8_\w+|32)_copy_kernel|gpu_kernel_impl<[^<]*copy_")
_LOAD_CAST = re.compile(r"loadwithcast|storewithcast")
_DISABLED_ENUM = re.compile(r"\([a-z_0-9:]*fp8[a-z_0-9]*\)0")
_FP8_CACHE = re.compile(r"fp8kvcachedatatype\)[1-9]|fp8kvcachedatatype::kfp8")  # values are scaled and cast to it

_MATRIX_UNIT = re.compile(
    r"[sdhi](?:884|1688|16816|8816|16832|161616|16864)(?:[a-z_]|$)|tensor\d+x\d+x\d+|"
    r"warpgroupsize|[hiq]g?mma|wgmma|"
    r"tensorop|wmma|xdl|mfma|gtcx?\d?_|gmma|tcgen05|umma|_mi\d+x\d+x|dpas|joint_matrix|xmx|collectivemma"
)
_SCALED_BLOCKS = re.compile(r"block_?(?:wise|_?scale)|grouped|w8a8_block")  # no other unit multiplies fp8
_NO_MATRIX_UNIT = re.compile(r"simt|ffma|ff_main|scudnn|gemv|cijk_.*_mt\d+x\d+x\d+_(?!mi\d)")


def precision_of(kernel: KernelName, category: str) -> str:
    """Give the precision that the name states for this kind of kernel, `unknown` where it states none."""
    if category in {"memcpy", "memset"} or (kernel.name.startswith("triton_") and category not in WITH_PRECISION):
        return UNKNOWN
    if category in WITH_PRECISION or (category == "moe" and ("gemm" in kernel.text or "fmoe" in kernel.text)):
        return _matrix_precision(kernel)
    if category == "quantization":
        return _first(_QUANTIZED, kernel.raw.lower())
    if category == "communication":
        return UNKNOWN if "int8" in kernel.text else _first(_IDENTIFIERS, kernel.text)
    return _tensor_precision(kernel, category)


def uses_matrix_unit(kernel: KernelName, category: str) -> bool | None:
    """Say whether the name shows tensor cores, matrix cores or XMX at work; None where the name does not say."""
    if category not in WITH_PRECISION:
        return False
    text = _operands(kernel)
    if _NO_MATRIX_UNIT.search(text):
        return False
    if _MATRIX_UNIT.search(text):
        return True
    if _SIMT_GEMM.search(text):
        return False
    precision = _matrix_precision(kernel)
    in_blocks = precision == "fp8" and _SCALED_BLOCKS.search(text)
    if precision == "tf32" or in_blocks or (_XMMA.search(text) and precision != "fp32"):
        return True
    return False if category == "convolution" and precision == "fp32" else None


def _matrix_precision(kernel: KernelName) -> str:
    text = _DISABLED_ENUM.sub("", _operands(kernel))
    for found in (_first(_POSITIONAL, text), _two_operands(text), _first(_COMPOSED, text)):
        if found != UNKNOWN:
            return found
    marked = _first(_IDENTIFIERS, text)
    if marked not in {UNKNOWN, "fp32"}:
        return marked
    shape, simt = _MMA_SHAPE.search(text), _SIMT_GEMM.search(text)
    if _CK_BF16.search(text):
        return "bf16"
    if shape:
        return _shape_precision(shape.group(1), shape.group(2))
    if simt:
        return _SIMT_PRECISION[simt.group(1)]
    mangled = _first(_MANGLED, kernel.raw) if kernel.raw.startswith("_Z") else UNKNOWN
    return mangled if mangled != UNKNOWN else marked


def _operands(kernel: KernelName) -> str:
    """Give the text to search; a bare `cutlass::Kernel (..._Params)` has its types in the parameter list."""
    is_bare = "<" not in kernel.text and kernel.raw.endswith("Params)") and kernel.name.endswith("kernel")
    return kernel.raw.lower() if is_bare else kernel.text


def _two_operands(text: str) -> str:
    """Read names that give the types of both operands; two different ones are `mixed`."""
    xmma = _XMMA.search(text)
    if xmma:
        return _TYPE_NAMES[xmma.group(1)]
    generated = _TRTLLM_GEN.match(text)
    if generated:
        first, second = generated.group(1), generated.group(2) or generated.group(1)
        return _TYPE_NAMES[first] if first == second else "mixed"
    types = {_TYPE_NAMES[found] for found in _OPERAND_FLOATS.findall(text)}
    return "mixed" if len(types) > 1 else next(iter(types), UNKNOWN)


def _shape_precision(accumulator: str, shape: str) -> str:
    """Input precision of an MMA kernel without a type in its name: what shape and accumulator leave possible."""
    if accumulator == "d":
        return "fp64"
    if accumulator == "i":
        return "int8"
    if accumulator == "h" or shape in {"884", "161616"}:
        return "fp16"
    return "tf32" if shape == "1688" else UNKNOWN


def _tensor_precision(kernel: KernelName, category: str) -> str:
    text = kernel.text
    if category == "copy_layout" and _COPY_CAST.search(text):
        return "mixed"
    if _FP8_CACHE.search(text):
        return "fp8"
    cast = _LOAD_CAST.search(text)
    start = max(text.find("<"), text.find("tensorptr"))
    found = _first(_TEMPLATE_TYPES, text[start : cast.start() if cast else None]) if start >= 0 else UNKNOWN
    if found == UNKNOWN and kernel.raw.startswith("_Z"):
        found = _first(_MANGLED, kernel.raw)
    # Arithmetic in fp32 on operands cast while loading: the tensors are of another type.
    return "mixed" if found == "fp32" and cast else found


def _first(markers: Markers, text: str) -> str:
    return next((precision for pattern, precision in markers if pattern.search(text)), UNKNOWN)
