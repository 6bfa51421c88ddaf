"""What the options of a command choose, as one value for each step that they travel to."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct, field

from analyze.settings import Definitions, OpsView


class Reading(Struct, frozen=True):
    """How a trace is read: see `Trace.load`.

    Attributes:
        jobs: processes that read it, None for as many as pay.
        trusted: files that grow beyond the limits are read too.
        on_progress: called with the bytes read so far and the size on disk; None for nobody.
    """

    jobs: int | None = None
    trusted: bool = False
    on_progress: Callable[[int, int], None] | None = None


class Measuring(Struct, frozen=True):
    """What is measured of it: see `build_report`.

    Attributes:
        steps: first and last profiler step, the last one excluded; None leaves an end open, or takes all.
        range: name of a user range, None for everything.
        definitions: limits and list lengths.
        limits: limits of rules that are not their own.
        ops: how ops are listed.
        one_screen: only what one screen shows.
    """

    steps: tuple[int | None, int | None] | None = None
    range: str | None = None
    definitions: Definitions = field(default_factory=Definitions)
    limits: Mapping[str, float] = field(default_factory=dict)
    ops: OpsView = field(default_factory=OpsView)
    one_screen: bool = False

    @property
    def selects(self) -> bool:
        """Only a part of the trace is asked for."""
        return self.steps is not None or self.range is not None
