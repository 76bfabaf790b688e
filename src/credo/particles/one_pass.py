"""One-pass sequential Monte Carlo: importance weights, and a redraw from a kernel estimate when few count."""

from __future__ import annotations

from credo.core.types import ArrayLike
from credo.dynamics import Dynamics
from credo.models.model import Model
from credo.particles.filter import ParticleFilter, particle_filter
from credo.particles.moves import KernelDraw

__all__ = ["one_pass_smc"]


def one_pass_smc(
    model: Model, particles: int = 256, dynamics: Dynamics | None = None, *, threshold: ArrayLike = 0.7
) -> ParticleFilter:
    """One-pass sequential Monte Carlo (Balakrishnan & Madigan 2006).

    Particles are weighed by the likelihood. Where the effective sample size falls below a share of N, they
    are resampled (multinomial), and all are drawn anew from the kernel estimate of the resampled set, with
    Silverman's bandwidth for each coordinate. It needs no past data, and fits parameters that stand still;
    but every redraw adds the square of the bandwidth to the variances.

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
