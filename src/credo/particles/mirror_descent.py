"""Particle mirror descent: posteriors of a stream by entropic steps on a kernel density."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from credo.beliefs import Particles
from credo.core.errors import CredoError, require_integer, require_interval, require_positive
from credo.core.records import record, replace, static_field
from credo.core.trees import as_like
from credo.core.types import Array, ArrayLike, PyTree
from credo.dynamics import Dynamics, Static
from credo.learners.rules.base import Rate, as_rate, rate_at
from credo.models.model import Model
from credo.particles.base import ParticleLearner, row_scale, standardized, whole_evidence
from credo.particles.density import SmoothDensity, smooth
from credo.particles.resampling import effective_size, resample

__all__ = ["MirrorDescent"]

HALVINGS = 30
"""The number of halvings in the search for the largest step, which make it exact in single precision."""


@record
class MirrorDescent(ParticleLearner):
    """Particle mirror descent (Dai, He, Dai & Song 2016, arXiv 1506.03101), which keeps a kernel density.

    The density of the belief is q(z) = sum_i w_i K(z - z_i). A step of size g towards a target pi draws
    particles from q and weighs them by

        log w_i = g (log pi(z_i) - log q(z_i)),

    so that q becomes proportional to q^(1 - g) pi^g. There are two targets.

    - `total=None`, for a stream of any length: pi = q_{t-1} p(y_t | z), with the belief before the
      observation as the prior. The I = `iterations` steps have sizes 1 / I, 1 / (I - 1), ..., 1, and
      reach pi. With one step this is importance sampling from the density.
    - `total=n`, the number of rows of the whole stream: pi = p(z) p(y_t | z)^(n / B) for a batch of B rows.
      Its logarithm estimates that of the posterior of *all* n rows, with the prior of `init`, without bias.
      Steps have sizes g_t = `rate`, and particles settle at the posterior of all rows as g_t falls. Before
      the end the belief is no posterior of the rows so far.

    Kernels have the covariance of the set and are drawn towards its mean, and the draws are shifted and
    stretched, so that mean and covariance survive a step exactly (`shrink`). With the plain kernels and draws
    of the source, every step adds a bandwidth to the variance and an error to the mean, which a stream adds
    up: after 100 observations of a mean in two dimensions the standard deviation was four times too large.

    Arguments:
        model: a `Model`, of which only `log_prob` is needed; `joint(model)` for mini-batches.
        particles: the number N, at least 2.
        dynamics: how particles move between observations.
        total: the number of rows of the whole stream, above 0, or None.
        rate: g_t with `total`: a number in (0, 1], or a function of the number of the step; None for
            2 / (t + 1).
        iterations: how many steps are taken for an observation, at least 1.
        threshold: with `total`, the share of N in [0, 1) below which no step may bring the effective sample
            size; a step that would is shortened. 0 takes every step as it is, as the source does, and then
            one early batch can leave a single particle.
        shrink: whether moments are kept by a step.

    Raises:
        CredoError: a setting is out of range, or a rate is given without `total`.

    Cost of a step of mirror descent: N model evaluations and N^2 P. Approximate: the error of the density
    falls as N^(-4 / (P + 4)), so use it for few parameters. On a model with two modes the ranks of simulated
    truths were 0.07 from uniform, on linear ones 0.02.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> model = credo.Model(lambda z, x: z, credo.Normal(1.0))
        >>> learner = MirrorDescent(model, particles=500)
        >>> belief, trace = credo.run(learner, learner.init(jnp.zeros(1)), None, jnp.full((9, 1), 1.0))
        >>> round(float(belief.mean[0]), 1), round(float(belief.sd[0]), 1)
        (0.9, 0.3)
    """

    model: Model
    particles: int = static_field(default=256)
    dynamics: Dynamics = Static()
    total: ArrayLike | None = None
    rate: Rate | None = None
    iterations: int = static_field(default=1)
    threshold: ArrayLike = 0.1
    shrink: bool = static_field(default=True)

    def __post_init__(self) -> None:
        require_integer("particles", self.particles, 2)
        require_integer("iterations", self.iterations, 1)
        require_interval("threshold", self.threshold, 0.0, 1.0)
        require_positive("total", self.total)
        if self.rate is not None:
            if self.total is None:
                raise CredoError("rate is for a stream of known length: give `total`, too.", field="rate")
            object.__setattr__(self, "rate", as_rate("rate", self.rate, 1.0))

    def assimilate(
        self, belief: Particles, x: PyTree, y: PyTree, weight: Array, key: Array
    ) -> tuple[Particles, Array]:
        """Steps from the density of the belief towards the target."""
        prior = self._density(belief.values, belief.log_weights)

        def log_target(values: Array) -> Array:
            logs = self.log_likelihood(values, belief.unravel, x, y, weight)
            if self.total is None:
                return logs + prior.log_prob(values)
            assert belief.source is not None
            scale = row_scale(self.total, self.model, y, values)
            return scale * logs + jax.vmap(belief.source.log_prob)(values)

        def step(state: tuple[Array, Array], i: Array) -> tuple[tuple[Array, Array], None]:
            first, second = jax.random.split(jax.random.fold_in(key, i))
            density = self._density(*state)
            values = density.jitter(resample(first, state[1], self.particles), second)
            values = density.color(standardized(density.whiten(values))) if self.shrink else values
            gap = log_target(values) - density.log_prob(values)
            size = self._size(i, belief.t, gap)
            # A particle that the target excludes has no weight, whatever the size of the step.
            logs = jnp.where(gap > -jnp.inf, size * gap, -jnp.inf)
            return (values, jax.nn.log_softmax(logs)), None

        start = (belief.values, belief.log_weights)
        (values, log_weights), _ = jax.lax.scan(step, start, jnp.arange(self.iterations))
        new = replace(belief, values=values, log_weights=log_weights)
        return new, whole_evidence(self, belief, x, y, weight)

    def _density(self, values: Array, log_weights: Array) -> SmoothDensity:
        density = smooth(values, log_weights)
        if self.shrink:
            return density
        return replace(density, centres=density.centres / jnp.sqrt(1.0 - density.bandwidth**2))

    def _size(self, i: Array, t: Array, gap: Array) -> Array:
        """The size of a step whose exponents are these (N,)."""
        if self.total is None:
            return 1.0 / (self.iterations - i).astype(gap.dtype)
        rate = 2.0 / (t + 1).astype(gap.dtype) if self.rate is None else rate_at(self.rate, t, gap.dtype, 1.0)
        least = as_like(self.threshold, gap) * self.particles
        safe = jnp.where(gap > -jnp.inf, gap, jnp.min(jnp.where(gap > -jnp.inf, gap, jnp.inf)))

        def halve(_: Array, ends: tuple[Array, Array]) -> tuple[Array, Array]:
            low, high = ends
            middle = 0.5 * (low + high)
            enough = effective_size(middle * safe) >= least
            return jnp.where(enough, middle, low), jnp.where(enough, high, middle)

        low: Array = jax.lax.fori_loop(0, HALVINGS, halve, (jnp.zeros_like(rate), rate))[0]
        return jnp.where(effective_size(rate * safe) >= least, rate, low)
