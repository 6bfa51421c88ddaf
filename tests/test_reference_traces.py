"""What the reports say of the public reference traces: every reference figure, and the sentences that matter."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from analyze.report import build_report, render
from analyze.trace import Trace


def report(shared: Path, name: str, form: str = "json") -> Any:
    text = render(build_report(Trace.load(shared / "traces" / f"{name}.json.gz")), form)
    return json.loads(text) if form == "json" else text


def notices(document: dict[str, Any]) -> dict[str, str]:
    return {n["id"]: n["text"] for n in document["notices"]}


def test_every_figure_of_the_reference_ledger(shared: Path) -> None:
    """0 ns off between ledger.json and the JSON report, on all traces, every key, zero parts included."""
    reference = json.loads((shared / "traces" / "ledger.json").read_text())
    compared = 0
    for name, expected in reference.items():
        devices = {str(d["id"]): d for d in report(shared, name.removesuffix(".json.gz"))["devices"]}
        assert devices.keys() == expected.keys(), name
        for number, figures in expected.items():
            found = devices[number]
            assert len(found["idle"]) == 10
            for part, value in found["idle"].items():
                assert value == figures["idle"].get(part, 0), (name, part)
            for key, value in figures.items():
                if key != "idle":
                    assert found[key] == value, (name, key)
                    compared += 1
    assert compared == 22 * 12


def test_object_detector_waits_for_its_images(shared: Path) -> None:
    text = report(shared, "h100_owlv2_large", "md")
    top = "\n".join(text.splitlines()[:10])
    assert "it idles for 47.4%" in top
    assert "For 45.5% of the window (96.0% of the idle time), the host was inside DataLoader work" in top
    assert "The 4 longest gaps take 122 ms to 126 ms each" in top
    assert "zoom" in top
    assert "image_processing_owlv2.py(301): resize" in top
    lengths = [gap["length_ns"] // 10**6 for gap in report(shared, "h100_owlv2_large")["gaps"][:5]]
    assert lengths[:4] == [126, 122, 122, 121]
    assert lengths[4] < 10


def test_small_transformer_is_launch_bound(shared: Path) -> None:
    document = report(shared, "h100_vit_base_bf16")
    assert document["verdict"]["id"] == "launch-bound"
    assert "busy for 16.2% of the window" in document["verdict"]["sentences"][0]
    assert (
        "Recording Python stacks, shapes and memory events slowed the host" in notices(document)["profiler-inflation"]
    )


@pytest.mark.parametrize("name", ["mi300_sglang_decode", "a100_training_rank0"])
def test_work_that_was_queued_and_not_started_gives_no_advice(name: str, shared: Path) -> None:
    document = report(shared, name)
    assert document["verdict"]["id"] == "not-judged"
    assert "queued, not started: another stream, rank or process" in notices(document)["queued-not-started"]
    assert "Idle: queued, not started" in report(shared, name, "terminal")


def test_first_use_is_told_apart_from_launch_bound(shared: Path) -> None:
    """One launch call of 6.5 ms: module load or compilation, left out of launch-bound."""
    document = report(shared, "mi250_toy_training")
    assert document["verdict"]["id"] == "first-use"
    assert "inside launch calls of over 1 ms (module loading, compilation)" in document["verdict"]["sentences"][1]


@pytest.mark.parametrize(
    ("name", "count", "after"),
    [("h100_qwen_0_5b", "509 of 1,707", "91.4%"), ("mi300_resnet_training", "968 of 3,653", "99.5%")],
)
def test_work_from_before_the_recording_is_said(name: str, count: str, after: str, shared: Path) -> None:
    text = notices(report(shared, name))["unlinked-activities"]
    assert text.startswith(f"{count} activities")
    assert f"after it the GPU is busy for {after} of the rest" in text


@pytest.mark.parametrize("name", ["cpu_only_ops", "cpu_only_rank34"])
def test_host_only_files_are_reports(name: str, shared: Path) -> None:
    assert "No GPU activity in this file" in report(shared, name, "md")
