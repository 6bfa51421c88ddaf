"""What stands behind a list of events: keys of the document, and perhaps more lists, whose rows are counted.

One file has one list of events. A second one (a key that is there twice, a second document behind the first) is of
another recording or the same one again: its rows are in no figure, and a notice says how many they are.
"""

from __future__ import annotations

import re

from analyze.trace.decode import Decoder
from analyze.trace.salvage import salvage

KEYS_LIMIT_BYTES = 1 << 24
MOST_LISTS = 100  # more of them are no longer opened
_OVERLAP_BYTES = 1 << 10  # a beginning of a list that lies across two pieces is no longer
_ROW = re.compile(rb'\{\s*"(?:ph|cat|ts|pid|args)"\s*:')
_BEGIN = re.compile(rb'"traceEvents"\s*:\s*(?:\{\s*"traceEvents"\s*:\s*)?\[|[\]}]\s*\[(?=\s*\{)')


class Rest:
    """Takes the text behind a list of events, piece by piece.

    Attributes:
        text: its beginning, from the `]` that ends the list, for the keys.
        lists: rows of each further list.
        stray: rows that belong to none.
    """

    def __init__(self, separator: bytes) -> None:
        self.text = bytearray()
        self.lists: list[int] = []
        self.stray = 0
        self._separator = separator
        self._decoder: Decoder | None = None
        self._waiting = b""
        self._tried = False

    @classmethod
    def of(cls, text: bytes | bytearray, lists: list[int], stray: int) -> Rest:
        """One that was read to its end."""
        rest = cls(b",")
        rest.text, rest.lists, rest.stray = bytearray(text), lists, stray
        return rest

    def take(self, text: bytes) -> None:
        """Take the next stretch of text."""
        if len(self.text) < KEYS_LIMIT_BYTES:
            self.text += text
        self._waiting += text
        self._count(at_end=False)

    @property
    def rows(self) -> int:
        """Rows of all lists, and of none."""
        return sum(self.lists) + self.stray

    def end(self) -> None:
        """There is no more text."""
        self._count(at_end=True)

    def __add__(self, later: Rest) -> Rest:
        """What stands before and behind a list of events."""
        return Rest.of(later.text, [*self.lists, *later.lists], self.stray + later.stray)

    def _count(self, *, at_end: bool) -> None:
        """Go through the waiting text as far as it can be understood without what follows."""
        while self._waiting:
            if self._decoder is not None:
                if not self._count_rows(self._decoder, at_end=at_end):
                    return
                continue
            begin = _BEGIN.search(self._waiting) if len(self.lists) < MOST_LISTS else None
            if begin is None:
                seen = 0 if at_end else _OVERLAP_BYTES
                self._pass(max(len(self._waiting) - seen, 0))
                return
            self._pass(begin.start())
            self._waiting = self._waiting[begin.end() - begin.start() :]
            self._decoder, self._tried = Decoder(), False
            self.lists.append(0)

    def _pass(self, size: int) -> None:
        """Leave bytes behind; rows among them belong to no list."""
        self.stray += len(_ROW.findall(self._waiting, 0, size))
        self._waiting = self._waiting[size:]

    def _count_rows(self, decoder: Decoder, *, at_end: bool) -> bool:
        """Count rows of a list; False when the text may be cut inside a row, which is so once only."""
        text = self._waiting.strip(b", \t\r\n")
        found, tail = decoder.piece(text), None
        if found is None:
            if not (self._tried or at_end):
                self._tried = True
                return False
            found, tail = salvage(text, self._separator, exact_text=False)
        self._tried = False
        self._waiting = tail or b""
        if tail is not None:
            self._decoder = None
        self.lists[-1] += len(found.events) + (found.damage.lost if found.damage else 0)
        return True
