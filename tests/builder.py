"""Tiny traces as code: rows as Kineto writes them, times in microseconds, drawn by hand in each test."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HOST = 4127
GPU = "Example GPU"


def to_ns(us: float) -> int:
    """Integer nanoseconds of microseconds with at most three decimals."""
    return round(us * 1000)


@dataclass
class TraceBuilder:
    """Collects rows and writes them in Kineto's layout.

    Attributes:
        offset_us: added to every time, to stand where real traces stand.
        rows: the events in file order.
        metadata: top-level keys.
    """

    offset_us: int = 2_500_000_000_000
    rows: list[dict[str, Any]] = field(default_factory=list)
    metadata: dict[str, Any] = field(
        default_factory=lambda: {
            "schemaVersion": 1,
            "deviceProperties": [{"id": 0, "name": GPU, "numSms": 132, "totalGlobalMem": 85_018_279_936}],
            "cuda_runtime_version": 12080,
            "displayTimeUnit": "ms",
            "baseTimeNanoseconds": 1_767_189_312_000_000_000,
        }
    )
    _correlation: int = 100

    def row(
        self,
        cat: str | None,
        name: str,
        start: float,
        dur: float | None,
        *,
        pid: Any = HOST,
        tid: Any = HOST,
        ph: str = "X",
        **args: Any,
    ) -> TraceBuilder:
        """Any row."""
        row: dict[str, Any] = {"ph": ph, "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": to_ns(start)}
        if cat is None:
            del row["cat"]
        if dur is not None:
            row["dur"] = to_ns(dur)
        row["args"] = {key.replace("_", " ") if key.startswith("External") else key: v for key, v in args.items()}
        self.rows.append(row)
        return self

    def op(self, name: str, start: float, dur: float, *, tid: int = HOST, **args: Any) -> TraceBuilder:
        return self.row("cpu_op", name, start, dur, tid=tid, **args)

    def annotation(self, name: str, start: float, dur: float, *, tid: int = HOST) -> TraceBuilder:
        return self.row("user_annotation", name, start, dur, tid=tid)

    def step(self, number: int, start: float, dur: float) -> TraceBuilder:
        return self.annotation(f"ProfilerStep#{number}", start, dur)

    def frame(self, name: str, start: float, dur: float, *, tid: int = HOST) -> TraceBuilder:
        return self.row("python_function", name, start, dur, tid=tid)

    def overhead(self, name: str, start: float, dur: float) -> TraceBuilder:
        return self.row("overhead", name, start, dur, pid=-1, tid=0)

    def api(
        self, name: str, start: float, dur: float, *, correlation: int = 0, tid: int = HOST, cat: str = "cuda_runtime"
    ) -> TraceBuilder:
        return self.row(cat, name, start, dur, tid=tid, correlation=correlation)

    def kernel(
        self,
        name: str,
        start: float,
        dur: float | None,
        *,
        correlation: int = 0,
        stream: int = 7,
        device: int = 0,
        cat: str = "kernel",
        **args: Any,
    ) -> TraceBuilder:
        return self.row(
            cat, name, start, dur, pid=device, tid=stream, device=device, stream=stream, correlation=correlation, **args
        )

    def run(
        self,
        name: str,
        launch: tuple[float, float],
        kernel: tuple[float, float],
        *,
        api: str = "cudaLaunchKernel",
        tid: int = HOST,
        stream: int = 7,
        device: int = 0,
        cat: str = "kernel",
    ) -> TraceBuilder:
        """A launch call and its activity, each as (start, dur)."""
        self._correlation += 1
        self.api(api, *launch, correlation=self._correlation, tid=tid)
        return self.kernel(name, *kernel, correlation=self._correlation, stream=stream, device=device, cat=cat)

    def span(self, start: float, dur: float) -> TraceBuilder:
        return self.row("Trace", "PyTorch Profiler (0)", start, dur, pid="Spans", tid="PyTorch Profiler")

    def text(self) -> str:
        """The document as Kineto lays it out: one separator between events, times with three decimals."""
        head = json.dumps(self.metadata, indent=2)[:-2]
        events = ",\n".join(self._event(row) for row in self.rows)
        return f'{head},\n  "traceEvents": [\n{events}\n  ],\n  "traceName": "trace.json"\n}}'

    def write(self, path: Path) -> Path:
        """Write the document; gzipped when the name ends with .gz."""
        data = self.text().encode()
        path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
        return path

    def _event(self, row: dict[str, Any]) -> str:
        ts = row["ts"] + self.offset_us * 1000
        parts = [f'"{key}": {json.dumps(row[key])}' for key in ("ph", "cat", "name", "pid", "tid") if key in row]
        times = f'"ts": {ts // 1000}.{ts % 1000:03d}'
        if "dur" in row:
            sign, dur = ("-" if row["dur"] < 0 else ""), abs(row["dur"])
            times += f', "dur": {sign}{dur // 1000}.{dur % 1000:03d}'
        args = ", ".join(f'"{key}": {json.dumps(value)}' for key, value in row["args"].items())
        return f'  {{\n    {", ".join(parts)},\n    {times},\n    "args": {{\n      {args}\n    }}\n  }}'
