"""Where shards live: in this process, or in worker processes that are begun again when they die."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import jax

from credo.core.errors import CredoError, DataError
from credo.core.processes import Answer, Gone, Hire
from credo.scale.batches import Batch
from credo.scale.key_tally import KeyTally
from credo.scale.shard import Plan, Shard

__all__ = ["Here", "Shards", "Worker", "Workers"]


class Request(NamedTuple):
    """What is asked: "open" the shards, or let one "apply" a batch, "save", or give its "tally"."""

    what: str
    shard: int = 0
    given: Any = None


class ShardDesk:
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


FLIGHT = 4
"""The most batches that a worker was sent and has not answered."""

DEATHS = 5
"""After so many deaths of a worker without a batch that it has learned, the run ends."""

T = TypeVar("T")


class Shards(Protocol):
    """The shards of a run."""

    def apply(self, parts: Sequence[Batch]) -> None:
        """Let each shard learn its part of a batch, at some time before the next `save` has ended."""
        ...

    def save(self) -> None:
        """Write a checkpoint of every shard."""
        ...

    def lines(self) -> list[int]:
        """The line up to which each shard had learned when it was opened."""
        ...

    def tally(self) -> KeyTally:
        """The joined tallies."""
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...


class Here:
    """Shards in this process."""

    def __init__(self, plan: Plan, count: int) -> None:
        self.shards = [Shard(plan, number) for number in range(count)]

    def apply(self, parts: Sequence[Batch]) -> None:
        """Let each shard learn its part of a batch."""
        for shard, part in zip(self.shards, parts, strict=True):
            shard.apply(part)

    def save(self) -> None:
        """Write a checkpoint of every shard."""
        for shard in self.shards:
            shard.save()

    def lines(self) -> list[int]:
        """The line up to which each shard has learned."""
        return [shard.line for shard in self.shards]

    def tally(self) -> KeyTally:
        """The joined tallies."""
        return _joined([shard.tally for shard in self.shards])

    def close(self) -> None:
        """Nothing is held."""


def _joined(tallies: Sequence[KeyTally]) -> KeyTally:
    whole = KeyTally(tallies[0].classes)
    for one in tallies:
        whole.join(one)
    return whole


class Worker:
    """A process with some shards, and the batches that it may have to learn again.

    Arguments:
        hire: begins the process.
        plan, numbers: what all shards have in common, and which are those of the process.
    """

    def __init__(self, hire: Hire, plan: Plan, numbers: Sequence[int]) -> None:
        self.hire, self.desk = hire, functools.partial(ShardDesk, plan, numbers)
        self.kept: deque[tuple[int, Batch]] = deque()
        self.lines: dict[int, int] = {}
        self.flight = self.deaths = 0
        self.post = hire(self.desk)
        self._again(self._open)

    def apply(self, number: int, batch: Batch) -> None:
        """Send a shard a batch; waits where as many as allowed are on their way."""
        self.kept.append((number, batch))
        try:
            self._send(Request("apply", number, batch))
        except Gone:
            self._replace()
            self._again(self._open)  # which sends the batch

    def settle(self, what: str, number: int) -> Any:
        """The answer of a shard to a request, after all that were sent before."""

        def ask() -> Any:
            while self.flight:
                self._answer()
            self.post.send(Request(what, number))
            return self._receive()

        try:
            return ask()
        except Gone:
            self._replace()

        def open_and_ask() -> Any:
            self._open()
            return ask()

        return self._again(open_and_ask)

    def forget(self) -> None:
        """The batches are in checkpoints, and need not be sent again."""
        self.kept.clear()

    def close(self) -> None:
        """End the process."""
        self.post.end()

    def _open(self) -> None:
        """Let the process read its checkpoints, and send it what these lack."""
        self.flight = 0
        self.post.send(Request("open"))
        self.lines = self._receive()
        for number, batch in self.kept:
            if batch.last > self.lines[number]:
                self._send(Request("apply", number, batch))

    def _again(self, task: Callable[[], T]) -> T:
        """Do what a process is needed for, by new ones as often as they die."""
        while True:
            try:
                return task()
            except Gone:
                self._replace()

    def _replace(self) -> None:
        """Begin a new process in the place of one that died."""
        how = self.post.end()
        self.deaths += 1
        if self.deaths > DEATHS:
            raise DataError(
                f"a worker died {self.deaths} times without learning a batch between; the last time, {how}. "
                "What was saved is whole."
            )
        self.post = self.hire(self.desk)

    def _send(self, request: Request) -> None:
        while self.flight >= FLIGHT:
            self._answer()
        self.post.send(request)
        self.flight += 1

    def _answer(self) -> None:
        self._receive()
        self.flight -= 1
        self.deaths = 0

    def _receive(self) -> Any:
        good, value = self.post.receive()
        if not good:
            raise DataError(value)
        return value


class Workers:
    """Shards in worker processes, each of which has every so manieth shard."""

    def __init__(self, plan: Plan, count: int, workers: int, hire: Hire) -> None:
        self.count = count
        self.workers = [Worker(hire, plan, range(first, count, workers)) for first in range(workers)]

    def apply(self, parts: Sequence[Batch]) -> None:
        """Send each shard its part of a batch; waits where a worker has enough to do."""
        for number, part in enumerate(parts):
            self._of(number).apply(number, part)

    def save(self) -> None:
        """Write a checkpoint of every shard; then no earlier batch is kept."""
        for number in range(self.count):
            self._of(number).settle("save", number)
        for worker in self.workers:
            worker.forget()

    def lines(self) -> list[int]:
        """The line up to which each shard had learned when it was opened."""
        return [line for worker in self.workers for line in worker.lines.values()]

    def tally(self) -> KeyTally:
        """The joined tallies."""
        return _joined([self._of(number).settle("tally", number) for number in range(self.count)])

    def close(self) -> None:
        """End the processes."""
        for worker in self.workers:
            worker.close()

    def _of(self, number: int) -> Worker:
        return self.workers[number % len(self.workers)]
