"""What ``rec.step()`` costs a loop outside of the passes that record: below 2 µs is demanded.

python tests/benchmarks/record_overhead.py
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from capture import record

CALLS = 20_000
MOST_NS = 2_000


def cost_ns(call: Callable[[], object]) -> float:
    """Smallest mean of a few rounds of one call, the empty loop included."""
    rounds = []
    for _ in range(7):
        begin_ns = time.perf_counter_ns()
        for _ in range(CALLS):
            call()
        rounds.append((time.perf_counter_ns() - begin_ns) / CALLS)
    return min(rounds)


def measure(folder: Path) -> tuple[float, float]:
    """Nanoseconds per step during the warm-up, and after the last pass."""
    with record(folder / "warm", warmup=7 * CALLS + 1, device="cpu", quiet=True) as rec:
        rec.step()
        during = cost_ns(rec.step)
    with record(folder / "done", warmup=0, timed_steps=1, traced_steps=0, device="cpu", quiet=True) as rec:
        while not rec.step():
            pass
        after = cost_ns(rec.step)
    return during, after


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        warm_ns, done_ns = measure(Path(scratch))
    print(f"warm-up {warm_ns:.0f} ns, after the last pass {done_ns:.0f} ns a step; at most {MOST_NS} ns are allowed")
    raise SystemExit(max(warm_ns, done_ns) >= MOST_NS)
