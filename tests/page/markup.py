"""A page as a reader of HTML sees it: elements, texts and exact numbers."""

from __future__ import annotations

import base64
import json
import re
import zlib
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

VOID = ("meta", "input", "br", "img", "link", "hr")
NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")


@dataclass
class Element:
    """One element with its attributes and the text directly in it."""

    tag: str
    attributes: dict[str, str]
    path: tuple[str, ...]
    text: str = ""


@dataclass
class Reader(HTMLParser):
    """Collects elements in order; `stack` is what is open."""

    elements: list[Element] = field(default_factory=list)
    stack: list[Element] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        path = tuple(one.attributes.get("id") or one.tag for one in self.stack)
        element = Element(tag, {name: value or "" for name, value in attrs}, path)
        self.elements.append(element)
        if tag not in VOID:
            self.stack.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.stack, f"</{tag}> closes nothing"
        assert self.stack[-1].tag == tag, f"</{tag}> inside <{self.stack[-1].tag}>"
        self.stack.pop()

    def handle_data(self, data: str) -> None:
        if self.stack:
            self.stack[-1].text += data


def read(html: str) -> list[Element]:
    """The elements of a page; one that is not closed, or closed by another, is an error."""
    reader = Reader()
    reader.feed(html)
    reader.close()
    assert not reader.stack, [one.tag for one in reader.stack]
    return reader.elements


def unpacked(elements: list[Element], name: str) -> Any:
    """The content of a packed element."""
    text = next(one.text for one in elements if one.attributes.get("id") == name)
    return json.loads(zlib.decompress(base64.b64decode(text), -15)) if text else None


def numbers_of(value: Any) -> set[float]:
    """Every number of a JSON document."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return set()
    if isinstance(value, int | float):
        return {float(value)}
    items = value.values() if isinstance(value, dict) else value
    return {number for item in items for number in numbers_of(item)}


def texts_of(value: Any) -> list[str]:
    """Every text of a JSON document."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict | list):
        items = value.values() if isinstance(value, dict) else value
        return [text for item in items for text in texts_of(item)]
    return []
