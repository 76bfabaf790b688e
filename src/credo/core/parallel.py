"""Functions that are called in other processes, side by side: the parts of an experiment, settings of a grid.

A crew is some worker processes, each with one thread of XLA. `Crew.call` waits for a free one, sends it a
function without arguments, and gives its value; threads of this process call it side by side (`each`). The
function travels by cloudpickle, with everything that it closes over. A worker that dies is replaced, and its
function is called once more.
"""

from __future__ import annotations

import queue
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import jax

from credo.core.errors import CredoError, DataError, Named, require_integer
from credo.core.extensions import extra
from credo.core.fingerprints import option
from credo.core.processes import Answer, Gone, Post, Process

__all__ = ["Crew", "TaskFailed", "sentence_of"]

T = TypeVar("T")
I = TypeVar("I")

ONE_THREAD = {"NPROC": "1", "OPENBLAS_NUM_THREADS": "1", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
"""The environment of a worker: XLA and LAPACK have one thread, and a GPU is not taken whole. A flag of XLA's
that says as much makes other programs, which round differently."""

DEATHS = 2
"""So many workers may die of a function before it has failed."""


class TaskFailed(Exception):
    """A function raised an exception, or ended its process; the message is a sentence."""


class Crew:
    """Some worker processes; `with` lets go of them in the end.

    Arguments:
        jobs: how many, at least 1. They begin when there is something to do.
        ray: the address of a cluster of Ray whose actors they are, "local" for one in this machine; None for
            processes of this machine.

    Raises:
        CredoError: `jobs` is not a whole number above 0, or a package is missing.
        DataError: no cluster answers.
    """

    def __init__(self, jobs: int, ray: str | None = None) -> None:
        require_integer("jobs", jobs, 1)
        _require_pickler()
        self.jobs = jobs
        self.ray = ray
        self._closed = False
        if ray is not None:
            from credo.core.actors import join_cluster

            join_cluster(ray)
        # whoever gets a worker from here has it alone until it is put back; None stands for one to be begun
        self._free: queue.SimpleQueue[Post | None] = queue.SimpleQueue()
        self._all: list[Post] = []
        for _ in range(jobs):
            self._free.put(None)

    def call(self, function: Callable[[], T]) -> T:
        """The result of a function in a worker, once there is a free one.

        Raises:
            TaskFailed: it raised an exception, or its process ended again and again.
        """
        post = self._free.get()
        deaths = 0
        try:
            while True:
                post = self._begin() if post is None else post
                try:
                    post.send(_packed(function))
                    answer = post.receive()
                    break
                except Gone:
                    self._all.remove(post)
                    how = post.end()
                    post = None
                    deaths = deaths + 1
                    if deaths == DEATHS or self._closed:
                        raise TaskFailed(f"its process ended {deaths} times, {how}") from None
        finally:
            self._free.put(post)
        if not answer.good:
            raise TaskFailed(answer.value)
        result: T = answer.value
        return result

    def each(self, function: Callable[[I], T], items: Sequence[I]) -> list[T]:
        """The results of a function, which may `call`, for items, side by side in threads of this process.

        If one raises, so does this, and the workers end.
        """
        doubled = bool(option("jax_enable_x64"))  # which is the caller's thread's own

        def one(item: I) -> T:
            with jax.enable_x64(doubled):
                return function(item)

        if not items:
            return []
        pool = ThreadPoolExecutor(min(self.jobs, len(items)))
        try:
            return [future.result() for future in [pool.submit(one, item) for item in items]]
        except BaseException:
            self.close()
            raise
        finally:
            pool.shutdown(cancel_futures=True)

    def close(self) -> None:
        """End the workers."""
        self._closed = True
        for post in list(self._all):
            post.end()

    def __enter__(self) -> Crew:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _begin(self) -> Post:
        if self._closed:
            raise TaskFailed("the workers have ended")
        if self.ray is None:
            post: Post = Process(_TaskDesk, ONE_THREAD)
        else:
            from credo.core.actors import Actor

            post = Actor(_TaskDesk, ONE_THREAD)
        self._all.append(post)
        return post


class _TaskDesk:
    """Calls functions."""

    def answer(self, request: tuple[bool, bytes]) -> Answer:
        """Call a function."""
        import cloudpickle

        try:
            doubled, packed = request
            jax.config.update("jax_enable_x64", doubled)  # before there are arrays, and in every thread
            return Answer(True, cloudpickle.loads(packed)())
        except Exception as error:
            return Answer(False, sentence_of(error))


def sentence_of(error: Exception) -> str:
    """The message of an exception, and the place where it was raised."""
    if isinstance(error, CredoError):
        return str(error).rstrip(".")
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}".rstrip(". \n:") + where


def _packed(function: Callable[[], Any]) -> tuple[bool, bytes]:
    import cloudpickle

    try:
        packed: bytes = cloudpickle.dumps(function)
    except Exception as error:  # pickling runs code of the user's classes
        raise TaskFailed(f"it cannot be sent to another process: {sentence_of(error)}") from error
    return bool(option("jax_enable_x64")), packed


def _require_pickler() -> None:
    try:
        import cloudpickle  # noqa: F401
    except ImportError:
        raise DataError(f"{Named('jobs')} needs the package cloudpickle: {extra('parallel')}.") from None
