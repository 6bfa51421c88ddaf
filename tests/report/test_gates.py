"""Gates: what can be written, what is refused, and judgements by hand on both sides of a limit."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from msgspec.structs import replace

from analyze.compare import Comparable, compare
from analyze.compare.comparable import Judged, WorkTime
from analyze.compare.gates import GateResult, judge_gate, parse_gate
from analyze.compare.judged import JudgedReport, judged_report
from analyze.compare.junit import render as junit
from analyze.errors import GateError
from analyze.report import build_report, render
from analyze.report.headline_metrics import METRICS
from analyze.report.report import Metric
from analyze.trace import Trace
from tests.golden import SAMPLES, golden_report
from tests.report.runs import SGEMM, US, report, run, subject
from tests.report.test_reports import NASTY


@pytest.fixture
def this(tmp_path: Path) -> Comparable:
    """Kernels of 400, 410, 420 us, walls of 1000: idle 1190 of 2420, step 1.00 ms, latency 8 us."""
    return subject(run([400, 410, 420]), tmp_path / "this.json")


def said(expression: str, this: Comparable, before: Comparable | None = None) -> str:
    comparison = compare(before, this) if before else None
    return judge_gate(parse_gate(expression), this, before, comparison).line


@pytest.mark.parametrize(
    ("expression", "line"),
    [
        ("idle_share > 0.10", "✗ idle_share 0.492 > 0.10"),
        ("idle_share>10%", "✗ idle_share 49.2% > 10%"),
        ("idle_share > 50 %", "✓ idle_share 49.2% <= 50 %"),
        ("busy_share < 0.6", "✗ busy_share 0.508 < 0.6"),
        ("step_time > 80 ms", "✓ step_time 1 ms <= 80 ms"),
        ("step_time >= 1000us", "✗ step_time 1000 us >= 1000us"),
        ("step_time > 1000 µs", "✓ step_time 1000 µs <= 1000 µs"),
        ("step_time <= 1ms", "✗ step_time 1 ms <= 1ms"),
        ("launch_latency_p50 > 7.999us", "✗ launch_latency_p50 8 us > 7.999us"),
        ("launches > 2", "✗ launches 3 > 2"),
        ("exposed_sync_time > 0 ns", "✓ exposed_sync_time 0 ns <= 0 ns"),
        ("memory_peak > 1 GiB", "✗ memory_peak > 1 GiB could not be judged: it was not measured"),
    ],
)
def test_limits(expression: str, line: str, this: Comparable) -> None:
    assert said(expression, this) == line


@pytest.mark.parametrize(
    ("expression", "line"),
    [
        # Three kernels of one name: 400 + 410 + 420 us, all of the activity time; one op of 20 us each.
        (f"kernel:{SGEMM} sum > 1229 us", f"✗ kernel:{SGEMM} sum 1230 us > 1229 us"),
        (f"kernel:{SGEMM} sum > 1230 us", f"✓ kernel:{SGEMM} sum 1230 us <= 1230 us"),
        ("kernel:ampere*tn share >= 100%", "✗ kernel:ampere*tn share 100% >= 100%"),
        (f"kernel:{SGEMM} count > 3", f"✓ kernel:{SGEMM} count 3 <= 3"),
        ("category:gemm share < 40%", "✓ category:gemm share 100% >= 40%"),
        ("category:gemm sum>1ms", "✗ category:gemm sum 1.23 ms > 1ms"),
        ("op:aten::mm sum > 1 ms", "✗ op:aten::mm sum 1.23 ms > 1 ms"),  # on the device, since there is one
        ("kernel:*nchwToNhwc* count > 0", "✓ kernel:*nchwToNhwc* count 0 <= 0"),
        (
            "kernel:ampere_sgemm_128x64_nn sum > 5 ms",
            "✗ kernel:ampere_sgemm_128x64_nn sum > 5 ms could not be judged: no kernel of this name ran; did you mean "
            f"{SGEMM!r}?",
        ),
        ("category:moe sum > 5 ms", "✗ category:moe sum > 5 ms could not be judged: no category of this name ran"),
    ],
)
def test_limits_on_kernels_categories_and_ops(expression: str, line: str, this: Comparable) -> None:
    assert said(expression, this) == line


def test_names_of_kernels_hold_anything(this: Comparable) -> None:
    name = "void f<int, (a > 3)>(float*) [clone]"
    odd = replace(this, activity_times=(WorkTime(2, 5000, name=name), WorkTime(1, 5000, name="other")))
    assert said(f"kernel:{name} sum > 4 us", odd) == f"✗ kernel:{name} sum 5 us > 4 us"
    assert said("kernel:void f<*> 3)>*[clone] share < 60%", odd) == "✗ kernel:void f<*> 3)>*[clone] share 50% < 60%"


def test_a_file_without_a_device_has_no_kernel(this: Comparable) -> None:
    bare = replace(this, activity_times=(), devices=(), categories=())
    assert said("kernel:* count > 0", bare).endswith("could not be judged: the file holds no device activity")
    assert said("op:aten::mm sum > 1 us", bare).startswith("✗ op:aten::mm sum ")  # on the host


def test_a_limit_is_seen_on_its_side(this: Comparable) -> None:
    """As many digits as it takes, never `0.492 > 0.492`."""
    one = replace(this, metrics={**this.metrics, "idle_share": Metric(0.49204, "share", "lower")})
    assert said("idle_share > 0.492", one) == "✗ idle_share 0.49204 > 0.492"
    assert said("idle_share > 0.4921", one) == "✓ idle_share 0.492 <= 0.4921"
    one = replace(this, metrics={**this.metrics, "idle_share": Metric(0.1, "share", "lower")})
    assert said("idle_share > 10%", one).startswith("✓"), "10 % is 0.1 exactly"


def worse(this: Comparable, name: str, value: float | None) -> Comparable:
    return replace(this, metrics={**this.metrics, name: replace(this.metrics[name], value=value)})


@pytest.mark.parametrize(
    ("expression", "value", "line"),
    [
        ("step_time +5%", 1051 * US, "✗ step_time 5.1% worse, limit 5% worse (1.00 ms to 1.05 ms)"),
        ("step_time +5%", 1050 * US, "✓ step_time 5% worse, limit 5% worse (1.00 ms to 1.05 ms)"),
        ("step_time +5%", 900 * US, "✓ step_time 10% better, limit 5% worse (1.00 ms to 0.90 ms)"),
        ("step_time +5%", 1000 * US, "✓ step_time unchanged, limit 5% worse (1.00 ms to 1.00 ms)"),
        ("step_time +50us", 1051 * US, "✗ step_time 51 us worse, limit 50 us worse (1.00 ms to 1.05 ms)"),
        ("busy_share +5%", 0.4, "✗ busy_share 21.3% worse, limit 5% worse (50.8% to 40.0%)"),
        ("busy_share -5%", 0.4, "✗ busy_share 21.3% worse, limit 5% worse (50.8% to 40.0%)"),
        ("busy_share +5%", 0.9, "✓ busy_share 77.1% better, limit 5% worse (50.8% to 90.0%)"),
        ("idle_share +2pp", 0.52, "✗ idle_share 2.83 pp worse, limit 2 pp worse (49.2% to 52.0%)"),
        ("blocking_calls +10%", 1, "✗ blocking_calls is worse, from 0 (0 to 1)"),
        ("blocking_calls +10%", 0, "✓ blocking_calls is not worse (0 to 0)"),
        ("step_time +5%", None, "✗ step_time +5% could not be judged: it was not measured in this run"),
    ],
)
def test_changes(expression: str, value: float | None, line: str, this: Comparable) -> None:
    gate = parse_gate(expression)
    assert judge_gate(gate, worse(this, gate.subject, value), this).line == line


def test_a_change_within_the_spread_says_so(tmp_path: Path) -> None:
    before = subject(run([400] * 4, [1000, 1100, 1050, 1020]), tmp_path / "a.json")
    after = subject(run([400] * 4, [1010, 1120, 1080, 1090]), tmp_path / "b.json")
    assert said("step_time +1%", after, before).endswith("(1.00 ms to 1.01 ms), within step spread")


def test_amounts_are_compared_per_step(tmp_path: Path) -> None:
    """Twice the steps have twice the launches in the window, and as many per step."""
    before, after = subject(run([400] * 3), tmp_path / "a.json"), subject(run([400] * 6), tmp_path / "b.json")
    assert (before.metric("launches"), after.metric("launches")) == (3, 6)
    assert said("launches +5%", after, before) == "✓ launches unchanged, limit 5% worse (1 to 1 per step)"


def test_findings(this: Comparable) -> None:
    one = replace(
        this,
        findings=(Judged("sync-stall", "medium", "loss.item() once a step"),),
        checks_passed=("fp32-gemm",),
        checks_not_measured=(Judged("input-wait", reason="no Python frames"),),
    )
    assert said("finding:high", one) == "✓ finding:high: none, not measured: input-wait"
    assert said("finding:medium", one) == "✗ finding:medium: sync-stall"
    assert said("finding:low", one) == "✗ finding:low: sync-stall"
    assert said("finding:sync-stall", one) == "✗ finding:sync-stall: loss.item() once a step (medium)"
    assert said("finding:fp32-gemm", one) == "✓ finding:fp32-gemm: none"
    assert said("finding:input-wait", one) == "✗ finding:input-wait could not be judged: no Python frames"
    with pytest.raises(GateError, match="unknown") as caught:
        said("finding:sync-stal", one)
    assert "Did you mean 'finding:sync-stall'?" in str(caught.value)
    nothing = replace(this, findings=(), checks_passed=(), checks_not_measured=())
    assert said("finding:high", nothing) == "✗ finding:high could not be judged: no rule could judge this file"


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("idle_shar > 0.1", "Did you mean 'idle_share'?"),
        ("nonsense_metric > 0.1", "Metrics: blocked_time, blocking_calls"),
        ("step_time > 80", "has no unit; step_time takes: ns, us, µs, ms, s"),
        ("step_time > 80 GiB", "has the unit 'GiB'"),
        ("idle_share > 10 ms", "idle_share takes: none, %"),
        ("launches > 5%", "launches takes: none"),
        ("step_time +5pp", "step_time takes: %, ns"),
        ("step_time -5%", "would fail on an improvement"),
        ("step_time == 5 ms", "cannot be read"),
        ("idle_share", "cannot be read"),
        ("", "cannot be read"),
        ("finding:", "cannot be read"),
        ("__import__('os') > 1", "cannot be read"),
        ("idle_share > 1e3", "cannot be read"),
    ],
)
def test_refused(expression: str, message: str) -> None:
    with pytest.raises(GateError) as caught:
        parse_gate(expression)
    assert message in str(caught.value)
    assert caught.value.hint


def test_the_list_of_metrics_is_complete(tmp_path: Path) -> None:
    metrics = golden_report(SAMPLES[-1]).metrics
    assert {name: (m.unit, m.better) for name, m in metrics.items()} == {
        n: (m.unit, m.better) for n, m in METRICS.items()
    }
    for name, metric in METRICS.items():
        unit = {"ns": "ms", "bytes": "GiB", "share": "%", "count": ""}[metric.unit]
        assert parse_gate(f"{name} > 1{unit}").subject == name


def test_gates_come_last_in_every_format(tmp_path: Path) -> None:
    made = report(run([400, 410, 420]), tmp_path / "t.json")
    judged = judged_report(made, None, (parse_gate("idle_share > 10%"), parse_gate("step_time > 1 s")), top=10)
    assert judged.failed
    assert judged.gates[0] == GateResult("idle_share > 10%", "failed", "idle_share 49.2% > 10%")
    terminal = render(judged, "terminal").splitlines()
    assert terminal[-2].split(maxsplit=1) == ["Gates", "✗ idle_share 49.2% > 10%"]
    assert terminal[-1].strip() == "✓ step_time 0.001 s <= 1 s"
    markdown = render(judged, "md")
    assert "### Gates\n\n- ✗ idle_share 49.2% &gt; 10%\n" in markdown
    from analyze.report.to_markdown import render as to_markdown

    assert "✗ idle" in to_markdown(judged.page, budget=500), "no budget drops a gate"
    assert judged_report(made, None, (), top=10).as_json() == made.as_json()


def test_junit_is_xml_whatever_names_hold(tmp_path: Path) -> None:
    made = report(run([400, 410, 420], gpu=NASTY), tmp_path / "t.json")
    made = replace(made, trace=replace(made.trace, name=NASTY + "\x00]]>"))
    results = (
        GateResult("idle_share > 1%", "failed", NASTY), GateResult("a", "passed", "b"),
        GateResult("memory_peak > 1 GiB", "not-judged", "not measured"),
    )  # fmt: skip
    judged = JudgedReport(made, None, results, made.page)
    (suite,) = ET.fromstring(junit(judged))
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "1", "1")
    failed, passed, unjudged = suite
    assert "<script>" in str(failed[0].get("message")), "as text, escaped"
    assert (failed[0].tag, len(passed), unjudged[0].tag) == ("failure", 0, "error")
    assert "\x1b" not in junit(judged)
    assert len(ET.fromstring(junit(judged_report(made, None, (), top=10)))[0]) == 0


def test_without_a_device_nothing_passes_in_silence(tmp_path: Path) -> None:
    from tests.builder import TraceBuilder

    path = TraceBuilder().step(0, 0, 50).op("aten::mm", 5, 20).write(tmp_path / "cpu.json")
    judged = judged_report(build_report(Trace.load(path)), None, (parse_gate("idle_share > 10%"),), top=10)
    assert judged.failed
    assert judged.gates[0].outcome == "not-judged"


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("idle_share > 10", "compares a share, which is 1 at most, with 10"),
        ("category:gemm share < 40", "Write 'category:gemm share < 40%'"),
        ("idle_share > 1.01", "Write 'idle_share > 1.01%'"),
        ("category:gem share < 40%", "Did you mean 'gemm'?"),
        ("kernel:x sum > 5", "takes: ns, us"),
        ("kernel:x sum +5%", "cannot be read"),
        ("kernel:x median > 5 ms", "cannot be read"),
    ],
)
def test_gates_that_would_say_something_else_are_refused(expression: str, words: str) -> None:
    with pytest.raises(GateError) as caught:
        parse_gate(expression)
    assert words in str(caught.value)


def test_a_share_of_one_needs_no_percent(this: Comparable) -> None:
    assert said("idle_share >= 1", this) == "✓ idle_share 0.492 < 1"
