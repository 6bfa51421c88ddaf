"""Every rule: listed, documented, silent just below its limit, heard at it, and readable whatever the figures are."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

import analyze.findings.rules as folder
from analyze.findings import RULES, SEVERITIES, Finding, Passed, Rule, Unmeasured
from analyze.findings.diagnosis import diagnose
from analyze.findings.rule import Case, severity
from analyze.metrics import Measures
from analyze.metrics.whatif.savings import BUILDERS, ShrunkGap
from analyze.metrics.whatif.scenario import Place, Scenario
from analyze.settings import Definitions
from analyze.timeline import Change, Scope
from analyze.trace import Trace
from analyze.trace.recorded import read_recorded
from tests.builder import TraceBuilder

WINDOW = 1_000_000_000
HOSTILE = "evil |`<script>alert(1)</script>` [x](y) name with many words in it, and more" + "x" * 500
REPLAYED = [rule for rule in RULES if rule.costs]
MANY = r"(?:calls|copies|kernels|chains|casts|collectives|launches|synchronisations)\b"
ONE = r"(?:call|copy|kernel|chain|cast|collective|launch|synchronisation)"
SENTENCES = ("what", "why", "exceptions", "measured")


@dataclass
class Replays:
    """Stands for `Savings`: what is saved is what the test says."""

    scenarios: dict[str, Scenario]
    saved: int
    deviation: float = 0.0

    def scenario(self, name: str) -> Scenario | None:
        return self.scenarios.get(name)

    def most_ns(self, *names: str) -> int:
        return 10**15

    def busy_ns(self, *names: str) -> int:
        return 10**15

    def saved_ns(self, *names: str, after: tuple[str, ...] = ()) -> int:
        return self.saved

    def gaps(self, *names: str) -> tuple[ShrunkGap, ...]:
        return (ShrunkGap(5, 1_000, 999, HOSTILE),)

    def places(self, *names: str) -> tuple[Place, ...]:
        return ()


@pytest.fixture(scope="module")
def measures(tmp_path_factory: pytest.TempPathFactory) -> Measures:
    """Of a trace with one kernel; the device is given a window of a second, half of it idle."""
    path = tmp_path_factory.mktemp("rules") / "trace.json"
    builder = TraceBuilder().op("aten::mul", 0, 9).api("cudaLaunchKernel", 1, 5, correlation=1)
    found = Measures(Trace.load(builder.kernel("k", 10, 5, correlation=1).write(path)), Definitions(), Scope())
    (device,) = found.devices
    wide = replace(device, window_ns=WINDOW, idle_ns=WINDOW // 2, busy_ns=WINDOW // 2)
    parts = {**device.idle, "host_other_ns": WINDOW // 2}
    wide = replace(wide, computation_ns=WINDOW // 2, idle=parts)
    return found.given(devices=(wide,))


def scenario(count: int = 3, time_ns: int = 7, name: str = "cudaThing", note: str = "a note") -> Scenario:
    return Scenario(Change(), count, time_ns, (Place(name, name, count, time_ns, 11),), note)


def case(measures: Measures, rule: Rule, saved: int, doubt: str = "", **shape: object) -> Case:
    made = scenario(**shape)  # type: ignore[arg-type]
    recorded = read_recorded({"precision": "tf32"})
    replays = Replays(dict.fromkeys(rule.costs, made), saved)
    audit = replace(measures.precision, asked="tf32")
    found = measures.given(savings=replays, recorded=recorded, precision=audit)  # type: ignore[arg-type]
    return Case(found, found.devices[0], doubt, {})


def test_the_tuple_holds_every_file_and_every_what_if_is_used() -> None:
    files = {path.stem for path in Path(folder.__file__).parent.glob("*.py")} - {"__init__"}
    assert {rule.id.replace("-", "_") for rule in RULES} == files
    assert len({rule.id for rule in RULES}) == len(RULES) >= 20
    assert {name for rule in RULES for name in rule.costs} == set(BUILDERS)
    assert {name for rule in RULES for name in rule.after} <= set(BUILDERS)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_every_rule_is_documented(rule: Rule) -> None:
    assert rule.question.endswith("?")
    for field in SENTENCES:
        text = getattr(rule, field)
        assert text[0].isupper() or text[0] == "`"
        assert text.endswith("."), (field, text)
        assert all(len(sentence.split()) <= 30 for sentence in text.split(". ")), (field, text)
    assert rule.fix
    assert rule.link.startswith(("https://docs.pytorch.org/", "https://docs.nvidia.com/"))
    assert (rule.finding is None) != (rule.check is None)
    assert "could try" not in rule.fix


@pytest.mark.parametrize("rule", REPLAYED, ids=lambda rule: rule.id)
def test_just_below_the_limit_nothing_is_said_and_at_it_the_finding_is_made(measures: Measures, rule: Rule) -> None:
    assert rule.limit is not None
    at = round(rule.limit * WINDOW)
    below = rule.judge(case(measures, rule, at - 1))
    assert isinstance(below, Passed), below
    finding = rule.judge(case(measures, rule, at))
    assert isinstance(finding, Finding)
    assert finding.id == rule.id
    assert finding.saving is not None
    assert (finding.saving.ns, finding.saving.share) == (at, rule.limit)
    assert finding.severity == "low"
    stricter = rule.judge(replace(case(measures, rule, at), limits={rule.id: 2 * rule.limit}))
    assert isinstance(stricter, Passed)


@pytest.mark.parametrize(("share", "level"), [(0.0999, "medium"), (0.10, "high"), (0.0299, "low"), (0.03, "medium")])
def test_severity_is_by_the_share_of_the_window_only(share: float, level: str) -> None:
    assert severity(share) == level


@pytest.mark.parametrize("rule", REPLAYED, ids=lambda rule: rule.id)
@pytest.mark.parametrize(("count", "time_ns"), [(1, 0), (1, 1), (2, 1_000), (10**7, 10**12)])
@pytest.mark.parametrize("name", ["cudaStreamSynchronize", HOSTILE, "", "train.py(88): step"])
def test_texts_with_0_1_and_huge_values(measures: Measures, rule: Rule, count: int, time_ns: int, name: str) -> None:
    outcome = rule.judge(case(measures, rule, WINDOW // 4, count=count, time_ns=time_ns, name=name))
    assert isinstance(outcome, Finding)
    assert 1 <= len(outcome.title.split()) <= 8, outcome.title
    assert len(outcome.title) <= 80
    assert outcome.observed.endswith(".")
    plain = outcome.observed.replace(HOSTILE, "")
    assert not re.search(r"(?<![\d.,])1 (?:\w+ )?(?:\w+ )?" + MANY, plain), plain
    assert not re.search(r"(?:[02-9]|\d\d|,\d{3}) (?:blocking |explicit |dropout )?" + ONE + r"\b(?!s)", plain), plain
    for number in re.findall(r"(?<![\w.])\d[\d,.]*\d(?= |$)", plain):
        assert re.search(re.escape(number) + r" (?:ns|µs|ms|s|of|[A-Za-z])", plain), (number, plain)
    assert outcome.change
    assert outcome.saving is not None
    assert outcome.saving.basis == rule.measured


@pytest.mark.parametrize("rule", REPLAYED, ids=lambda rule: rule.id)
def test_without_its_cost_a_rule_passes_or_says_what_is_missing(measures: Measures, rule: Rule) -> None:
    bare = measures.given(savings=Replays({}, 0))  # type: ignore[arg-type]
    outcome = rule.judge(Case(bare, bare.devices[0], "", {}))
    assert isinstance(outcome, Passed | Unmeasured)
    assert outcome.reason


IDLE = ("input-wait", "sync-stall", "iteration-sync", "launch-bound", "pageable-copy", "allocator-stall", "warm-up")


@pytest.mark.parametrize("name", IDLE)
def test_idle_time_is_not_judged_where_the_records_are_in_doubt(measures: Measures, name: str) -> None:
    rule = next(rule for rule in RULES if rule.id == name)
    outcome = rule.judge(case(measures, rule, WINDOW // 4, doubt="Device records incomplete."))
    assert outcome == Unmeasured(name, "Device records incomplete.")


@pytest.mark.parametrize("name", IDLE)
def test_ending_idle_time_saves_no_more_than_there_is(measures: Measures, name: str) -> None:
    rule = next(rule for rule in RULES if rule.id == name)
    outcome = rule.judge(case(measures, rule, WINDOW))
    assert isinstance(outcome, Finding)
    assert outcome.saving is not None
    assert outcome.saving.ns == WINDOW // 2


@pytest.mark.parametrize(
    ("deviation", "said", "stated"), [(0.009, False, True), (0.02, True, True), (0.06, True, False)]
)
def test_deviation_of_the_replay(measures: Measures, deviation: float, said: bool, stated: bool) -> None:
    rule = next(rule for rule in RULES if rule.id == "fusible-chain")
    made = case(measures, rule, WINDOW // 4)
    made.measures.savings.deviation = deviation  # type: ignore[misc]
    outcome = rule.judge(made)
    if stated:
        assert isinstance(outcome, Finding)
        assert outcome.saving is not None
        assert ("2.0%" in outcome.saving.basis) is said
    else:
        assert isinstance(outcome, Unmeasured)
        assert "6.0%" in outcome.reason


def by_id(name: str) -> Rule:
    return next(rule for rule in RULES if rule.id == name)


def judged(measures: Measures, name: str) -> object:
    bare = measures.given(savings=Replays({}, 0))  # type: ignore[arg-type]
    return by_id(name).judge(Case(bare, bare.devices[0], "", {}))


@pytest.mark.parametrize(("underfilled", "kind"), [(499, Passed), (500, Finding), (0, Passed)])
def test_small_batch(measures: Measures, underfilled: int, kind: type) -> None:
    symptoms = replace(measures.symptoms, kernel_ns=1_000, underfilled_ns=underfilled)
    assert isinstance(judged(measures.given(symptoms=symptoms), "small-batch"), kind)
    unknown = replace(measures.symptoms, kernel_ns=0)
    assert isinstance(judged(measures.given(symptoms=unknown), "small-batch"), Unmeasured)


@pytest.mark.parametrize(("reserved", "kind"), [(89, Passed), (90, Finding), (100, Finding)])
def test_memory_headroom(measures: Measures, reserved: int, kind: type) -> None:
    use = SimpleNamespace(device_type=1, reserved_peak_bytes=reserved)
    full = measures.given(
        symptoms=replace(measures.symptoms, memory_bytes=100),
        memory=replace(measures.memory, devices=(use,)),
    )
    assert isinstance(judged(full, "memory-headroom"), kind)
    assert isinstance(judged(measures, "memory-headroom"), Unmeasured)


def test_clocks(measures: Measures) -> None:
    for reasons, kind in ([], Passed), (["power cap"], Finding):
        recorded = read_recorded({"gpu_state": {"unstable": reasons}})
        assert isinstance(judged(measures.given(recorded=recorded), "clocks"), kind)
    assert isinstance(judged(measures.given(recorded=None), "clocks"), Unmeasured)


@pytest.mark.parametrize(("wall", "kind"), [(1_099, Passed), (1_100, Finding)])
def test_profiler_stretch(measures: Measures, wall: int, kind: type) -> None:
    block = {"latency": {"request_p50_ns": 1_000}, "profile": {"profiled_wall_ns": wall, "steps": 1}}
    assert isinstance(judged(measures.given(recorded=read_recorded(block)), "profiler-overhead"), kind)


@pytest.mark.parametrize(
    ("changes", "title"),
    [
        ({"norm_kernels": 1}, "Batch normalization runs in training mode"),
        ({"graph_ops": 2, "ops": 100}, "Autograd graph recorded without backward"),
        ({"graph_ops": 1, "ops": 100}, None),
        ({"graph_ops": 90, "ops": 100, "backward": True}, None),
    ],
)
def test_training_mode_without_dropout(measures: Measures, changes: dict[str, int], title: str | None) -> None:
    symptoms = replace(measures.symptoms, **{"norm_kernels": 0, "graph_ops": 0, "backward": False, **changes})
    outcome = judged(measures.given(symptoms=symptoms), "training-mode")
    assert outcome.title == title if isinstance(outcome, Finding) else title is None
    assert isinstance(outcome, Finding | Passed)


def test_incomplete_records(measures: Measures) -> None:
    found = measures.given(savings=Replays({}, 0))  # type: ignore[arg-type]
    rule = by_id("incomplete-records")
    assert isinstance(rule.judge(Case(found, found.devices[0], "", {})), Passed)
    finding = rule.judge(Case(found, found.devices[0], "The file is cut.", {}))
    assert isinstance(finding, Finding)
    assert (finding.severity, finding.saving) == ("high", None)


def test_findings_are_sorted_by_saving_and_trust_comes_first(measures: Measures) -> None:
    replays = Replays({name: scenario() for name in BUILDERS}, WINDOW // 5)
    found = measures.given(savings=replays)  # type: ignore[arg-type]
    diagnosis = diagnose(found, Definitions(), cut=True)
    assert diagnosis.findings[0].id == "incomplete-records"
    saved = [finding.saving.ns if finding.saving else 0 for finding in diagnosis.findings[1:]]
    assert saved == sorted(saved, reverse=True)
    assert {f.severity for f in diagnosis.findings} <= set(SEVERITIES)
    every = (*diagnosis.findings, *diagnosis.passed, *diagnosis.unmeasured)
    assert sorted(outcome.id for outcome in every) == sorted(rule.id for rule in RULES)


def test_without_a_device_nothing_is_measured(measures: Measures) -> None:
    diagnosis = diagnose(measures.given(devices=()), Definitions(), cut=False)
    assert {outcome.id for outcome in diagnosis.unmeasured} == {rule.id for rule in RULES}
    assert not diagnosis.findings
