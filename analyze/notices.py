"""Odd data and missing data as values: the report prints both, neither stops it."""

from __future__ import annotations

from msgspec import Struct


class Notice(Struct, frozen=True):
    """Something odd in the data that a reader of the figures has to know.

    Attributes:
        id: stable kebab-case name, for scripts.
        text: one or two sentences, with the effect on the figures.
        count: how many rows, calls or pieces it concerns.
    """

    id: str
    text: str
    count: int


class NotMeasured(Struct, frozen=True):
    """A question that the records of this file cannot answer.

    Attributes:
        id: what was not measured.
        reason: why.
        how_to_get_it: what to record so that it can be measured.
    """

    id: str
    reason: str
    how_to_get_it: str
