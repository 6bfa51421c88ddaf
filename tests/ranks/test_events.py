"""What a collective is said to be: by its own args, by its op, by ranges, by its name. All by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from analyze.ranks.events import collect
from analyze.timeline import device_timelines
from analyze.trace import Trace
from tests.builder import TraceBuilder

BARE = "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)"
SAID: dict[str, Any] = {
    "Collective name": "_allgather_base", "In msg nelems": 100, "Out msg nelems": 400, "dtype": "BFloat16",
    "Group size": 4, "Process Group Name": "7", "Process Group Description": "mesh_tp",
    "Process Group Ranks": "[0, 1, 2, 3]", "Seq": 5,
}  # fmt: skip


def built(*kernels: dict[str, Any], ops: int = 1) -> TraceBuilder:
    """An op of a process group with External id 5, and kernels without args of their own."""
    b = TraceBuilder()
    for at in range(ops):
        b.op("record_param_comms", 10 * at, 5, External_id=5, **SAID)
    for at, args in enumerate(kernels):
        b.kernel(BARE, 100 * (at + 1), 50, stream=20, correlation=900 + at, **args)
    return b


def rows_of(trace: Trace) -> list[dict[str, Any]]:
    (line,) = device_timelines(trace.activities, trace.activities)
    events, groups, _ = collect(trace, line)
    return events.join(groups, on="group", how="left", suffix="_of_group").to_dicts()


def test_an_op_speaks_for_its_kernel(load: Callable[[TraceBuilder], Trace]) -> None:
    (row,) = rows_of(load(built({"External_id": 5})))
    assert (row["kind"], row["kind_from"], row["seq"]) == ("all_gather", "op", 5)
    assert (row["in_elements"], row["out_elements"], row["element_type"]) == (100, 400, "BFloat16")
    assert (row["name"], row["description"], row["size"], row["members"]) == ("7", "mesh_tp", 4, [0, 1, 2, 3])


def test_what_several_kernels_of_one_op_move_is_not_known(load: Callable[[TraceBuilder], Trace]) -> None:
    rows = rows_of(load(built({"External_id": 5}, {"External_id": 5})))
    assert [(row["kind"], row["kind_from"], row["name"], row["in_elements"]) for row in rows] == [
        ("all_gather", "op", "7", None)
    ] * 2


def test_a_kernels_own_args_come_first(load: Callable[[TraceBuilder], Trace]) -> None:
    own = {**SAID, "Collective name": "allreduce", "In msg nelems": 3}
    (row,) = rows_of(load(built({"External_id": 5, **own})))
    assert (row["kind"], row["kind_from"], row["in_elements"]) == ("all_reduce", "args", 3)


def test_ids_that_are_correlations_or_of_two_ops_say_nothing(load: Callable[[TraceBuilder], Trace]) -> None:
    """Old files write the correlation as External id; merged files repeat ids."""
    for builder in (built({"External_id": 5}, ops=2), TraceBuilder(rows=built({"External_id": 900}).rows)):
        for row in builder.rows:
            if row["name"] == "record_param_comms" and builder.rows[-1]["args"]["External id"] == 900:
                row["args"]["External id"] = 900
        (row,) = rows_of(load(builder))
        assert (row["kind"], row["kind_from"], row["in_elements"]) == ("sendrecv", "kernel", None)
