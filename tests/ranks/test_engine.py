"""The same bytes from every engine; what goes wrong with a file, a worker or a disk costs a row and is printed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from analyze.ranks import Job, engine, worker
from analyze.ranks.engine import LocalPool, summarise_all
from analyze.ranks.files import Candidate, candidates
from analyze.ranks.store import Store
from analyze.report.ranks import build_ranks_report
from analyze.report.to_json import render
from tests.conftest import ROOT
from tests.ranks.conftest import Run
from tests.ranks.jobs import random_job, write


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    documents, _ = random_job(12)
    assert len(documents) >= 3
    return write(documents, tmp_path / "job")


def document(job: Job) -> str:
    return render(build_ranks_report(job, command="x"))


def test_processes_threads_and_a_store_used_twice_give_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    right = document(Job.load(folder, workers=1))
    assert document(Job.load(folder, workers=2)) == right
    with ThreadPoolExecutor(2) as pool:
        assert document(Job.load(folder, executor=pool)) == right
    first = Job.load(folder, workers=1, store=tmp_path / "store")
    again = Job.load(folder, workers=1, store=tmp_path / "store")
    assert (first.stored, again.stored) == (0, len(list(folder.iterdir())))
    assert document(first) == document(again) == right


def test_a_dask_cluster_of_two_workers_gives_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    code = (
        "import sys; from distributed import Client, LocalCluster; from analyze.ranks import Job, read_all\n"
        "from analyze.ranks.engine import ForeignPool\n"
        "if __name__ == '__main__':\n"
        "    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:\n"
        "        outcome, foreign = read_all([sys.argv[1]], cluster=cluster.scheduler_address)\n"
        "        with Client(cluster) as client:\n"
        "            assert ForeignPool(client.get_executor(pure=False)).room == 2  # one file per worker\n"
        "    from analyze.report.ranks import build_ranks_report; from analyze.report.to_json import render\n"
        "    print(render(build_ranks_report(Job.of('job', outcome, foreign), command='x')), end='')\n"
    )
    script = tmp_path / "run.py"
    script.write_text(code)
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, str(script), str(folder)], env=env, capture_output=True, text=True, check=False
    )
    assert done.stdout == document(Job.load(folder, workers=1)), done.stderr[-500:]


def test_a_script_without_a_guard_is_not_run_again_by_its_workers(folder: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import sys; from analyze import Job\nprint('begun')\nprint(Job.load(sys.argv[1], workers=2).ranks.height)\n"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    for command in ([str(script)], ["-"]):
        done = subprocess.run(
            [sys.executable, *command, str(folder)], input=script.read_text(), env=env, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert (done.stdout.split(), done.stderr) == (["begun", str(len(list(folder.iterdir())))], "")


def test_two_shards_and_a_join_give_what_one_run_gives(folder: Path, tmp_path: Path, run: Run) -> None:
    whole = run(folder, "--report", "json")
    for part in range(2):
        done = run(folder, "--shard", f"{part}/2", "--store", tmp_path / "store")
        assert (done.returncode, done.stdout) == (0, "")
        assert done.stderr.startswith(f"part {part} of 2: ")
    joined = run("--from-store", tmp_path / "store", "--report", "json")
    assert (whole.returncode, joined.returncode) == (0, 0), joined.stderr
    assert json.loads(joined.stdout)["job"] == json.loads(whole.stdout)["job"]


def test_a_killed_run_loses_nothing_that_was_done(folder: Path, tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    listed = candidates([str(folder)])
    summarise_all(listed[:1], store=store)
    (store.folder / ".half.parquet.x.tmp").write_bytes(b"PAR1 cut")
    outcome = summarise_all(listed, store=store)
    assert (outcome.stored, len(outcome.summaries), outcome.failures) == (1, len(listed), [])


def _killed(one: Candidate, folder: str | None) -> object:
    if "rank0" in one.shown:
        os._exit(9)
    return engine.work(one, folder)


def _slow(one: Candidate, folder: str | None) -> object:
    import time

    if "rank0" in one.shown:
        time.sleep(600)
    return engine.work(one, folder)


class Pool(LocalPool):
    """Workers that do something else."""

    job = staticmethod(_killed)

    def submit(self, one: Candidate, folder: str | None):  # type: ignore[no-untyped-def]
        with engine.without_main():
            return self._pool.submit(self.job, one, folder)


class SlowPool(Pool):
    job = staticmethod(_slow)


@pytest.mark.parametrize(
    ("pool", "limit_s", "said"), [(Pool, 60, "its worker ended before"), (SlowPool, 8, "took more than 8 s")]
)
def test_a_killed_or_hanging_worker_costs_its_file(pool: type[Pool], limit_s: float, said: str, folder: Path) -> None:
    made = pool(2)
    try:
        outcome = summarise_all(candidates([str(folder)]), pool=made, limit_s=limit_s)
    finally:
        made.close()
    assert [one.path for one in outcome.failures] == ["rank0.json"]
    assert said in outcome.failures[0].reason
    assert len(outcome.summaries) == len(list(folder.iterdir())) - 1
    job = Job.of("job", outcome)
    assert [one.path for one in job.left_out] == ["rank0.json"]
    assert job.stragglers == []  # a rank is missing


def test_a_truncated_file_and_one_of_another_job_are_named(folder: Path, tmp_path: Path, run: Run) -> None:
    text = (folder / "rank1.json").read_text()
    (folder / "rank1.json").write_text(text[: len(text) // 8])
    other = json.loads(text)
    other["distributedInfo"]["world_size"] = 64
    (folder / "other.json").write_text(json.dumps(other))
    done = run(folder, "--report", "md")
    assert done.returncode == 0, done.stderr
    assert "`other.json` | of another job (64 ranks)" in done.stdout
    assert "rank1.json" in done.stdout or "Rank 1: the file is cut" in done.stdout


def test_a_full_disk_is_named_and_nothing_is_lost(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    right = Job.load(folder, workers=1).document()
    monkeypatch.setattr(Store, "put", full)
    job = Job.load(folder, workers=1, store=tmp_path / "store")
    assert job.document() == right
    assert "No space left on device" in render(build_ranks_report(job))


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is full")
def test_a_disk_that_fills_up_while_writing_costs_no_rank(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Writing itself fails, not a double of it; no half files are left, and the next run has what was stored whole."""
    right = Job.load(folder, workers=1).document()
    made = tempfile.mkstemp

    def full(**options: Any) -> tuple[int, str]:
        handle, path = made(**options)
        os.close(handle)
        return os.open("/dev/full", os.O_WRONLY), path

    monkeypatch.setattr(tempfile, "mkstemp", full)
    job = Job.load(folder, workers=1, store=tmp_path / "store")
    assert (job.document(), job.unstored) == (right, "No space left on device")
    assert list((tmp_path / "store").iterdir()) == []
    monkeypatch.undo()
    again = Job.load(folder, workers=1, store=tmp_path / "store")
    assert (again.stored, again.unstored, again.document()) == (0, "", right)


def test_files_of_an_object_store(folder: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    for path in folder.iterdir():
        memory.pipe(f"/bucket/run/{path.name}", path.read_bytes())
    found = Job.load("memory://bucket/run", workers=1).document()
    assert found == Job.load(folder, workers=1).document()


def test_the_rank_in_a_name() -> None:
    found = {
        name: worker._RANK_IN_NAME.search(name)
        for name in ("rank-12.json", "worker7_step_12.json", "r3.json", "trace[rank5].json", "r.json", "world.json")
    }
    assert {name: match and match[1] for name, match in found.items()} == {
        "rank-12.json": "12", "worker7_step_12.json": "7", "r3.json": "3", "trace[rank5].json": "5", "r.json": None,
        "world.json": None,
    }  # fmt: skip
