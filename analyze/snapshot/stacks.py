"""Stacks: each kept once, and what they say about who allocated."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from msgspec import Struct, field

from analyze.errors import SnapshotError
from analyze.snapshot.opcodes import MOST_TEXT_BYTES

NO_STACK = 0
_CALLERS = 3
_PLUMBING = re.compile(
    r"(?:^|[\\/])(?:torch|functorch|torchgen|triton|einops|opt_einsum)[\\/]"
    r"|[\\/]python3?\.?\d*[\\/](?!(?:site|dist)-packages)|^<frozen "
)
_MODULE_CALL = ("_call_impl", "_slow_forward")
_PROFILER_FRAME = re.compile(r"^(?P<file>[^()]+\.py)\((?P<line>\d+)\): (?P<name>.+)$")
_BACKWARD = re.compile(
    r"^torch::autograd::(?:generated::)?(?P<node>\w+?)(?:_apply_functional|::apply)\(|\b(?P<name>\w+Backward\d*)\b"
)


class Frame(Struct, frozen=True):
    """One frame.

    Attributes:
        name: function.
        file: file name as recorded; empty or `??` for C++ without symbols.
        line: line, 0 where unknown.
    """

    name: str
    file: str
    line: int

    @property
    def python(self) -> bool:
        """Whether it is a frame of Python code."""
        return self.file.endswith(".py") or self.file.startswith("<")

    @property
    def plumbing(self) -> bool:
        """Whether it belongs to a library that allocates on behalf of others."""
        return _PLUMBING.search(self.file) is not None

    @property
    def text(self) -> str:
        """File, line and function; the folder is left out."""
        short = re.split(r"[\\/]", self.file)[-1]
        return f"{short}:{self.line} {self.name}" if self.line else f"{short} {self.name}".strip()


def cleaned(text: Any) -> str:
    """A text of the file as one that any format can hold.

    Raises:
        SnapshotError: it is no text, or longer than any name.
    """
    if not isinstance(text, str):
        raise SnapshotError(f"The snapshot has a {type(text).__name__} where a text belongs.")
    if len(text) > MOST_TEXT_BYTES:
        raise SnapshotError(f"The snapshot has a text of {len(text):,} characters.")
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


class Stacks(Struct, dict=True):
    """All stacks of one snapshot, innermost frame first. Number 0 is "no stack recorded".

    Attributes:
        frames: every frame once.
        stacks: every stack once, as positions in `frames`.
    """

    frames: list[Frame] = field(default_factory=list)
    stacks: list[tuple[int, ...]] = field(default_factory=lambda: [()])
    _by_value: dict[Frame, int] = field(default_factory=dict)
    _by_object: dict[int, int] = field(default_factory=dict)
    _stack_by_object: dict[int, int] = field(default_factory=dict)
    _stack_by_value: dict[tuple[int, ...], int] = field(default_factory=lambda: {(): 0})

    def number(self, frames: Any) -> int:
        """The number of a stack as recorded: a list of dictionaries, or None.

        The same list object is looked at once: a million events share some thousand.

        Raises:
            SnapshotError: it is no list of frames.
        """
        if not frames:
            return NO_STACK
        known = self._stack_by_object.get(id(frames))
        if known is not None:
            return known
        if not isinstance(frames, list | tuple):
            raise SnapshotError("The snapshot has a stack that is no list.")
        by_object = self._by_object
        try:
            stack = tuple([by_object[id(frame)] for frame in frames])
        except KeyError:
            stack = tuple([self._frame(frame) for frame in frames])
        number = self._stack_by_value.get(stack)
        if number is None:
            number = self._stack_by_value[stack] = len(self.stacks)
            self.stacks.append(stack)
        self._stack_by_object[id(frames)] = number
        return number

    def _frame(self, frame: Any) -> int:
        known = self._by_object.get(id(frame))
        if known is not None:
            return known
        if not isinstance(frame, dict):
            raise SnapshotError("The snapshot has a stack whose frames are no dictionaries.")
        line = frame.get("line", 0)
        made = _made(cleaned(frame.get("name", "")), cleaned(frame.get("filename", "")), line)
        number = self._by_value.setdefault(made, len(self.frames))
        if number == len(self.frames):
            self.frames.append(made)
        self._by_object[id(frame)] = number
        return number

    def forget_objects(self) -> None:
        """Drop what was kept by identity: the objects go, and others will have their identities."""
        self._by_object.clear()
        self._stack_by_object.clear()

    def of(self, number: int) -> list[Frame]:
        """The frames of a stack, innermost first."""
        return [self.frames[i] for i in self.stacks[number]]

    @cached_property
    def plumbing(self) -> list[bool]:
        """Per frame, whether it says nothing about who allocated."""
        return [not frame.python or frame.plumbing for frame in self.frames]

    def site(self, number: int) -> str:
        """Who allocated: the innermost Python frame outside torch, else the backward node, else what there is."""
        stack = self.stacks[number]
        user = next((i for i in stack if not self.plumbing[i]), None)
        if user is not None:
            return self.frames[user].text
        return _without_user(self.of(number))

    def path(self, number: int) -> str:
        """The site and its callers outside torch."""
        users = [self.frames[i].text for i in self.stacks[number] if not self.plumbing[i]]
        if not users:
            return self.site(number)
        more = f" < {len(users) - 1 - _CALLERS} more" if len(users) > _CALLERS + 1 else ""
        return " < ".join(users[: _CALLERS + 1]) + more

    def module(self, number: int) -> str:
        """The innermost frame that torch called as a module's forward, empty where there is none."""
        frames = [frame for frame in self.of(number) if frame.python]
        for i, frame in enumerate(frames[:-1]):
            if frames[i + 1].name in _MODULE_CALL and frame.name not in _MODULE_CALL and not frame.plumbing:
                return frame.text
            if frame.name.startswith("nn.Module: "):
                return frame.name.removeprefix("nn.Module: ")
        return ""


def _made(name: str, file: str, line: Any) -> Frame:
    """A frame; profilers write file, line and function into the name."""
    number = line if isinstance(line, int) and not isinstance(line, bool) and 0 <= line < 2**31 else 0
    if file in ("none", ""):
        found = _PROFILER_FRAME.match(name)
        if found is not None:
            return Frame(found["name"], found["file"], min(int(found["line"][:10]), 2**31))
        return Frame(name, "", number)
    return Frame(name, file, number)


def _without_user(frames: Sequence[Frame]) -> str:
    if not frames:
        return "no stack recorded"
    for frame in frames:
        node = _BACKWARD.search(frame.name)
        if node is not None:
            return f"backward: {node['node'] or node['name']}"
    python = next((frame for frame in frames if frame.python), None)
    if python is not None:
        return python.text
    if any("autograd::Engine" in frame.name for frame in frames):
        return "backward, no Python frame"
    return "C++, no Python frame"
