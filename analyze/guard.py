"""What raises costs its own part of a report: the part is listed as not measured, and the rest goes on."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar, cast

from polars.exceptions import PanicException

from analyze.errors import GpuledgerError
from analyze.notices import NotMeasured

INTERNAL = "internal error, please report"
LOG = logging.getLogger("gpuledger")  # tracebacks: silent unless --debug listens
STAGES = logging.getLogger("gpuledger-stages")  # what is being made: silent unless a terminal shows progress
_HOW = "run again with --debug and report the traceback"
_Made = TypeVar("_Made")
_Other = TypeVar("_Other")


class AbsentError(Exception):
    """A part is asked for that could not be made."""


class Absent:
    """Stands where a part could not be made; whatever is asked of it raises."""

    def __init__(self, name: str) -> None:
        self._name = name

    def refuse(self, *_: object) -> NoReturn:
        """Raise: the part is not there."""
        raise AbsentError(f"{self._name} could not be measured")

    def __getattr__(self, name: str) -> Any:
        """Nothing is known of it."""
        self.refuse()

    __bool__ = __iter__ = __len__ = __getitem__ = refuse
    __lt__ = __le__ = __gt__ = __ge__ = refuse


class Guard:
    """Makes the parts of one layer, and remembers which could not be made.

    Attributes:
        failed: their names, and whether they raised themselves rather than for want of another part.
    """

    def __init__(self) -> None:
        self.failed: dict[str, bool] = {}

    def make(self, name: str, how: Callable[[], _Made]) -> _Made:
        """The part, or `Absent` where making it raises.

        Args:
            name: of the part.
            how: makes it.

        Raises:
            GpuledgerError: the input or the options cannot be used; that is not a failure of a part.
            MemoryError: the next part would not fare better.
        """
        STAGES.debug("%s", name)
        try:
            return how()
        except (GpuledgerError, MemoryError):
            raise
        except AbsentError:
            self.failed[name] = False
        except (Exception, PanicException):
            self.failed[name] = True
            LOG.debug("%s raised", name, exc_info=True)
        return cast(_Made, Absent(name))

    def make_or(self, name: str, how: Callable[[], _Made], otherwise: _Other) -> _Made | _Other:
        """The part, or something else where making it raises."""
        made = self.make(name, how)
        return made if present(made) else otherwise

    def not_measured(self) -> tuple[NotMeasured, ...]:
        """The parts that could not be made, those for want of another one too."""
        return tuple(NotMeasured(name, INTERNAL, _HOW) for name in self.failed)

    def raised(self) -> tuple[NotMeasured, ...]:
        """The parts that raised themselves."""
        return tuple(NotMeasured(name, INTERNAL, _HOW) for name, itself in self.failed.items() if itself)


def require(*parts: object) -> None:
    """Raise where one of the parts could not be made, before something is made that asks for it later only.

    Raises:
        AbsentError: one of them is not there.
    """
    for part in parts:
        if isinstance(part, Absent):
            part.refuse()


def present(part: object) -> bool:
    """Whether a part could be made."""
    return not isinstance(part, Absent)
