"""Records as what JSON knows, and the schema of the documents made of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import Enum
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from analyze.blocks import Page, Section
from analyze.report.about import SCHEMA_VERSION, TOOL


def plain(value: Any) -> Any:
    """Records, tuples and enumerations as what JSON knows."""
    if isinstance(value, Struct):
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


def frame(version: str, page: Page) -> dict[str, Any]:
    """The keys that every document has.

    Args:
        version: version of the program that measured.
        page: whose sections the document holds.
    """
    return {
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": TOOL, "version": version},
        "sections": [plain_section(section) for section in page.sections],
    }


def contract(title: str, keys: Mapping[str, Any], optional: Collection[str] = ()) -> dict[str, Any]:
    """JSON Schema (2020-12) of a document with these keys, of the types given, and a schema version.

    Args:
        title: what the document is.
        keys: its keys and their types.
        optional: the keys that a document may lack.
    """
    schemas, components = msgspec.json.schema_components(list(keys.values()), ref_template="#/$defs/{name}")
    properties = dict(zip(keys, schemas, strict=True))
    properties["schema_version"] = {"const": SCHEMA_VERSION}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"{TOOL} {title} {SCHEMA_VERSION}",
        "type": "object",
        "properties": dict(sorted(properties.items())),
        "required": sorted(set(properties) - set(optional)),
        "additionalProperties": False,
        "$defs": dict(sorted(components.items())),
    }
