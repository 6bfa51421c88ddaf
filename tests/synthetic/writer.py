"""Rows in the layout and with the args that Kineto of PyTorch 2.8 writes for CUDA."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

PID = 40_213
STREAM = 7
BASE_NS = 1_767_189_312_000_000_000
OFFSET_US = 4_211_380_000_000  # where in Kineto's quarter of a year the recording stands


class KinetoWriter:
    """Collects rows in nanoseconds and writes the document."""

    def __init__(self, gpu: str, sms: int, memory_bytes: int, notes: dict[str, Any]) -> None:
        self.gpu, self.sms, self.memory_bytes, self.notes = gpu, sms, memory_bytes, notes
        self.rows: list[dict[str, Any] | None] = []
        self.flags = {"record_shapes": 1}
        self.recorded: dict[str, Any] = {}
        self._correlation = 4_000
        self._op = 0
        self.tid = PID  # of the host thread that works
        self.end_ns = 0

    def next_correlation(self) -> int:
        """A fresh correlation id."""
        self._correlation += 1
        return self._correlation

    def reserve(self) -> int:
        """A place in the file for an op or range that has begun: Kineto writes parents before children."""
        self.rows.append(None)
        return len(self.rows) - 1

    def op(self, place: int, name: str, start: int, dur: int, **args: Any) -> None:
        self._op += 1
        shapes = {k: args.pop(k) for k in ("dims", "types") if k in args}
        extra = {"Input Dims": shapes["dims"], "Input type": shapes.get("types", [])} if "dims" in shapes else {}
        self.rows[place] = self._row(
            "cpu_op",
            name,
            PID,
            self.tid,
            start,
            dur,
            {"External id": self._op, "Record function id": 0, "Ev Idx": self._op - 1, **extra, **args},
        )

    def range(self, place: int, name: str, start: int, dur: int) -> None:
        self._op += 1
        self.rows[place] = self._row(
            "user_annotation",
            name,
            PID,
            PID,
            start,
            dur,
            {"External id": self._op, "Record function id": 0, "Ev Idx": self._op - 1},
        )

    def api(self, name: str, start: int, dur: int, correlation: int) -> None:
        args = {"External id": self._op + 1, "cbid": 211, "correlation": correlation}
        self.rows.append(self._row("cuda_runtime", name, PID, self.tid, start, dur, args))
        phase = "s" if "Launch" in name or "Memcpy" in name or "Memset" in name or "Synchronize" in name else "f"
        self.rows.append(self._flow(phase, correlation, PID, self.tid, start))

    def activity(self, kind: str, name: str, start: int, dur: int, correlation: int, **args: Any) -> None:
        cat = {"kernel": "kernel", "memcpy": "gpu_memcpy", "memset": "gpu_memset"}[kind]
        place = {"External id": self._op + 1, "device": 0, "context": 1, "stream": STREAM, "correlation": correlation}
        if kind == "kernel":
            place = {
                "queued": 0,
                **place,
                "registers per thread": 128,
                "shared memory": 16_384,
                "grid": [96, 1, 1],
                "block": [256, 1, 1],
            }
        self.rows.append(self._row(cat, name, 0, STREAM, start, dur, {**place, **args}))
        self.rows.append(self._flow("f", correlation, 0, STREAM, start))
        self.end_ns = max(self.end_ns, start + dur)

    def overhead(self, name: str, start: int, dur: int) -> None:
        self.rows.append(self._row("overhead", name, -1, 0, start, dur, {}))

    def document(self, span: tuple[int, int]) -> str:
        """The whole document; `span` is when the profiler began and ended."""
        head = {
            "schemaVersion": 1,
            "deviceProperties": [
                {
                    "id": 0,
                    "name": self.gpu,
                    "totalGlobalMem": self.memory_bytes,
                    "computeMajor": 8,
                    "computeMinor": 6,
                    "warpSize": 32,
                    "numSms": self.sms,
                }
            ],
            "cupti_version": 26,
            "cuda_runtime_version": 12080,
            "cuda_driver_version": 12080,
            **self.flags,
            "trace_id": "00000000000000000000000000000000",
            "displayTimeUnit": "ms",
            "baseTimeNanoseconds": BASE_NS,
            "synthetic": self.notes,
            **({"gpuledger": self.recorded} if self.recorded else {}),
        }
        names = [
            self._meta("process_name", 0, 0, span[0], name="python3"),
            self._meta("thread_name", 0, STREAM, span[0], name=f"stream {STREAM} "),
            self._meta("process_name", PID, 0, span[0], name="python3"),
            self._meta("thread_name", PID, PID, span[0], name=f"thread {PID} (python3)"),
        ]
        ends = [
            self._row(
                "Trace",
                "PyTorch Profiler (0)",
                "Spans",
                "PyTorch Profiler",
                span[0],
                span[1] - span[0],
                {"Op count": 0},
            ),
            {"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": span[1] + 150_000},
        ]
        events = ",\n".join(_event(row) for row in (*(r for r in self.rows if r), *names, *ends))
        begin, end = json.dumps(head, indent=2)[:-2], '"traceName": "synthetic.json"\n}'
        return f'{begin},\n  "traceEvents": [\n{events}\n  ],\n  {end}'

    def write(self, path: Path, span: tuple[int, int]) -> Path:
        """Write the document, gzipped by suffix; the same run gives the same bytes."""
        data = self.document(span).encode()
        path.write_bytes(gzip.compress(data, compresslevel=9, mtime=0) if path.suffix == ".gz" else data)
        return path

    @staticmethod
    def _row(cat: str, name: str, pid: Any, tid: Any, start: int, dur: int, args: dict[str, Any]) -> dict[str, Any]:
        return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": start, "dur": dur, "args": args}

    @staticmethod
    def _flow(phase: str, number: int, pid: int, tid: int, start: int) -> dict[str, Any]:
        row: dict[str, Any] = {
            "ph": phase,
            "id": number,
            "pid": pid,
            "tid": tid,
            "ts": start,
            "cat": "ac2g",
            "name": "ac2g",
        }
        return row if phase == "s" else {**row, "bp": "e"}

    @staticmethod
    def _meta(kind: str, pid: int, tid: int, start: int, **args: Any) -> dict[str, Any]:
        return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "ts": start, "args": args}


def _event(row: dict[str, Any]) -> str:
    texts = []
    for key, value in row.items():
        if key in ("ts", "dur"):
            ns = value + OFFSET_US * 1000 if key == "ts" else value
            texts.append(f'"{key}": {ns // 1000}.{ns % 1000:03d}')
        else:
            texts.append(f'"{key}": {json.dumps(value)}')
    return "  {\n    " + ", ".join(texts) + "\n  }"
