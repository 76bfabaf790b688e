"""Arms with a score that is linear in features: with weights of their own, or with shared ones (products)."""

from __future__ import annotations

from typing import Literal, TypeAlias

import jax
import jax.numpy as jnp

from credo.bandits.environments.base import Context, ContextDesign, Environment, arm_key, every_arm
from credo.bandits.environments.motion import Motion, Still, require_motion
from credo.core.errors import (
    CredoError,
    require_choice,
    require_integer,
    require_interval,
    require_nonnegative,
)
from credo.core.keys import as_key
from credo.core.records import record, static_field
from credo.core.trees import as_like
from credo.core.types import Array, ArrayLike, Key
from credo.likelihoods import LikelihoodBase, Normal

__all__ = ["ContextualArms", "ContextualState", "Products", "ProductsState"]

ContextLaw: TypeAlias = Literal["normal", "sphere"]
"""The distribution of contexts: N(0, I), or uniform on the unit sphere."""


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
    score = jnp.zeros(1)
    key = jax.random.key(0)
    shapes = jax.eval_shape(lambda: (likelihood.mean(score), likelihood.sample(score, key)))
    if any(shape.size != 1 for shape in shapes):
        raise CredoError(
            f"likelihood must be that of one number; {likelihood!r} has means of shape {shapes[0].shape}.",
            field="likelihood",
        )


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
        likelihood: the distribution of the reward, given the score x'w_a.
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


@record
class ProductsState:
    """The state of `Products`.

    Attributes:
        weights: what every feature is worth (1, d), the same for all products.
        features: the products that can be chosen now (K, d).
    """

    weights: Array
    features: Array


@record
class Products(Environment[ProductsState]):
    """Products with features (K, d), of which one is shown: r ~ likelihood(x_a'w), with one w for all.

    The context has a row for every product, so that an agent of the design "actions" can know the value of a
    product that nobody has chosen yet. In every step a product is replaced by another with probability
    `turnover`: 1 offers new products every time, and 0 always the same.

    Arguments:
        arms: the number K of products on offer.
        size: the number d of features.
        likelihood: the distribution of the reward, given the score x_a'w.
        prior_var: the variance of a weight.
        turnover: the probability that a product is replaced in a step.
        law: "normal" for features from N(0, I), "sphere" for features of length 1.
        motion: how the weights move.

    Raises:
        CredoError: a number is out of range, or the likelihood is not that of one number.

    Cost: a step takes K d operations and K d normal draws.

    Example:
        >>> world = Products(arms=4, size=3)
        >>> world.context(world.start(0)).x.shape, world.design
        ((4, 3), 'actions')
    """

    arms: int = static_field(default=10)
    size: int = static_field(default=5)
    likelihood: LikelihoodBase = Normal(0.01)
    prior_var: ArrayLike = 1.0
    turnover: ArrayLike = 1.0
    law: ContextLaw = static_field(default="normal")
    motion: Motion = Still()

    def __post_init__(self) -> None:
        require_integer("arms", self.arms, 1)
        require_integer("size", self.size, 1)
        require_nonnegative("prior_var", self.prior_var)
        require_interval("turnover", self.turnover, 0.0, 1.0)
        require_choice("law", self.law, ("normal", "sphere"))
        require_scores(self.likelihood)
        require_motion(self.motion)

    @property
    def design(self) -> ContextDesign:
        """The context has a row for every product: "actions"."""
        return "actions"

    def start(self, key: Key) -> ProductsState:
        """Weights from their prior, and the first products."""
        weights, features = jax.random.split(as_key(key))
        return ProductsState(self._draw(weights), self._offer(features))

    def context(self, state: ProductsState) -> Context:
        """The features of the products (K, d), and all arms."""
        return Context(state.features, every_arm(self.arms))

    def means(self, state: ProductsState) -> Array:
        """The likelihood's mean at the score of every product (K,)."""
        return expected_rewards(self.likelihood, jnp.sum(state.features * state.weights, axis=-1))

    def reward(self, state: ProductsState, arm: ArrayLike, key: Key) -> Array:
        """A draw from the likelihood at the score of the product."""
        return sample_reward(self.likelihood, jnp.sum(state.features[arm] * state.weights[0]), arm, key)

    def advance(self, state: ProductsState, arm: ArrayLike, key: Key) -> ProductsState:
        """The weights after the `motion`, and other products in place of some."""
        motion, which, offer = jax.random.split(as_key(key), 3)
        weights = self.motion.move(state.weights, self._draw, motion)
        gone = jax.random.bernoulli(which, as_like(self.turnover, state.features), (self.arms, 1))
        return ProductsState(weights, jnp.where(gone, self._offer(offer), state.features))

    def _draw(self, key: Array) -> Array:
        noise = jax.random.normal(key, (1, self.size))
        return jnp.sqrt(as_like(self.prior_var, noise)) * noise

    def _offer(self, key: Array) -> Array:
        return draw_rows(key, (self.arms, self.size), self.law)
