from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch

from capture.precision import PrecisionState, arithmetic, cudnn_search, read_state
from capture.settings import PRECISIONS, Precision

NEW_API = hasattr(torch.backends, "fp32_precision")
needs_new_api = pytest.mark.skipif(not NEW_API, reason="torch before 2.9 has only the legacy switches")


@pytest.fixture(autouse=True)
def _defaults() -> Iterator[None]:
    def reset() -> None:
        if NEW_API:
            torch.backends.fp32_precision = "none"
            torch.backends.cudnn.fp32_precision = "none"
            torch.backends.mkldnn.fp32_precision = "none"
        torch.set_float32_matmul_precision("highest")
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = True
        torch.backends.cudnn.benchmark = False

    reset()
    yield
    reset()


def _nothing() -> None:
    pass


def _legacy_matmul() -> None:
    torch.backends.cuda.matmul.allow_tf32 = True


def _legacy_medium() -> None:
    torch.set_float32_matmul_precision("medium")


def _new_general_tf32() -> None:
    torch.backends.fp32_precision = "tf32"


def _new_general_ieee() -> None:
    torch.backends.fp32_precision = "ieee"


def _new_operators() -> None:
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    torch.backends.cudnn.conv.fp32_precision = "ieee"


STARTS = [
    _nothing,
    _legacy_matmul,
    _legacy_medium,
    *(pytest.param(start, marks=needs_new_api) for start in (_new_general_tf32, _new_general_ieee, _new_operators)),
]


def _assert_as_before(before: PrecisionState) -> None:
    after = read_state()
    assert after.fp32_precision == before.fp32_precision
    for name in ("matmul_allow_tf32", "cudnn_allow_tf32", "float32_matmul_precision"):
        known = getattr(before, name)
        if known is not None:  # a getter that refused before may answer now; one that answered must say the same
            assert getattr(after, name) == known, name


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_switches_are_set_inside_and_restored_after(precision: Precision, start: Callable[[], None]) -> None:
    start()
    before = read_state()
    with arithmetic(precision) as during:
        allowed = precision == "tf32"
        assert during.matmul_allow_tf32 is allowed
        assert during.cudnn_allow_tf32 is allowed
        assert during == read_state()
    _assert_as_before(before)


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_switches_are_restored_after_an_exception(precision: Precision, start: Callable[[], None]) -> None:
    start()
    before = read_state()
    with pytest.raises(KeyboardInterrupt), arithmetic(precision):
        raise KeyboardInterrupt
    _assert_as_before(before)


@needs_new_api
@pytest.mark.parametrize("start", STARTS)
def test_fp32_is_ieee_for_every_cuda_operator_whatever_was_set_before(start: Callable[[], None]) -> None:
    # Inheritance is the trap: with the general switch at tf32, cudnn.allow_tf32 = False alone leaves
    # convolutions in TF32.
    start()
    with arithmetic("fp32") as during:
        effective = {during.fp32_precision[name] for name in ("cuda.matmul", "cudnn.conv", "cudnn.rnn")}
        assert effective <= {"ieee", "none"}
        assert {during.fp32_precision[name] for name in ("", "cudnn", "mkldnn")} == {"none"}
        assert during.float32_matmul_precision == "highest"


@needs_new_api
def test_a_refusing_legacy_getter_reads_as_unknown() -> None:
    _new_operators()
    with pytest.raises(RuntimeError, match="legacy and new API"):
        _ = torch.backends.cuda.matmul.allow_tf32
    state = read_state()
    assert state.matmul_allow_tf32 is None
    assert state.fp32_precision["cuda.matmul"] == "tf32"


def test_torch_defaults_are_read_as_they_are() -> None:
    state = read_state()
    assert (state.matmul_allow_tf32, state.cudnn_allow_tf32) == (False, True)


def test_the_switches_of_reduced_sums_are_recorded() -> None:
    state = read_state()
    assert isinstance(state.fp16_reduced_precision_reduction, bool)
    assert isinstance(state.bf16_reduced_precision_reduction, bool)


@pytest.mark.parametrize("enabled", [True, False])
def test_cudnn_search_touches_only_its_own_switch(enabled: bool) -> None:
    # torch.backends.cudnn.flags(benchmark=True) would have switched cuDNN itself off.
    assert torch.backends.cudnn.enabled
    inside: list[bool] = []

    def look_and_fail() -> None:
        with cudnn_search(enabled=enabled):
            cudnn = torch.backends.cudnn
            inside.extend((cudnn.benchmark, cudnn.enabled, cudnn.allow_tf32))
            raise ValueError("planted")

    with pytest.raises(ValueError, match="planted"):
        look_and_fail()
    assert inside == [enabled, True, True]
    assert torch.backends.cudnn.benchmark is False


@needs_new_api
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("before", ["none", "ieee", "tf32"])
def test_what_was_inherited_is_inherited_again(precision: Precision, before: str) -> None:
    """A later change of the general switch still reaches the products."""
    torch.backends.cuda.matmul.fp32_precision = "none"
    torch.backends.fp32_precision = before
    with arithmetic(precision):
        pass
    for later in ("tf32", "ieee"):
        torch.backends.fp32_precision = later
        assert torch.backends.cuda.matmul.fp32_precision == later


@needs_new_api
def test_what_was_said_for_the_products_stays_said() -> None:
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    with arithmetic("fp32"):
        assert torch.backends.cuda.matmul.fp32_precision == "ieee"
    torch.backends.fp32_precision = "ieee"
    assert torch.backends.cuda.matmul.fp32_precision == "tf32"
    torch.backends.cuda.matmul.fp32_precision = "none"
