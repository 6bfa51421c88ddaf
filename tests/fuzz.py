"""Broken traces by the thousand: no traceback, no hang, nothing lost in silence.

    python -m tests.fuzz --count 2000 --seed 1

Each input is a sound trace with a few bytes changed. The program may refuse it with one sentence; or report on it, and
then every event that is missing must be one that was touched, or be counted in a notice.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from analyze.errors import GpuledgerError
from analyze.report import build_report, render
from analyze.trace import Trace
from tests.synthetic.vit import Plan, simulate

HANG_S = 10
KINDS = ("cut", "flip", "delete", "duplicate", "insert", "swap")
_STRUCTURE = (
    b'"',
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"\\",
    b"\n",
    b"\x00",
    b"\xff",
    b"NaN",
    b"1e999",
    b'"}, {"',
    b"null",
)


def bases(folder: Path | None) -> list[bytes]:
    """Sound documents: synthetic ones in three layouts, and small real ones where they are at hand."""
    machine = simulate(Plan(precision="fp16", batch=2, steps=2))
    text = machine.writer.document((0, machine.now + 1000))
    found = [text, json.dumps(json.loads(text)), json.dumps(json.loads(text)["traceEvents"], indent=1)]
    real = ("h100_bert_small", "mi250_toy_training", "first_schema_inference", "a100_triton") if folder else ()
    return [t.encode() for t in found] + [
        gzip.decompress((folder / f"{name}.json.gz").read_bytes()) for name in real if folder
    ]


def mutate(data: bytes, r: random.Random) -> tuple[bytes, int, bool]:
    """A broken copy, how many events that may have touched, and whether it was cut short."""
    places = r.choice((1, 1, 1, 3, 8))
    touched, cut = 0, False
    for _ in range(places):
        kind, at, length = r.choice(KINDS), r.randrange(len(data)), r.randint(1, 24)
        if kind == "cut":
            data, cut = data[: max(at, 1)], True
        elif kind == "flip":
            data = data[:at] + bytes([data[at] ^ (1 << r.randrange(8))]) + data[at + 1 :]
        elif kind == "delete":
            data = data[:at] + data[at + length :]
        elif kind == "duplicate":
            data = data[: at + length] + data[at:]
        elif kind == "insert":
            data = data[:at] + r.choice(_STRUCTURE) + data[at:]
        else:
            other = r.randrange(len(data))
            low, high = min(at, other), max(at, other)
            length = min(length, high - low, len(data) - high)
            a, b = data[low : low + length], data[high : high + length]
            data = data[:low] + b + data[low + length : high] + a + data[high + length :]
            touched += 3
        touched += 3
    return data, touched, cut


class HangError(Exception):
    """It took longer than ten seconds."""


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise HangError

    old = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, old)


def rows_of(trace: Trace) -> int:
    return sum(frame.height for name, frame in trace.recording.frames.items() if name != "threads")


def check(path: Path, sound_rows: int, touched: int, *, cut: bool, whole: bool) -> str:
    """What came of one input: "refused", "said", or "kept"; anything else is a failure and raises."""
    try:
        with time_limit(HANG_S):
            trace = Trace.load(path)
            if whole:
                report = build_report(trace)
                for form in ("terminal", "md", "json"):
                    render(report, form)
    except GpuledgerError:
        return "refused"
    said = {n.id: n.count for n in trace.notices}
    missing = sound_rows - rows_of(trace)
    counted = said.get("events-lost", 0) + said.get("unknown-category", 0)
    if missing > counted + touched and not (cut and "file-cut" in said) and "file-cut" not in said:
        raise AssertionError(f"{missing} rows lost in silence, {counted} counted, {touched} touched")
    return "said" if said else "kept"


def run(count: int, seed: int, folder: Path | None, *, every: int = 3) -> Counter[str]:
    """Try so many inputs; a failing one is kept beside the temporary folder and named."""
    r, results = random.Random(seed), Counter[str]()
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "trace.json"
        sound = []
        for data in bases(folder):
            path.write_bytes(data)
            sound.append((data, rows_of(Trace.load(path))))
        for number in range(count):
            data, rows = r.choice(sound)
            broken, touched, cut = mutate(data, r)
            if number % 10 == 0:
                packed = bytearray(gzip.compress(data))
                packed[r.randrange(len(packed))] ^= 1 << r.randrange(8)
                broken, touched = bytes(packed), rows
            path.write_bytes(broken)
            try:
                results[check(path, rows, touched, cut=cut, whole=number % every == 0)] += 1
            except Exception as error:
                kept = Path(f"fuzz-{seed}-{number}.json").absolute()
                kept.write_bytes(broken)
                raise AssertionError(f"input {number} of seed {seed}, kept as {kept}: {error!r}") from error
    return results


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=None, help="default: one of the clock")
    parser.add_argument("--traces", type=Path, default=None, help="folder with real traces to break as well")
    given = parser.parse_args()
    seed = time.time_ns() % 10**9 if given.seed is None else given.seed
    begun = time.perf_counter()
    results = run(given.count, seed, given.traces)
    print(f"{given.count} inputs, seed {seed}, {time.perf_counter() - begun:.0f} s: {dict(results)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
