"""What capture raises: one sentence for the user and, where there is one, what to do about it."""

from __future__ import annotations


class CaptureError(Exception):
    """A recording that cannot be made.

    Attributes:
        message: One sentence, without a traceback or a name of Python's.
        hint: What the user can do, or an empty string.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def first_line(error: BaseException) -> str:
    """The first line of an exception's text, with its type where the text says nothing."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


class SettingsError(CaptureError):
    """Options that contradict each other or that this device does not have."""


class ModelError(CaptureError):
    """A model that is unknown, cannot be built or does not run on its input."""


class OutOfMemoryError(CaptureError):
    """The device (or the machine) has too little memory for this model and batch."""


class ProfileError(CaptureError):
    """The profiler gave a trace that cannot be used."""


class OutputError(CaptureError):
    """A file or folder that cannot be written or must not be overwritten."""
