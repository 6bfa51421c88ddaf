"""Everything that is watched about speed, as ratios of one run: rows, and how they compare with the last ones."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from tests.benchmarks.big_trace import replicate
from tests.benchmarks.loading import measure
from tests.benchmarks.snapshot_speed import measure as measure_snapshot

LAST = Path(__file__).parent / "last.json"
ROOT = Path(__file__).parents[2]
_SAMPLE = ROOT / "sample_traces" / "vit_tiny_fp16_small_batch_synthetic.json.gz"
_CPU = "import resource as r; u = r.getrusage(r.RUSAGE_CHILDREN); print(u.ru_utime + u.ru_stime)"
_ORJSON = "import sys, orjson; orjson.loads(open(sys.argv[1], 'rb').read())"


@dataclass(frozen=True)
class Row:
    """One figure.

    Attributes:
        name: what was measured, with its unit.
        best: the best of the rounds.
        spread: (median - best) / best.
    """

    name: str
    best: float
    spread: float

    @classmethod
    def of(cls, name: str, values: list[float]) -> Row:
        """The row of one value per round."""
        best = min(values)
        return cls(name, best, (median(values) - best) / best if best else 0.0)


def rows(trace: Path, big: list[int], rounds: int, snapshot_events: int) -> Iterator[Row]:
    """Every row; those of one file alternate in each round, so that load of the machine meets all alike.

    Args:
        trace: the file that all sizes are made of.
        big: megabytes of the replicated files.
        rounds: how often each is measured.
        snapshot_events: events of the memory snapshot; 0 leaves it out.
    """
    yield from _starts(rounds)
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / "whole.json"
        plain.write_bytes(gzip.decompress(trace.read_bytes()))
        yield from _of_file(plain, rounds)
        plain.unlink()
        for megabytes in big:
            large = Path(folder) / "big.json"
            replicate(trace, large, megabytes)
            yield from _of_file(large, max(rounds // 2, 1))
            large.unlink()
    if snapshot_events:
        found = [float(measure_snapshot(snapshot_events)["ratio"]) for _ in range(max(rounds // 2, 1))]
        yield Row.of(f"snapshot of {snapshot_events:,} events, report / unpickling alone, wall", found)


def _starts(rounds: int) -> Iterator[Row]:
    """Whole commands, in seconds of CPU time; byte code is cached, as it is where the program is installed."""
    commands = {
        "--help": ["--help"],
        "rules": ["rules"],
        "a trace of 27 KB": [str(_SAMPLE), "--report", "terminal"],
    }
    jobs: dict[str, Callable[[], float]] = {
        name: lambda arguments=arguments: _cpu(["-m", "analyze", *arguments])  # type: ignore[misc]
        for name, arguments in commands.items()
    }
    for name, values in _alternating(jobs, rounds).items():
        yield Row.of(f"analyze {name}, s of CPU", values)


def _of_file(path: Path, rounds: int) -> Iterator[Row]:
    """Load, report and whole command over `orjson.loads` of the same bytes, and the memory of both."""
    size = path.stat().st_size / 1e6
    found: dict[str, list[tuple[float, float, int]]] = {
        job: [] for job in ("orjson.loads", "load", "load + analyse + report")
    }
    whole: list[float] = []
    for _ in range(rounds):
        for job, values in found.items():
            values.append(measure(job, path))
        whole.append(_cpu(["-m", "analyze", str(path), "--report", "md"]) / _cpu(["-c", _ORJSON, str(path)]))
    floor = min(cpu for cpu, _, _ in found["orjson.loads"])
    label = f"{size:,.0f} MB"
    for job in ("load", "load + analyse + report"):
        yield Row.of(f"{label}: {job} / orjson.loads, CPU", [cpu / floor for cpu, _, _ in found[job]])
        yield Row.of(f"{label}: memory of {job}, MB per MB", [kib * 1.024e-3 / size for _, _, kib in found[job]])
    yield Row.of(f"{label}: whole command / orjson.loads as a command, CPU", whole)


def _alternating(jobs: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {name: [] for name in jobs}
    for job in (*jobs.values(),):
        job()  # compiles and reads from disk
    for _ in range(rounds):
        for name, job in jobs.items():
            found[name].append(job())
    return found


def _cpu(arguments: list[str]) -> float:
    """CPU seconds of a fresh interpreter and all of its children."""
    code = f"import subprocess, sys; subprocess.run([sys.executable, *sys.argv[1:]], stdout=subprocess.DEVNULL)\n{_CPU}"
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPATH"] = str(ROOT)
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True, env=environment
    )
    return float(done.stdout)


def table(found: list[Row], last: Mapping[str, float]) -> Iterator[str]:
    """The rows as Markdown, each beside the last committed figure of its name."""
    yield "| what | best | spread | last | change |"
    yield "|:--|--:|--:|--:|--:|"
    for row in found:
        before = last.get(row.name)
        change = "–" if not before else f"{row.best / before - 1:+.0%}"
        known = "–" if before is None else f"{before:.2f}"
        yield f"| {row.name} | {row.best:.2f} | {row.spread:.0%} | {known} | {change} |"


def read_last() -> dict[str, float]:
    """The last committed figures by name; none where there are none."""
    if not LAST.is_file():
        return {}
    found: dict[str, float] = json.loads(LAST.read_text())["rows"]
    return found


def save(found: list[Row], date: str, commit: str) -> None:
    """Keep the figures as the ones that later runs are compared with."""
    rows = {row.name: round(row.best, 3) for row in found}
    LAST.write_text(json.dumps({"date": date, "commit": commit, "rows": rows}, indent=1, ensure_ascii=False) + "\n")
