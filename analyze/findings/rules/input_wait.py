"""Input work, a wait for the loader's workers, or other Python, on the thread that launches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from analyze.findings.finding import Finding
from analyze.findings.rule import Case, Cost, Rule
from analyze.findings.words import culprit, in_steps, is_frame
from analyze.units import duration, percent, plural

if TYPE_CHECKING:
    from analyze.metrics import Gap
    from analyze.metrics.whatif.scenario import Loading

OPTIMIZER_STEP = "Optimizer.step#"  # how the ranges of torch.optim begin
_PARTS = ("host_data_loading_ns", "host_other_ns")


def finding(case: Case, cost: Cost) -> Finding:
    """What would be saved if that work ran elsewhere."""
    loads = cost.scenario is case.measures.savings.scenario("input")
    if loads and cost.scenario.loading:
        return _workers(case, cost, cost.scenario.loading)
    frames = next((g.frame for g in case.measures.gaps if is_frame(g.frame) and _mostly(g) in _PARTS), ())
    named = [frame for frame in frames if not frame.startswith("<")]
    worst = cost.scenario.places[0]
    where = named[0] if named else worst.where
    if not loads and not where:
        return _pause(case, cost)
    who = "DataLoader work" if loads else "Python"
    place = f", in {where}" if where else ""
    under = f" under {named[-1]}" if len(named) > 1 else ""
    observed = (
        f"{who} on the launching thread: {duration(cost.scenario.time_ns)}{place}{under}. "
        f"The GPU idles for {percent(case.share(case.device.idle['host_data_loading_ns']))} of the window inside "
        f"DataLoader work and for {percent(case.share(case.device.idle['host_other_ns']))} outside ops."
    )
    title = f"{who} on the launching thread{': ' + culprit(where) if where else ''}"
    return case.finding(
        RULE, cost, title, observed, change="" if loads else _OPTIMIZER if _steps(where) else _ELSEWHERE
    )


def _steps(where: str) -> bool:
    """Whether a place is an optimizer's step, which cannot move to another thread."""
    return where.startswith(OPTIMIZER_STEP)


def _mostly(gap: Gap) -> str:
    """The part that takes most of a gap."""
    return max(gap.parts, key=lambda part: gap.parts[part])


def _workers(case: Case, cost: Cost, loading: Loading) -> Finding:
    """The thread waits for worker processes: what they do is not in the file, unless another thread pins memory."""
    waited = duration(cost.scenario.time_ns)
    observed = (
        f"The launching thread waits {plural(loading.waits, 'time')} for the DataLoader's workers: {waited}. The GPU "
        f"idles for {percent(case.share(case.device.idle['host_data_loading_ns']))} of the window meanwhile."
    )
    title, change, unless, link = "The DataLoader's workers cannot keep up", _MORE, _LIMITED, RULE.link
    if loading.pinning:
        calls = loading.pinning
        title, change, unless, link = "Input wait: another thread allocates pinned memory", _REUSE, _NEEDED, _PINNED
        observed += (
            f" In these waits {calls.where}, the loader's pin_memory thread by what it does, calls {calls.name} "
            f"{plural(calls.count, 'time')}: {duration(calls.time_ns)}. More workers would not shorten that."
        )
    elif loading.long:
        title, change = "DataLoader workers start late", _KEEP
        observed += (
            f" {plural(loading.long, 'wait')} over ten times the median {'takes' if loading.long == 1 else 'take'} "
            f"{duration(loading.long_ns)} of it, as where an epoch begins and starts its workers anew."
        )
    finding = case.finding(RULE, cost, title, observed, change=change)
    return replace(finding, exceptions=unless, link=link)


def _pause(case: Case, cost: Cost) -> Finding:
    """The thread does nothing that was recorded."""
    scenario, steps = cost.scenario, len(case.measures.steps)
    rare = scenario.count == 1 or scenario.count < steps
    often = "once" if scenario.count == 1 else f"{scenario.count:,} times"
    where = in_steps(scenario.steps, steps)
    observed = (
        f"The launching thread pauses {often} for over 1 ms outside ops: {duration(scenario.time_ns)}{where}. What it "
        "does there is Python, or was not recorded: no Python frame and no range covers it."
    )
    if rare:
        observed += " A pause of single steps can be Python's garbage collector."
    title = f"{'One host pause' if scenario.count == 1 else f'{scenario.count:,} host pauses'} outside ops"
    title += where or ": Python, or unrecorded"
    finding = case.finding(RULE, cost, title, observed, change=_LOOK if rare else _ELSEWHERE_UNKNOWN)
    return replace(finding, exceptions=_OTHERS)


_ELSEWHERE = "move that work to another thread or process, or launch the next step before it"
_OPTIMIZER = "an optimizer with fused=True or foreach=True, which prepares all parameters in a few calls"
_ELSEWHERE_UNKNOWN = "record with_stack=True to see what runs there, and move it off the launching thread"
_LOOK = (
    "record with_stack=True to see what runs there; if it is the garbage collector, gc.freeze() after set-up, "
    "gc.disable(), and gc.collect() every n steps"
)
_OTHERS = "The thread waits for another process or thread: the file does not hold what it waits for."
_MORE = "DataLoader with more num_workers, a higher prefetch_factor, persistent_workers=True"
_KEEP = "DataLoader(persistent_workers=True); if that is set, a higher prefetch_factor"
_LIMITED = "The workers wait themselves, for a disk or a network, or there are as many as CPU cores."
_REUSE = (
    "batches of one size, so that pinned blocks can be used again (pad, drop_last=True), and no references to old "
    "batches; if they must differ, "
    "PYTORCH_CUDA_ALLOC_CONF=pinned_use_cuda_host_register:True,pinned_num_register_threads:8"
)
_NEEDED = "Each batch is larger than all before it, or the recording holds only the first batches."
_PINNED = "https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management"

RULE = Rule(
    id="input-wait",
    question="Does the GPU wait for input or for Python?",
    limit=0.01,
    what=(
        "The thread that launches kernels also loads and prepares data, waits for the workers that do, or runs other "
        "Python for milliseconds."
    ),
    why="It launches nothing meanwhile, and the device runs out of work.",
    fix="DataLoader(num_workers=4, persistent_workers=True)",
    exceptions="The workers cannot keep up: n workers need at least 1/n of this time per step.",
    measured=(
        "Replay with DataLoader work and pauses over 1 ms gone from the launching threads. A pause behind a wait that "
        "costs more by itself is counted with the wait."
    ),
    link="https://docs.pytorch.org/docs/stable/data.html",
    code_before="loader = DataLoader(data)",
    code_after="loader = DataLoader(data, num_workers=4, persistent_workers=True)",
    finding=finding,
    idle=True,
    costs=("input", "python"),
    rivals=("waits", "explicit-waits", "allocations"),
)
