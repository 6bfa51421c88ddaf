"""Dataclasses as what JSON knows."""

from __future__ import annotations

from dataclasses import asdict, is_dataclass
from enum import Enum
from typing import Any

from analyze.blocks import Section


def plain(value: Any) -> Any:
    """Dataclasses, tuples and enumerations as what JSON knows."""
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value.value if isinstance(value, Enum) else value


def plain_section(section: Section) -> dict[str, Any]:
    """A section, each block with its type."""
    blocks = [{"type": type(block).__name__.lower(), **plain(block)} for block in section.blocks]
    return {"id": section.id, "title": section.title, "blocks": blocks}
