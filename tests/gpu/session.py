"""The recordings of one GPU session, torch's own figures beside each, and the checks on the spot.

Called by session.sh: ``python -m tests.gpu.session record GROUP --out DIR --device cuda|cpu`` and
``python -m tests.gpu.session pack --out DIR``. Uses capture as a library, so that neither click nor rich is needed.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import sys
import tarfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.profiler import profile as torch_profile

from capture.errors import CaptureError, SettingsError
from capture.metadata import read_block, write_json
from capture.run import Recording, capture_run
from capture.settings import PRECISIONS, Settings
from capture.sweep import run_sweep
from tests.gpu.planted import MODEL_VARIABLE, SLEEP_S

MOST_TAR_BYTES = 15_500_000
"""A little under 16 MB, for what the tar itself adds."""
MOST_TRACE_BYTES = 1_000_000
TINY_MODEL = "test_vit"
PLANTED = "tests.gpu.planted"

Check = Callable[[Recording, list[dict[str, Any]]], None]


@dataclass(frozen=True)
class Job:
    """One recording, and what must hold of it beyond what holds of every one."""

    name: str
    settings: Settings
    check: Check = lambda recording, events: None
    refused_on_cpu: bool = False


def _no_reads(recording: Recording, events: list[dict[str, Any]]) -> None:
    assert not _count(events, "aten::item"), "a plain forward reads nothing back"


def _item_loop(recording: Recording, events: list[dict[str, Any]]) -> None:
    reads = _count(events, "aten::item")
    assert reads >= 2, f"only {reads} reads of the planted loop are in the trace"


def _sleep(recording: Recording, events: list[dict[str, Any]]) -> None:
    shortest = recording.block.latency.min_ns
    assert shortest >= SLEEP_S * 1e9, f"a forward of {shortest} ns cannot hold the planted sleep"


def _graph(recording: Recording, events: list[dict[str, Any]]) -> None:
    launches = _count(events, "cudaGraphLaunch") + _count(events, "cuGraphLaunch")
    assert launches == 1, f"{launches} graph launches in the trace of one replay"


def _steps(recording: Recording, events: list[dict[str, Any]]) -> None:
    marks = {event["name"] for event in events if event["name"].startswith("ProfilerStep#")}
    assert len(marks) == recording.block.profile.steps, f"steps in the trace: {sorted(marks)}"


def _compiled(recording: Recording, events: list[dict[str, Any]]) -> None:
    assert any("Compiled" in event["name"] for event in events), "nothing in the trace ran compiled"


def _count(events: list[dict[str, Any]], name: str) -> int:
    return sum(event["name"] == name for event in events)


def list_jobs(group: str, device: str) -> list[Job]:
    """The recordings of one group; on the CPU with a model that takes milliseconds."""
    cuda = device == "cuda"
    base = Settings(device="cuda", snapshot_steps=1)
    if not cuda:
        base = Settings(device="cpu", model=TINY_MODEL, warmup=2, iterations=3)
    large = replace(base, batch_size=64 if cuda else 2)
    small = replace(base, batch_size=8 if cuda else 1)
    half = replace(small, precision="fp16")
    groups = {
        "precisions": [
            Job(name, replace(large, precision=name), _no_reads, refused_on_cpu=name == "tf32") for name in PRECISIONS
        ],
        "planted": [
            Job("item_loop", replace(small, model=f"{PLANTED}:item_loop"), _item_loop),
            Job("cpu_sleep", replace(small, model=f"{PLANTED}:cpu_sleep"), _sleep),
        ],
        "variants": [
            Job("cuda_graph", replace(half, cuda_graph=True, snapshot_steps=0), _graph, refused_on_cpu=True),
            Job("weights", replace(half, snapshot_steps=1, snapshot_weights=True), refused_on_cpu=True),
            Job("amp", replace(half, amp=True)),
            Job("steps", replace(small, steps=3), _steps),
            Job("stacks", replace(half, stacks=True, snapshot_steps=0)),
        ],
        "pairs": [job for batch in (8, 64) for job in _pairs(base, batch, cuda=cuda)],
        "compiled": [Job("compiled", replace(half, precision="fp16" if cuda else "fp32", compile=True), _compiled)],
    }
    return groups[group]


def _pairs(base: Settings, batch: int, *, cuda: bool) -> list[Job]:
    """The same model eager and changed: what the replay predicts from the first is held against the others."""
    eager = replace(base, batch_size=batch if cuda else batch // 8, snapshot_steps=0)
    changed = [
        Job("eager", eager),
        Job("cuda_graph", replace(eager, cuda_graph=True), refused_on_cpu=True),
        Job("fp16", replace(eager, precision="fp16")),
        Job("channels_last", replace(eager, channels_last=True)),
    ]
    if cuda:  # the C++ compiler of the CPU alone would take minutes
        changed.append(Job("compile", replace(eager, compile=True), _compiled))
    return [replace(job, name=f"{job.name}_b{batch}") for job in changed]


def record_group(group: str, out: Path, device: str) -> bool:
    """Make the recordings of a group, one failure not ending the others; returns whether all went well."""
    if device == "cpu":
        os.environ[MODEL_VARIABLE] = TINY_MODEL
        torch.set_num_threads(1)
    if group == "sweep":
        return _report("sweep", out, lambda: _record_sweep(out, device))
    outcomes = [_report(job.name, out, partial(_record_job, job, out, device)) for job in list_jobs(group, device)]
    return all(outcomes)


def _record_job(job: Job, out: Path, device: str) -> str:
    folder = out / job.name
    if device == "cpu" and job.refused_on_cpu:
        return _expect_refusal(job, folder)
    oracles: dict[str, Any] = {}
    with _torch_figures(oracles):
        recording = capture_run(job.settings, folder, force=True)
    for name, value in oracles.items():
        write_json(value, folder / f"{name}.json")
    events = _read_events(folder / "trace.json.gz")
    _check_recording(recording, events, oracles, device)
    job.check(recording, events)
    return _in_short(recording, events)


def _expect_refusal(job: Job, folder: Path) -> str:
    try:
        capture_run(job.settings, folder, force=True)
    except SettingsError as error:
        return f"refused as it should be: {error.message}"
    raise AssertionError("the CPU does not have this, and nobody said so")


def _record_sweep(out: Path, device: str) -> str:
    cuda = device == "cuda"
    settings = Settings(device="cuda", precision="fp16")
    if not cuda:
        settings = Settings(device="cpu", model=TINY_MODEL, warmup=1, iterations=2)
    batch_sizes = (1, 2, 4, 8, 16, 32, 64, 128) if cuda else (1, 2)
    sweep = run_sweep(settings, batch_sizes, out / "sweep", force=True)
    assert len(sweep.rows) == len(batch_sizes), "the sweep ended early"
    return f"throughput saturates at batch {sweep.saturated_batch_size}, still growing: {sweep.still_growing}"


@contextmanager
def _torch_figures(oracles: dict[str, Any]) -> Iterator[None]:
    """Keep what torch itself computes of the same pass, for later comparison with what analyze computes."""
    export, take = torch_profile.export_chrome_trace, torch.cuda.memory._snapshot

    def export_and_note(self: torch_profile, path: str, *args: Any, **kwargs: Any) -> Any:
        exported = export(self, path, *args, **kwargs)
        oracles["key_averages"] = [_average_row(average) for average in self.key_averages()]
        if torch.cuda.is_available():
            oracles["memory_stats"] = dict(torch.cuda.memory_stats())
        return exported

    def take_and_note(*args: Any, **kwargs: Any) -> Any:
        oracles["snapshot_memory_stats"] = dict(torch.cuda.memory_stats())
        return take(*args, **kwargs)

    torch_profile.export_chrome_trace = export_and_note  # type: ignore[method-assign]
    torch.cuda.memory._snapshot = take_and_note
    try:
        yield
    finally:
        torch_profile.export_chrome_trace = export  # type: ignore[method-assign]
        torch.cuda.memory._snapshot = take


_AVERAGE_FIELDS = (
    "key",
    "count",
    "is_user_annotation",
    "cpu_time_total",
    "self_cpu_time_total",
    "device_time_total",
    "self_device_time_total",
    "cpu_memory_usage",
    "self_cpu_memory_usage",
    "device_memory_usage",
    "self_device_memory_usage",
    "flops",
)


def _average_row(average: Any) -> dict[str, Any]:
    """One row of key_averages(); its times are microseconds."""
    row = {name: getattr(average, name, None) for name in _AVERAGE_FIELDS}
    return {**row, "device_type": str(average.device_type)}


def _read_events(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [event for event in json.load(file)["traceEvents"] if "cat" in event]


def _check_recording(recording: Recording, events: list[dict[str, Any]], oracles: dict[str, Any], device: str) -> None:
    block, folder = recording.block, recording.folder
    stored = read_block(folder / "trace.json.gz")
    assert stored == json.loads((folder / "run.json").read_text()), "trace and run.json disagree"
    kernels = sum(event["cat"] == "kernel" for event in events)
    assert kernels == stored["profile"]["kernel_count"], "the block's kernel count is not the trace's"
    assert (kernels > 0) is (device == "cuda"), f"{kernels} kernels on {device}"
    assert stored["latency"]["clock"] == ("cuda_events" if device == "cuda" else "perf_counter")
    assert stored["output_finite"] is not None
    assert stored["precision_state"]["during"]["matmul_allow_tf32"] is (block.precision == "tf32")
    assert stored["precision_state"]["during"]["cudnn_allow_tf32"] is (block.precision == "tf32")
    assert oracles["key_averages"], "torch's own averages are empty"
    size = (folder / "trace.json.gz").stat().st_size
    assert size < MOST_TRACE_BYTES, f"the trace has {size} bytes"
    if block.snapshot is not None:
        _check_snapshot(recording, oracles)


def _check_snapshot(recording: Recording, oracles: dict[str, Any]) -> None:
    snapshot = recording.block.snapshot
    assert snapshot is not None
    assert not snapshot.overflowed, "the allocator's history overflowed"
    assert (recording.folder / snapshot.file).stat().st_size > 0
    peak = oracles["snapshot_memory_stats"]["requested_bytes.all.peak"]
    assert snapshot.peak_requested_bytes == peak, "the snapshot's peak is not the allocator's"


def _in_short(recording: Recording, events: list[dict[str, Any]]) -> str:
    block = recording.block
    names = Counter(event["name"] for event in events if event["cat"] == "kernel").most_common(3)
    stretch = block.profile.profiled_wall_ns / block.profile.steps / block.latency.request_p50_ns
    parts = [
        f"p50 {block.latency.p50_ns / 1e6:.3f} ms",
        f"request p50 {block.latency.request_p50_ns / 1e6:.3f} ms",
        f"enqueue p50 {(block.latency.enqueue_p50_ns or 0) / 1e6:.3f} ms",
        f"profiled {stretch:.2f}x",
        f"{block.profile.kernel_count} kernels",
        f"warm-up {block.warmup.steady} after {block.warmup.iterations}",
        f"finite {block.output_finite}",
        f"clocks {block.gpu_state.reason or block.gpu_state.unstable or 'stable'}",
        *[f"{count} x {name[:60]}" for name, count in names],
    ]
    return "; ".join(parts)


def _report(name: str, out: Path, work: Callable[[], str]) -> bool:
    begin = time.monotonic()
    try:
        outcome, text = "ok", work()
    except (AssertionError, CaptureError) as error:
        outcome, text = "FAILED", f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 - one broken recording must not cost the session
        outcome, text = "FAILED", traceback.format_exc()
    line = {"name": name, "outcome": outcome, "seconds": round(time.monotonic() - begin, 1), "text": text}
    print(f"{outcome:7}{name:12}{line['seconds']:6} s  {text}")
    out.mkdir(parents=True, exist_ok=True)
    with (out / "results.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
    return outcome == "ok"


def pack(out: Path) -> bool:
    """Put log and recordings into session.tar.gz, smallest first, leaving out what would make it too large."""
    target = out / "session.tar.gz"
    target.unlink(missing_ok=True)
    files = sorted((path for path in out.rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)
    left_out: list[str] = []
    packed_bytes = 0
    with tarfile.open(target, "w:gz") as tar:
        for path in files:
            name = path.relative_to(out).as_posix()
            packed_bytes += _packed_size(path)
            if packed_bytes > MOST_TAR_BYTES:
                left_out.append(name)
            else:
                tar.add(path, name)
    print(f"packed {len(files) - len(left_out)} files, {target.stat().st_size} bytes; left out: {left_out or 'none'}")
    return not left_out


def _packed_size(path: Path) -> int:
    content = path.read_bytes()
    return (len(content) if path.suffix == ".gz" else len(gzip.compress(content, 6))) + 1024


def main() -> None:
    """Parse, call, end with 0 or 1."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    record = commands.add_parser("record")
    record.add_argument("group", choices=["precisions", "planted", "variants", "pairs", "compiled", "sweep"])
    record.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    record.add_argument("--out", type=Path, required=True)
    packing = commands.add_parser("pack")
    packing.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    went_well = pack(args.out) if args.command == "pack" else record_group(args.group, args.out, args.device)
    sys.exit(0 if went_well else 1)


if __name__ == "__main__":
    main()
