"""Texts as numbers: each distinct text once."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import Any

import numpy as np
import polars as pl

NO_TEXT = 0


class Codes(dict[Any, int]):
    """A dictionary that numbers what it has not seen: value -> code, in order of arrival."""

    def __missing__(self, key: Any) -> int:
        """The next free number."""
        code = self[key] = len(self)
        return code


class Texts(Codes):
    """Codes for texts: code 0 is no text; raw JSON is copied out of its piece."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        super().__init__({None: NO_TEXT})
        self.update((text, code) for code, text in enumerate(texts, NO_TEXT + 1))

    def series(self, codes: array[int]) -> pl.Series:
        """The texts of the codes, dictionary-encoded."""
        words = pl.Series([None, *list(self)[1:]], dtype=pl.String).cast(pl.Categorical)
        coded: pl.Series = words.gather(pl.Series(np.frombuffer(codes, dtype=np.uint32)))
        return coded
