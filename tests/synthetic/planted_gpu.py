"""Causes planted in runs of a simulated GPU, and what the report makes of them: the second, independent suite.

`python -m tests.synthetic.planted_gpu` plants, analyses and prints. The true saving of a cause is the window of the
run less that of the same run without it, with the same draws at every place that both have.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from analyze.findings import Finding
from analyze.report import build_report
from analyze.trace import Trace
from tests.synthetic.gpu_plan import Plan
from tests.synthetic.gpu_programs import Program

NEAR, NEAR_OF_WINDOW = 0.10, 0.01  # how far a saving may be off: of the true one, or of the window
COSTS = 0.02  # of the window: what a planted cause costs at least
ALIKE = 0.9  # causes that cost as much are both right in the first place
RULE_OF = {"python": "input-wait"}
WITHOUT_NUMBER = ("small-batch",)
AFTER = {  # by the rules' own words: what has the first claim on the same idle time
    "sync-stall": ("input-wait", "python"),
    "iteration-sync": ("input-wait", "python"),
    "pageable-copy": ("input-wait", "python"),
    "launch-bound": ("input-wait", "python", "allocator-stall"),
}
KINDS: tuple[tuple[str, ...], ...] = (
    ("input-wait",),
    ("python",),
    ("sync-stall",),
    ("iteration-sync",),
    ("pageable-copy",),
    ("launch-bound",),
    ("allocator-stall",),
    ("exposed-communication",),
    ("fp32-gemm",),
    ("unfused-attention",),
    ("fusible-chain",),
    ("small-kernels",),
    ("small-batch",),
    (),
    ("input-wait", "fp32-gemm"),
    ("python", "fusible-chain"),
    ("sync-stall", "unfused-attention"),
    ("pageable-copy", "fusible-chain"),
    ("allocator-stall", "exposed-communication"),
    ("iteration-sync", "fp32-gemm"),
    ("input-wait", "sync-stall"),
    (),
)


@dataclass(frozen=True)
class Judged:
    """What the report made of one planted run.

    Attributes:
        plan: the run.
        window_ns: its window.
        truth: true saving by planted cause, in nanoseconds.
        printed: printed saving by planted cause; None where none was printed.
        found: ids and severities of the findings, in order.
    """

    plan: Plan
    window_ns: int
    truth: dict[str, int]
    printed: dict[str, int | None]
    found: tuple[tuple[str, str], ...]

    @property
    def first(self) -> bool:
        """The cause that costs most comes first, or one that costs as much; clean: nothing above low."""
        if not self.plan.causes:
            return all(severity == "low" for _, severity in self.found)
        most = max(self.truth.values())
        right = {rule for cause, ns in self.truth.items() if ns >= ALIKE * most for rule in _rules(cause)}
        return bool(self.found) and self.found[0][0] in right

    def stated(self) -> Iterable[str]:
        """Causes whose saving counts."""
        return (cause for cause in self.plan.causes if cause not in WITHOUT_NUMBER)

    def near(self, cause: str, *, strictly: bool = False) -> bool:
        """The printed saving is the true one, within the limits."""
        true, printed = self.truth[cause], self.printed[cause]
        off = abs((printed or 0) - true)
        return off <= NEAR * true or (not strictly and off <= NEAR_OF_WINDOW * self.window_ns)


def truth(plan: Plan, window_ns: int) -> dict[str, int]:
    """What each cause costs, by running the program without it."""
    saved = {}
    for cause in plan.causes:
        before = frozenset(other for other in AFTER.get(cause, ()) if other in plan.causes and other != cause)
        base = Program(plan, before).run().window_ns if before else window_ns
        saved[cause] = base - Program(plan, before | {cause}).run().window_ns
    return saved


def settled(plan: Plan) -> Plan:
    """The plan with amounts large enough that each cause costs something worth telling."""
    for _ in range(6):
        window = Program(plan).run().window_ns
        cheap = [c for c, ns in truth(plan, window).items() if ns < COSTS * window and c not in WITHOUT_NUMBER]
        for cause in cheap:
            plan = plan.more(cause)
        if not cheap:
            break
    return plan


def judge(plan: Plan, path: Path) -> Judged:
    """Plant, analyse, and compare with the repaired runs."""
    plan = settled(plan)
    program = Program(plan)
    machine = program.run()
    machine.rows.write(path, program.main.now)
    findings = build_report(Trace.load(path)).diagnosis.findings
    by_id = {finding.id: finding for finding in findings}
    printed = {cause: _saving([by_id[rule] for rule in _rules(cause) if rule in by_id]) for cause in plan.causes}
    found = tuple((finding.id, finding.severity) for finding in findings)
    return Judged(plan, machine.window_ns, truth(plan, machine.window_ns), printed, found)


def _rules(cause: str) -> tuple[str, ...]:
    """The rules that share a cause: products in fp32 are GEMMs and convolutions."""
    return ("fp32-gemm", "fp32-convolution") if cause == "fp32-gemm" else (RULE_OF.get(cause, cause),)


def _saving(findings: list[Finding]) -> int | None:
    stated = [finding.saving.ns for finding in findings if finding.saving]
    return sum(stated) if stated else None


def draw(runs: int, seed: int) -> list[Plan]:
    """So many runs, all kinds in turn."""
    r = random.Random(seed)
    return [Plan(r.randrange(10**9), KINDS[i % len(KINDS)]) for i in range(runs)]


def line(number: int, judged: Judged) -> str:
    """One row of the table for each planted cause."""
    ms = 1e6
    mark = "right" if judged.first else "WRONG"
    first = judged.found[0][0] if judged.found else "none"
    head = f"{number:>3} {judged.plan.seed:>9} {judged.plan.family:<12} {'+'.join(judged.plan.causes) or 'clean':<38}"
    out = [f"{head} {first} ({mark})" + ("" if judged.plan.causes else f"  {judged.found}")]
    for cause in judged.stated():
        true, printed = judged.truth[cause], judged.printed[cause]
        said = "nothing" if printed is None else f"{printed / ms:.3f} ms"
        near = "" if judged.near(cause, strictly=True) else " (of window)" if judged.near(cause) else " OFF"
        share = 100 * true / judged.window_ns
        out.append(f"{'':>15}{cause}: printed {said}, true {true / ms:.3f} ms ({share:.1f}% of window){near}")
    return "\n".join(out)


def summary(judged: list[Judged]) -> tuple[float, float, int]:
    """Share of planted runs with the first cause right, share of savings near the true ones, alarms on clean runs."""
    planted = [j for j in judged if j.plan.causes]
    stated = [(j, cause) for j in planted for cause in j.stated()]
    first = sum(j.first for j in planted) / max(len(planted), 1)
    near = sum(j.near(cause) for j, cause in stated) / max(len(stated), 1)
    return first, near, sum(not j.first for j in judged if not j.plan.causes)


@click.command()
@click.option("--runs", default=66, show_default=True, help="Runs, all kinds in turn.")
@click.option("--seed", type=int, help="Repeat these draws; anew by default.")
@click.option("--keep", type=click.Path(path_type=Path), help="Folder for the traces; thrown away by default.")
@click.option("--cause", "only", default="", help="Only kinds that hold this cause.")
def main(runs: int, seed: int | None, keep: Path | None, only: str) -> None:
    """Plant causes, and print what was found and how near its saving is to the true one."""
    seed = random.randrange(10**6) if seed is None else seed
    judged: list[Judged] = []
    with TemporaryDirectory() as thrown_away:
        for number, plan in enumerate(draw(runs, seed)):
            if only and only not in plan.causes:
                continue
            folder = keep or Path(thrown_away)
            judged.append(judge(plan, folder / (f"{seed}-{number}.json" if keep else "trace.json")))
            print(line(number, judged[-1]), flush=True)
    first, near, alarms = summary(judged)
    strict = [j.near(c, strictly=True) for j in judged for c in j.stated()]
    print(
        f"seed {seed}: first cause right in {100 * first:.1f}%; savings within 10% or 1% of the window in "
        f"{100 * near:.1f}% (within 10%: {100 * sum(strict) / max(len(strict), 1):.1f}%); "
        f"clean runs with a finding above low: {alarms}"
    )
    sys.exit(0 if first >= 0.95 and near >= 0.95 and not alarms else 1)


if __name__ == "__main__":
    main()
