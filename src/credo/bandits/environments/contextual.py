"""Contextual arms: a weight vector for every arm, and linear, logistic or other rewards of the score."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from credo.bandits.environments.base import Context, Environment, every_arm
from credo.bandits.environments.linear_scores import (
    ContextLaw,
    draw_rows,
    expected_rewards,
    require_scores,
    sample_reward,
)
from credo.bandits.environments.motion import Motion, Still, require_motion
from credo.core.errors import require_choice, require_integer, require_nonnegative
from credo.core.keys import as_key
from credo.core.records import record, static_field
from credo.core.trees import as_like
from credo.core.types import Array, ArrayLike, Key
from credo.likelihoods import LikelihoodBase, Normal

__all__ = ["ContextualArms", "ContextualState"]


@record
class ContextualState:
    """The state of `ContextualArms`.

    Attributes:
        weights: a weight vector for every arm (K, d).
        x: the context (d,).
    """

    weights: Array
    x: Array


@record
class ContextualArms(Environment[ContextualState]):
    """Arms with weights of their own: r ~ likelihood(x'w_a), with w_a ~ N(0, prior_var I) drawn at the start.

    `Normal(var)` makes it the linear bandit, and `Bernoulli()` the logistic one. Any other likelihood of one
    number will do that has a mean and draws, such as `Poisson()`.

    Arguments:
        arms: the number K of arms.
        size: the length d of a context.
        likelihood: the law of the reward, given the score x'w_a.
        prior_var: the variance of a weight.
        law: "normal" for contexts from N(0, I), "sphere" for contexts of length 1.
        motion: how the weights move.

    Raises:
        CredoError: a number is out of range, or the likelihood is not that of one number.

    Cost: a step takes K d operations and d normal draws.

    Example:
        >>> import credo
        >>> world = ContextualArms(arms=3, size=5, likelihood=credo.Bernoulli())
        >>> state = world.start(0)
        >>> world.context(state).x.shape, world.means(state).shape
        ((5,), (3,))
    """

    arms: int = static_field(default=7)
    size: int = static_field(default=10)
    likelihood: LikelihoodBase = Normal(0.01)
    prior_var: ArrayLike = 1.0
    law: ContextLaw = static_field(default="normal")
    motion: Motion = Still()

    def __post_init__(self) -> None:
        require_integer("arms", self.arms, 1)
        require_integer("size", self.size, 1)
        require_nonnegative("prior_var", self.prior_var)
        require_choice("law", self.law, ("normal", "sphere"))
        require_scores(self.likelihood)
        require_motion(self.motion)

    def start(self, key: Key) -> ContextualState:
        """Weights from their prior, and the first context."""
        weights, first = jax.random.split(as_key(key))
        return ContextualState(self._draw(weights), draw_rows(first, (self.size,), self.law))

    def context(self, state: ContextualState) -> Context:
        """The context (d,), and all arms."""
        return Context(state.x, every_arm(self.arms))

    def means(self, state: ContextualState) -> Array:
        """The likelihood's mean at the score of every arm (K,)."""
        return expected_rewards(self.likelihood, jnp.sum(state.weights * state.x[None, :], axis=-1))

    def reward(self, state: ContextualState, arm: ArrayLike, key: Key) -> Array:
        """A draw from the likelihood at the score of the arm."""
        return sample_reward(self.likelihood, jnp.sum(state.weights[arm] * state.x), arm, key)

    def advance(self, state: ContextualState, arm: ArrayLike, key: Key) -> ContextualState:
        """The weights after the `motion`, and a new context."""
        motion, following = jax.random.split(as_key(key))
        weights = self.motion.move(state.weights, self._draw, motion)
        return ContextualState(weights, draw_rows(following, (self.size,), self.law))

    def _draw(self, key: Array) -> Array:
        noise = jax.random.normal(key, (self.arms, self.size))
        return jnp.sqrt(as_like(self.prior_var, noise)) * noise
