"""An agent with its belief, as a policy that can be evaluated."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import jax
import numpy as np

from credo.core.inputs import require_numbers
from credo.core.keys import as_key
from credo.core.types import Array, ArrayLike, Key, PyTree

__all__ = ["AgentPolicy"]


class _Choice(Protocol):
    @property
    def pmf(self) -> Array: ...


class _Decider(Protocol):
    def decide(self, belief: Any, x: PyTree, key: Key, allowed: ArrayLike | None = None) -> _Choice: ...


@dataclass(frozen=True)
class AgentPolicy:
    """What an agent would do with a belief that stays as it is.

    The estimate is then that of the agent as it is now, which learns no more. If the belief comes from the
    same log, the estimate is too good: evaluate on rows that the agent has not seen.

    Cost: the agent's decisions, mapped over `CHUNK` rows at a time in one compiled program.

    Arguments:
        agent: an `Agent`, or whatever has its `decide`.
        belief: its belief.
        key: for policies that find their probabilities by draws.

    Example:
        >>> from typing import NamedTuple
        >>> class Choice(NamedTuple):
        ...     pmf: Array
        >>> class Sure:
        ...     def decide(self, belief, x, key, allowed=None):
        ...         return Choice(jax.nn.one_hot(belief, 2))
        >>> AgentPolicy(Sure(), 1).pmfs(None, np.ones((3, 2), bool)).tolist()
        [[0.0, 1.0], [0.0, 1.0], [0.0, 1.0]]
    """

    agent: _Decider
    belief: Any
    key: Key = 0
    _mapped: Any = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        def one(belief: Any, x: PyTree, key: Array, allowed: Array) -> Array:
            return self.agent.decide(belief, x, key, allowed).pmf

        object.__setattr__(self, "_mapped", jax.jit(jax.vmap(one, in_axes=(None, 0, 0, 0))))

    def pmfs(self, contexts: PyTree, allowed: np.ndarray) -> np.ndarray:
        """The probabilities of K arms (n, K) for n contexts.

        Raises:
            CredoError: a context holds text, which no learner takes.
        """
        require_numbers("contexts", contexts)
        keys = jax.random.split(as_key(self.key), len(allowed))
        return np.asarray(self._mapped(self.belief, contexts, keys, allowed), dtype=np.float64)
