"""Record a trace that analyze can use in full: warmed up, steady, with what was asked for stored inside.

`from capture import record` records a loop of your own; the command `capture` records a model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from capture.recorder import Recorder as Recorder
    from capture.recorder import record as record

__all__ = ["Recorder", "record"]


def __getattr__(name: str) -> Any:
    # Late, so that `capture --help` needs no torch.
    if name in __all__:
        from capture import recorder

        return getattr(recorder, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
