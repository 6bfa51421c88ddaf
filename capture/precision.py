"""fp32, tf32, fp16, bf16: which switches of torch each one sets, and how they are put back.

The legacy switches (`allow_tf32`) are set, for every version of torch: they exist in all of them, keep the
getters of the newer API consistent, and `torch.compile` reads them. The newer API (`fp32_precision`,
torch 2.9 and later) is only read, and cleared where a program set it before: a value set there above a switch
is inherited where the switch says nothing, and wins.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from capture.errors import SettingsError
from capture.settings import Precision, Settings

DTYPES: Mapping[Precision, torch.dtype] = {
    "fp32": torch.float32,
    "tf32": torch.float32,
    "fp16": torch.float16,
    "bf16": torch.bfloat16,
}

_NEW_API_NODES = (
    "",
    "cuda.matmul",
    "cudnn",
    "cudnn.conv",
    "cudnn.rnn",
    "mkldnn",
    "mkldnn.matmul",
    "mkldnn.conv",
    "mkldnn.rnn",
)
"""From the general to the particular: a value further down is inherited until it is set itself."""
_INHERITED_FROM = ("", "cudnn", "mkldnn")
_INHERIT = "none"
_ABOVE = {"cuda.matmul": "", "cudnn": "", "cudnn.conv": "cudnn", "cudnn.rnn": "cudnn"}
_CUDA_NODES = ("cuda.matmul", "cudnn.conv", "cudnn.rnn")


@dataclass(frozen=True)
class PrecisionState:
    """torch's switches for 32-bit and half arithmetic; None where this torch cannot say.

    Attributes:
        matmul_allow_tf32: `torch.backends.cuda.matmul.allow_tf32`.
        cudnn_allow_tf32: `torch.backends.cudnn.allow_tf32`; torch's default is True.
        float32_matmul_precision: `torch.get_float32_matmul_precision()`.
        fp16_reduced_precision_reduction: May fp16 products be summed in fp16.
        bf16_reduced_precision_reduction: May bf16 products be summed in bf16.
        fp16_accumulation: May tensor cores accumulate in fp16.
        fp32_precision: The newer API, by node ("" is the general one); empty before torch 2.9.
    """

    matmul_allow_tf32: bool | None
    cudnn_allow_tf32: bool | None
    float32_matmul_precision: str | None
    fp16_reduced_precision_reduction: bool | None
    bf16_reduced_precision_reduction: bool | None
    fp16_accumulation: bool | None
    fp32_precision: Mapping[str, str]


def read_state() -> PrecisionState:
    """Read every switch; a legacy getter that refuses (mixed with the newer API) gives None."""
    matmul = torch.backends.cuda.matmul
    return PrecisionState(
        matmul_allow_tf32=_flag(lambda: matmul.allow_tf32),
        cudnn_allow_tf32=_flag(lambda: torch.backends.cudnn.allow_tf32),
        float32_matmul_precision=_guarded(torch.get_float32_matmul_precision),
        fp16_reduced_precision_reduction=_flag(lambda: matmul.allow_fp16_reduced_precision_reduction),
        bf16_reduced_precision_reduction=_flag(lambda: matmul.allow_bf16_reduced_precision_reduction),
        fp16_accumulation=_flag(lambda: matmul.allow_fp16_accumulation),
        fp32_precision=_read_new_api(),
    )


@contextmanager
def arithmetic(precision: Precision) -> Iterator[PrecisionState]:
    """Compute in this precision inside, and leave every switch as it was, whatever happens inside.

    Yields:
        The state during the run, read back from torch.
    """
    before, inheriting = read_state(), _find_inheriting()
    try:
        _set_tf32(allowed=precision == "tf32")
        yield read_state()
    finally:
        _restore(before, inheriting)


@contextmanager
def cudnn_search(*, enabled: bool) -> Iterator[None]:
    """Let cuDNN search its fastest algorithms inside.

    The attribute is set rather than `torch.backends.cudnn.flags()` used: the defaults of that context
    manager would switch cuDNN off altogether.
    """
    before = torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = enabled
    try:
        yield
    finally:
        torch.backends.cudnn.benchmark = before


def check_supported(settings: Settings) -> None:
    """Refuse bf16 on a GPU that only emulates it.

    Raises:
        SettingsError: The GPU has no bf16 arithmetic.
    """
    if settings.device == "cuda" and settings.precision == "bf16" and not _has_bf16():
        raise SettingsError("This GPU has no bf16 arithmetic.", "Use --precision fp16.")


def check_state(precision: Precision, state: PrecisionState) -> None:
    """Refuse a run in which torch says something else than was asked for.

    Raises:
        SettingsError: A switch for products, convolutions or recurrent layers is not as asked.
    """
    wanted = precision == "tf32"
    said = {"cuda.matmul.allow_tf32": state.matmul_allow_tf32, "cudnn.allow_tf32": state.cudnn_allow_tf32}
    said |= {
        f"{name}.fp32_precision": state.fp32_precision[name] == "tf32"
        for name in _CUDA_NODES
        if name in state.fp32_precision
    }
    for name, allowed in said.items():
        if allowed is not None and allowed != wanted:
            raise SettingsError(
                f"--precision {precision}: after switching, torch.backends.{name} still "
                f"{'allows' if allowed else 'forbids'} TF32.",
                "Something in this process sets it; look for torch.backends in the model's own code.",
            )


def check_tf32(precision: Precision, name: str) -> None:
    """Refuse tf32 where torch says that the current device has none.

    Raises:
        SettingsError: The GPU would silently compute in fp32.
    """
    supported: Callable[[], bool] | None = getattr(torch.cuda, "is_tf32_supported", None)
    if precision == "tf32" and supported is not None and not supported():
        raise SettingsError(f"{name} has no TF32.", "Use --precision fp32 or --precision fp16.")


def _has_bf16() -> bool:
    try:
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    except TypeError:  # an older torch has no such argument
        return bool(torch.cuda.is_bf16_supported())


def _set_tf32(*, allowed: bool) -> None:
    for name in _INHERITED_FROM:
        _write_node(name, _INHERIT)
    if not allowed:
        # "medium" and "high" reach oneDNN on the CPU too; for tf32, which only CUDA has, it is left alone.
        torch.set_float32_matmul_precision("highest")
    torch.backends.cuda.matmul.allow_tf32 = allowed
    torch.backends.cudnn.allow_tf32 = allowed


def _restore(before: PrecisionState, inheriting: Collection[str]) -> None:
    if before.matmul_allow_tf32 is not None:
        torch.backends.cuda.matmul.allow_tf32 = before.matmul_allow_tf32
    if before.float32_matmul_precision is not None:
        torch.set_float32_matmul_precision(before.float32_matmul_precision)
    if before.cudnn_allow_tf32 is not None:
        torch.backends.cudnn.allow_tf32 = before.cudnn_allow_tf32
    for name, value in before.fp32_precision.items():
        if name in inheriting:
            _write_node(name, _INHERIT)  # so that a later change further up still reaches it
        _write_node(name, value)


def _find_inheriting() -> frozenset[str]:
    """The nodes that say nothing themselves: they change with the one above, which is put back afterwards."""
    found: set[str] = set()
    for name, above in _ABOVE.items():
        value = _guarded(partial(_read_node, above))
        if not isinstance(value, str):
            continue
        try:
            if all(_follows(name, above, tried) for tried in ("ieee", "tf32")):
                found.add(name)
        finally:
            if above in found:
                _write_node(above, _INHERIT)
            _write_node(above, value)
    return frozenset(found)


def _follows(name: str, above: str, tried: str) -> bool:
    _write_node(above, tried)
    return bool(_guarded(partial(_read_node, name)) == tried)


def _read_new_api() -> dict[str, str]:
    read = {name: _guarded(partial(_read_node, name)) for name in _NEW_API_NODES}
    return {name: value for name, value in read.items() if isinstance(value, str)}


def _write_node(name: str, value: str) -> None:
    node = _guarded(lambda: _node(name))
    # A value is written only where it differs: writing an inherited one would end the inheritance.
    if node is not None and getattr(node, "fp32_precision", value) != value:
        node.fp32_precision = value


def _read_node(name: str) -> object:
    return _node(name).fp32_precision


def _node(name: str) -> Any:
    node: Any = torch.backends
    for part in filter(None, name.split(".")):
        node = getattr(node, part)
    return node


def _flag(read: Callable[[], object]) -> bool | None:
    value = _guarded(read)
    # Newer versions answer with a pair: the flag, and whether split-k is allowed.
    first = value[0] if isinstance(value, tuple) else value
    return first if isinstance(first, bool) else None


def _guarded(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except (AttributeError, RuntimeError, AssertionError):
        return None
