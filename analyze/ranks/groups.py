"""Names of groups that mean the same on all ranks (docs/ranks.md)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import polars as pl
from msgspec import Struct

_DIMENSIONS = (
    ("tp", re.compile(r"(?<![a-z])(tp|tensor|tensor_model)(?![a-z])", re.IGNORECASE)),
    ("pp", re.compile(r"(?<![a-z])(pp|pipeline)(?![a-z])", re.IGNORECASE)),
    ("dp", re.compile(r"(?<![a-z])(dp|data|ddp|replicate|fsdp|shard)(?![a-z])", re.IGNORECASE)),
    ("ep", re.compile(r"(?<![a-z])(ep|expert)(?![a-z])", re.IGNORECASE)),
    ("cp", re.compile(r"(?<![a-z])(cp|context|sp|sequence)(?![a-z])", re.IGNORECASE)),
)
_WORLD = "default_pg"


class Group(Struct, frozen=True):
    """A process group, or a stream in place of one.

    Attributes:
        key: the same on all ranks.
        description: what the program calls it, None where not recorded.
        members: its ranks, None where not known.
        dimension: tp, pp, dp, ep, cp, world, or "group of N".
    """

    key: str
    description: str | None
    members: tuple[int, ...] | None
    dimension: str


def dimension_of(description: str | None, size: int | None, world: int | None) -> str:
    """The parallel dimension of a group, from its description in whole words."""
    text = description or ""
    for name, pattern in _DIMENSIONS:
        if pattern.search(text):
            return name
    if _WORLD in text or (size is not None and size == world):
        return "world"
    return f"group of {size}" if size else "unknown group"


def group_keys(groups: Mapping[int, pl.DataFrame], world: int | None) -> tuple[list[Group], dict[tuple[int, int], int]]:
    """The groups of a job, and which of them each rank's groups are.

    Args:
        groups: the groups of each rank, schema `tables.GROUPS`.
        world: number of ranks, None where not known.

    Returns:
        Groups in order of their keys, and by (rank, row of its groups) the position in them.
    """
    streams = _stream_keys({rank: _streams(frame) for rank, frame in groups.items()})
    found: dict[str, Group] = {}
    key_of: dict[tuple[int, int], str] = {}
    for rank, frame in groups.items():
        for number, name, description, size, members, stream in frame.iter_rows():
            if name is None:
                key = streams[rank].get(stream, f"stream {stream} of rank {rank}")
            else:
                key = f"pg {name} {members}" if members is not None else f"pg {name} of {size}"
            key_of[rank, number] = key
            if key not in found or (found[key].description is None and description):
                known = None if name is None or members is None else tuple(members)
                count = len(known) if known else size
                found[key] = Group(key, description, known, dimension_of(description, count, world))
    ordered = sorted(found.values(), key=lambda group: group.key)
    position = {group.key: at for at, group in enumerate(ordered)}
    return ordered, {place: position[key] for place, key in key_of.items()}


def _streams(frame: pl.DataFrame) -> list[int | None]:
    """Streams of collectives without a group name, in order of their first collective."""
    return frame.filter(pl.col("name").is_null())["stream"].to_list()


def _stream_keys(streams: Mapping[int, Sequence[int | None]]) -> dict[int, dict[int | None, str]]:
    """By rank, the name of each stream: its number where all ranks have it, else its place among the others."""
    using = {rank: mine for rank, mine in streams.items() if mine}
    common = set.intersection(*(set(mine) for mine in using.values())) if using else set()
    others = {rank: [stream for stream in mine if stream not in common] for rank, mine in using.items()}
    alike = len({len(mine) for mine in others.values()}) == 1
    found: dict[int, dict[int | None, str]] = {}
    for rank, mine in streams.items():
        names: dict[int | None, str] = {stream: f"stream {stream}" for stream in mine if stream in common}
        if alike:
            names |= {stream: f"stream no. {at}" for at, stream in enumerate(others.get(rank, []))}
        found[rank] = names
    return found
