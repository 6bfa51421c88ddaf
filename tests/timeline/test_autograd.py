"""Backward ops find the forward op whose gradient they compute, or none."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from analyze.metrics import Measures
from analyze.settings import Definitions
from analyze.timeline import CallTree, Scope, around_through_autograd
from analyze.timeline.calls import OP
from analyze.trace import Trace
from analyze.trace.nesting import NO_ROW
from tests.builder import HOST, TraceBuilder
from tests.oracles.plain_read import ns

ENGINE, OTHER = HOST + 1, HOST + 2
EVALUATE = "autograd::engine::evaluate_function: "
GEMM = "ampere_sgemm_128x64_nn"
DRAWN = ("a100_nccl_training", "mi250_toy_training", "mi300_resnet_training", "v100_resnet_ns_resolution")


def node(b: TraceBuilder, name: str, sequence: int, start: float) -> TraceBuilder:
    """What the engine records of one node, with a product in it that launches a kernel of 10."""
    args: dict[str, Any] = {"Sequence number": sequence, "Fwd thread id": 1}
    b.op(f"{EVALUATE}{name}", start, 50, tid=ENGINE, **args).op(name, start + 2, 40, tid=ENGINE, **args)
    b.op("aten::mm", start + 4, 30, tid=ENGINE)
    return b.run(GEMM, (start + 6, 4), (start + 20, 10), tid=ENGINE)


def forward(b: TraceBuilder, name: str, sequence: int, start: float, *, tid: int = HOST) -> TraceBuilder:
    return b.op(name, start, 20, tid=tid, **{"Sequence number": sequence, "Fwd thread id": 0})


def model() -> TraceBuilder:
    """
    host    [ Attention_0 [ Linear_0 [ linear [addmm 5] ] ]  [ bmm 6 ] ]
    engine                                                                [ Bmm 6 ] [ Addmm 5 ]
    """
    b = TraceBuilder().frame("nn.Module: Attention_0", 0, 100).frame("nn.Module: Linear_0", 2, 40)
    b.op("aten::linear", 4, 36, **{"Sequence number": 4})
    forward(b, "aten::addmm", 5, 10).run(GEMM, (12, 4), (20, 10))
    forward(b, "aten::bmm", 6, 60).run(GEMM, (62, 4), (70, 10))
    node(b, "BmmBackward0", 6, 200)
    return node(b, "AddmmBackward0", 5, 300)


def measured(trace: Trace) -> Measures:
    return Measures(trace, Definitions(), Scope())


def found(trace: Trace) -> dict[str, str]:
    """The forward op that each call of the engine was given."""
    tree = CallTree.of(trace)
    names, around = tree.calls["name"].cast(str).to_list(), around_through_autograd(trace, tree)
    given = (around != tree.caller) & (tree.kind == OP)
    return {names[i]: names[around[i]] for i in given.nonzero()[0].tolist()}


def test_module_and_purpose_of_the_forward_op(load: Callable[[TraceBuilder], Trace]) -> None:
    got = measured(load(model()))
    assert {c.category: c.sum_ns for c in got.op_categories.categories} == {"attention": 20_000, "gemm": 20_000}
    modules = {m.module: (m.self_device_ns, m.total_device_ns, m.backward_device_ns) for m in got.modules}
    assert modules == {"Attention": (20_000, 40_000, 20_000), "Attention > Linear": (20_000, 20_000, 10_000)}


def test_the_engines_call_is_linked_and_the_node_in_it_is_not_linked_again(
    load: Callable[[TraceBuilder], Trace],
) -> None:
    assert found(load(model())) == {
        f"{EVALUATE}BmmBackward0": "aten::bmm",
        f"{EVALUATE}AddmmBackward0": "aten::addmm",
    }


def test_the_op_table_stays_as_torch_has_it(load: Callable[[TraceBuilder], Trace]) -> None:
    """A forward op did not launch what its gradient did."""
    ops = {op.name: op.total_device_ns for op in measured(load(model())).ops.ops}
    assert (ops["aten::addmm"], ops["AddmmBackward0"]) == (10_000, 10_000)


@pytest.mark.parametrize(
    ("name", "sequence", "start", "tids"),
    [
        ("aten::addmm", 8, 10, (HOST,)),  # another number
        ("aten::to", 7, 10, (HOST,)),  # the number of a node whose op was not recorded
        ("aten::addmm", 7, 400, (HOST,)),  # later
        ("aten::addmm", 7, 190, (HOST,)),  # not over when the backward op begins
        ("aten::addmm", 7, 10, (HOST, OTHER)),  # numbers count per thread: which one it was is open
    ],
)
def test_no_forward_op_is_better_than_a_wrong_one(
    name: str, sequence: int, start: float, tids: tuple[int, ...], load: Callable[[TraceBuilder], Trace]
) -> None:
    b = TraceBuilder()
    for tid in tids:
        forward(b, name, sequence, start, tid=tid)
    assert found(load(node(b, "AddmmBackward0", 7, 200))) == {}


def test_the_last_op_of_a_number_made_the_node(load: Callable[[TraceBuilder], Trace]) -> None:
    """Ops that need no gradient begin with the same number, and so does a composite op around."""
    b = TraceBuilder().op("aten::addmm", 0, 5, **{"Sequence number": 7}).frame("nn.Module: Linear_1", 8, 30)
    assert found(load(node(forward(b, "aten::addmm", 7, 10), "AddmmBackward0", 7, 200)))
    trace = load(node(forward(b, "aten::addmm", 7, 10), "AddmmBackward0", 7, 200))
    assert [m.module for m in measured(trace).modules] == ["Linear"]


def test_a_module_that_runs_again_for_its_gradient_is_in_no_other(load: Callable[[TraceBuilder], Trace]) -> None:
    """Checkpointing runs a module inside the backward call that first needs it."""
    b = TraceBuilder().frame("nn.Module: ReLU_0", 0, 40)
    forward(b, "aten::relu", 3, 10)
    args: dict[str, Any] = {"Sequence number": 3, "Fwd thread id": 1}
    b.op(f"{EVALUATE}ReluBackward0", 200, 90, tid=ENGINE, **args).frame("nn.Module: Block_0", 210, 40, tid=ENGINE)
    b.op("aten::mm", 215, 20, tid=ENGINE).run(GEMM, (216, 4), (230, 10), tid=ENGINE)
    b.op("aten::threshold_backward", 260, 20, tid=ENGINE).run("relu_kernel", (262, 4), (270, 5), tid=ENGINE)
    modules = {m.module: (m.total_device_ns, m.backward_device_ns) for m in measured(load(b)).modules}
    assert modules == {"Block": (10_000, 0), "ReLU": (5_000, 5_000)}


@pytest.mark.parametrize("name", DRAWN)
def test_the_profilers_own_arrows_say_the_same(name: str, shared: Path) -> None:
    path = shared / "traces" / f"{name}.json.gz"
    events = json.loads(gzip.decompress(path.read_bytes()), parse_float=Decimal)["traceEvents"]
    arrows: dict[int, dict[str, Any]] = defaultdict(dict)
    for event in events:
        if event.get("cat") == "fwdbwd":
            arrows[event["id"]][event["ph"]] = event
    ends = [(arrow["s"], arrow["f"]) for arrow in arrows.values() if set(arrow) == {"s", "f"}]
    trace = Trace.load(path)
    tree = CallTree.of(trace)
    around, caller = around_through_autograd(trace, tree).tolist(), tree.caller.tolist()
    begins: dict[tuple[int | None, str], list[int]] = defaultdict(list)
    threads = trace.threads["tid"].to_list()
    for at, (start, thread) in enumerate(tree.calls.select("start_ns", "thread").iter_rows()):
        begins[start, threads[thread]].append(at)
    for source, target in ends:
        there, here = ((ns(e["ts"]), str(e["tid"])) for e in (source, target))
        given = {around[c] for call in begins[here] for c in (call, caller[call]) if around[c] != caller[c]}
        assert len(given) == 1, target
        assert given <= set(begins[there]), target
    assert len(ends) > 3


def test_on_torchs_own_trace(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU(), torch.nn.LayerNorm(8), torch.nn.Linear(8, 2))
    with torch.profiler.profile(record_shapes=True) as profiler:
        model(torch.randn(4, 8)).square().mean().backward()
    profiler.export_chrome_trace(str(tmp_path / "t.json"))
    given = found(Trace.load(tmp_path / "t.json"))
    engine = {name.removeprefix(EVALUATE): op for name, op in given.items()}
    assert engine["AddmmBackward0"] == "aten::addmm"
    assert engine["GeluBackward0"] == "aten::gelu"
    assert engine["NativeLayerNormBackward0"] == "aten::native_layer_norm"
    assert NO_ROW not in given
