"""The stacks of a trace as one tree: each node is a call at its place, with the host time and device time of it."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from msgspec import Struct

from analyze.arrays import Int64
from analyze.report.html.columns import Names
from analyze.timeline.attribution import Attribution
from analyze.timeline.calls import FRAME, KINDS
from analyze.timeline.frames import LIBRARY, short_frame
from analyze.trace.nesting import NO_ROW

MODULE, LIBRARY_FRAME = 4, 5  # Python frames that are an nn.Module's, or a library's; the rest is as in `CallTree`
_MODULE_PREFIX = "nn.Module: "
_NODES = 30_000


class StackTree(Struct, frozen=True):
    """Nodes in an order in which callers come first.

    Attributes:
        parent: node of the caller, -1 at the top.
        name: number of the name.
        kind: op, range, API call, Python frame, module, Python frame of a library: 0 to 5.
        calls: how many calls the node stands for.
        host_ns: their own time on the host, without the calls in them.
        device_ns: time of the activities that they launched themselves.
        node: the node of each call of the tree, -1 for none.
        left_out: nodes that were folded into their callers to keep the page small.
    """

    parent: Int64
    name: Int64
    kind: Int64
    calls: Int64
    host_ns: Int64
    device_ns: Int64
    node: Int64
    left_out: int


def build_stacks(found: Attribution, names: Names) -> StackTree:
    """The stacks of all calls; calls of the backward engine stand below the op of the forward pass that asked for them.

    Args:
        found: the calls, and the activities that they launched.
        names: gets the names of the calls.
    """
    tree = found.tree
    up = np.where(tree.counted, found.around, tree.survivor)
    level, node = _levels(up), np.full(len(tree), NO_ROW, np.int64)
    physical = tree.calls["name"].to_physical().to_numpy().astype(np.int64)
    width = int(physical.max(initial=0)) + 1
    parents, firsts = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    nodes = 0
    for at in _by_level(np.where(tree.counted, level, NO_ROW)):
        above = np.where(up[at] == NO_ROW, NO_ROW, node[np.maximum(up[at], 0)])
        key = ((above + 1) * width + physical[at]) * len(KINDS) + tree.kind[at]
        _, first, ranked = np.unique(key, return_index=True, return_inverse=True)
        node[at] = nodes + ranked
        parents.append(above[first])
        firsts.append(at[first])
        nodes += len(first)
    node = np.where(tree.counted, node, node[np.maximum(tree.survivor, 0)]) if len(tree) else node
    first = np.concatenate(firsts)
    own = np.maximum(tree.dur_ns - tree.children_sum(tree.dur_ns), 0)
    counted = np.flatnonzero(tree.counted)
    name, kind = _named(tree.calls["name"].gather(first).to_list(), tree.kind[first], names)
    stacks = StackTree(
        parent=np.concatenate(parents),
        name=name,
        kind=kind,
        calls=_summed(node[counted], np.ones(len(counted), np.int64), nodes),
        host_ns=_summed(node[counted], own[counted], nodes),
        device_ns=_summed(node[counted], found.device_ns[counted], nodes),
        node=node,
        left_out=0,
    )
    return _pruned(stacks)


def _levels(up: Int64) -> Int64:
    """How many calls are above each one, by pointers to the next one above."""
    n = len(up)
    jump = np.append(np.where(up >= 0, up, n), n)
    level = np.append((up >= 0).astype(np.int64), 0)
    while (jump[:n] != n).any():
        level += level[jump]
        jump = jump[jump]
    return level[:n]


def _by_level(level: Int64) -> list[Int64]:
    """The calls of each level from 0 on."""
    order = np.argsort(level, kind="stable")
    edges = np.searchsorted(level[order], np.arange(int(level.max(initial=NO_ROW)) + 2))
    return [order[low:high] for low, high in pairwise(edges)]


def _summed(node: Int64, amount: Int64, nodes: int) -> Int64:
    found = np.zeros(nodes, np.int64)
    np.add.at(found, node, amount)
    return found


def _named(texts: list[str], kind: Int64, names: Names) -> tuple[Int64, Int64]:
    """Numbers of the names, paths cut to their last parts; and the kinds, with modules apart from other frames."""
    is_module = np.array([text.startswith(_MODULE_PREFIX) for text in texts], dtype=bool) & (kind == FRAME)
    shown = [
        text.removeprefix(_MODULE_PREFIX) if module else short_frame(text) if one == FRAME else text
        for text, one, module in zip(texts, kind.tolist(), is_module.tolist(), strict=True)
    ]
    is_library = np.array([LIBRARY.search(text) is not None for text in texts], dtype=bool) & (kind == FRAME)
    kinds = np.where(is_module, MODULE, np.where(is_library, LIBRARY_FRAME, kind))
    return np.array(names.numbers(shown), np.int64), kinds


def _pruned(stacks: StackTree) -> StackTree:
    """The stacks with at most `_NODES` nodes: those with least time are folded into their callers."""
    count = len(stacks.parent)
    if count <= _NODES:
        return stacks
    weight = stacks.host_ns + stacks.device_ns
    for at in range(count - 1, -1, -1):  # callers come first
        if stacks.parent[at] >= 0:
            weight[stacks.parent[at]] += weight[at]
    keep = np.zeros(count, bool)
    keep[np.argsort(-weight, kind="stable")[:_NODES]] = True
    target = np.arange(count)
    for at in range(count):  # a caller has at least the time of what it calls, but for ties
        above = stacks.parent[at]
        if not keep[at] or (above >= 0 and target[above] != above):
            keep[at], target[at] = False, target[above] if above >= 0 else NO_ROW
    new = np.append(np.where(keep, np.cumsum(keep) - 1, NO_ROW), NO_ROW)
    moved = new[np.append(target, NO_ROW)]

    def folded(amount: Int64) -> Int64:
        inside = moved[:count] >= 0
        return _summed(moved[:count][inside], amount[inside], int(keep.sum()))

    return StackTree(
        new[stacks.parent[keep]],
        stacks.name[keep],
        stacks.kind[keep],
        folded(stacks.calls),
        folded(stacks.host_ns),
        folded(stacks.device_ns),
        moved[stacks.node],
        count - int(keep.sum()),
    )
