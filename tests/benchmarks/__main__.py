"""One table of everything that is watched about speed: `python -m tests.benchmarks`. See docs/performance.md.

Run it before and after a change to trace/, timeline/ or metrics/, with nothing else running. It fails nothing.
"""

from __future__ import annotations

import argparse
import platform
import subprocess
import time
from pathlib import Path

from tests.benchmarks.table import read_last, rows, save, table
from tests.conftest import SHARED


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--trace", type=Path, default=SHARED / "traces" / "h100_owlv2_large.json.gz")
    parser.add_argument("--big", type=int, nargs="*", default=[250, 550], metavar="MEGABYTES")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--snapshot", type=int, default=1_000_000, metavar="EVENTS")
    parser.add_argument("--save", action="store_true", help="Compare later runs with this one.")
    given = parser.parse_args()
    date = time.strftime("%Y-%m-%d")
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    print(f"{date}, {commit.stdout.strip()}, {platform.machine()}, Python {platform.python_version()}, ", end="")
    print(f"{given.rounds} rounds, best of them; spread is median over best\n")
    found = list(rows(given.trace, given.big, given.rounds, given.snapshot))
    print("\n".join(table(found, read_last())))
    if given.save:
        save(found, date, commit.stdout.strip())


if __name__ == "__main__":
    main()
