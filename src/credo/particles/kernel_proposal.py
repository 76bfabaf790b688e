"""Filters that draw from kernel estimates: that of Liu and West, and one pass of importance weights."""

from __future__ import annotations

import math

import jax

from credo.beliefs import Particles
from credo.core.errors import require_interval
from credo.core.records import record
from credo.core.types import Array, ArrayLike, PyTree
from credo.dynamics import Dynamics
from credo.models.model import Model
from credo.particles.base import ParticleLearner
from credo.particles.density import smooth
from credo.particles.filter import ParticleFilter, particle_filter
from credo.particles.guided import Proposal, weigh
from credo.particles.moves import KernelDraw
from credo.particles.resampling import resample

__all__ = ["KernelProposal", "liu_west", "one_pass_smc"]


@record
class KernelProposal(Proposal):
    """Propose from the smoothed set, with a look ahead from the centres of its kernels.

    With the predicted mean m and covariance S, kernels N(a z_i + (1 - a) m, (1 - a^2) S) keep both. A kernel
    is drawn in proportion to w_i p(y | its centre), a particle z from it, and z has the weight
    p(y | z) / p(y | its centre). Source: Liu & West 2001, section 10.4.

    Arguments:
        shrinkage: a, in (0, 1); they take 0.974 to 0.995.

    Raises:
        CredoError: `shrinkage` is not between 0 and 1.

    Cost of a step: 2 N evaluations of the model, N P^2 and P^3. Approximate: the particles are smoothed in
    every step, which is exact for a normal set, and for any other as N grows and a goes to 1. With 200
    particles on a bimodal model, the ranks of simulated truths were 0.04 from uniform (Liu-West), which 500
    draws do not tell from 0 (p = 0.059); of moving states with heavy-tailed noise they were 0.06 (p = 0.004).

    Example:
        >>> KernelProposal(0.98).shrinkage
        0.98
    """

    shrinkage: ArrayLike = 0.98

    def __post_init__(self) -> None:
        require_interval("shrinkage", self.shrinkage, 0.0, 1.0, closed=False)

    def propose(
        self, learner: ParticleLearner, belief: Particles, x: PyTree, y: PyTree, weight: Array, key: Array
    ) -> tuple[Particles, Array, Array]:
        """Draws from kernels that were drawn with a look ahead."""
        first, second = jax.random.split(key)
        kernels = smooth(belief.values, belief.log_weights, self.shrinkage)
        centres = kernels.color(kernels.centres)
        looks = learner.log_likelihood(centres, belief.unravel, x, y, weight)
        ahead = belief.log_weights + looks
        ancestors = resample(first, ahead, belief.values.shape[0])
        values = kernels.jitter(ancestors, second)
        total = jax.nn.logsumexp(ahead) - math.log(belief.values.shape[0])
        return weigh(learner, belief, x, y, weight, values, total - looks[ancestors])


def liu_west(
    model: Model, particles: int = 256, dynamics: Dynamics | None = None, *, shrinkage: ArrayLike = 0.98
) -> ParticleFilter:
    """The filter of Liu & West (2001), for parameters that stand still or move.

    Arguments:
        model: a `Model`, of which only `log_prob` is needed.
        particles: the number N, at least 2.
        dynamics: a `Transition`, or any other dynamics; None stands still.
        shrinkage: a, in (0, 1): how much of its distance from the mean a particle keeps.

    Returns:
        The learner, a `ParticleFilter` with the proposal `KernelProposal`.

    Raises:
        CredoError: `shrinkage` is not between 0 and 1.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> learner = liu_west(credo.Model(lambda z, x: z, credo.Normal(1.0)), particles=500)
        >>> belief, trace = credo.run(learner, learner.init(jnp.zeros(1)), None, jnp.full((50, 1), 2.0))
        >>> round(float(belief.mean[0]), 1)
        2.0
    """
    return particle_filter(model, particles, dynamics, proposal=KernelProposal(shrinkage))


def one_pass_smc(
    model: Model, particles: int = 256, dynamics: Dynamics | None = None, *, threshold: ArrayLike = 0.7
) -> ParticleFilter:
    """One-pass sequential Monte Carlo (Balakrishnan & Madigan 2006).

    Particles are weighed by the likelihood. If the effective sample size falls below a share of N, they
    are resampled (multinomial), and all are drawn again from the kernel estimate of the resampled set, with
    Silverman's bandwidth for each coordinate. It needs no past data, and fits parameters that stand still;
    but every redraw adds the square of the bandwidth to the variances: with 200 particles, four observations
    and two modes, the ranks of simulated truths were 0.05 from uniform (p < 0.001).

    Arguments:
        model: a `Model`, of which only `log_prob` is needed.
        particles: the number N, at least 2.
        dynamics: a `Transition`, or any other dynamics; None stands still.
        threshold: the share of N, in [0, 1], below which the effective sample size leads to a redraw.

    Returns:
        The learner, a `ParticleFilter` with the move `KernelDraw`.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> learner = one_pass_smc(credo.Model(lambda z, x: z, credo.Normal(1.0)), particles=500)
        >>> belief, trace = credo.run(learner, learner.init(jnp.zeros(1)), None, jnp.full((50, 1), 2.0))
        >>> round(float(belief.mean[0]), 1)
        2.0
    """
    return particle_filter(
        model, particles, dynamics, resampling="multinomial", threshold=threshold, move=KernelDraw()
    )
