"""Processes that answer requests in turn: the way to one, and those of this machine."""

from __future__ import annotations

import contextlib
import multiprocessing as mp
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from multiprocessing.connection import Connection
from typing import Any, NamedTuple, Protocol, TypeAlias

__all__ = ["Answer", "Desk", "Gone", "Hire", "Post", "Process", "begin_process"]


# The environment belongs to the whole process: one thread at a time changes it while it begins another one.
_BEGINNING = threading.Lock()


class Answer(NamedTuple):
    """The answer to a request, or the sentence of a refusal."""

    good: bool
    value: Any


class Gone(Exception):
    """A process is there no longer."""


class Desk(Protocol):
    """The part of a process that answers requests."""

    def answer(self, request: Any) -> Answer:
        """Do what is asked."""
        ...


class Post(Protocol):
    """The way to a process with a desk, and back; either raises `Gone` where the process has ended."""

    def send(self, request: Any) -> None:
        """Send a request, without waiting for its answer."""
        ...

    def receive(self) -> Answer:
        """The answer to the earliest request that was not answered."""
        ...

    def end(self) -> str:
        """End the process, and say how it ended."""
        ...


Hire: TypeAlias = Callable[[Callable[[], Desk]], Post]
"""Begins a process with the desk that a function gives."""


class Process:
    """A process of this machine, with a pipe.

    Arguments:
        desk: gives the desk in the process.
        environment: variables of the environment that the process has beside those of this one.
    """

    def __init__(self, desk: Callable[[], Desk], environment: Mapping[str, str] | None = None) -> None:
        context = mp.get_context("spawn")
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=_live, args=(other, desk), daemon=True)
        with _environment({"OPENBLAS_NUM_THREADS": "1"} if environment is None else environment):
            self.process.start()
        other.close()

    def send(self, request: Any) -> None:
        """Send a request."""
        with _noticing():
            self.pipe.send(request)

    def receive(self) -> Answer:
        """The next answer."""
        with _noticing():
            answer: Answer = self.pipe.recv()
            return answer

    def end(self) -> str:
        """End the process, which has nothing to lose that was not saved."""
        self.process.kill()
        self.process.join()
        self.pipe.close()
        return f"exit code {self.process.exitcode}"


def begin_process(desk: Callable[[], Desk]) -> Process:
    """Begin a process of this machine."""
    return Process(desk)


def _live(pipe: Connection, make: Callable[[], Desk]) -> None:
    """The life of a process: it answers until nobody asks. Ctrl-C is for the one who asks."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    desk = make()
    with contextlib.suppress(EOFError, OSError):
        while True:
            pipe.send(desk.answer(pipe.recv()))


@contextlib.contextmanager
def _noticing() -> Iterator[None]:
    try:
        yield
    except (EOFError, OSError) as error:
        raise Gone from error


@contextlib.contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Variables of the environment, which a process that is begun meanwhile has as well."""
    with _BEGINNING:
        before = {name: os.environ.get(name) for name in variables}
        os.environ.update(variables)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name)
                else:
                    os.environ[name] = value
