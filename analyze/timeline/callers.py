"""The names around calls that say what they are for: ops, ranges and modules, innermost first."""

from __future__ import annotations

import re

import numpy as np
import polars as pl
from msgspec import Struct

from analyze.arrays import Int64
from analyze.timeline.calls import FRAME, OP, RANGE, CallTree
from analyze.trace import matching
from analyze.trace.nesting import NO_ROW

MODULE_PREFIX, MODULE = "nn.Module: ", r"^nn\.Module: "
_INSTANCE = re.compile(r"_\d+$")

Names = tuple[str, ...]


class Chains(Struct, frozen=True):
    """The names at and around some calls, many of which have the same.

    Attributes:
        number: per call its position in `names`.
        names: distinct chains, innermost name first, modules without their number.
    """

    number: Int64
    names: tuple[Names, ...]


def chains(tree: CallTree, calls: Int64, around: Int64) -> Chains:
    """The chains of ops and ranges.

    Args:
        tree: the calls.
        calls: of them, those that are asked about; `NO_ROW` is no call and has the empty chain, number 0.
        around: per call of the tree what stands around it: its caller, or more.

    Calls at one depth are numbered at once: two have the same chain when they have the same name and what is around
    them has the same chain.
    """
    above = _speaking_above(tree, around)
    members = _with_all_around(above, calls[calls != NO_ROW])
    parent = np.append(np.searchsorted(members, above[members]), NO_ROW)[:-1]
    parent[above[members] == NO_ROW] = NO_ROW
    depth = _depth(parent)
    word, words = _words(tree, members)
    number, known = np.zeros(len(members) + 1, dtype=np.int64), [Names()]
    for level in range(int(depth.max(initial=-1)) + 1):
        rows = np.flatnonzero(depth == level)
        outer = np.where(parent[rows] == NO_ROW, 0, number[parent[rows]])
        _, first, position = np.unique(word[rows] * len(known) + outer, return_index=True, return_inverse=True)
        number[rows] = len(known) + position
        known += [(words[word[rows[at]]], *known[outer[at]]) for at in first]
    return Chains(np.where(calls == NO_ROW, 0, number[np.searchsorted(members, calls)]), tuple(known))


def _speaking_above(tree: CallTree, around: Int64) -> Int64:
    """Per call the innermost op, range or module around it, `NO_ROW` at the top."""
    is_module = matching(tree.calls["name"], MODULE).to_numpy()
    speaks = (tree.kind == OP) | (tree.kind == RANGE) | ((tree.kind == FRAME) & is_module)
    above: Int64 = np.append(tree.nearest(speaks, around), NO_ROW)[around]
    return above


def _with_all_around(above: Int64, calls: Int64) -> Int64:
    """Calls and all that is around them, in order."""
    found = np.zeros(len(above), dtype=np.bool_)
    further = np.unique(calls)
    while further.size:
        found[further] = True
        further = np.unique(above[further])
        further = further[further != NO_ROW]
        further = further[~found[further]]
    return np.flatnonzero(found)


def _depth(parent: Int64) -> Int64:
    depth = np.zeros(len(parent), dtype=np.int64)
    at = parent
    while (at != NO_ROW).any():
        depth += at != NO_ROW
        at = np.append(parent, NO_ROW)[at]
    return depth


def _words(tree: CallTree, members: Int64) -> tuple[Int64, list[str]]:
    """The name of each call as a position in a list of them."""
    names = tree.calls["name"].gather(members).cast(pl.String)
    distinct = names.unique(maintain_order=True)
    words = [_INSTANCE.sub("", name) if name.startswith(MODULE_PREFIX) else name for name in distinct]
    codes = {word: code for code, word in enumerate(dict.fromkeys(words))}
    of_name = pl.DataFrame(
        {"name": distinct, "code": [codes[word] for word in words]}, schema_overrides={"code": pl.Int64}
    )
    joined = names.alias("name").to_frame().join(of_name, on="name", how="left", maintain_order="left")
    return joined["code"].to_numpy(), list(codes)
