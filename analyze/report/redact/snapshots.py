"""A memory snapshot without what `--redact` takes away."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from analyze.report.redact.policy import Redaction
from analyze.snapshot import Snapshot
from analyze.snapshot.history import KNOWN_ACTIONS
from analyze.snapshot.stacks import Frame, Stacks
from analyze.snapshot.tables import ACTIVE, PENDING, Block, Events, Segment
from analyze.trace.stream import is_stream

_STATES = (ACTIVE, *PENDING, "inactive", "")
_SETTINGS = frozenset(
    (
        "max_split_size", "garbage_collection_threshold", "expandable_segments", "release_lock_on_cudamalloc",
        "release_lock_on_hipmalloc", "pinned_use_cuda_host_register", "pinned_use_hip_host_register",
        "pinned_num_register_threads", "pinned_use_background_threads", "pinned_reserve_segment_size_mb",
        "graph_capture_record_stream_reuse", "max_non_split_rounding_size", "roundup_power2_divisions",
    )
)  # fmt: skip


def redacted_snapshot(snapshot: Snapshot, redaction: Redaction) -> Snapshot:
    """The snapshot with its texts redacted; its numbers stay."""
    loaded, stacks = snapshot.loaded, snapshot.stacks
    name = redaction.file(loaded.name)
    path = loaded.path if is_stream(loaded.path) else name
    return replace(
        snapshot,
        loaded=replace(loaded, name=name, path=path),
        segments=_segments(snapshot.segments, redaction),
        traces=tuple(_events(events, redaction) for events in snapshot.traces),
        annotations=tuple(replace(edge, name=redaction.range(edge.name)) for edge in snapshot.annotations),
        settings=_settings(snapshot.settings),
        stacks=Stacks([_frame(frame, redaction) for frame in stacks.frames], list(stacks.stacks)),
        pinned_segments=_segments(snapshot.pinned_segments, redaction),
        pinned_trace=None if snapshot.pinned_trace is None else _events(snapshot.pinned_trace, redaction),
    )


def _segments(segments: tuple[Segment, ...], redaction: Redaction) -> tuple[Segment, ...]:
    def block(one: Block) -> Block:
        return one if one.state in _STATES else replace(one, state="inactive")

    return tuple(
        replace(one, kind=redaction.word(one.kind, ("small", "large")), blocks=tuple(map(block, one.blocks)))
        for one in segments
    )


def _events(events: Events, redaction: Redaction) -> Events:
    return replace(
        events,
        action=[redaction.word(action, KNOWN_ACTIONS, "unknown") for action in events.action],
        label=[redaction.pseudonym("label", label) for label in events.label],
        context=[
            context if context == "N/A" else redaction.pseudonym("context", context) for context in events.context
        ],
    )


def _frame(frame: Frame, redaction: Redaction) -> Frame:
    return Frame(redaction.native(frame.name), redaction.code_file(frame.file), frame.line)


def _settings(settings: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in settings.items() if key in _SETTINGS and not isinstance(value, str)}
