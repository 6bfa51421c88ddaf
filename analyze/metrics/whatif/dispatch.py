"""What a compiler made or a graph launched of some work, and what of it is left eager."""

from __future__ import annotations

import re

import polars as pl
from msgspec import Struct

from analyze.timeline.attribution import Attribution, once
from analyze.timeline.callers import MODULE_PREFIX, chains
from analyze.trace import Trace, matching
from analyze.trace.nesting import NO_ROW

_ALREADY = 0.1  # of the work in question: above it a compiler or a graph is at work there
_NAMED = 3
# Inductor's own kernels, and the calls around all that its code launches, library kernels too.
_INDUCTOR, REGION = r"^triton_(?:poi|red|per|tem|for|mm|bmm|flex|unk)_", r"CompiledFxGraph|Torch-Compiled Region"
_GRAPH_LAUNCH = r"GraphLaunch"


class Dispatch(Struct, frozen=True):
    """How some work came to the device, in a run of which something is compiled or launched by graphs.

    Attributes:
        graph: share of it that a graph launched, 0..1.
        compiled: share that Inductor's code launched, in a graph or not, 0..1.
        rest: share that is neither.
        eager: what launched most of the rest, most first: modules that hold nothing compiled, else ops.
        library: kernels, most first, that graphs hold and Inductor did not make.
    """

    graph: float
    compiled: float
    rest: float
    eager: tuple[str, ...]
    library: tuple[str, ...]

    @property
    def in_graphs(self) -> bool:
        """Graphs launch part of it already."""
        return self.graph >= _ALREADY

    @property
    def is_compiled(self) -> bool:
        """Inductor compiled part of it already."""
        return self.compiled >= _ALREADY


def dispatch_of(trace: Trace, found: Attribution, at: pl.Series, weight: pl.Series) -> Dispatch | None:
    """How some activities came to the device; None where nothing of the run is compiled or in a graph.

    Args:
        trace: the trace.
        found: its activities.
        at: `at` of those in question.
        weight: what each of them counts.
    """
    everything, total = dispatched(trace, found), int(weight.sum())
    if everything is None or total <= 0:
        return None
    asked = pl.DataFrame({"at": at, "weight": weight}).group_by("at").agg(pl.col("weight").sum())
    rows = everything.join(asked, on="at", how="inner")
    rest = rows.filter(~pl.col("graph") & ~pl.col("compiled"))
    return Dispatch(
        graph=int(rows.filter("graph")["weight"].sum()) / total,
        compiled=int(rows.filter("compiled")["weight"].sum()) / total,
        rest=int(rest["weight"].sum()) / total,
        eager=_most(rest, "by"),
        library=_most(rows.filter(pl.col("graph") & ~pl.col("compiled")), "kernel"),
    )


def _most(rows: pl.DataFrame, column: str) -> tuple[str, ...]:
    names = rows.group_by(column).agg(pl.col("weight").sum()).sort("weight", column, descending=[True, False])
    return tuple(names[column].head(_NAMED))


@once
def dispatched(trace: Trace, found: Attribution) -> pl.DataFrame | None:
    """Per activity `at`, `graph` and `compiled` (flags), `by` (what launched it), `kernel`; None where all is eager."""
    work = found.work
    own = matching(work["name"], _INDUCTOR).fill_null(value=False)
    graph = _by_graph(trace, work)
    if not (own.any() or graph.any() or matching(found.tree.calls["name"], REGION).any()):
        return None
    around = chains(found.tree, work["call"].fill_null(NO_ROW).to_numpy(), found.around)
    launchers = pl.DataFrame([_launcher(names) for names in around.names], schema=_LAUNCHER, orient="row")
    by = launchers[around.number]
    rows = by.with_columns(at=work["at"], graph=graph, compiled=own | by["inside"], kernel=work["name"].cast(pl.String))
    compiled = rows.filter("compiled")["module"].unique().drop_nulls()
    apart = pl.when(~pl.col("module").is_in(compiled.implode())).then("module")
    return rows.select("at", "graph", "compiled", "kernel", by=pl.coalesce(apart, "op", "kernel"))


_LAUNCHER = {"inside": pl.Boolean, "module": pl.String, "op": pl.String}


def _launcher(names: tuple[str, ...]) -> tuple[bool, str | None, str | None]:
    """Whether the calls around lie in Inductor's code, the outermost module, and the innermost op or range."""
    modules = [name.removeprefix(MODULE_PREFIX) for name in names if name.startswith(MODULE_PREFIX)]
    inside = any(re.search(REGION, name) for name in names)
    return inside, modules[-1] if modules else None, names[0] if names else None


def _by_graph(trace: Trace, work: pl.DataFrame) -> pl.Series:
    """Whether a graph launched each activity."""
    launches = matching(trace.runtime["name"], _GRAPH_LAUNCH).arg_true()
    return work["launch"].is_in(launches.implode()).fill_null(value=False)
