"""Thompson sampling: each arm with the probability that it is best; top-two, for finding the best arm."""

from __future__ import annotations

import jax.numpy as jnp

from credo.bandits.best import probability_best
from credo.bandits.policies.base import Policy
from credo.core.errors import require_integer, require_interval
from credo.core.records import record, static_field
from credo.core.types import Array, ArrayLike
from credo.likelihoods import Expectation

__all__ = ["Thompson", "TopTwo"]


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
        >>> law = LatentExpectation(credo.Normal(1.0), jnp.array([[0.0], [1.0]]), jnp.eye(2))
        >>> [round(p, 3) for p in Thompson(floor=0.05).pmf(law).tolist()]
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
        >>> law = LatentExpectation(credo.Normal(1.0), jnp.array([[0.0], [3.0]]), jnp.eye(2))
        >>> [round(p, 3) for p in TopTwo(beta=0.5).pmf(law).tolist()]
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
