"""Every file through a worker: local processes, or any `concurrent.futures.Executor` such as that of Dask."""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from typing import Any

from msgspec import Struct, field

from analyze.errors import GpuledgerError, SelectionError
from analyze.ranks.files import CLUSTER_HINT, Candidate
from analyze.ranks.store import Store
from analyze.ranks.summary import Summary
from analyze.ranks.worker import summarise

FILE_LIMIT_S = 600.0  # a file that takes longer hangs
_ALONE = 1  # files: fewer than two are not worth a process
_POLL_S = 0.2
_ASKED_EVERY_S = 5.0
_SENT = 64  # files sent to workers of which nobody says how many they are
_NOT_A_TRACE = "NotATraceError"

Progress = Callable[[int, int, int], None]
"""Called with the files done, all files, and how many of those done came from the store."""


class Failure(Struct, frozen=True):
    """A file that gave no summary.

    Attributes:
        path: the file as shown.
        reason: why.
        foreign: it is no trace at all.
    """

    path: str
    reason: str
    foreign: bool = False


class Outcome(Struct):
    """What came of all files.

    Attributes:
        summaries: of files that could be read, in order of their paths.
        failures: the others.
        stored: how many summaries were in the store already.
        unstored: why summaries could not be stored, empty where they were or no store was asked for.
    """

    summaries: list[Summary] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    stored: int = 0
    unstored: str = ""


def work(candidate: Candidate, folder: str | None) -> tuple[Summary | None, Failure | None, str]:
    """Summarise one file, and put that into the store where there is one; a file never raises."""
    summary = _summary_or_failure(candidate)
    if isinstance(summary, Failure):
        return None, summary, ""
    if folder is None:
        return summary, None, ""
    try:
        Store(folder).put(summary)
    except OSError as error:
        return summary, None, error.strerror or str(error)
    return Store(folder).get(summary.file), None, ""


def _summary_or_failure(candidate: Candidate) -> Summary | Failure:
    if candidate.problem:
        return Failure(candidate.shown, candidate.problem)
    try:
        return summarise(candidate)
    except GpuledgerError as error:
        return Failure(candidate.shown, error.message, type(error).__name__ == _NOT_A_TRACE)
    except MemoryError:
        return Failure(candidate.shown, "there is not enough memory to read it")
    except Exception as error:  # noqa: BLE001 - one file never ends a job
        return Failure(candidate.shown, f"internal error ({type(error).__name__}: {str(error)[:200]})")


def summarise_all(
    candidates: Sequence[Candidate],
    *,
    store: Store | None = None,
    pool: Pool | None = None,
    limit_s: float = FILE_LIMIT_S,
    progress: Progress | None = None,
) -> Outcome:
    """Summaries of many files: those in the store are taken from there, the others are made.

    Args:
        candidates: the files.
        store: where summaries are kept; None keeps them in memory.
        pool: runs the workers; None runs them here.
        limit_s: time for one file, counted from when it can have begun.
        progress: progress.
    """
    outcome, known = Outcome(), store.known() if store else {}
    todo = []
    for one in candidates:
        info = known.get((one.shown, one.size_bytes, one.modified_ns, one.etag))
        if info is None or store is None:
            todo.append(one)
        else:
            outcome.summaries.append(store.get(info))
    outcome.stored = len(outcome.summaries)
    folder = str(store.folder) if store else None
    done = outcome.stored
    results = _Run(todo, folder, pool, limit_s).results() if pool else (work(one, folder) for one in todo)
    for summary, failure, unstored in results:
        done += 1
        if progress:
            progress(done, len(candidates), outcome.stored)
        if summary is not None:
            outcome.summaries.append(summary)
        if failure is not None:
            outcome.failures.append(failure)
        outcome.unstored = outcome.unstored or unstored
    outcome.summaries.sort(key=lambda one: one.file.path)
    outcome.failures.sort(key=lambda one: one.path)
    return outcome


_Result = tuple[Summary | None, Failure | None, str]
_ENDED = "its worker ended before it was done: out of memory, or killed"


@contextmanager
def without_main() -> Iterator[None]:
    """Hide the main module from workers that start meanwhile: they do not need it.

    Else a script that reads a job without `if __name__ == "__main__"` would run again in each of them.
    """
    main = sys.modules["__main__"].__dict__
    hidden: dict[str, Any] = {name: main[name] for name in ("__file__", "__spec__") if name in main}
    main.pop("__file__", None)
    main["__spec__"] = None
    try:
        yield
    finally:
        main.update(hidden)


class LocalPool:
    """Local processes that can be replaced when one of them was killed or hangs.

    Attributes:
        room: how many files they work on at once.
    """

    def __init__(self, workers: int) -> None:
        self.room = workers
        self._pool = self._made()

    def _made(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(self.room, mp_context=multiprocessing.get_context("spawn"))

    def submit(self, one: Candidate, folder: str | None) -> Future[_Result]:
        """Give a file to a worker."""
        with without_main():
            return self._pool.submit(work, one, folder)

    def restart(self) -> None:
        """End all workers and begin with new ones."""
        self.close()
        self._pool = self._made()

    def close(self) -> None:
        """End all workers, those that hang too."""
        processes = list((getattr(self._pool, "_processes", None) or {}).values())
        self._pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.terminate()


class ForeignPool:
    """An executor of somebody else, such as Dask's: it looks after its own workers."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._room, self._asked = 0, -_ASKED_EVERY_S

    @property
    def room(self) -> int:
        """How many files are sent at once: as many as its workers can begin with, so that no file waits for long.

        A file's time counts from when it is sent. Workers of a cluster come and go, so it is asked now and then.
        """
        now = time.monotonic()
        if now - self._asked > _ASKED_EVERY_S:
            client = getattr(self._executor, "_client", None)
            if client is None:
                self._room = int(getattr(self._executor, "_max_workers", 0)) or _SENT
            else:
                self._room = max(sum(client.nthreads().values()), 1)
            self._asked = now
        return self._room

    def submit(self, one: Candidate, folder: str | None) -> Future[_Result]:
        """Give a file to a worker."""
        return self._executor.submit(work, one, folder)

    def restart(self) -> None:
        """There is nothing that this program may restart."""


Pool = LocalPool | ForeignPool


class _Run:
    """Files on their way through a pool."""

    def __init__(self, todo: Sequence[Candidate], folder: str | None, pool: Pool, limit_s: float) -> None:
        self.queue = list(reversed(todo))
        self.suspects: list[Candidate] = []  # one of them ended its worker: each has to run alone
        self.folder, self.pool, self.limit_s = folder, pool, limit_s
        self.waiting: dict[Future[_Result], tuple[Candidate, float]] = {}

    def results(self) -> Iterator[_Result]:
        """What came of each file, as it comes."""
        while self.queue or self.suspects or self.waiting:
            yield from self._send()
            finished, _ = wait(self.waiting, timeout=_POLL_S, return_when=FIRST_COMPLETED)
            for future in finished:
                if future in self.waiting:
                    yield from self._take(future)
            yield from self._late()

    def _send(self) -> Iterator[_Result]:
        alone = bool(self.suspects) and not self.queue
        room = 1 if alone else self.pool.room
        source = self.suspects if alone else self.queue
        while source and len(self.waiting) < room:
            one = source.pop()
            try:
                self.waiting[self.pool.submit(one, self.folder)] = one, time.monotonic()
            except (BrokenExecutor, RuntimeError):
                yield None, Failure(one.shown, "no worker could be started for it; run again"), ""

    def _take(self, future: Future[_Result]) -> Iterator[_Result]:
        one, _ = self.waiting.pop(future)
        try:
            yield future.result()
        except BrokenExecutor:
            broken = [one, *(other for other, _ in self.waiting.values())]
            self.waiting.clear()
            self.pool.restart()
            if len(broken) == 1 or isinstance(self.pool, ForeignPool):
                for lost in broken:
                    yield None, Failure(lost.shown, _ENDED), ""
            else:
                self.suspects += reversed(broken)
        except Exception as error:  # noqa: BLE001 - an engine raises what it likes
            yield None, Failure(one.shown, f"its worker failed ({type(error).__name__})"), ""

    def _late(self) -> Iterator[_Result]:
        """Give up on files that take too long; what else the workers held begins anew."""
        now = time.monotonic()
        late = [future for future, (_, begun) in self.waiting.items() if now - begun > self.limit_s]
        if not late:
            return
        for future in late:
            one, _ = self.waiting.pop(future)
            future.cancel()
            yield None, Failure(one.shown, f"it took more than {self.limit_s:,.0f} s"), ""
        if isinstance(self.pool, LocalPool):
            self.queue += [one for one, _ in self.waiting.values()]
            self.waiting.clear()
            self.pool.restart()


@contextmanager
def engine(files: int, *, workers: int | None = None, cluster: str | None = None) -> Iterator[Pool | None]:
    """What runs the workers: nothing for one file, local processes, or a Dask cluster.

    Args:
        files: how many files there are.
        workers: local processes; as many as there are cores, at most one per file, where None.
        cluster: address of a Dask scheduler, tcp://HOST:PORT.

    Raises:
        SelectionError: Dask is not installed, or its scheduler does not answer.
    """
    if cluster is not None:
        with _dask(cluster) as executor:
            yield ForeignPool(executor)
        return
    count = min(workers or _cores(), files)
    if count <= _ALONE:
        yield None
        return
    pool = LocalPool(count)
    try:
        yield pool
    finally:
        pool.close()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def _dask(address: str) -> Iterator[Executor]:
    try:
        from distributed import Client
    except ImportError as error:
        raise SelectionError("--cluster needs Dask, which is not installed.", CLUSTER_HINT) from error
    try:
        client = Client(address, timeout="10s")
    except (OSError, TimeoutError, ValueError) as error:
        raise SelectionError(
            f"No Dask scheduler answers at {address}.", "Check the address, tcp://HOST:PORT."
        ) from error
    try:
        yield client.get_executor(pure=False)
    finally:
        client.close()
