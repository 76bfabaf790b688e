"""Bayes-optimal decisions: the action with the least expected loss under a predictive."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias, get_args

import jax
import jax.numpy as jnp

from credo.core.errors import CredoError, require_choice, require_integer, require_interval
from credo.core.keys import require_key
from credo.core.types import Array, ArrayLike, Key
from credo.likelihoods import Predictive

__all__ = ["decide"]

LossName: TypeAlias = Literal["squared", "absolute", "zero-one", "pinball"]
"""The losses with a closed form."""

Loss: TypeAlias = Callable[[Array, Array], Array]
"""`loss(action, y)`, a scalar."""

_LOSSES: tuple[LossName, ...] = get_args(LossName)


def decide(
    predictive: Predictive,
    loss: LossName | Loss = "squared",
    *,
    actions: ArrayLike | None = None,
    level: ArrayLike = 0.5,
    samples: int = 1000,
    key: Key | None = None,
) -> Array:
    """The action that minimises the expected loss under p(y | x, past).

    Arguments:
        predictive: the result of `forecast`.
        loss: "squared" (the mean), "absolute" (the median), "zero-one" (the most probable class), "pinball"
            (the quantile `level`), or a function `loss(action, y)`.
        actions: the candidate actions (A, ...) for a function, one of which is returned; for a classifier
            they are the classes by default.
        level: the quantile of "pinball", in (0, 1).
        samples, key: how many draws of y estimate the expected loss of a function over a number, and the key
            of those draws. For classes the expectation is exact and needs no key.

    Returns:
        The best action.

    Raises:
        CredoError: the loss has another name, the level is not in (0, 1), or actions or a key are missing.

    Example:
        >>> from credo.likelihoods import Categorical
        >>> costs = jnp.asarray([[0.0, 1.0], [10.0, 0.0]])   # missing class 1 costs ten times as much
        >>> forecast = Categorical(2).plugin(jnp.asarray([1.0, 0.0]))
        >>> int(decide(forecast, lambda action, y: costs[y, action]))
        1
    """
    if callable(loss):
        return _least(predictive, loss, actions, samples, key)
    require_choice("loss", loss, _LOSSES)
    if loss == "squared":
        return predictive.mean
    if loss == "absolute":
        return predictive.quantile(0.5)
    if loss == "pinball":
        require_interval("level", level, 0.0, 1.0, closed=False)
        return predictive.quantile(level)
    return jnp.argmax(predictive.probs, axis=-1)


def _least(
    predictive: Predictive, loss: Loss, actions: ArrayLike | None, samples: int, key: Key | None
) -> Array:
    try:
        probs = predictive.probs
    except CredoError:
        probs = None
    if probs is not None:
        outcomes = jnp.arange(probs.shape[-1])
        candidates = outcomes if actions is None else jnp.asarray(actions)
        weights = probs
    else:
        require_integer("samples", samples, 1)
        if actions is None:
            raise CredoError("actions is missing: pass the candidate actions, one of which is chosen.")
        outcomes = predictive.sample(require_key(key, "decide with a loss function"), (samples,))
        candidates = jnp.asarray(actions)
        weights = jnp.full(samples, 1.0 / samples, outcomes.dtype)
    table = jax.vmap(lambda action: jax.vmap(lambda y: loss(action, y))(outcomes))(candidates)
    return candidates[jnp.argmin(weights @ table.T.astype(weights.dtype), axis=-1)]
