"""Thompson sampling: each arm with the probability that it is best."""

from __future__ import annotations

from credo.bandits.best import probability_best
from credo.bandits.policies.base import Policy
from credo.core.errors import require_integer
from credo.core.records import record, static_field
from credo.core.types import Array
from credo.likelihoods import Expectation

__all__ = ["Thompson"]


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
