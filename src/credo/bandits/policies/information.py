"""Information-directed sampling: little regret for what is learned about the best arm."""

from __future__ import annotations

import jax.numpy as jnp

from credo.bandits.policies.base import Policy
from credo.core.errors import require_integer
from credo.core.records import record, static_field
from credo.core.types import Array
from credo.likelihoods import Expectation
from credo.linalg.matrices import precision

__all__ = ["InformationDirected", "information_ratio"]


@record
class InformationDirected(Policy):
    """Choose at most two arms so that (expected regret)^2 / (information gain) is least.

    The gain of an arm is the variance of its mean reward given which arm is best, a lower bound of what its
    reward tells about that. Source: Russo & Van Roy 2014 (NeurIPS) and 2018 (Operations Research 66),
    "variance-based" information-directed sampling; the law is represented by joint draws.

    Arguments:
        draws: how many joint draws, at least 2.
        floor: the least probability of an allowed arm, in [0, 1].

    Raises:
        CredoError: `draws` is below 2, or `floor` is outside [0, 1].

    Example:
        >>> import credo, jax.numpy as jnp
        >>> from credo.likelihoods import LatentExpectation
        >>> law = LatentExpectation(credo.Normal(1.0), jnp.zeros((2, 1)), jnp.diag(jnp.array([4.0, 0.0])))
        >>> InformationDirected().pmf(law).tolist()   # the second arm is known
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
    regret, gain = jnp.where(allowed, regret, 0.0), jnp.where(allowed, gain, 0.0) + least
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
    first, second = (place // count) % count, place % count
    part = share.reshape(-1)[place]
    arms = jnp.arange(count)
    return jnp.where(arms == first, part, 0.0) + jnp.where(arms == second, 1.0 - part, 0.0)
