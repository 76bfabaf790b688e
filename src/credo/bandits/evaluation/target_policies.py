"""The policy that is evaluated, as probabilities of all arms in every row of a log; an agent is one, too."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, runtime_checkable

import jax
import numpy as np

from credo.bandits.default import DefaultAgent, agent_of
from credo.bandits.logs import Log
from credo.bandits.logs.contexts import check_pmfs, row_of, take_rows
from credo.core.errors import CredoError, DataError, suggest
from credo.core.inputs import require_numbers
from credo.core.keys import as_key
from credo.core.types import Array, ArrayLike, Key, PyTree

__all__ = ["AgentPolicy", "RowPolicy", "Target", "TargetPolicy", "target_pmfs"]

CHUNK = 4096
"""The most rows for which a `TargetPolicy` is asked at once."""


@runtime_checkable
class TargetPolicy(Protocol):
    """A policy that gives its probabilities for many contexts at once, as `AgentPolicy` does.

    Example:
        >>> class Uniform:
        ...     def pmfs(self, contexts, allowed):
        ...         return allowed / allowed.sum(axis=1, keepdims=True)
        >>> isinstance(Uniform(), TargetPolicy)
        True
    """

    def pmfs(self, contexts: PyTree, allowed: np.ndarray) -> ArrayLike:
        """The probabilities of K arms (n, K) for n contexts, of which `allowed` (n, K) says what may be."""
        ...


RowPolicy: TypeAlias = Callable[[PyTree, np.ndarray], ArrayLike | Sequence[float] | str]
"""From one context and the allowed arms (K,) to probabilities (K,), or to the name of an arm."""

Target: TypeAlias = TargetPolicy | RowPolicy | ArrayLike | Sequence[float] | str
"""A policy: probabilities (N, K) or (K,), a function of a row, a `TargetPolicy`, or the name of an arm."""


def target_pmfs(log: Log, policy: Target) -> np.ndarray:
    """The probabilities of all arms, in every row of a log, under a policy.

    Arguments:
        log: N rows among K arms.
        policy: (N, K) probabilities; (K,) for every row; a function `policy(context, allowed)` that gives
            (K,) or the name of an arm; an object with `pmfs(contexts, allowed) -> (n, K)`, which is asked for
            `CHUNK` rows at a time; or the name of an arm that is always chosen.

    Returns:
        The probabilities (N, K), float64.

    Raises:
        CredoError: the policy is none of these, or is an arm that the log does not know.
        DataError: rows do not sum to 1, or give some probability to an arm that is not allowed.

    Example:
        >>> log = Log(("a", "b"), [0, 1], [1.0, 0.0], [0.5, 0.5])
        >>> target_pmfs(log, "b").tolist(), target_pmfs(log, [0.2, 0.8]).tolist()
        ([[0.0, 1.0], [0.0, 1.0]], [[0.2, 0.8], [0.2, 0.8]])
    """
    pmfs = np.array(_asked(log, policy), dtype=np.float64)
    check_pmfs("policy", pmfs, log.allowed)
    return np.maximum(pmfs, 0.0)


def _asked(log: Log, policy: Target) -> np.ndarray:
    shape = (log.rows, len(log.arms))
    if isinstance(policy, str):
        return _always(log, policy)
    if isinstance(policy, TargetPolicy):
        starts = range(0, log.rows, CHUNK)
        parts = [
            np.asarray(
                policy.pmfs(take_rows(log.contexts, slice(at, at + CHUNK)), log.allowed[at : at + CHUNK])
            )
            for at in starts
        ]
        return _of_shape(np.concatenate(parts), shape)
    if callable(policy):
        return np.stack([_of_row(log, policy, row) for row in range(log.rows)])
    try:
        pmfs = np.asarray(policy, dtype=np.float64)
    except (TypeError, ValueError):
        raise CredoError(
            "policy must be probabilities (N, K) or (K,), a function of a context and the allowed arms, an "
            f"object with `pmfs`, or the name of an arm; got {type(policy).__name__}.",
            field="policy",
        ) from None
    if pmfs.shape == shape[1:]:
        return np.broadcast_to(pmfs, shape)
    return _of_shape(pmfs, shape)


def _of_row(log: Log, policy: RowPolicy, row: int) -> np.ndarray:
    context = row_of(log.contexts, row)
    arms = len(log.arms)
    if row == 0:
        try:
            inspect.signature(policy).bind(context, log.allowed[row])
        except TypeError:
            raise CredoError(
                "policy must be a function of a context and the allowed arms, `policy(context, allowed)`.",
                field="policy",
            ) from None
        except ValueError:
            pass  # a built-in does not say what it takes
    answer = policy(context, log.allowed[row])
    if isinstance(answer, str):
        return np.asarray(np.arange(arms) == _arm(log, answer), dtype=np.float64)
    pmf = np.asarray(answer, dtype=np.float64)
    if pmf.shape != (arms,):
        raise CredoError(
            f"policy must give {arms} probabilities for a context, or the name of an arm; it gave the shape "
            f"{pmf.shape}.",
            field="policy",
        )
    return pmf


def _of_shape(pmfs: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    if pmfs.shape != shape:
        raise CredoError(
            f"policy must give probabilities of the shape {shape}, for the rows and arms of the log; got "
            f"{pmfs.shape}.",
            field="policy",
        )
    return pmfs


def _arm(log: Log, name: str) -> int:
    if name in log.arms:
        return log.arms.index(name)
    hint = suggest(name, log.arms)
    raise CredoError(
        f"policy must be an arm of the log, where it is a name; got {name!r}, and the arms are "
        f"{', '.join(log.arms[:8])}{', ...' if len(log.arms) > 8 else ''}{f' ({hint})' if hint else ''}.",
        field="policy",
    )


def _always(log: Log, name: str) -> np.ndarray:
    arm = _arm(log, name)
    barred = int((~log.allowed[:, arm]).sum())
    if barred:
        raise DataError(
            f"policy must choose allowed arms; {name!r} is not allowed in {barred:,} of {log.rows:,} rows: "
            "evaluate a function of the context and the allowed arms instead.",
            field="policy",
        )
    return np.broadcast_to(np.arange(len(log.arms)) == arm, (log.rows, len(log.arms)))


class _Choice(Protocol):
    @property
    def pmf(self) -> Array: ...


class _Decider(Protocol):
    def decide(self, belief: Any, x: PyTree, key: Key, allowed: ArrayLike | None = None) -> _Choice: ...


@dataclass(frozen=True)
class AgentPolicy:
    """The policy of an agent with a belief that stays as it is.

    The estimate is then that of the agent as it is now, which learns no more. If the belief comes from the
    same log, the estimate is too good: evaluate on rows that the agent has not seen.

    Cost: the agent's decisions, mapped over `CHUNK` rows at a time in one compiled program.

    Arguments:
        agent: an `Agent`, what `default_agent` gives, or whatever has the `decide` of an agent.
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

    agent: _Decider | DefaultAgent
    belief: Any
    key: Key = 0
    _mapped: Any = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        given: Any = self.agent
        agent: _Decider = given if hasattr(given, "decide") else agent_of(given)

        def one(belief: Any, x: PyTree, key: Array, allowed: Array) -> Array:
            return agent.decide(belief, x, key, allowed).pmf

        object.__setattr__(self, "_mapped", jax.jit(jax.vmap(one, in_axes=(None, 0, 0, 0))))

    def pmfs(self, contexts: PyTree, allowed: np.ndarray) -> np.ndarray:
        """The probabilities of K arms (n, K) for n contexts.

        Raises:
            CredoError: a context holds text, which no learner takes.
        """
        require_numbers("contexts", contexts)
        keys = jax.random.split(as_key(self.key), len(allowed))
        return np.asarray(self._mapped(self.belief, contexts, keys, allowed), dtype=np.float64)
