"""An agent together with what its first belief needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from credo.bandits.agent import Agent, AgentBelief
from credo.core.keys import as_key
from credo.core.types import Array, Key, PyTree

__all__ = ["Recipe"]


@dataclass(frozen=True)
class Recipe:
    """An agent, and the arguments with which `init` and `play` start it.

    Attributes:
        agent: the agent.
        inputs: the length of a context.
        params: the prior mean as a function of a key, which draws networks.
        var: the prior variances.
        options: further arguments of the agent's `init`.

    Example:
        >>> from credo_papers import baselines
        >>> recipe = baselines.gradient_agent(arms=3, inputs=4)
        >>> int(recipe.init(key=0).t)
        0

        `bandits.play(recipe.agent, world, params=recipe.params, var=recipe.var, options=recipe.options)` lets
        it play.
    """

    agent: Agent
    inputs: int
    params: Callable[[Array], PyTree]
    var: PyTree = 1.0
    options: Mapping[str, PyTree] = field(default_factory=dict)

    def init(self, key: Key = 0) -> AgentBelief[Any]:
        """The belief before any reward.

        Arguments:
            key: the key that draws the networks.
        """
        scaled = {} if self.agent.scale is None else {"context": np.zeros(self.inputs, np.float32)}
        return self.agent.init(self.params(as_key(key)), var=self.var, **self.options, **scaled)
