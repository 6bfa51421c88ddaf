"""Texts of strangers, made fit for every encoding."""

from __future__ import annotations


def sound(text: str) -> str:
    """The text without lone surrogates, which no encoding can hold."""
    return text.encode("utf-8", "replace").decode()
