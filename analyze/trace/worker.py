"""The other process of a parallel read: it reads one stretch of a file and sends what it found."""

from __future__ import annotations

import sys

from analyze.trace import wire
from analyze.trace.parallel import stretch_blocks
from analyze.trace.pieces import Layout, cut
from analyze.trace.stretch import read_part


def main() -> None:
    """Read the stretch that the arguments name: path, first byte, byte after the last, whether it ends the file."""
    path, begin, end, last = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "1"
    layout = Layout(path)
    part = read_part(cut(stretch_blocks(path, begin, end), layout), layout, to_the_end=last)
    wire.send(part, sys.stdout.buffer)
