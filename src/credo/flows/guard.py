"""Importance weights for what an operator did, and temperatures where they are uneven."""

from __future__ import annotations

from typing import NamedTuple, get_args

import jax
import jax.numpy as jnp

from credo.core.errors import require_choice, require_interval
from credo.core.records import record, static_field
from credo.core.trees import as_like
from credo.core.types import Array, ArrayLike
from credo.flows.densities import NormalDensity
from credo.particles.moves import Metropolis, Target
from credo.particles.resampling import Resampling, effective_size, resample
from credo.particles.tempering import next_temperature

__all__ = ["Guard", "Weighed"]

SHARE = 0.5
"""The share of the particles that counts after each temperature."""

STAGES = 30
"""The largest number of temperatures; the last one goes all the way."""


class Weighed(NamedTuple):
    """Particles (N, P) after a guard, their log target `heights` (N,), and its log constant, estimated."""

    values: Array
    log_weights: Array
    heights: Array
    log_evidence: Array


class _Stage(NamedTuple):
    """Where the particles are on the way to the target; their weights sum to one only at the end."""

    number: Array
    temperature: Array
    particles: Weighed


@record
class Guard:
    """Importance weights, and tempered moves where they are uneven (Li & Coates 2017, PF-PF).

    A particle x with prior density p(x) becomes x' = T x with density p(x) / |det T'(x)|. Against the target
    p(x') p(y | x') its weight is

        w = p(x') p(y | x') |det T'(x)| / p(x),

    whose mean over the particles estimates p(y | past) without bias. A perfect operator has equal weights.
    Where the effective sample size falls below a share of N, the particles go to the target by temperatures
    (Neal 2001; Del Moral, Doucet & Jasra 2006): with g the normal law of their moments, the target at
    temperature l is g^(1-l) times that above to the power l. At each of them, the highest that half of the
    particles survive, they are weighed, resampled, and moved by steps that leave it in place. Where the
    weights allow it, that is one temperature, l = 1. An operator that errs then costs time and particles,
    and not correctness.

    Arguments:
        threshold: the share of N, in [0, 1], below which the particles are resampled; 0 never.
        move: the steps after each resampling; None resamples once, and moves nothing.
        resampling: how ancestors are drawn.

    Raises:
        CredoError: a setting is out of its range.

    Cost: the likelihood and twice the prior's density at N points, which for a kernel or transition density
    is 2 N^2 d; with every step of the moves at every temperature as much again and its gradient.

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

    def weigh_or_move(
        self, key: Array, values: Array, log_weights: Array, log_density: Array, target: Target
    ) -> Weighed:
        """Particles with importance weights, or where these are uneven, particles brought to the target.

        Arguments:
            key: the key of the draws.
            values, log_weights: the particles (N, P) and their log weights (N,), which sum to one.
            log_density: the log density of each particle (N,).
            target: the log target density (N,) of particles (N, P), up to a constant.

        Returns:
            The particles, their log weights, the target at them, and the log of its estimated constant.
        """
        count = values.shape[0]
        heights = target(values)
        gaps = _number(heights - log_density)
        total = jax.nn.logsumexp(log_weights + gaps)
        weighed = Weighed(values, log_weights + gaps - total, heights, total)
        least = as_like(self.threshold, log_weights) * count
        uneven = effective_size(weighed.log_weights) < least

        def bridge() -> Weighed:
            law: NormalDensity = NormalDensity.of(values, log_weights)
            logs = log_weights + _number(law.log_prob(values) - log_density)
            zero = jnp.zeros_like(total)
            begin = _Stage(jnp.zeros((), jnp.int32), zero, Weighed(values, logs, heights, zero))
            end = jax.lax.while_loop(
                lambda stage: stage.temperature < 1,
                lambda stage: self._advance(jax.random.fold_in(key, stage.number), stage, law, target),
                begin,
            )
            return end.particles

        kept: Weighed = jax.lax.cond(uneven, bridge, lambda: weighed)
        return kept

    def _advance(self, key: Array, stage: _Stage, law: NormalDensity, target: Target) -> _Stage:
        """One temperature further."""
        values, logs, heights, log_evidence = stage.particles
        count = values.shape[0]
        gaps = _number(heights - law.log_prob(values))
        left = 1 - stage.temperature
        rise = next_temperature(logs, gaps, left, jnp.asarray(SHARE * count, values.dtype))
        reached = (rise >= left) | (stage.number >= STAGES - 1) | (self.move is None)
        logs = logs + jnp.where(reached, left, rise) * gaps
        total = jax.nn.logsumexp(logs)
        temperature = jnp.where(reached, 1.0, stage.temperature + rise)
        first, second = jax.random.split(key)
        chosen = values[resample(first, logs, count, self.resampling)]
        if self.move is not None:
            around: NormalDensity = NormalDensity.of(values, logs - total)

            def bridge(units: Array) -> Array:
                points = around.outside(units)
                return temperature * target(points) + (1 - temperature) * law.log_prob(points)

            moved, _ = self.move.walk(second, around.inside(chosen), bridge)
            chosen = around.outside(moved)
        equal = jnp.full_like(logs, -jnp.log(jnp.asarray(count, logs.dtype)))
        after = Weighed(chosen, equal, target(chosen), log_evidence + total)
        return _Stage(stage.number + 1, temperature, after)


def _number(logs: Array) -> Array:
    """Logarithms of weights, where what cannot be evaluated has none."""
    return jnp.where(jnp.isnan(logs), -jnp.inf, logs)
