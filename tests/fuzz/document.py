"""A trace as a tree that can hold what no JSON library writes: repeated keys, endless numbers, any depth."""

from __future__ import annotations

import json
import random
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from tests.builder import TraceBuilder
from tests.synthetic.vit import Plan, simulate

Row = dict[str, Any]


@dataclass(frozen=True)
class Raw:
    """JSON text that stands where a value would."""

    text: str

    def __deepcopy__(self, _: object) -> Raw:
        return self


@dataclass
class Document:
    """A trace.

    Attributes:
        rows: what its list of events holds.
        metadata: the other keys.
        further: lists of events besides, and where they stand: "before", "after", "nested" or "behind".
        layout: arguments of `json.dumps`.
        bare: no object around the list.
        hidden: rows that cannot be told apart any more (text that broke the list).
    """

    rows: list[Any]
    metadata: dict[str, Any]
    further: list[tuple[str, list[Any]]] = field(default_factory=list)
    layout: dict[str, Any] = field(default_factory=dict)
    bare: bool = False

    def copy(self) -> Document:
        return deepcopy(self)

    def count(self) -> int:
        """Rows in all lists."""
        return len(self.rows) + sum(len(rows) for where, rows in self.further if where == "behind" or not self.bare)

    def text(self) -> str:
        """The document as a file holds it."""
        events = self._dumps(self.rows)
        if self.bare:
            return events + "".join(self._dumps(rows) for where, rows in self.further if where == "behind")
        lists = {
            where: [self._dumps(rows) for w, rows in self.further if w == where]
            for where in ("before", "after", "nested", "behind")
        }
        keys = [f'"nested": {{"traceEvents": {text}}}' for text in lists["nested"]]
        keys += [f'"traceEvents": {text}' for text in lists["before"]]
        keys += [f"{json.dumps(key)}: {self._dumps(value)}" for key, value in self.metadata.items()]
        keys += [f'"traceEvents": {text}' for text in (events, *lists["after"])]
        behind = "".join(f'{{"traceEvents": {text}}}' for text in lists["behind"])
        return "{" + ", ".join(keys) + "}" + behind

    def _dumps(self, value: Any) -> str:
        raws: list[str] = []

        def keep(raw: Any) -> str:
            raws.append(raw.text)
            return f"\x00raw {len(raws) - 1}\x00"

        text = json.dumps(value, default=keep, **self.layout)
        for i, raw in enumerate(raws):
            text = text.replace(f'"\\u0000raw {i}\\u0000"', raw)
        return text


LAYOUTS: tuple[dict[str, Any], ...] = (
    {},
    {"indent": 2},
    {"indent": 1},
    {"separators": (",", ":")},
    {"indent": "\t"},
    {"ensure_ascii": False},
)


def bases() -> list[Document]:
    """Sound documents: a small one with a row of every kind, one without steps, one of a CPU only, a large one."""
    machine = simulate(Plan(precision="fp16", batch=2, steps=2))
    large = json.loads(machine.writer.document((0, machine.now + 1000)))
    documents = [json.loads(b.text()) for b in (every_kind(), forward(), on_the_host())]
    return [Document(d.pop("traceEvents"), d) for d in (*documents, large)]


def every_kind() -> TraceBuilder:
    """A step of training with a row of every kind."""
    b = TraceBuilder().step(1, 0, 900).step(2, 1000, 900).annotation("forward", 10, 400)
    for step in (0, 1000):
        b.op("aten::mm", step + 20, 60, **_inputs(step), **{"External id": 5 + step, "Sequence number": 3})
        b.run("ampere_sgemm_128x64_tn", (step + 30, 10), (step + 60, 200))
        b.op("aten::add_", step + 100, 30).run(
            "void at::native::vectorized_elementwise_kernel<4>", (step + 105, 10), (step + 270, 40)
        )
        b.op("aten::item", step + 320, 300)
        b.run(
            "Memcpy DtoH (Device -> Pageable)",
            (step + 330, 250),
            (step + 500, 10),
            api="cudaMemcpyAsync",
            cat="gpu_memcpy",
        )
        b.run("Memset (Device)", (step + 650, 5), (step + 660, 3), api="cudaMemsetAsync", cat="gpu_memset", stream=8)
        b.run("ncclDevKernel_AllReduce_Sum_f32", (step + 680, 5), (step + 690, 120), stream=20)
        b.api("cudaStreamSynchronize", step + 700, 100)
        b.frame("train.py(7): step", step, 800)
        for at, size, total in ((25, 1024, 4096), (90, 512, 4608), (500, -512, 4096)):
            _memory(b, step + at, size, total, address=abs(size))
    b.overhead("Activity Buffer Request", 850, 40).span(0, 2000)
    b.row("ac2g", "ac2g", 30, None, ph="s", id=101).row("ac2g", "ac2g", 60, None, ph="f", id=101)
    b.row("gpu_user_annotation", "forward", 60, 300, pid=0, tid=7, device=0, stream=7)
    b.row("cuda_sync", "Stream Sync", 700, 90, pid=0, tid=7, device=0, stream=7, correlation=0)
    b.row(None, "process_name", 0, None, ph="M", name_="x").row(None, "Record Window End", 2000, None, ph="i")
    b.row(None, "GPU 0 counter", 0, None, ph="C", value=1)
    b.metadata["distributedInfo"] = {"backend": "nccl", "rank": 0, "world_size": 2}
    b.metadata |= {"with_stack": 1, "record_shapes": 1, "profile_memory": 1}
    b.metadata["gpuledger"] = {
        "schema_version": "1.0", "model": "net", "batch_size": 8, "precision": "fp16", "versions": {"torch": "2.9"},
        "latency": {"p50_ns": 800_000, "request_p50_ns": 900_000, "throughput_samples_per_s": 10.5},
        "warmup": {"steady": True, "reason": "steady"}, "profile": {"profiled_wall_ns": 2_000_000, "steps": 2},
        "gpu_state": {"unstable": ["power"]}, "load": {"busy": False}, "parameter_count": 10_000,
    }  # fmt: skip
    return b


def _inputs(step: int) -> dict[str, Any]:
    return {"Input Dims": [[64, 128 + step], [128 + step, 32], []], "Input type": ["float", "float", ""],
            "Concrete Inputs": ["", "", "1"]}  # fmt: skip


def _memory(b: TraceBuilder, at: float, size: int, total: int, address: int) -> None:
    b.row("cpu_instant_event", "[memory]", at, None, ph="i", Bytes=size, Addr=address, **{"Device Type": 1,
          "Device Id": 0, "Total Allocated": total, "Total Reserved": 1 << 20})  # fmt: skip


def forward() -> TraceBuilder:
    """Launches and kernels without steps, in two streams of two devices."""
    b = TraceBuilder(offset_us=0)
    for i in range(8):
        b.op("aten::linear", 100 * i, 50).run(
            "gemm", (100 * i + 5, 5), (100 * i + 20, 60), device=i % 2, stream=7 + i % 3
        )
    return b


def on_the_host() -> TraceBuilder:
    """Ops and frames only."""
    b = TraceBuilder(offset_us=1_700_000_000_000_000)
    for i in range(6):
        b.op("aten::mul", 50 * i, 40).frame("f.py(1): g", 50 * i - 1, 45)
    return b


def pick(r: random.Random, documents: list[Document]) -> Document:
    """One of the documents, the large one seldom, in any layout."""
    chosen = r.choices(documents, weights=[12, 6, 3, 1])[0].copy()
    chosen.layout = dict(r.choice(LAYOUTS))
    chosen.bare = r.random() < 0.1
    return chosen
