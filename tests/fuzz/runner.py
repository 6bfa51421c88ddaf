"""Makes mutants, tries each within its time, and writes what fails as a small file."""

from __future__ import annotations

import logging
import random
import signal
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from analyze.errors import GpuledgerError
from analyze.trace import Trace
from tests.fuzz import packing, tree
from tests.fuzz.document import Document, bases, pick
from tests.fuzz.invariants import report_holds, rows_hold

HANG_S = 20
_WAITING = 20  # times as long by the clock: nothing that computes waits so long
_TWICE = 7  # every so many mutants are read and reported on twice
_NAMES = ("trace.json", "trace.json.gz", "t", "a b'c\"`d.json", "\u202e.json", "-x.json")
_SHRINK_TRIES = 30


@dataclass(frozen=True)
class Mutant:
    """One input.

    Attributes:
        packed: its bytes.
        what: what was done to it.
        rows: rows that have to be accounted for.
    """

    packed: packing.Packed
    what: str
    rows: int


@dataclass(frozen=True)
class Failure:
    """A mutant that the program did not stand.

    Attributes:
        number: of the mutant.
        what: what was done to it.
        error: what came of it, in one line.
        path: where its bytes are.
    """

    number: int
    what: str
    error: str
    path: Path


@dataclass
class Outcome:
    """What came of all mutants."""

    counts: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)


class HangError(Exception):
    """It took longer than it may."""


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """Raise `HangError` after so many seconds of CPU time, which other work on the machine does not use up.

    What waits for ever uses no CPU time: it is stopped after twenty times as long by the clock.
    """

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise HangError

    old = [signal.signal(number, stop) for number in (signal.SIGPROF, signal.SIGALRM)]
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.alarm(_WAITING * seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
        for number, handler in zip((signal.SIGPROF, signal.SIGALRM), old, strict=True):
            signal.signal(number, handler)


def make(r: random.Random, documents: list[Document]) -> Mutant:
    """One mutant: the tree nearly always, then bytes, encoding or packing."""
    document = pick(r, documents)
    what, rows = "", document.count()
    if r.random() < 0.75:
        what = tree.mutate(document, r)
        rows = document.count()
    text = document.text()
    data = text.encode("utf-8", "surrogatepass")
    around = r.random()
    if around < 0.5 and what:
        return Mutant(packing.Packed(data, ""), what, rows)
    if around < 0.75:
        packed = packing.harm(data, r)
    elif around < 0.85:
        packed = packing.encode(text, r)
    elif around < 0.998:
        packed = packing.pack(data, r)
    else:
        packed = packing.bomb(data, r)
    return Mutant(packed, f"{what}; {packed.what}".strip("; "), rows)


def check(path: Path, mutant: Mutant, *, report: bool, twice: bool) -> str:
    """What came of a mutant: "refused", "said" or "quiet"; anything else is a failure and raises."""
    try:
        trace = Trace.load(path)
    except GpuledgerError as error:
        if not error.message.strip():
            raise AssertionError("refused without a word") from error
        return "refused"
    broken = "Raw" in mutant.what or not mutant.packed.whole or not _tells_rows(mutant)
    rows_hold(trace, None if broken else mutant.rows)
    if not mutant.packed.whole and not trace.recording.cut:
        missing = mutant.rows - trace.recording.account.total
        assert missing <= mutant.packed.touched, f"{missing} rows are lost in silence"
    if report:
        report_holds(trace, again=Trace.load(path) if twice else None)
    return "said" if trace.recording.notices else "quiet"


def _tells_rows(mutant: Mutant) -> bool:
    """Whether the text still says where each row begins and ends."""
    data = mutant.packed.data
    return not any(mark in data for mark in (b'"a"b"', b"[" * 3000, b"tru", b"nan", b"0x7f3a", b"Infinity"))


def run(
    count: int,
    seed: int,
    *,
    out: Path | None = None,
    every: int = 1,
    tell: Callable[[int, Outcome], None] | None = None,
) -> Outcome:
    """Try so many mutants.

    Args:
        count: how many.
        seed: of the random numbers.
        out: folder for failures; the working folder where None.
        every: make a report of every so many mutants; the others are only read.
        tell: called after each mutant.
    """
    r, outcome, documents = random.Random(seed), Outcome(), bases()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(count):
            mutant = make(r, documents)
            path = Path(folder) / r.choice(_NAMES)
            report, twice = number % every == 0, number % _TWICE == 0

            def attempt(
                data: bytes, path: Path = path, mutant: Mutant = mutant, report: bool = report, twice: bool = twice
            ) -> str:
                path.write_bytes(data)
                counted = data is mutant.packed.data
                return _tried(lambda: check(path, mutant, report=report, twice=twice), outcome, counted=counted)

            error = attempt(mutant.packed.data)
            if error:
                small = mutant.packed.data if " rows " in error else _shrunk(mutant.packed.data, error, attempt)
                kept = (out or Path.cwd()) / f"fuzz-{seed}-{number}.bin"
                kept.write_bytes(small)
                outcome.failures.append(Failure(number, mutant.what, error, kept))
            path.unlink(missing_ok=True)
            if tell:
                tell(number, outcome)
    return outcome


def _tried(how: Callable[[], str], outcome: Outcome, *, counted: bool) -> str:
    """The error in one line, empty for none."""
    caught: list[str] = []
    handler = logging.Handler(logging.DEBUG)
    handler.emit = lambda record: caught.append(_line(record.exc_info[1]) if record.exc_info else "")  # type: ignore[method-assign]
    log = logging.getLogger("gpuledger")
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    try:
        with time_limit(HANG_S), warnings.catch_warnings():
            warnings.simplefilter("error")
            came = how()
            if counted:
                outcome.counts[came] += 1
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        return " <- ".join([_line(error), *caught])
    finally:
        log.removeHandler(handler)
        log.setLevel(level)
    return ""


def _line(error: BaseException | None) -> str:
    """An error and where it was raised."""
    if error is None:
        return ""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/analyze/" in frame.filename]
    place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}: {str(error)[:300]}{place}"


def _shrunk(data: bytes, error: str, attempt: Callable[[bytes], str]) -> bytes:
    """The smallest part of a failing file that was found to fail in the same way."""
    kind, tries, step = error.partition(":")[0], 0, len(data) // 2
    if kind == "HangError" or len(data) > 1 << 20:
        return data
    while step >= 16 and tries < _SHRINK_TRIES:
        at = 0
        while at < len(data) and tries < _SHRINK_TRIES:
            less = data[:at] + data[at + step :]
            tries += 1
            if less and attempt(less).partition(":")[0] == kind:
                data = less
            else:
                at += step
        step //= 2
    return data
