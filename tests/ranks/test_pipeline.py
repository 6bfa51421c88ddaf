"""Pipeline stages by hand: two stages, two steps, two microbatches each."""

from __future__ import annotations

from typing import Any

from tests.ranks.jobs import joined, kernel

US = 1000


def message(rank: int, name: str, at: int, start: int, end: int, **args: Any) -> dict[str, Any]:
    said = {
        "Collective name": name, "In msg nelems": 1024, "Out msg nelems": 1024, "dtype": "Float", "Group size": 2,
        "Process Group Name": "3", "Process Group Description": "mesh_pp", "Process Group Ranks": "[0, 1]",
        "Seq": at, "Src Rank": 0, "Dst Rank": 1, **args,
    }  # fmt: skip
    return kernel("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", start * US, end * US, 20 + rank, **said)


def job(*, paired: bool = True) -> list[dict[str, Any]]:
    """Rank 0 computes 100 us for each microbatch and sends it; rank 1 receives it and computes 100 us.

    Each step is 400 us long. In us after its begin:

        rank 0  compute 0..100     send 100..110    compute 110..210    send 210..220     idle 220..400
        rank 1  recv 0..110        compute 110..210 recv 210..220       compute 220..320  idle 320..400

    The first recv waits 100 us for its send; the second one arrives with it.
    """
    documents = []
    for rank in range(2):
        rows = []
        for step in range(2):
            begin = 1000 + 400 * step
            rows.append(
                {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step + 4}", "pid": 1, "tid": 1,
                 "ts": begin, "dur": 400, "args": {}}
            )  # fmt: skip
            args = {} if paired else {"Src Rank": None, "Dst Rank": None}
            for at in range(2):
                number = 10 * step + at
                if rank == 0:
                    rows.append(kernel("gemm", (begin + 110 * at) * US, (begin + 110 * at + 100) * US, 7))
                    rows.append(message(0, "send", number, begin + 110 * at + 100, begin + 110 * at + 110, **args))
                else:
                    start = begin + 210 * at
                    rows.append(message(1, "recv", number, start, begin + 110 * (at + 1), **args))
                    rows.append(kernel("gemm", (begin + 110 * (at + 1)) * US, (begin + 110 * (at + 1) + 100) * US, 7))
        info = {"rank": rank, "world_size": 2, "backend": "nccl", "pg_config": []}
        rows = [row for row in rows if row is not None]
        documents.append({"schemaVersion": 1, "distributedInfo": info, "traceEvents": rows})
    return documents


def test_stages_and_bubbles() -> None:
    first, last = joined(job()).document()["pipeline"]
    assert [(one["rank"], one["stage"], one["stages"], one["microbatches"]) for one in (first, last)] == [
        (0, 0, 2, 2), (1, 1, 2, 2),
    ]  # fmt: skip
    steps = [{"name": f"ProfilerStep#{n}", "length_ns": 400 * US} for n in (4, 5)]
    assert first["steps"] == [
        {**step, "busy_ns": 200 * US, "wait_ns": 0, "idle_ns": 180 * US, "bubble_ns": 180 * US} for step in steps
    ]
    assert last["steps"] == [
        {**step, "busy_ns": 200 * US, "wait_ns": 100 * US, "idle_ns": 80 * US, "bubble_ns": 180 * US} for step in steps
    ]


def test_the_report_shows_the_bubble_beside_the_ideal_one() -> None:
    from analyze.report.ranks import build_ranks_report

    report = build_ranks_report(joined(job()))
    (section,) = (one for one in report.page.sections if one.id == "pipeline")
    whole, steps = section.blocks
    # (p-1)/(m+p-1) with two stages and two microbatches; bubbles of 360 us in 800 us
    assert [row[-2:] for row in whole.rows] == [(360 / 800, 1 / 3)] * 2  # type: ignore[union-attr]
    assert [row[0] for row in steps.rows] == ["ProfilerStep#4", "ProfilerStep#5"] * 2  # type: ignore[union-attr]


def test_lateness_between_stages_is_partly_the_schedule_and_the_verdict_says_so() -> None:
    """Stage 0 sends 100 us after stage 1 began to wait, in each step: a pipeline fills that way."""
    from analyze.report.ranks import build_ranks_report

    said = " ".join(build_ranks_report(joined(job())).verdict.sentences)
    assert "Rank 0 arrives last in 2 of 4 collectives" in said
    assert "Most of that is between stages of a pipeline, where part of the waiting belongs to the schedule." in said


def test_without_pp_groups_there_is_no_pipeline() -> None:
    documents = job()
    for document in documents:
        for row in document["traceEvents"]:
            if "Process Group Description" in row["args"]:
                row["args"]["Process Group Description"] = "mesh_dp"
    assert joined(documents).document()["pipeline"] == []
