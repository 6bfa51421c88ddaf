"""Kinds of collectives, by number: rows of millions of collectives hold one byte in place of a word."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Int64 = npt.NDArray[np.int64]
Ints = npt.NDArray[np.integer[Any]]
Bool = npt.NDArray[np.bool_]

KINDS = (
    "all_reduce", "reduce_scatter", "all_gather", "all_to_all", "barrier", "send", "recv", "broadcast", "gather",
    "scatter", "reduce", "sendrecv",
)  # fmt: skip
SAID_BY = ("args", "op", "annotation", "kernel")
SEND, RECV, ALL_TO_ALL = KINDS.index("send"), KINDS.index("recv"), KINDS.index("all_to_all")
LAST_SYMMETRIC = KINDS.index("barrier")  # of the kinds up to here nobody can end before the last rank has begun
