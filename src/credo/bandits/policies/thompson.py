"""Policies that look at how uncertain rewards are.

Thompson sampling, top-two and information-directed sampling ask which arm is best; optimism takes the arm
with the largest upper bound of its expected reward.
"""

from __future__ import annotations

import math

import jax.numpy as jnp

from credo.bandits.best import probability_best
from credo.bandits.policies.base import Policy, share_ties
from credo.core.errors import (
    CredoError,
    require_integer,
    require_interval,
    require_nonnegative,
    require_positive,
)
from credo.core.records import record, static_field
from credo.core.types import Array, ArrayLike
from credo.likelihoods import Expectation
from credo.linalg.matrices import precision

__all__ = ["UCB", "BayesUCB", "InformationDirected", "Thompson", "TopTwo", "information_ratio"]


@record
class Thompson(Policy):
    """Choose each arm with the probability that its expected reward is the largest.

    Source: Thompson 1933, Biometrika 25. The probabilities are those of `probability_best`: exact to 1e-4
    for independent arms, and otherwise the shares of joint draws, from which the arm is then drawn.

    Arguments:
        draws: how many joint draws stand for arms that are correlated, at least 1.
        floor: the least probability of an allowed arm, in [0, 1].

    Raises:
        CredoError: `draws` is below 1, or `floor` is outside [0, 1].

    Example:
        >>> import credo, jax.numpy as jnp
        >>> from credo.likelihoods import LatentExpectation
        >>> distribution = LatentExpectation(credo.Normal(1.0), jnp.array([[0.0], [1.0]]), jnp.eye(2))
        >>> [round(p, 3) for p in Thompson(floor=0.05).pmf(distribution).tolist()]
        [0.266, 0.734]
    """

    draws: int = static_field(default=256)

    def __post_init__(self) -> None:
        super().__post_init__()
        require_integer("draws", self.draws, 1)

    def probabilities(self, expectation: Expectation, allowed: Array, t: Array, key: Array) -> Array:
        """The probability that each arm is best."""
        return probability_best(expectation, allowed, key=key, draws=self.draws)


@record
class TopTwo(Thompson):
    """Draw the best arm with probability beta, else the best of the others: draw until another comes.

    With p_a the probability that a is best, psi_a = p_a (beta + (1 - beta) sum_{b != a} p_b / (1 - p_b)).
    Source: Russo 2016, COLT. It finds the best arm sooner than Thompson sampling, at some cost of reward.

    Arguments:
        draws: how many joint draws stand for arms that are correlated, at least 1.
        beta: the probability of the first draw, in [0, 1]; 1 is Thompson sampling.
        floor: the least probability of an allowed arm, in [0, 1].

    Raises:
        CredoError: a number is outside its range.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> from credo.likelihoods import LatentExpectation
        >>> distribution = LatentExpectation(credo.Normal(1.0), jnp.array([[0.0], [3.0]]), jnp.eye(2))
        >>> [round(p, 3) for p in TopTwo(beta=0.5).pmf(distribution).tolist()]
        [0.5, 0.5]
    """

    draws: int = static_field(default=256)
    beta: ArrayLike = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        require_interval("beta", self.beta, 0.0, 1.0)

    def probabilities(self, expectation: Expectation, allowed: Array, t: Array, key: Array) -> Array:
        """The probabilities of leader and challenger."""
        best = super().probabilities(expectation, allowed, t, key)
        beta = jnp.asarray(self.beta, best.dtype)
        # 1 - p_b as the sum of the others, which is accurate where p_b is nearly 1
        apart = 1.0 - jnp.eye(best.shape[0], dtype=best.dtype)
        others = apart @ best
        odds = jnp.where(others > 0, best / jnp.where(others > 0, others, 1.0), 0.0)
        return jnp.sum(apart * (best[:, None] * odds[None, :]), axis=1) * (1.0 - beta) + beta * best


@record
class InformationDirected(Policy):
    """Choose at most two arms so that (expected regret)^2 / (information gain) is least.

    The gain of an arm is the variance of its mean reward given which arm is best, a lower bound of what its
    reward tells about that. Source: Russo & Van Roy 2014 (NeurIPS) and 2018 (Operations Research 66),
    "variance-based" information-directed sampling; the distribution is represented by joint draws.

    Arguments:
        draws: how many joint draws, at least 2.
        floor: the least probability of an allowed arm, in [0, 1].

    Raises:
        CredoError: `draws` is below 2, or `floor` is outside [0, 1].

    Example:
        >>> import credo, jax.numpy as jnp
        >>> from credo.likelihoods import LatentExpectation
        >>> cov = jnp.diag(jnp.array([4.0, 0.0]))
        >>> distribution = LatentExpectation(credo.Normal(1.0), jnp.zeros((2, 1)), cov)
        >>> InformationDirected().pmf(distribution).tolist()   # the second arm is known
        [1.0, 0.0]
    """

    draws: int = static_field(default=256)

    def __post_init__(self) -> None:
        super().__post_init__()
        require_integer("draws", self.draws, 2)

    def probabilities(self, expectation: Expectation, allowed: Array, t: Array, key: Array) -> Array:
        """The best mixture of two arms, by its closed form for every pair; cost K^2 + draws K."""
        regret, gain = information_ratio(expectation.sample(key, (self.draws,)), allowed)
        return _best_pair(regret, gain, allowed)


def information_ratio(values: Array, allowed: Array) -> tuple[Array, Array]:
    """The expected regret and the information gain (K,) of each arm, under equal joint draws (M, K).

    They are E[max] - mean_a, and the variance over the best arm A* of E[value_a | A*].
    """
    usable = jnp.where(allowed[None], values, -jnp.inf)
    values = jnp.where(allowed[None], values, 0.0)
    best = usable == jnp.max(usable, axis=1, keepdims=True)
    tied = jnp.maximum(jnp.sum(best, axis=1, keepdims=True), 1)
    won = best.astype(values.dtype) / tied.astype(values.dtype)
    shares = jnp.mean(won, axis=0)
    mean = jnp.mean(values, axis=0)
    # P(A* = b) (E[value_a | A* = b] - mean_a), (b, a)
    apart = won.T @ (values - mean[None]) / values.shape[0]
    known = (shares > 0)[:, None]
    gain = jnp.sum(jnp.where(known, apart**2 / jnp.where(known, shares[:, None], 1.0), 0.0), axis=0)
    regret = jnp.mean(jnp.max(usable, axis=1)) - mean
    return jnp.maximum(regret, 0.0), gain


def _best_pair(regret: Array, gain: Array, allowed: Array) -> Array:
    """The mixture q e_i + (1 - q) e_j with the least ratio, which is convex in q."""
    scale = jnp.maximum(jnp.max(jnp.where(allowed, gain, 0.0)), precision(gain.dtype).tiny)
    least = precision(gain.dtype).eps * scale  # keeps arms that tell nothing from a division by 0
    regret = jnp.where(allowed, regret, 0.0)
    gain = jnp.where(allowed, gain, 0.0) + least
    slope_regret = regret[:, None] - regret[None, :]
    slope_gain = gain[:, None] - gain[None, :]
    flat = (slope_regret == 0) | (slope_gain == 0)
    ratio = regret[None, :] / jnp.where(slope_regret == 0, 1.0, slope_regret)
    inner = ratio - 2.0 * gain[None, :] / jnp.where(slope_gain == 0, 1.0, slope_gain)
    # without a gain in information the minimum is where the regret is least
    inner = jnp.where(flat, jnp.where(slope_gain == 0, jnp.clip(-ratio, 0.0, 1.0), 0.0), inner)
    share = jnp.stack([jnp.clip(inner, 0.0, 1.0), jnp.ones_like(inner)])
    mixed_regret = regret[None, None, :] + share * slope_regret[None]
    mixed_gain = gain[None, None, :] + share * slope_gain[None]
    pair = (allowed[:, None] & allowed[None, :])[None]
    loss = jnp.where(pair, mixed_regret**2 / mixed_gain, jnp.inf)
    place = jnp.argmin(loss.reshape(-1))
    count = regret.shape[0]
    first = (place // count) % count
    second = place % count
    part = share.reshape(-1)[place]
    arms = jnp.arange(count)
    return jnp.where(arms == first, part, 0.0) + jnp.where(arms == second, 1.0 - part, 0.0)


@record
class UCB(Policy):
    """Choose the arm with the largest mean + width_a sd_a of its expected reward; arms that tie share.

    width_a = alpha, or where an arm is far less known than another, with `growth` above 0,

        width_a^2 = alpha^2 + growth max(0, log(sd_a^2 / (slack min_b sd_b^2))).

    With a fixed width, an arm whose first rewards were bad luck is never tried again, and the regret grows
    with the time. The ratio of the variances says how many times more often the other arm was tried, as the
    bounds of MOSS do, whose log(T / (K n_a)) vanishes where arms are tried equally often.

    Source: Auer 2002, JMLR 3; Li et al. 2010, WWW ("LinUCB"); of the growth, Audibert & Bubeck 2009, COLT.

    Arguments:
        alpha: how many standard deviations are added, at least 0.
        growth: by how much the squared width grows with the logarithm, at least 0.
        slack: how many times less an arm must be known before its width grows, at least 1. In contexts of d
            numbers, arms that are tried equally often are known as unequally as d to 1.
        floor: the least probability of an allowed arm, in [0, 1].

    Raises:
        CredoError: `alpha` or `growth` is below 0, `slack` is below 1, or `floor` is outside [0, 1].

    Example:
        >>> import credo, jax.numpy as jnp
        >>> from credo.likelihoods import LatentExpectation
        >>> cov = jnp.diag(jnp.array([4.0, 1.0]))
        >>> distribution = LatentExpectation(credo.Normal(1.0), jnp.array([[0.0], [1.0]]), cov)
        >>> UCB(0.5).pmf(distribution).tolist(), UCB(1.5).pmf(distribution).tolist()
        ([0.0, 1.0], [1.0, 0.0])
    """

    alpha: ArrayLike = 1.0
    growth: ArrayLike = 0.0
    slack: ArrayLike = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require_nonnegative("alpha", self.alpha)
        require_nonnegative("growth", self.growth)
        require_interval("slack", self.slack, 1.0, math.inf)

    def probabilities(self, expectation: Expectation, allowed: Array, t: Array, key: Array) -> Array:
        """All on the largest bound."""
        mean = expectation.mean
        sd = expectation.sd
        return share_ties(mean + self._width(sd, allowed) * sd, allowed)

    def _width(self, sd: Array, allowed: Array) -> Array:
        """The number of standard deviations that are added for each arm (K,)."""
        alpha = jnp.asarray(self.alpha, sd.dtype)
        least = jnp.min(jnp.where(allowed & (sd > 0), sd, jnp.inf))
        times_less = jnp.where(sd > 0, sd / least, 1.0) ** 2 / jnp.asarray(self.slack, sd.dtype)
        more = jnp.asarray(self.growth, sd.dtype) * jnp.log(jnp.maximum(times_less, 1.0))
        return jnp.where(more > 0, jnp.sqrt(alpha**2 + more), alpha)


@record
class BayesUCB(Policy):
    """Choose the arm with the largest quantile 1 - 1 / ((t + 1) log(horizon)^exponent); ties share equally.

    Source: Kaufmann, Cappe & Garivier 2012, AISTATS. Their analysis of Bernoulli arms needs an exponent of at
    least 5; they recommend 0 in practice.

    Arguments:
        exponent: the power of log(horizon), at least 0.
        horizon: how many decisions are planned, above 1; it matters where `exponent` is above 0.
        draws: how many joint draws give the quantiles of a reward that depends on several outputs.
        floor: the least probability of an allowed arm, in [0, 1].

    Raises:
        CredoError: a number is outside its range.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> from credo.likelihoods import LatentExpectation
        >>> cov = jnp.diag(jnp.array([4.0, 1.0]))
        >>> distribution = LatentExpectation(credo.Normal(1.0), jnp.array([[0.0], [1.0]]), cov)
        >>> BayesUCB().pmf(distribution, t=1).tolist(), BayesUCB().pmf(distribution, t=100).tolist()
        ([0.0, 1.0], [1.0, 0.0])
    """

    exponent: ArrayLike = 0.0
    horizon: ArrayLike = 10_000.0
    draws: int = static_field(default=256)

    def __post_init__(self) -> None:
        super().__post_init__()
        require_nonnegative("exponent", self.exponent)
        require_positive("horizon", self.horizon)
        require_integer("draws", self.draws, 1)

    def probabilities(self, expectation: Expectation, allowed: Array, t: Array, key: Array) -> Array:
        """All on the largest quantile."""
        mean = expectation.mean
        log_horizon = jnp.log(jnp.maximum(jnp.asarray(self.horizon, mean.dtype), 2.7182818))
        times = (t.astype(mean.dtype) + 1.0) * log_horizon ** jnp.asarray(self.exponent, mean.dtype)
        level = 1.0 - 1.0 / jnp.maximum(times, 1.0 + 1e-6)
        try:
            bound = expectation.quantile(level)
        except CredoError:  # no distribution function where a reward depends on several outputs
            bound = jnp.quantile(expectation.sample(key, (self.draws,)), level, axis=0)
        return share_ties(bound, allowed)
