"""What may not change a figure, and what must sum (docs/ranks.md)."""

from __future__ import annotations

import copy
import gzip
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analyze.ranks import Job
from tests.ranks.jobs import figures_of, joined, random_job, write

SEEDS = st.integers(0, 10**9)
FEW = settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))


def waits(job: Job) -> Any:
    found = job.document()["collectives"]
    return [(c["group"], c["index"], c.get("wait_ns"), c.get("exposed_wait_ns"), c.get("own_ns")) for c in found]


@FEW
@given(SEEDS, st.sampled_from([7_000_000, 300_000_000, -450_000_000]))
def test_shifting_all_ranks_or_numbering_streams_anew_changes_no_wait(seed: int, by_ns: int) -> None:
    documents, _ = random_job(seed)
    right = waits(joined(documents))
    moved = copy.deepcopy(documents)
    for document in moved:
        document["baseTimeNanoseconds"] += by_ns
        for event in document["traceEvents"]:
            event["tid"] = event["args"]["stream"] = event["args"]["stream"] + 3
    assert waits(joined(moved)) == right


@FEW
@given(SEEDS, st.sampled_from([7_000_000, -450_000_000]))
def test_shifting_one_rank_changes_no_wait(seed: int, by_ns: int) -> None:
    documents, _ = random_job(seed)
    if len(documents) < 2:
        return
    for document in documents:  # clocks in step: the shift is all that there is, and no offset is below 20 us
        document["traceEvents"].sort(key=lambda e: e["ts"])
    before = joined(documents)
    moved = copy.deepcopy(documents)
    moved[-1]["baseTimeNanoseconds"] += by_ns
    after = joined(moved)
    offsets = [job.joined.clocks.offset_ns.tolist() if job.joined else [] for job in (before, after)]
    components = [job.joined.clocks.component.tolist() if job.joined else [] for job in (before, after)]
    if components[0] != components[1] or set(components[0]) != {0}:
        return
    how = [job.document()["matched_by"] for job in (before, after)]
    if set(how[0].values()) | set(how[1].values()) == {"seq"} and offsets[1][-1] - offsets[0][-1] == by_ns:
        assert waits(after) == waits(before)


@FEW
@given(SEEDS)
def test_sums(seed: int) -> None:
    job = joined(random_job(seed)[0])
    found = job.document()
    for rank, one in found["ranks"].items():
        exposed = one["exposed_wait_ns"] + one["exposed_transfer_ns"] + one["exposed_unsplit_ns"]
        assert exposed == one["exposed_communication_ns"]
        assert one["computation_ns"] + exposed + one["exposed_copy_ns"] + one["idle_ns"] == one["window_ns"]
        row = job.waits.filter(job.waits["rank"] == int(rank))["exposed_wait_ns"].sum()
        assert row >= one["exposed_wait_ns"]
    for one in found["collectives"]:
        for rank, wait in one.get("wait_ns", {}).items():
            assert wait + one["transfer_ns"][rank] == one["duration_ns"][rank]


@FEW
@given(SEEDS)
def test_on_one_stream_the_waits_for_others_are_the_exposed_wait(seed: int) -> None:
    """Waits on two streams at once overlap; where a rank's collectives follow each other, they add up."""
    documents, _ = random_job(seed)
    for document in documents:
        free = 0.0
        for event in sorted(document["traceEvents"], key=lambda e: e["ts"]):
            if "Collective name" in event["args"]:
                event["args"]["Process Group Name"], event["args"]["stream"] = "0", 20
                begin = max(event["ts"], free)
                end = max(event["ts"] + event["dur"], begin + 1)
                event["ts"], event["dur"], free = begin, round(end - begin, 3), end + 1
    job = joined(documents)
    for rank, one in job.document()["ranks"].items():
        row = job.waits.filter(job.waits["rank"] == int(rank))["exposed_wait_ns"].sum()
        assert row == one["exposed_wait_ns"]


def renumbered(documents: list[dict[str, Any]], new: dict[int, int], world: int) -> list[dict[str, Any]]:
    made = copy.deepcopy(documents)
    for document in made:
        info = document["distributedInfo"]
        info["rank"], info["world_size"] = new[info["rank"]], world
        for event in document["traceEvents"]:
            args = event["args"]
            if "Process Group Ranks" in args:
                args["Process Group Ranks"] = str(sorted(new[rank] for rank in json.loads(args["Process Group Ranks"])))
            for name in ("Src Rank", "Dst Rank"):
                if name in args:
                    args[name] = new[args[name]]
    return made


BY_RANK = ("wait_ns", "transfer_ns", "exposed_wait_ns", "duration_ns", "start_ns")
OF_THE_LAST = ("before_ns", "excess_ns")
AS_THEY_ARE = ("lead_ns", "data_ns", "decided", "end_spread_ns", "early_end_ns", *OF_THE_LAST)


def named_anew(found: dict[str, Any], new: dict[int, int]) -> list[Any]:
    """The collectives with other numbers of ranks, in an order that does not depend on them."""
    rows = []
    for one in found["collectives"]:
        by_rank = {
            name: sorted((new[int(rank)], ns) for rank, ns in one[name].items()) for name in BY_RANK if name in one
        }
        last = new[one["last"]] if one.get("lead_ns") else None  # of equals it is the lowest
        kind = "pair" if one["kind"] in ("send", "recv") else one["kind"]  # that of the lowest rank
        same = [(name, one.get(name)) for name in AS_THEY_ARE if last is not None or name not in OF_THE_LAST]
        rows.append([kind, *by_rank.items(), *same, ("last", last)])
    return sorted(rows, key=repr)


@FEW
@given(SEEDS)
def test_renumbering_ranks_in_order_changes_names_only(seed: int) -> None:
    documents, world = random_job(seed)
    if not documents:
        return
    new = {rank: 2 * rank + 1 for rank in range(world)}
    right = joined(documents).document()
    found = joined(renumbered(documents, new, 2 * world)).document()
    same = {rank: rank for rank in new.values()}
    assert named_anew(found, same) == named_anew(right, new)
    for rank, one in right["ranks"].items():
        other = found["ranks"][str(new[int(rank)])]
        skipped = ("path", "own_ns")  # with ranks missing, nobody is blamed
        assert {k: v for k, v in one.items() if k not in skipped} == {k: other[k] for k in one if k not in skipped}


@FEW
@given(SEEDS, st.randoms(use_true_random=False))
def test_renumbering_ranks_at_random_changes_names_only(seed: int, draw: Any) -> None:
    """On one clock, with Seq: which rank others are compared with first makes no difference."""
    documents, world = random_job(seed, one_clock=True)
    numbers = list(range(world))
    draw.shuffle(numbers)
    new = dict(enumerate(numbers))
    right = joined(documents).document()
    if set(right["matched_by"].values()) != {"seq"} or any("mismatch" in one for one in right["collectives"]):
        return
    found = joined(renumbered(documents, new, world)).document()
    assert named_anew(found, {rank: rank for rank in numbers}) == named_anew(right, new)
    own = {new[int(rank)]: one["own_ns"] for rank, one in right["ranks"].items()}
    assert {int(rank): one["own_ns"] for rank, one in found["ranks"].items()} == own


@FEW
@given(SEEDS, st.randoms(use_true_random=False))
def test_names_of_files_correlation_ids_and_order_of_rows_change_nothing(seed: int, draw: Any) -> None:
    documents, _ = random_job(seed)
    right = joined(documents).document()
    with tempfile.TemporaryDirectory() as folder:
        for at, document in enumerate(draw.sample(documents, len(documents))):
            other = copy.deepcopy(document)
            for number, event in enumerate(other["traceEvents"]):
                event["args"]["correlation"] = 9_000 + number
            (Path(folder) / f"part{at}.json").write_text(json.dumps(other))
        found = figures_of(Path(folder)).document()
    for one in (right, found):
        for rank in one["ranks"].values():
            del rank["path"]
    assert found == right


@FEW
@given(SEEDS)
def test_dropping_a_rank_never_raises_a_wait_of_another(seed: int) -> None:
    documents, _ = random_job(seed)
    if len(documents) < 3:
        return
    for document in documents:
        document["traceEvents"] = [
            e for e in document["traceEvents"] if e["args"].get("Collective name") != "broadcast"
        ]
    if not all(document["traceEvents"] for document in documents):
        return
    whole = joined(documents).document()
    fewer = joined(documents[:-1]).document()
    if whole["matched_by"] != fewer["matched_by"] or "seq" not in whole["matched_by"].values():
        return
    offsets = {rank: one["clock_offset_ns"] for rank, one in whole["ranks"].items()}
    if any(one["clock_offset_ns"] != offsets[rank] for rank, one in fewer["ranks"].items()):
        return
    # What was not split has no waits to compare: the windows of all ranks may have no time in common, of fewer some.
    before = {(c["group"], c["index"]): c["wait_ns"] for c in whole["collectives"] if c["split"]}
    for one in fewer["collectives"]:
        for rank, wait in one.get("wait_ns", {}).items():
            old = before.get((one["group"], one["index"]))
            assert old is None or wait <= old.get(rank, 0)


def test_other_files_change_only_what_is_left_out(tmp_path: Path) -> None:
    documents, _ = random_job(12)
    folder = write(documents, tmp_path / "job")
    right = Job.load(folder, workers=1).document()
    (folder / "notes.json").write_text("{}")
    text = (folder / "rank0.json").read_bytes()
    (folder / "zz_copy.json.gz").write_bytes(gzip.compress(text))
    cpu = {"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 1, "dur": 1}]}
    cpu |= {"schemaVersion": 1, "distributedInfo": documents[0]["distributedInfo"]}
    (folder / "gloo.json").write_text(json.dumps(cpu))
    found = Job.load(folder, workers=1).document()
    assert [path for path, _ in found.pop("left_out")] == ["gloo.json", "zz_copy.json.gz"]
    assert right.pop("left_out") == []
    assert found == right


def test_frames_have_their_declared_columns(tmp_path: Path) -> None:
    from analyze import schema
    from analyze.ranks.tables import COLLECTIVES, RANKS, ROWS, WAITS

    job = figures_of(write(random_job(12)[0], tmp_path / "job"))
    for frame, columns in (
        (job.collectives, COLLECTIVES), (job.ranks, RANKS), (job.rows, ROWS), (job.waits, WAITS),
    ):  # fmt: skip
        assert dict(frame.schema) == schema.dtypes(columns)
    assert job.rows.height == job.ranks["collectives"].sum()


@pytest.mark.parametrize(("share", "named"), [(0.0101, True), (0.0099, False)])
def test_a_rank_is_named_from_one_percent_on(share: float, named: bool, tmp_path: Path) -> None:
    """Two ranks, windows of 10 ms; rank 1 comes late twice, by half of the share each time."""
    from analyze.report.ranks import build_ranks_report
    from tests.ranks.jobs import collective, kernel

    late = int(10_000_000 * share / 2)
    documents = []
    for rank in range(2):
        rows = [kernel("gemm", 0, 1_000, 7), kernel("gemm", 9_999_000, 10_000_000, 7)]
        for seq, start in enumerate((2_000_000, 6_000_000)):
            begin = start + rank * late
            rows.append(collective("allreduce", "0", [0, 1], begin, start + 1_000_000, Seq=seq))
        info = {"rank": rank, "world_size": 2, "backend": "nccl"}
        documents.append({"schemaVersion": 1, "distributedInfo": info, "traceEvents": rows})
    job = figures_of(write(documents, tmp_path / "job"))
    assert build_ranks_report(job).verdict.named == ((1,) if named else ())


def test_a_saving_is_of_collectives_in_the_time_in_common(tmp_path: Path) -> None:
    """Three ranks; rank 1 is 200 us late three times, and the recording of rank 2 ends after the first two.

    In common are 2 ms, so being on time saves at most 400 us of these; in all its own lead is 600 us.
    """
    from analyze.report.ranks import build_ranks_report
    from tests.ranks.jobs import collective, kernel

    documents = []
    for rank in range(3):
        rows = [kernel("gemm", 0, 1_000, 7)]
        for seq, start in enumerate((500_000, 1_500_000, 4_500_000)):
            if rank < 2 or seq < 2:
                begin = start + (200_000 if rank == 1 else 0)
                rows.append(collective("allreduce", "0", [0, 1, 2], begin, start + 500_000, Seq=seq))
        if rank < 2:
            rows.append(kernel("gemm", 8_999_000, 9_000_000, 7))
        info = {"rank": rank, "world_size": 3, "backend": "nccl"}
        documents.append({"schemaVersion": 1, "distributedInfo": info, "traceEvents": rows})
    job = figures_of(write(documents, tmp_path / "job"))
    assert job.joined is not None
    assert job.joined.window_ns == 2_000_000
    assert (job.stragglers[0].rank, job.stragglers[0].own_ns, job.stragglers[0].own_common_ns) == (1, 600_000, 400_000)
    report = build_ranks_report(job)
    assert report.metrics["straggler_own_share"] == 0.2
    assert "at most 400 µs of the 2.00 ms in common (20.0%)" in " ".join(report.verdict.sentences)
