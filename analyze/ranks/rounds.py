"""Files to one job and one round of it: one file per rank, recorded at one time (docs/ranks.md)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from analyze.errors import SelectionError
from analyze.ranks.summary import Summary

SKEW_NS = 1_000_000_000  # recordings can be shorter than what the clocks of two hosts differ by


class LeftOut(Struct, frozen=True):
    """A file that is in no figure.

    Attributes:
        path: the file, below the folder.
        reason: why.
    """

    path: str
    reason: str


class Round:
    """Recordings of one job that belong together.

    Attributes:
        files: one per rank.
    """

    def __init__(self) -> None:
        self.files: list[Summary] = []
        self._ranks: set[int] = set()
        self._steps: set[str] = set()
        self._window = (0, 0)

    def add(self, one: Summary, steps: set[str]) -> None:
        """Take a file in."""
        low, high = self._window if self.files else (_start(one), _end(one))
        self._window = min(low, _start(one)), max(high, _end(one))
        self.files.append(one)
        self._ranks.add(_rank(one))
        self._steps |= steps

    def takes(self, other: Summary, steps: set[str]) -> bool:
        """Whether a file can be of this round."""
        if _rank(other) in self._ranks:
            return False
        low, high = self._window
        if _end(other) + SKEW_NS < low - SKEW_NS or high + SKEW_NS < _start(other) - SKEW_NS:
            return False
        return not self._steps or not steps or bool(self._steps & steps)


class Chosen(Struct, frozen=True):
    """What is analysed of some files.

    Attributes:
        files: one per rank, in order of ranks.
        left_out: the other files, in order of their paths.
        world: number of ranks as text, empty where not recorded.
        rounds: how many rounds there are, and which was taken, counted from 0.
    """

    files: tuple[Summary, ...]
    left_out: tuple[LeftOut, ...]
    world: str
    rounds: tuple[int, int]


def choose(
    summaries: Iterable[Summary],
    *,
    job: str | None = None,
    round: int | None = None,  # noqa: A002 - the option's name
) -> Chosen:
    """Sort files into jobs and rounds, and take one of each.

    Args:
        summaries: of files that could be read.
        job: the number of ranks, as text, of the job to take; the one with most ranks where None.
        round: the round to take, counted from 0; the one with most ranks where None.

    Raises:
        SelectionError: there is no such job or round.
    """
    files, left_out = _usable(sorted(summaries, key=lambda one: one.file.path))
    jobs = jobs_of(files)
    if job is not None and not any(job in (key[0], job_label(key)) for key in jobs):
        listed = ", ".join(job_label(key) for key in jobs) or "none"
        raise SelectionError(f"There is no job {job!r} among the files.", f"Jobs by number of ranks: {listed}.")
    if not jobs:
        return Chosen((), tuple(sorted(left_out, key=lambda one: one.path)), "", (0, 0))
    wanted = {key: mine for key, mine in jobs.items() if job is None or job in (key[0], job_label(key))}
    taken = max(wanted, key=lambda key: (len({_rank(one) for one in wanted[key]}), key))
    left_out += [
        LeftOut(one.file.path, f"of another job ({job_label(key)})")
        for key, mine in jobs.items()
        if key != taken
        for one in mine
    ]
    rounds = rounds_of(jobs[taken])
    at = _round(rounds, round)
    left_out += [
        LeftOut(one.file.path, f"of another recording of the job (round {i})")
        for i, other in enumerate(rounds)
        if i != at
        for one in other.files
    ]
    chosen = tuple(sorted(rounds[at].files, key=_rank))
    return Chosen(chosen, tuple(sorted(left_out, key=lambda one: one.path)), taken[0], (len(rounds), at))


def _round(rounds: Sequence[Round], wanted: int | None) -> int:
    if wanted is None:
        return max(range(len(rounds)), key=lambda i: (len(rounds[i].files), i))
    if not 0 <= wanted < len(rounds):
        raise SelectionError(f"There is no round {wanted}.", f"Rounds: 0 to {len(rounds) - 1}.")
    return wanted


def job_label(key: tuple[str, str]) -> str:
    """How a job is named: by its number of ranks, and by the id of its recording where that is known."""
    world, trace_group = key
    size = f"{world} ranks" if world else "unknown number of ranks"
    return f"{size}, recording {trace_group[:12]}" if trace_group else size


def jobs_of(files: Sequence[Summary]) -> dict[tuple[str, str], list[Summary]]:
    """Files by job: by number of ranks and id of the recording; a file without such an id joins the largest."""
    found: dict[tuple[str, str], list[Summary]] = {}
    for one in files:
        found.setdefault((one.file.world, one.file.trace_group), []).append(one)
    for world in {key[0] for key in found}:
        named = [key for key in found if key[0] == world and key[1]]
        if named and (world, "") in found:
            largest = max(named, key=lambda key: (len(found[key]), key))
            found[largest] += found.pop((world, ""))
    return found


def rounds_of(files: Iterable[Summary]) -> list[Round]:
    """The rounds of one job in order of their first window."""
    found: list[Round] = []
    for one in sorted(files, key=lambda one: (_start(one), _end(one), one.file.path)):
        steps = set(one.frames["step"]["name"])
        home = next((other for other in found if other.takes(one, steps)), None)
        if home is None:
            home = Round()
            found.append(home)
        home.add(one, steps)
    return found


def _usable(files: Sequence[Summary]) -> tuple[list[Summary], list[LeftOut]]:
    """Files of different content with activities and a rank; the others with why they are left out."""
    first: dict[str, str] = {}
    kept, left_out = [], []
    for one in files:
        info = one.file
        twin = first.setdefault(info.key, info.path)
        if twin != info.path:
            left_out.append(LeftOut(info.path, f"same content as {twin}"))
        elif info.window_start_ns is None:
            left_out.append(LeftOut(info.path, "no device activity"))
        elif info.rank is None:
            left_out.append(LeftOut(info.path, "neither its content nor its name gives its rank"))
        else:
            kept.append(one)
    return kept, left_out


def _rank(one: Summary) -> int:
    assert one.file.rank is not None
    return one.file.rank


def _start(one: Summary) -> int:
    assert one.file.window_start_ns is not None
    return one.file.window_start_ns


def _end(one: Summary) -> int:
    assert one.file.window_end_ns is not None
    return one.file.window_end_ns
