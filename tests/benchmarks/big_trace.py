"""A big trace from a real one: its events again and again, shifted in time, with ids of their own.

python tests/benchmarks/big_trace.py TRACE OUT --megabytes 550
"""

from __future__ import annotations

import argparse
import gzip
from pathlib import Path
from typing import Any

import orjson

_ID_ARGS = (
    "correlation",
    "External id",
    "Ev Idx",
    "Python id",
    "Python parent id",
    "Python module id",
    "Record function id",
)
_ID_STEP = 10_000_000


def replicate(trace: Path, out: Path, megabytes: int) -> int:
    """Write at least so many megabytes in Kineto's layout; returns how many copies that took."""
    opener = gzip.open if trace.suffix == ".gz" else open
    with opener(trace, "rb") as file:
        document = orjson.loads(file.read())
    events = [event for event in document.pop("traceEvents") if event.get("ph") != "M"]
    times = [event["ts"] for event in events if event.get("ph") == "X" and event.get("cat") != "Trace"]
    span = max(times) - min(times) + 1_000_000
    copies = 0
    with out.open("wb") as file:
        file.write(orjson.dumps(document, option=orjson.OPT_INDENT_2)[:-2] + b',\n  "traceEvents": [\n')
        while file.tell() < megabytes * 10**6:
            if copies:
                file.write(b",\n")
            file.write(b",\n".join(_event(event, copies, span) for event in events))
            copies += 1
        file.write(b'\n  ],\n  "traceName": "replicated"\n}\n')
    return copies


def _event(event: dict[str, Any], copy: int, span: float) -> bytes:
    moved = {**event, "ts": round(event["ts"] + copy * span, 3)}
    if "id" in moved and isinstance(moved["id"], int):
        moved["id"] += copy * _ID_STEP
    args = moved.get("args")
    if isinstance(args, dict):
        moved["args"] = {
            key: value + copy * _ID_STEP if key in _ID_ARGS and isinstance(value, int) and value else value
            for key, value in args.items()
        }
    return b"  " + orjson.dumps(moved, option=orjson.OPT_INDENT_2).replace(b"\n", b"\n  ")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--megabytes", type=int, default=550)
    given = parser.parse_args()
    copies = replicate(given.trace, given.out, given.megabytes)
    print(f"{given.out}: {given.out.stat().st_size / 1e6:,.0f} MB, {copies} copies of {given.trace.name}")


if __name__ == "__main__":
    main()
