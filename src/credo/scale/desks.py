"""Some shards in a process, which answers requests about them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax

from credo.core.errors import CredoError
from credo.core.processes import Answer
from credo.scale.shard import Plan, Shard

__all__ = ["Request", "ShardDesk"]


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
