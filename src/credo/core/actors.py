"""Processes that answer requests in turn, as actors of a cluster of Ray."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from credo.core.errors import CredoError, DataError, Named
from credo.core.extensions import extra
from credo.core.processes import Answer, Desk, Gone, Hire

__all__ = ["Actor", "hire_actors", "join_cluster"]


class Actor:
    """An actor of Ray with a desk. Ray does not begin it again: its successor is begun if there is room.

    Arguments:
        desk: gives the desk in the actor.
        environment: variables of the environment that the actor has beside those of its machine.
    """

    def __init__(self, desk: Callable[[], Desk], environment: Mapping[str, str] | None = None) -> None:
        import ray

        self._ray: Any = ray
        begin: Any = ray.remote
        self.actor: Any = begin(
            num_cpus=0,
            scheduling_strategy="SPREAD",
            max_restarts=0,
            max_task_retries=0,
            runtime_env={"env_vars": dict(environment)} if environment else None,
        )(_ActorDesk).remote(desk)
        self._asked: deque[Any] = deque()

    def send(self, request: Any) -> None:
        """Send a request."""
        with self._noticing():
            self._asked.append(self.actor.answer.remote(request))

    def receive(self) -> Answer:
        """The next answer."""
        with self._noticing():
            answer: Answer = self._ray.get(self._asked.popleft())
            return answer

    def end(self) -> str:
        """End the actor, which has nothing to lose that was not saved."""
        with contextlib.suppress(Exception):
            self._ray.kill(self.actor)
        return "its actor was gone"

    @contextlib.contextmanager
    def _noticing(self) -> Iterator[None]:
        errors = self._ray.exceptions
        try:
            yield
        except (errors.RayActorError, errors.ObjectLostError, errors.WorkerCrashedError) as error:
            raise Gone from error


def hire_actors(address: str) -> Hire:
    """The function that begins actors in the cluster of Ray at an address, "local" for this machine."""
    join_cluster(address)
    return Actor


def join_cluster(address: str) -> None:
    """Join this process to a cluster of Ray, "local" for one in this machine."""
    try:
        import ray
    except ImportError:
        raise CredoError(f"{Named('ray')} needs the package ray: {extra('ray')}.", field="ray") from None
    if not ray.is_initialized():
        try:
            where = None if address == "local" else address
            ray.init(where, log_to_driver=False, configure_logging=False, include_dashboard=False)
        except Exception as error:  # Ray raises it by itself where a part of it dies while it starts
            raise DataError(f"no cluster of Ray answers at {address}: {_first_sentence(error)}.") from None


def _first_sentence(error: Exception) -> str:
    """The first sentence of an error, without its point."""
    return str(error).split("\n", 1)[0].split(". ", 1)[0].rstrip(".")


class _ActorDesk:
    """The desk of an actor."""

    def __init__(self, desk: Callable[[], Desk]) -> None:
        self.desk = desk()

    def answer(self, request: Any) -> Answer:
        """Do what is asked."""
        return self.desk.answer(request)
