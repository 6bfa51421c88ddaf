"""The distributed job that this process is a part of."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

import torch.distributed as dist

_MOST_RANKS = 1 << 24


@dataclass(frozen=True)
class Job:
    """One rank of a job.

    Attributes:
        rank: From 0.
        world_size: Ranks in the job; 1 where nothing is distributed.
        local_rank: On this machine; None where the launcher does not say.
        backend: Such as "nccl" or "gloo"; None before the process group exists.
    """

    rank: int = 0
    world_size: int = 1
    local_rank: int | None = None
    backend: str | None = None

    @property
    def distributed(self) -> bool:
        """Whether there are other ranks."""
        return self.world_size > 1


def read_job(variables: Mapping[str, str] = os.environ) -> Job:
    """The process group where there is one, else what a launcher such as torchrun left in the environment."""
    local_rank = _number(variables.get("LOCAL_RANK"))
    if dist.is_available() and dist.is_initialized():
        return Job(dist.get_rank(), dist.get_world_size(), local_rank, str(dist.get_backend()))
    rank, world_size = _number(variables.get("RANK")), _number(variables.get("WORLD_SIZE"))
    if rank is None or not world_size or rank >= world_size:
        return Job()
    return Job(rank, world_size, local_rank)


def _number(text: str | None) -> int | None:
    try:
        number = int(text or "")
    except ValueError:
        return None
    return number if 0 <= number < _MOST_RANKS else None
