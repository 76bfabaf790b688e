"""Arms that are known by their features: products that are drawn, and weights that they share."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from credo.bandits.environments.base import Context, ContextDesign, Environment, every_arm
from credo.bandits.environments.linear_scores import (
    ContextLaw,
    draw_rows,
    expected_rewards,
    require_scores,
    sample_reward,
)
from credo.bandits.environments.motion import Motion, Still, require_motion
from credo.core.errors import require_choice, require_integer, require_interval, require_nonnegative
from credo.core.keys import as_key
from credo.core.records import record, static_field
from credo.core.trees import as_like
from credo.core.types import Array, ArrayLike, Key
from credo.likelihoods import LikelihoodBase, Normal

__all__ = ["Products", "ProductsState"]


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
        likelihood: the law of the reward, given the score x_a'w.
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
