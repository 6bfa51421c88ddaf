"""What can go wrong with the input, each as one sentence and one hint."""

from __future__ import annotations

from collections.abc import Iterable

from analyze.inert import lines, printable


class GpuledgerError(Exception):
    """Base class for errors caused by the input or the options.

    Attributes:
        message: what is wrong, one sentence. Names in it are made printable.
        hint: what to do about it, one sentence or a short list, or None.
    """

    def __init__(self, message: str, hint: str | None = None) -> None:
        self.message = printable(message)
        self.hint = None if hint is None else lines(hint)
        super().__init__(self.message)

    def __str__(self) -> str:
        """Message and hint as the command line prints them."""
        return self.message if self.hint is None else f"{self.message}\nHint: {self.hint}"


class UnreadableError(GpuledgerError):
    """The file cannot be opened, read or unpacked."""


class NotATraceError(GpuledgerError):
    """The file is readable but is something else than a PyTorch profiler trace."""


class DamagedTraceError(GpuledgerError):
    """The file was a trace once, but nothing of it can be trusted."""


class SnapshotError(GpuledgerError):
    """The file is no memory snapshot, is damaged, or holds what no memory snapshot holds."""


class NotAReportError(GpuledgerError):
    """The file is JSON of this program, but no report on a trace that this version can read."""


class NotComparableError(GpuledgerError):
    """The inputs cannot be compared: their figures mean different things."""


class GateError(GpuledgerError):
    """A gate's expression cannot be understood, or cannot be judged on any file."""


class ConfigError(GpuledgerError):
    """The settings in pyproject.toml cannot be used."""


class SelectionError(GpuledgerError):
    """The steps or the range asked for are not in the trace."""


class OutputError(GpuledgerError):
    """The report cannot be written where it was asked for."""


def closest(name: str, choices: Iterable[str], *, n: int = 1, cutoff: float = 0.6) -> list[str]:
    """The choices that a mistyped name most likely means, best first."""
    from difflib import get_close_matches

    return get_close_matches(name, list(choices), n, cutoff)
