"""What to change where a compiler or graphs are at work already: what they leave out, and why that may be."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from analyze.findings.finding import Finding, Outcome, Passed
from analyze.findings.rule import Case, Cost, Rule
from analyze.findings.words import culprit

if TYPE_CHECKING:
    from analyze.metrics.whatif.dispatch import Dispatch

_WORTH = 0.1  # of the work in question: below it what is left eager explains little
_ALL = 0.9
_WHY = "not compiled, a graph break or a dynamic shape: TORCH_LOGS=graph_breaks,recompiles says which"

_ONE_BY_ONE = (
    'compiled already, but launched one by one: mode="reduce-overhead", TORCH_LOGS=cudagraphs says what hinders graphs'
)


def launch_change(fix: str, dispatch: Dispatch | None) -> str:
    """The change where the device waits for launches.

    Args:
        fix: where nothing is compiled or in a graph.
        dispatch: how the work came that the device waited for.
    """
    if dispatch is None or not (dispatch.in_graphs or dispatch.is_compiled):
        return _of_the_rest(fix, dispatch)
    left = _left(dispatch)
    if not dispatch.in_graphs:
        graphs = _ONE_BY_ONE
        return f"{graphs}; left eager: {left} ({_WHY})" if left else graphs
    if not left:
        return "graphs launch it already: a larger batch, or fewer and larger graphs"
    why = _WHY if dispatch.compiled else "a dynamic shape or a value that the host reads keeps work out"
    return f"graphs launch part of it already; outside them: {left} ({why})"


def fusing_change(fix: str, dispatch: Dispatch | None) -> str:
    """The change where kernels could be one.

    Args:
        fix: where nothing is compiled or in a graph.
        dispatch: how these kernels came.
    """
    if dispatch is None or not (dispatch.in_graphs or dispatch.is_compiled):
        return _of_the_rest(fix, dispatch)
    left, library = _left(dispatch), ", ".join(dict.fromkeys(map(_function, dispatch.library)))
    if dispatch.is_compiled:
        parts = [f"library kernels between its own: {library}"] if library else []
        parts += [f"left eager: {left} ({_WHY})"] if left else []
        return "; ".join(("Inductor compiled part of it already", *parts))
    inside = f"fuse what the graph captures, before it does: {library}"
    return f"{inside}; outside it: {left}" if left else inside


def all_compiled(dispatch: Dispatch | None) -> bool:
    """Whether Inductor made nearly all of it: what it left apart, it could not join."""
    return dispatch is not None and dispatch.compiled >= _ALL


def unless_compiled(case: Case, rule: Rule, finding: Callable[[Case, Cost], Finding]) -> Outcome:
    """The finding on kernels that a compiler would fuse, unless Inductor made nearly all of them.

    Args:
        case: the case.
        rule: the rule.
        finding: makes the finding of a cost.
    """
    cost = case.cost(rule)
    if not isinstance(cost, Cost):
        return cost
    if all_compiled(cost.scenario.dispatch):
        return Passed(rule.id, "Inductor made these kernels, and kept them apart")
    return finding(case, cost)


def _of_the_rest(fix: str, dispatch: Dispatch | None) -> str:
    """The plain change, with what it is about where other work is compiled already."""
    left = _left(dispatch) if dispatch else ""
    return f"{fix}, for what is left eager: {left}" if left else fix


def _left(dispatch: Dispatch) -> str:
    return ", ".join(map(culprit, dispatch.eager)) if dispatch.rest >= _WORTH else ""


def _function(kernel: str) -> str:
    """A kernel's function without its namespaces."""
    word = culprit(kernel.replace("(anonymous namespace)::", ""), longest=200)
    return culprit(word.rpartition("::")[2] or word)
