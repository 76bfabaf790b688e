"""Rewards that depend on a linear score through a likelihood, and the contexts that go with them."""

from __future__ import annotations

from typing import Literal, TypeAlias

import jax
import jax.numpy as jnp

from credo.bandits.environments.base import arm_key
from credo.core.errors import CredoError
from credo.core.types import Array, ArrayLike, Key
from credo.likelihoods import LikelihoodBase

__all__ = ["ContextLaw", "draw_rows", "expected_rewards", "require_scores", "sample_reward"]

ContextLaw: TypeAlias = Literal["normal", "sphere"]
"""How contexts are drawn: from N(0, I), or uniformly on the unit sphere."""


def draw_rows(key: Array, shape: tuple[int, ...], law: ContextLaw) -> Array:
    """Draw contexts (..., d): standard normal, or uniform on the unit sphere."""
    rows = jax.random.normal(key, shape)
    return rows if law == "normal" else rows / jnp.linalg.norm(rows, axis=-1, keepdims=True)


def expected_rewards(likelihood: LikelihoodBase, scores: Array) -> Array:
    """E[r | score] for scores (K,)."""
    means: Array = jax.vmap(lambda score: likelihood.mean(score[None])[0])(scores)
    return means


def sample_reward(likelihood: LikelihoodBase, score: Array, arm: ArrayLike, key: Key) -> Array:
    """A draw of the reward of an arm, given its score."""
    drawn = likelihood.sample(score[None], arm_key(key, arm))
    return jnp.reshape(drawn, ()).astype(score.dtype)


def require_scores(likelihood: object) -> None:
    """Refuse, as a `CredoError`, what is no likelihood of one number with a mean and draws."""
    if not isinstance(likelihood, LikelihoodBase):
        raise CredoError(
            f"likelihood must be one of credo's, such as credo.Normal(0.01) or credo.Bernoulli(); "
            f"got {likelihood!r}.",
            field="likelihood",
        )
    likelihood.check(1)
    score, key = jnp.zeros(1), jax.random.key(0)
    shapes = jax.eval_shape(lambda: (likelihood.mean(score), likelihood.sample(score, key)))
    if any(shape.size != 1 for shape in shapes):
        raise CredoError(
            f"likelihood must be that of one number; {likelihood!r} has means of shape {shapes[0].shape}.",
            field="likelihood",
        )
