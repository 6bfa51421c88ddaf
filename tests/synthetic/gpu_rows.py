"""Rows of a simulated run, and the Chrome trace that Kineto would write of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

PROCESS = 51_200
_BASE_US = 3_922_118_000_000
_SMS, _MEMORY = 108, 80 * 2**30


class Rows:
    """Collects rows with nanoseconds from the start of the run."""

    def __init__(self, *, stacks: bool = False) -> None:
        self.stacks = stacks
        self.rows: list[dict[str, Any]] = []
        self._ops = 0
        self._open: list[int] = []
        self._correlation = 7_000

    def open_op(self) -> int:
        """The id of an op that begins: what is launched until it ends belongs to it."""
        self._ops += 1
        self._open.append(self._ops)
        return self._ops

    def close_op(self, number: int, name: str, tid: int, start: int, dur: int, args: dict[str, Any]) -> None:
        self._open.remove(number)
        self.add("cpu_op", name, PROCESS, tid, start, dur, {"External id": number, "Ev Idx": number - 1, **args})

    def add(
        self, category: str, name: str, pid: Any, tid: Any, start: int, dur: int, args: dict[str, Any] | None = None
    ) -> None:
        row = {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": start, "dur": dur}
        self.rows.append({**row, "args": args or {}})

    def _external(self) -> dict[str, int]:
        return {"External id": self._open[-1]} if self._open else {}

    def call(self, name: str, tid: int, start: int, dur: int) -> int:
        """An API call; its correlation id."""
        self._correlation += 1
        category = "cuda_runtime"
        args = {**self._external(), "cbid": 211, "correlation": self._correlation}
        self.add(category, name, PROCESS, tid, start, dur, args)
        return self._correlation

    def activity(
        self,
        kind: str,
        name: str,
        start: int,
        dur: int,
        stream: int,
        correlation: int,
        grid: tuple[int, int, int],
        size_bytes: int,
        node: int | None = None,
    ) -> None:
        args: dict[str, Any] = {**self._external(), "device": 0, "context": 1, "stream": stream}
        args["correlation"] = correlation
        if kind == "kernel":
            args |= {"queued": 0, "registers per thread": 96, "shared memory": 16_384}
            args |= {"grid": list(grid), "block": [256, 1, 1]}
        elif size_bytes:
            args |= {"bytes": size_bytes, "memory bandwidth (GB/s)": size_bytes / max(dur, 1)}
        if node is not None:
            args |= {"graph id": 3, "graph node id": 40 + node}
        self.add(kind if kind == "kernel" else f"gpu_{kind}", name, 0, stream, start, dur, args)

    def write(self, path: Path, end_ns: int) -> None:
        """Write the document, ops and calls in order of time."""
        head: dict[str, Any] = {
            "schemaVersion": 1,
            "deviceProperties": [
                {
                    "id": 0,
                    "name": "NVIDIA A100-SXM4-80GB",
                    "totalGlobalMem": _MEMORY,
                    "computeMajor": 8,
                    "computeMinor": 0,
                    "maxThreadsPerBlock": 1024,
                    "warpSize": 32,
                    "numSms": _SMS,
                }
            ],
            "cuda_runtime_version": 12040,
            "displayTimeUnit": "ms",
            "baseTimeNanoseconds": 1_751_000_000_000_000_000,
            **({"with_stack": 1} if self.stacks else {}),
        }
        span = {"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Spans", "tid": "PyTorch Profiler"}
        rows = sorted(self.rows, key=lambda row: (row["ts"], -row["dur"]))
        events = [*rows, {**span, "ts": 0, "dur": end_ns, "args": {"Op count": 0}}]
        begin = json.dumps(head)[:-1]
        path.write_text(f'{begin}, "traceEvents": [\n' + ",\n".join(map(_text, events)) + '\n], "traceName": "t.json"}')


def _text(row: dict[str, Any]) -> str:
    rest = json.dumps({key: value for key, value in row.items() if key not in ("ts", "dur")})[:-1]
    ts = row["ts"] + _BASE_US * 1_000
    return f'{rest}, "ts": {ts // 1000}.{ts % 1000:03d}, "dur": {row["dur"] // 1000}.{row["dur"] % 1000:03d}}}'
