"""Shards in actors of Ray, on one machine or several that share the folder of the run."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from credo.core.errors import CredoError, DataError
from credo.core.extensions import extra
from credo.scale.desks import Answer, Desk, Gone, Hire, Request
from credo.scale.shard import Plan

__all__ = ["hire_actors"]


def hire_actors(address: str) -> Hire:
    """What begins actors in the cluster at an address, "local" for one in this machine."""
    try:
        import ray
    except ImportError:
        raise CredoError(f"`ray` needs the package ray: {extra('ray')}.", field="ray") from None
    if not ray.is_initialized():
        try:
            where = None if address == "local" else address
            ray.init(where, log_to_driver=False, configure_logging=False, include_dashboard=False)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise DataError(
                f"no cluster of Ray answers at {address}: {str(error).splitlines()[0]}."
            ) from None
    return _Actor


class _Actor:
    """An actor with a desk. Ray does not begin it again: its successor is begun where there is room."""

    def __init__(self, plan: Plan, numbers: Sequence[int]) -> None:
        import ray

        self._ray: Any = ray
        self._actor: Any = ray.remote(
            num_cpus=0, scheduling_strategy="SPREAD", max_restarts=0, max_task_retries=0
        )(Desk).remote(plan, numbers)
        self._asked: deque[Any] = deque()

    def send(self, request: Request) -> None:
        """Send a request."""
        with self._noticing():
            self._asked.append(self._actor.answer.remote(request))

    def receive(self) -> Answer:
        """The next answer."""
        with self._noticing():
            answer: Answer = self._ray.get(self._asked.popleft())
            return answer

    def end(self) -> str:
        """End the actor, which has nothing to lose that was not saved."""
        with contextlib.suppress(Exception):
            self._ray.kill(self._actor)
        return "its actor was gone"

    @contextlib.contextmanager
    def _noticing(self) -> Iterator[None]:
        errors = self._ray.exceptions
        try:
            yield
        except (errors.RayActorError, errors.ObjectLostError, errors.WorkerCrashedError) as error:
            raise Gone from error
