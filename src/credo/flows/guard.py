"""Importance weights for what an operator did, and what follows where they are uneven."""

from __future__ import annotations

from typing import get_args

import jax
import jax.numpy as jnp

from credo.core.errors import require_choice, require_interval
from credo.core.records import record, static_field
from credo.core.trees import as_like
from credo.core.types import Array, ArrayLike
from credo.flows.densities import NormalDensity
from credo.particles.moves import Metropolis, Target
from credo.particles.resampling import Resampling, effective_size, resample

__all__ = ["Guard"]


@record
class Guard:
    """Importance weights, and resampling with moves where they are uneven (Li & Coates 2017, PF-PF).

    A particle x with prior density p(x) becomes x' = T x with density p(x) / |det T'(x)|. Against the target
    p(x') p(y | x') its weight is

        w = p(x') p(y | x') |det T'(x)| / p(x),

    whose mean over the particles estimates p(y | past) without bias. A perfect operator has equal weights.
    Where the effective sample size falls below a share of N, the particles are resampled and then moved by
    steps that leave the target in place. An operator that errs then costs particles, and not correctness.

    Arguments:
        threshold: the share of N, in [0, 1], below which the particles are resampled; 0 never.
        move: the steps after resampling; None for none.
        resampling: how ancestors are drawn.

    Raises:
        CredoError: a setting is out of its range.

    Cost: the likelihood and twice the prior's density at N points, which for a kernel or transition density
    is 2 N^2 d; with every step of the moves as much again and its gradient.

    Example:
        >>> Guard(threshold=0.7).threshold
        0.7
    """

    threshold: ArrayLike = 0.5
    move: Metropolis | None = Metropolis(2, "langevin")
    resampling: Resampling = static_field(default="systematic")

    def __post_init__(self) -> None:
        require_interval("threshold", self.threshold, 0.0, 1.0)
        require_choice("resampling", self.resampling, get_args(Resampling))

    def mend(self, key: Array, values: Array, log_weights: Array, target: Target) -> tuple[Array, Array]:
        """Particles and log weights as they are, or resampled and moved where the weights are uneven.

        Arguments:
            key: the key of the draws.
            values, log_weights: the particles (N, P) and their log weights (N,), which sum to one.
            target: the log target density (N,) of particles (N, P), up to a constant.

        Returns:
            The particles and their log weights.
        """
        count = values.shape[0]
        equal = jnp.full_like(log_weights, -jnp.log(jnp.asarray(count, values.dtype)))

        def again(values: Array) -> tuple[Array, Array]:
            first, second = jax.random.split(key)
            chosen = values[resample(first, log_weights, count, self.resampling)]
            move = self.move
            if move is None:
                return chosen, equal

            law: NormalDensity = NormalDensity.of(values, log_weights)
            units = jax.scipy.linalg.solve_triangular(law.root, (chosen - law.mean[None, :]).T, lower=True).T
            moved, _ = move.walk(second, units, lambda rows: target(law.mean[None, :] + rows @ law.root.T))
            return law.mean[None, :] + moved @ law.root.T, equal

        uneven = effective_size(log_weights) < as_like(self.threshold, log_weights) * count
        kept: tuple[Array, Array] = jax.lax.cond(uneven, again, lambda values: (values, log_weights), values)
        return kept
