"""Processes that have shards, and answer requests about them in turn."""

from __future__ import annotations

import contextlib
import multiprocessing as mp
import os
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection
from typing import Any, NamedTuple, Protocol, TypeAlias

import jax

from credo.core.errors import CredoError
from credo.scale.shard import Plan, Shard

__all__ = ["Answer", "Desk", "Gone", "Hire", "Post", "Request", "begin_process"]


class Request(NamedTuple):
    """What is asked: "open" the shards, or let one "apply" a batch, "save", or give its "tally"."""

    what: str
    shard: int = 0
    given: Any = None


class Answer(NamedTuple):
    """What was answered, or the sentence of a refusal."""

    good: bool
    value: Any


class Gone(Exception):
    """A process is there no longer."""


class Post(Protocol):
    """The way to a process with a desk, and back; either raises `Gone` where the process has ended."""

    def send(self, request: Request) -> None:
        """Send a request, without waiting for its answer."""
        ...

    def receive(self) -> Answer:
        """The answer to the earliest request that was not answered."""
        ...

    def end(self) -> str:
        """End the process, and say how it ended."""
        ...


Hire: TypeAlias = Callable[[Plan, Sequence[int]], Post]
"""Begins a process that has some of the shards."""


class Desk:
    """The shards of a process."""

    def __init__(self, plan: Plan, numbers: Sequence[int]) -> None:
        jax.config.update("jax_cpu_enable_async_dispatch", False)  # no other thread is woken for a call
        self.plan, self.numbers = plan, numbers
        self.shards: dict[int, Shard] = {}

    def answer(self, request: Request) -> Answer:
        """Do what is asked."""
        try:
            return Answer(True, self._do(*request))
        except CredoError as error:
            return Answer(False, str(error))

    def _do(self, what: str, number: int, given: Any) -> Any:
        if what == "open":
            self.shards = {one: Shard(self.plan, one) for one in self.numbers}
            return {one: shard.line for one, shard in self.shards.items()}
        shard = self.shards[number]
        if what == "apply":
            shard.apply(given)
            return None
        return shard.save() if what == "save" else shard.tally


class _Process:
    """A process of this machine, with a pipe."""

    def __init__(self, plan: Plan, numbers: Sequence[int]) -> None:
        context = mp.get_context("spawn")
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=_live, args=(other, plan, numbers), daemon=True)
        with _environment(OPENBLAS_NUM_THREADS="1"):
            self.process.start()
        other.close()

    def send(self, request: Request) -> None:
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
        self.pipe.close()
        self.process.kill()
        self.process.join()
        return f"exit code {self.process.exitcode}"


def begin_process(plan: Plan, numbers: Sequence[int]) -> _Process:
    """Begin a process of this machine."""
    return _Process(plan, numbers)


def _live(pipe: Connection, plan: Plan, numbers: Sequence[int]) -> None:
    """The life of a process: it answers until nobody asks."""
    desk = Desk(plan, numbers)
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
def _environment(**variables: str) -> Iterator[None]:
    """Variables of the environment, which a process that is begun meanwhile has as well."""
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
