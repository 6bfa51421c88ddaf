"""Kinds of collectives, by number: rows of millions of collectives hold one byte in place of a word."""

from __future__ import annotations

KINDS = (
    "all_reduce", "reduce_scatter", "all_gather", "all_to_all", "barrier", "send", "recv", "broadcast", "gather",
    "scatter", "reduce", "sendrecv",
)  # fmt: skip
SAID_BY = ("args", "op", "annotation", "kernel")
SEND, RECV, ALL_TO_ALL = KINDS.index("send"), KINDS.index("recv"), KINDS.index("all_to_all")
LAST_SYMMETRIC = KINDS.index("barrier")  # of the kinds up to here nobody can end before the last rank has begun
