"""Command line of the fuzzer."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from tests import fuzz
from tests.fuzz import Outcome, run


def main() -> int:
    """Try mutants; 1 when some were not stood."""
    parser = argparse.ArgumentParser(description=fuzz.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=None, help="default: one of the clock")
    parser.add_argument("--every", type=int, default=1, help="report on every so many mutants, read the others")
    parser.add_argument("--out", type=Path, default=Path.cwd(), help="folder for inputs that fail")
    given = parser.parse_args()
    seed = time.time_ns() % 10**9 if given.seed is None else given.seed
    begun, last = time.perf_counter(), 0

    def on_progress(number: int, outcome: Outcome) -> None:
        nonlocal last
        for failure in outcome.failures[last:]:
            print(f"{failure.path.name}: {failure.what}: {failure.error}", flush=True)
        last = len(outcome.failures)
        if (number + 1) % 500 == 0:
            print(f"{number + 1} inputs, {time.perf_counter() - begun:.0f} s, {last} failures", flush=True)

    outcome = run(given.count, seed, out=given.out, every=given.every, on_progress=on_progress)
    counts = ", ".join(f"{count} {what}" for what, count in sorted(outcome.counts.items()))
    took = time.perf_counter() - begun
    print(f"{given.count} inputs, seed {seed}, {took:.0f} s: {counts}, {len(outcome.failures)} failures")
    return 1 if outcome.failures else 0


if __name__ == "__main__":
    sys.exit(main())
