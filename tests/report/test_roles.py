"""Pseudonyms decide as the names that they replace, with words of a fixed list and nothing else."""

from __future__ import annotations

import re

import pytest

from analyze.kernels import op_category
from analyze.report.redact import Redaction, roles

PLAIN = re.compile(r"range-\d+|Module\d+")


@pytest.mark.parametrize(
    ("name", "category"),
    [
        ("my softmax", "softmax"), ("Softmax", "softmax"), ("bob's layer_norm", "normalization"), ("mm", "gemm"),
        ("moe of bob", "moe"), ("nccl:all_reduce of bob", "communication"), ("Optimizer.step#Bob.step", "optimizer"),
        ("bob::flash_fwd", "attention"), ("bob", None), ("nn.Module: BobAttention", "attention"),
        ("nn.Module: BobLinear", "gemm"), ("nn.Module: BobMoeBlock", "moe"), ("nn.Module: BobNorm", "normalization"),
        ("nn.Module: GLU", "activation"), ("nn.Module: Bob", None),
    ],
)  # fmt: skip
def test_a_category_stays(name: str, category: str | None) -> None:
    assert op_category([name]) == category
    redaction = Redaction(names=True)
    made = redaction.frame(name) if name.startswith("nn.Module") else redaction.range(name)
    assert op_category([made]) == category
    assert "bob" not in made.lower()
    assert made != name
    assert (PLAIN.fullmatch(made.removeprefix("nn.Module: ")) is not None) == (category is None), made


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("Bob's DataLoader", roles.DATA_LOADING),
        ("bob: compile_fx bob", roles.COMPILING),
        ("## Call CompiledFxGraph bob ##", roles.REGION),
        ("bob: Torch-Compiled Region: 3/1", r"^(?:\S+: )?Torch-Compiled Region: 3/1"),
    ],
)
def test_what_else_is_read_stays(name: str, pattern: str) -> None:
    made = Redaction(names=True).range(name)
    assert re.search(pattern, name)
    assert re.search(pattern, made)
    assert "bob" not in made.lower()


def test_modules_stay_modules_around_others() -> None:
    """An inner module that says nothing hides an outer one that does, with its own name and with a pseudonym."""
    redaction = Redaction(names=True)
    for inner, outer in (("Wrapper", "BobNorm"), ("BobNorm", "Wrapper")):
        names = [f"nn.Module: {inner}", f"nn.Module: {outer}"]
        assert op_category([redaction.frame(name) for name in names]) == op_category(names)


@pytest.mark.parametrize(
    "frame",
    [
        "/usr/lib/python3/dist-packages/bob/x.py(3): run", "/opt/python3.10/x.py(3): run",
        "torch\\nn\\module.py(3): run",
        "<attrs generated init bob>(1): __init__", "<built-in method bob of dict object at 0x7f>", "<bob>",
        "torch/cuda/memory.py(218): empty_cache", "<built-in function _cuda_emptyCache>", "bob torch/ bob",
        "torch/utils/data/dataloader.py(1131): _try_get_data",
    ],
)  # fmt: skip
def test_frames_decide_the_same(frame: str) -> None:
    for names in (False, True):
        assert roles.of_frame(Redaction(names=names).frame(frame)) == roles.of_frame(frame)


def test_what_are_two_names_stay_two() -> None:
    redaction = Redaction()
    files = [redaction.frame(f"/{folder}/utils.py(3): run") for folder in ("a", "b", "a")]
    assert files == ["utils.py(3): run", "folder-1/utils.py(3): run", "utils.py(3): run"]
    objects = [redaction.frame(f"<built-in method get of dict object at {at}>") for at in ("0x1", "0x2", "0x1")]
    assert objects[0] == objects[2] != objects[1]
    ranges = [redaction.range(f"load /{folder}/w.pt") for folder in ("a", "b")]
    assert ranges[0] == "load w.pt" != ranges[1]


@pytest.mark.parametrize("text", ['["10.1.2.3"]', '["True or bob"]', '["1.2.3"]', '["eE-."]'])
def test_what_only_looks_like_a_number_goes(text: str) -> None:
    assert Redaction().values(text) == Redaction().shape(text) == '[""]'


def test_lists_of_truth_values_stay() -> None:
    assert (
        Redaction().values('["[True, True, False]", "[2, 2]", "-1.5e3"]') == '["[True, True, False]","[2, 2]","-1.5e3"]'
    )
