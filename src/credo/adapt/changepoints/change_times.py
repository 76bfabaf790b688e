"""Changepoint times: hypotheses about when the world changed."""

from __future__ import annotations

from typing import Generic

from credo.adapt.changepoints.slots import Changepoints
from credo.adapt.changepoints.successors import SuccessorOfEach, Successors
from credo.adapt.nested import B
from credo.core.errors import CredoError, require_integer
from credo.core.records import record, static_field

__all__ = ["ChangeTimes"]


@record
class ChangeTimes(Changepoints[B], Generic[B]):
    """Hypotheses about *when* the world changed, as a beam over sets of changepoint times around any learner.

    Unlike in `RunLength`, hypotheses that end at the same time keep their successors apart, each of which
    starts from a conditional prior of its own past: with `Inflation` or `RandomWalk` a change broadens what
    was known instead of erasing it. Sources: Li et al. 2021 (variational beam search, CPL-MCI); Fearnhead &
    Liu 2011 (dependence across segments, CPT-MMPR); both are scored here by the predictive density *before*
    the observation is learned, jointly over all hypotheses.

    Arguments:
        depth: how many latest starts of segments each hypothesis remembers (`belief.segments.times`). The
            other arguments are those of `RunLength`; `overflow="merge"` is not available.

    Raises:
        CredoError: a number is outside its range, or `overflow` or `conditional_prior` is not allowed.

    The result is exact while 2^t hypotheses fit.

    Cost: 2 K inner updates and forecasts.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> inner = credo.extended_kalman(credo.Model(lambda w, x: x @ w, credo.Normal(0.1)))
        >>> learner = ChangeTimes(inner, 1 / 50, 5, credo.Inflation(1.0, "simple"), depth=2)
        >>> ys = jnp.array([1.0, 1.1, 0.9, -2.0, -2.1, -1.9])
        >>> belief, _ = credo.run(learner, learner.init(jnp.zeros(1)), jnp.ones((6, 1)), ys)
        >>> int(belief.segments.times[belief.log_weights.argmax(), 0])  # the 4th observation
        4
    """

    depth: int = static_field(default=5)

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.depth, int):
            require_integer("depth", self.depth, 1)
        if self.overflow == "merge":
            raise CredoError("overflow must be 'drop' or 'resample' for sets of changepoints; got 'merge'.")

    @property
    def _depth(self) -> int:
        return self.depth

    @property
    def successors(self) -> Successors:
        """Each hypothesis has a successor of its own."""
        return SuccessorOfEach()
