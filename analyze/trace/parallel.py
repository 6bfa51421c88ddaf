"""A large plain file read by several processes: each takes a stretch, the first one joins them.

The others are fresh interpreters, not forks: a fork of a process in which Polars has started its threads may hang,
and a multiprocessing pool would run the user's script again.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from analyze.trace import wire
from analyze.trace.pieces import Layout, find_separator, split
from analyze.trace.source import Source
from analyze.trace.stream import is_stream
from analyze.trace.stretch import Stretch, read_part
from analyze.trace.unpack import BLOCK_BYTES, GZIP_MAGIC, ZIP_MAGIC, ZSTD_MAGIC

BYTES_PER_JOB = 1 << 27  # below it a process costs more to start than it saves
MOST_JOBS = 4
START_COST_BYTES = 40_000_000  # what the first process reads while another one starts
_SEARCH_BYTES = 1 << 24
_SMALLEST_BYTES = 1 << 21  # a file that is hardly more than its sample is not cut
_BOM = b"\xef\xbb\xbf"


def jobs_for(size_bytes: int) -> int:
    """Processes that pay for a plain file of a size."""
    return max(min(size_bytes // BYTES_PER_JOB, os.cpu_count() or 1, MOST_JOBS), 1)


def read_in_parallel(
    source: Source, layout: Layout, jobs: int | None, on_progress: Callable[[int], None] | None
) -> Stretch | None:
    """Read a file with several processes; None when one has to do it.

    That is for standard input, small and compressed files, layouts in which the end of an event cannot be seen without
    reading all before it, and whenever a stretch turns out to be no list of events.
    """
    stretches = plan(source.path, jobs)
    if len(stretches) < 2:
        return None
    workers = [_start(source.path, *stretch, last=stretch is stretches[-1]) for stretch in stretches[1:]]
    try:
        part = read_part(
            split(_first(source, stretches[0][1]), layout), layout, to_the_end=False, on_progress=on_progress
        )
        source.read_rest()
        for worker in workers:
            later = wire.receive(worker.stdout) if worker.stdout and not part.ended else None
            if later is None or worker.wait() != 0:
                return None
            part.absorb(later)
    finally:
        for worker in workers:
            worker.kill()
            worker.communicate()
    return part


def plan(path: str, jobs: int | None) -> list[tuple[int, int]]:
    """Stretches of a plain file, each from the beginning of an event (or of the file) to the end of one."""
    if is_stream(path) or not sys.executable or not os.path.isfile(path):
        return []
    size = Path(path).stat().st_size
    jobs = jobs_for(size) if jobs is None else jobs
    if jobs < 2 or size < _SMALLEST_BYTES:
        return []
    with Path(path).open("rb") as file:
        sample = file.read(BLOCK_BYTES)
        separator = find_separator(sample)
        # Inside a string there is no raw line break, so a separator with one is no part of a name.
        if b"\n" not in separator or sample.startswith((GZIP_MAGIC, ZSTD_MAGIC, ZIP_MAGIC)):
            return []
        share = max((size - START_COST_BYTES) // jobs, size // (2 * jobs))
        cuts, mark = [0], b"}" + separator + b"{"
        for i in range(1, jobs):
            file.seek(size - (jobs - i) * share)
            at = file.read(_SEARCH_BYTES).find(mark)
            if at < 0:
                return []
            cuts.append(size - (jobs - i) * share + at + 1 + len(separator))
    ends = [begin - len(separator) for begin in cuts[1:]]
    return list(zip(cuts, [*ends, size], strict=True))


def stretch_blocks(path: str, begin: int, end: int) -> Iterator[bytes]:
    """The bytes of a stretch in blocks."""
    with Path(path).open("rb") as file:
        file.seek(begin)
        left = end - begin
        while left > 0 and (block := file.read(min(BLOCK_BYTES, left))):
            left -= len(block)
            yield block


def _first(source: Source, end: int) -> Iterator[bytes]:
    """The source's own blocks up to an offset, so that it checks and hashes them."""
    left = end - (len(_BOM) if _has_bom(source.path) else 0)
    for block in source.blocks():
        if left <= len(block):
            yield block[:left]
            return
        left -= len(block)
        yield block


def _has_bom(path: str) -> bool:
    with Path(path).open("rb") as file:
        return file.read(len(_BOM)) == _BOM


def _start(path: str, begin: int, end: int, *, last: bool) -> subprocess.Popen[bytes]:
    code = "from analyze.trace.worker import main; main()"
    places = [str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.Popen(  # noqa: S603 - this program itself, the path as one argument
        [sys.executable, "-c", code, path, str(begin), str(end), str(int(last))],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(places)},
    )
