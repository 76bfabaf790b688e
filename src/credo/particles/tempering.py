"""Tempered sequential Monte Carlo: the likelihood of one observation is taken in by degrees."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, TypeAlias, get_args

import jax
import jax.numpy as jnp

from credo.beliefs import Particles
from credo.core.errors import require_choice, require_integer, require_interval
from credo.core.records import record, replace, static_field
from credo.core.trees import as_like
from credo.core.types import Array, ArrayLike, PyTree
from credo.dynamics import Dynamics, Static
from credo.models.model import Model
from credo.particles.base import ParticleLearner
from credo.particles.density import smooth
from credo.particles.moves import Metropolis, Target
from credo.particles.resampling import Resampling, effective_size, resample

__all__ = ["Stage", "TemperedFilter", "next_temperature", "temper", "tempered_smc"]

HALVINGS = 30


class Stage(NamedTuple):
    """Particles (N, P) on the way from prior to posterior, their log weights and log-likelihoods (N,)."""

    values: Array
    log_weights: Array
    heights: Array
    temperature: Array
    log_evidence: Array
    number: Array

    @classmethod
    def first(cls, values: Array, log_weights: Array, heights: Array) -> Stage:
        """The first stage, at temperature 0; what the weights sum to is a part of the evidence."""
        zero = jnp.zeros((), values.dtype)
        total = jax.nn.logsumexp(log_weights)
        return cls(values, log_weights - total, heights, zero, total, jnp.zeros((), jnp.int32))


Mover: TypeAlias = Callable[[Array, Array, Target], Array]
"""`move(key, values, log_likelihood)`: equally weighted particles after steps under the tempered target."""


def temper(
    key: Array,
    stage: Stage,
    log_likelihood: Target,
    move: Mover,
    wanted: Array,
    resampling: Resampling,
    stages: int,
) -> Stage:
    """The last stage of particles that take in a likelihood by temperatures.

    Arguments:
        key: the key of the draws.
        stage: the first stage.
        log_likelihood: that of particles (N, P).
        move: how resampled particles move at a temperature.
        wanted: the effective sample size that each temperature leaves.
        resampling: how ancestors are drawn.
        stages: the largest number of temperatures.
    """
    count = stage.values.shape[0]

    def advance(stage: Stage) -> Stage:
        """One temperature further."""
        first, second = jax.random.split(jax.random.fold_in(key, stage.number))
        rise = next_temperature(stage.log_weights, stage.heights, 1.0 - stage.temperature, wanted)
        rise = jnp.where(stage.number >= stages - 1, 1.0 - stage.temperature, rise)
        # at the end 1 itself, which sums of rises may miss by a rounding
        reached = rise >= 1.0 - stage.temperature
        temperature = jnp.where(reached, 1.0, stage.temperature + rise)
        logs = stage.log_weights + rise * stage.heights
        total = jax.nn.logsumexp(logs)
        log_weights = logs - total
        enough = reached & (effective_size(log_weights) >= wanted)

        def rest() -> tuple[Array, Array, Array]:
            return stage.values, log_weights, stage.heights

        def shift() -> tuple[Array, Array, Array]:
            ancestors = resample(first, log_weights, count, resampling)
            values = move(
                second, stage.values[ancestors], lambda places: temperature * log_likelihood(places)
            )
            return values, jnp.full_like(log_weights, -math.log(count)), log_likelihood(values)

        values, log_weights, heights = jax.lax.cond(enough, rest, shift)
        log_evidence = stage.log_evidence + total
        return Stage(values, log_weights, heights, temperature, log_evidence, stage.number + 1)

    last: Stage = jax.lax.while_loop(lambda stage: stage.temperature < 1, advance, stage)
    return last


@record
class TemperedFilter(ParticleLearner):
    """Particles that go from prior to posterior by temperatures, with Metropolis steps at each of them.

    The target at temperature l is p(z) p(y | z)^l, where p is the smoothed predicted set (which keeps its
    mean and covariance; see `credo.particles.density`). The next temperature is that at which the effective
    sample size is a share of N, found by bisection (Jasra et al. 2011). Then the particles are weighed,
    resampled, and moved. If a whole observation leaves that many particles, it is one importance step as
    in a bootstrap filter, and nothing moves.

    Arguments:
        model: a `Model`, of which only `log_prob` is needed; `joint(model)` for mini-batches.
        particles: the number N, at least 2.
        dynamics: how a particle moves between observations.
        moves: the Metropolis steps at each temperature.
        threshold: the share of N, in (0, 1), that the effective sample size keeps.
        resampling: as for `ParticleFilter`.
        stages: the largest number of temperatures; the last one takes in whatever is left.

    Raises:
        CredoError: one of the settings is not allowed.

    Cost of a temperature: that of the moves. Exact as N grows.

    Example:
        >>> import credo
        >>> learner = TemperedFilter(credo.Model(lambda z, x: z, credo.Normal(1e-4)), particles=500)
        >>> belief, info = learner.step(learner.init(jnp.zeros(1)), None, jnp.full(1, 1.5))
        >>> round(float(belief.mean[0]), 1), bool(belief.sd[0] < 0.03)
        (1.5, True)
    """

    model: Model
    particles: int = static_field(default=256)
    dynamics: Dynamics = Static()
    moves: Metropolis = Metropolis(5)
    threshold: ArrayLike = 0.5
    resampling: Resampling = static_field(default="systematic")
    stages: int = static_field(default=30)

    def __post_init__(self) -> None:
        super().__post_init__()
        require_interval("threshold", self.threshold, 0.0, 1.0, closed=False)
        require_choice("resampling", self.resampling, get_args(Resampling))
        require_integer("stages", self.stages, 1)

    def assimilate(
        self, belief: Particles, x: PyTree, y: PyTree, weight: Array, key: Array
    ) -> tuple[Particles, Array]:
        def log_likelihood(values: Array) -> Array:
            return self.log_likelihood(values, belief.unravel, x, y, weight)

        prior = smooth(belief.values, belief.log_weights)
        zero = jnp.zeros((), belief.values.dtype)
        first = Stage.first(belief.values, belief.log_weights, log_likelihood(belief.values))

        def move(key: Array, values: Array, raised: Target) -> Array:
            return self.moves.move(key, values, prior, raised)

        wanted = as_like(self.threshold, zero) * self.particles
        last = temper(key, first, log_likelihood, move, wanted, self.resampling, self.stages)
        whole = (weight > 0).astype(zero.dtype)
        tempered = self.log_likelihood(belief.values, belief.unravel, x, y, whole)
        plain = jax.nn.logsumexp(belief.log_weights + tempered)
        # the evidence of a whole observation, where a weight made this one another
        log_evidence = jnp.where(jnp.all(weight == whole), last.log_evidence, plain)
        return replace(belief, values=last.values, log_weights=last.log_weights), log_evidence


def next_temperature(log_weights: Array, heights: Array, most: Array, wanted: Array) -> Array:
    """The largest rise d of the temperature, at most `most`, with an effective sample size of `wanted`.

    That is the size of the weights w exp(d heights), the heights being log-likelihoods. Where even d = 0
    leaves about so many or fewer, it is the rise that costs a twentieth of them.
    """
    wanted = jnp.minimum(wanted, 0.05 + 0.95 * effective_size(log_weights))

    def enough(rise: Array) -> Array:
        logs = log_weights + rise * heights
        # a particle without likelihood has none at any temperature above 0
        return effective_size(jnp.where(jnp.isnan(logs), -jnp.inf, logs)) >= wanted

    def halve(_: int, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = ends
        middle = 0.5 * (low + high)
        good = enough(middle)
        return jnp.where(good, middle, low), jnp.where(good, high, middle)

    high: Array = jax.lax.fori_loop(0, HALVINGS, halve, (jnp.zeros_like(most), most))[1]
    return jnp.where(enough(most), most, high)


def tempered_smc(
    model: Model,
    particles: int = 256,
    dynamics: Dynamics | None = None,
    *,
    moves: Metropolis | None = None,
    threshold: ArrayLike = 0.5,
) -> TemperedFilter:
    """Particles that take in each observation by temperatures; see `TemperedFilter`.

    Arguments:
        model, particles, threshold: as for `TemperedFilter`.
        dynamics: a `Transition`, or any other dynamics; None stands still.
        moves: the steps at each temperature; None for five steps of a random walk.

    Returns:
        The learner.

    Example:
        >>> import credo
        >>> tempered_smc(credo.Model(lambda z, x: z, credo.Normal(1.0)), 100).particles
        100
    """
    dynamics = Static() if dynamics is None else dynamics
    return TemperedFilter(model, particles, dynamics, Metropolis(5) if moves is None else moves, threshold)
