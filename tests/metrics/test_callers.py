"""Chains of names: what is vectorised says the same as a walk from call to caller."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from analyze.timeline import CallTree
from analyze.timeline.callers import chains
from analyze.timeline.calls import FRAME, OP, RANGE
from analyze.trace import Trace
from analyze.trace.nesting import NO_ROW
from tests.builder import TraceBuilder


def walked(tree: CallTree, call: int) -> tuple[str, ...]:
    """The slow and obvious way."""
    names, found = tree.calls["name"].cast(str).to_list(), []
    while call != NO_ROW:
        is_module = tree.kind[call] == FRAME and names[call].startswith("nn.Module: ")
        if tree.counted[call] and (tree.kind[call] in (OP, RANGE) or is_module):
            found.append(re.sub(r"_\d+$", "", names[call]) if is_module else names[call])
        call = int(tree.parent[call])
    return tuple(found)


def same_as_walked(trace: Trace) -> int:
    tree = CallTree.of(trace)
    owners = np.unique(tree.owner)
    calls = owners[owners != NO_ROW]
    found = chains(tree, calls, tree.caller)
    assert [found.names[n] for n in found.number] == [walked(tree, call) for call in calls.tolist()]
    assert len(set(found.names)) == len(found.names)
    return len(calls)


def test_of_a_sample() -> None:
    folder = Path(__file__).parents[2] / "sample_traces"
    assert same_as_walked(Trace.load(folder / "vit_tiny_cpu_fp32_b1.json.gz")) > 1_000


@pytest.mark.parametrize("seed", range(20))
def test_of_random_nesting(seed: int, load: Callable[[TraceBuilder], Trace]) -> None:
    chance, b = random.Random(seed), TraceBuilder()
    for _ in range(60):
        start, dur = chance.randrange(40), chance.randrange(1, 40)
        if chance.random() < 0.3:
            b.frame(f"nn.Module: {chance.choice('AB')}_{chance.randrange(3)}", start, dur)
        elif chance.random() < 0.3:
            b.annotation(chance.choice("xy"), start, dur)
        else:
            b.op(f"aten::{chance.choice('pqr')}_1", start, dur)
    assert same_as_walked(load(b)) > 10


def test_of_no_calls(load: Callable[[TraceBuilder], Trace]) -> None:
    tree = CallTree.of(load(TraceBuilder().kernel("k", 0, 1)))
    assert chains(tree, np.empty(0, np.int64), tree.caller).number.tolist() == []
