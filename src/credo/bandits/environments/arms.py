"""Arms whose rewards are drawn by a formula: without contexts, linear in features, and the wheel.

Arms without contexts have rewards of 0 or 1, or Gaussian rewards. Arms with a score that is linear in
features have weights of their own, or shared ones (products). In the wheel nearly all contexts are dull, and
a few are worth a search.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Literal, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from credo.bandits.environments.base import (
    ConstantArm,
    Context,
    ContextDesign,
    Environment,
    add_noise,
    arm_key,
    every_arm,
)
from credo.bandits.environments.motion import Motion, Still, require_motion
from credo.core.errors import (
    CredoError,
    require_choice,
    require_integer,
    require_interval,
    require_nonnegative,
    require_positive,
)
from credo.core.keys import as_key
from credo.core.records import record, static_field
from credo.core.trees import as_like
from credo.core.types import Array, ArrayLike, Key
from credo.likelihoods import LikelihoodBase, Normal

__all__ = [
    "BernoulliArms",
    "ContextualArms",
    "ContextualState",
    "GaussianArms",
    "Products",
    "ProductsState",
    "Wheel",
]

ContextDistribution: TypeAlias = Literal["normal", "sphere"]
"""The distribution of contexts: N(0, I), or uniform on the unit sphere."""


def draw_rows(key: Array, shape: tuple[int, ...], distribution: ContextDistribution) -> Array:
    """Draw contexts (..., d): standard normal, or uniform on the unit sphere."""
    rows = jax.random.normal(key, shape)
    return rows if distribution == "normal" else rows / jnp.linalg.norm(rows, axis=-1, keepdims=True)


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
        distribution: "normal" for contexts from N(0, I), "sphere" for contexts of length 1.
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
    distribution: ContextDistribution = static_field(default="normal")
    motion: Motion = Still()

    def __post_init__(self) -> None:
        require_integer("arms", self.arms, 1)
        require_integer("size", self.size, 1)
        require_nonnegative("prior_var", self.prior_var)
        require_choice("distribution", self.distribution, ("normal", "sphere"))
        require_scores(self.likelihood)
        require_motion(self.motion)

    def start(self, key: Key) -> ContextualState:
        """Weights from their prior, and the first context."""
        weights, first = jax.random.split(as_key(key))
        return ContextualState(self._draw(weights), draw_rows(first, (self.size,), self.distribution))

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
        return ContextualState(weights, draw_rows(following, (self.size,), self.distribution))

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
        distribution: "normal" for features from N(0, I), "sphere" for features of length 1.
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
    distribution: ContextDistribution = static_field(default="normal")
    motion: Motion = Still()

    def __post_init__(self) -> None:
        require_integer("arms", self.arms, 1)
        require_integer("size", self.size, 1)
        require_nonnegative("prior_var", self.prior_var)
        require_interval("turnover", self.turnover, 0.0, 1.0)
        require_choice("distribution", self.distribution, ("normal", "sphere"))
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
        return draw_rows(key, (self.arms, self.size), self.distribution)


INNER = 1.0
SAFE = 1.2
LARGE = 50.0


@record
class Wheel(Environment[Array]):
    """The wheel bandit (Riquelme, Tucker and Snoek, 2018): five arms, and contexts uniform on the unit disk.

    Arm 4 is safe: its rewards have mean 1.2 everywhere. Arms 0 to 3 have mean 1.0, but where |x| > delta the
    arm of the quadrant has mean 50: arm 0 for (+, +), 1 for (+, -), 2 for (-, +) and 3 for (-, -). Such
    contexts come with probability 1 - delta^2. An agent that knew the means would earn
    50 (1 - delta^2) + 1.2 delta^2 a step. Delta is usually 0.5, 0.7, 0.9, 0.95 or 0.99.

    Arguments:
        delta: the radius of the dull part, from 0 to 1.
        sd: the standard deviation of all rewards.

    Raises:
        CredoError: `delta` lies outside [0, 1], or `sd` is below 0.

    Example:
        >>> world = Wheel(delta=0.95)
        >>> world.means(jnp.array([0.7, -0.7]))
        Array([ 1. , 50. ,  1. ,  1. ,  1.2], dtype=float32)
    """

    delta: ArrayLike = 0.95
    sd: ArrayLike = 0.01
    arms = 5

    def __post_init__(self) -> None:
        require_interval("delta", self.delta, 0.0, 1.0)
        require_nonnegative("sd", self.sd)

    def start(self, key: Key) -> Array:
        """The first context."""
        return _on_disk(as_key(key))

    def context(self, state: Array) -> Context:
        """The point x (2,) on the disk, and all arms."""
        return Context(state, every_arm(self.arms))

    def means(self, state: Array) -> Array:
        """The means (5,) at the point."""
        return _means(state, as_like(self.delta, state))

    def reward(self, state: Array, arm: ArrayLike, key: Key) -> Array:
        """A draw from N(mean, sd^2) of the arm."""
        return add_noise(arm_key(key, arm), self.means(state)[arm], self.sd)

    def advance(self, state: Array, arm: ArrayLike, key: Key) -> Array:
        """Another point on the disk."""
        return _on_disk(as_key(key))

    def best_constant(self) -> ConstantArm:
        """Arm 4, or an arm of a quadrant where its few large rewards are worth more."""
        rim = (1 - jnp.asarray(self.delta, jnp.result_type(float)) ** 2) / 4
        quadrant = INNER + (LARGE - INNER) * rim
        return ConstantArm(jnp.where(quadrant > SAFE, 0, 4), jnp.maximum(quadrant, SAFE))


def _on_disk(key: Array) -> Array:
    radius, turn = jax.random.uniform(key, (2,))
    angle = 2 * jnp.pi * turn
    return jnp.sqrt(radius) * jnp.stack([jnp.cos(angle), jnp.sin(angle)])


def _means(x: Array, delta: Array) -> Array:
    quadrant = 2 * (x[0] <= 0).astype(jnp.int32) + (x[1] <= 0).astype(jnp.int32)
    rim = jnp.sum(x**2) > delta**2
    dull = jnp.array([INNER, INNER, INNER, INNER, SAFE], x.dtype)
    return jnp.where(rim & (jnp.arange(5, dtype=jnp.int32) == quadrant), jnp.asarray(LARGE, x.dtype), dull)


class _MovingMeans(Environment[Array]):
    """Arms without contexts, whose state is the vector (K,) of their means."""

    motion: Motion

    def context(self, state: Array) -> Context:
        """No context, and all arms."""
        return Context(None, every_arm(self.arms))

    def means(self, state: Array) -> Array:
        """The means (K,) now."""
        return state

    def advance(self, state: Array, arm: ArrayLike, key: Key) -> Array:
        """The means after the `motion`."""
        return self.motion.move(state, self._draw, as_key(key))

    @abstractmethod
    def _draw(self, key: Array) -> Array:
        """Means (K,) from their prior."""


@record
class BernoulliArms(_MovingMeans):
    """Arms whose rewards are 0 or 1, with a chance that differs between them: p(r = 1 | a) = chance_a.

    The chances are given, or drawn from U(0, 1) at the start. They may move; a random walk is cut off at 0
    and 1. With `Drift(0.003)` and ten arms this is a restless bandit.

    Arguments:
        arms: the number of arms; not needed where `chances` are given.
        chances: the chances (K,) at the start, or None to draw them.
        motion: how the chances move.

    Raises:
        CredoError: there is no arm, or a chance lies outside [0, 1].

    Example:
        >>> world = BernoulliArms(chances=[0.2, 0.9])
        >>> state = world.start(0)
        >>> float(world.reward(state, 1, key=0)), round(float(world.regret(state, 0)), 3)
        (1.0, 0.7)
    """

    arms: int = static_field(default=0)
    chances: ArrayLike | None = None
    motion: Motion = Still()

    def __post_init__(self) -> None:
        if self.chances is not None:
            require_interval("chances", self.chances, 0.0, 1.0)
        _settle(self, "chances", self.chances)

    def start(self, key: Key) -> Array:
        """The chances (K,), drawn if they are not given."""
        if self.chances is None:
            return self._draw(as_key(key))
        return jnp.asarray(self.chances)

    def reward(self, state: Array, arm: ArrayLike, key: Key) -> Array:
        """1 with the chance of the arm, else 0."""
        return jax.random.bernoulli(arm_key(key, arm), state[arm]).astype(state.dtype)

    def advance(self, state: Array, arm: ArrayLike, key: Key) -> Array:
        """The chances after the `motion`, cut off at 0 and 1."""
        return jnp.clip(super().advance(state, arm, key), 0.0, 1.0)

    def _draw(self, key: Array) -> Array:
        return jax.random.uniform(key, (self.arms,))


@record
class GaussianArms(_MovingMeans):
    """Arms whose rewards are N(mean_a, var).

    The means are given, or drawn from N(prior_mean, prior_var) at the start. They may move.

    Arguments:
        arms: the number of arms; not needed where `initial` is given.
        initial: the means (K,) at the start, or None to draw them.
        var: the variance of the rewards, above 0: a number, or (K,) for each arm.
        prior_mean, prior_var: the prior of the means, if they are drawn.
        motion: how the means move.

    Raises:
        CredoError: there is no arm, or a variance is out of range.

    Example:
        >>> world = GaussianArms(initial=[0.0, 1.0], var=1e-6)
        >>> state = world.start(0)
        >>> round(float(world.reward(state, 1, key=0)), 2), float(world.regret(state, 0))
        (1.0, 1.0)
    """

    arms: int = static_field(default=0)
    initial: ArrayLike | None = None
    var: ArrayLike = 1.0
    prior_mean: ArrayLike = 0.0
    prior_var: ArrayLike = 1.0
    motion: Motion = Still()

    def __post_init__(self) -> None:
        require_positive("var", self.var)
        require_nonnegative("prior_var", self.prior_var)
        _settle(self, "initial", self.initial)
        if np.shape(self.var) not in [(), (self.arms,)]:
            raise CredoError(
                f"var must be a number or ({self.arms},), one for each arm; got shape {np.shape(self.var)}.",
                field="var",
            )

    def start(self, key: Key) -> Array:
        """The means (K,), drawn if they are not given."""
        if self.initial is None:
            return self._draw(as_key(key))
        return jnp.asarray(self.initial)

    def reward(self, state: Array, arm: ArrayLike, key: Key) -> Array:
        """A draw from N(mean, var) of the arm."""
        sd = jnp.broadcast_to(jnp.sqrt(as_like(self.var, state)), state.shape)
        return add_noise(arm_key(key, arm), state[arm], sd[arm])

    def _draw(self, key: Array) -> Array:
        noise = jax.random.normal(key, (self.arms,))
        return as_like(self.prior_mean, noise) + jnp.sqrt(as_like(self.prior_var, noise)) * noise


def _settle(world: BernoulliArms | GaussianArms, field: str, values: ArrayLike | None) -> None:
    """Check the number of arms, and make an array of what was given for each of them."""
    if values is not None:
        try:
            array = jnp.asarray(values, jnp.result_type(float))
        except (TypeError, ValueError):
            raise CredoError(
                f"{field} must be numbers, one for each arm; got {values!r}.", field=field
            ) from None
        if array.ndim != 1 or world.arms not in (0, len(array)):
            count = world.arms or "K"
            raise CredoError(
                f"{field} must have the shape ({count},), one number for each arm; got {array.shape}.",
                field=field,
            )
        object.__setattr__(world, field, array)
        object.__setattr__(world, "arms", len(array))
    require_integer("arms", world.arms, 1)
    require_motion(world.motion)
