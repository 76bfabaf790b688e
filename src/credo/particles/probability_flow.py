"""The deterministic Fokker-Planck flow, with a kernel estimate of the set's own score."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from credo.core.errors import require_positive
from credo.core.records import record, static_field
from credo.core.types import Array, ArrayLike
from credo.dynamics import Dynamics, Static
from credo.models.model import Model
from credo.particles.moves import Target, gradients
from credo.particles.smoothing import smooth
from credo.particles.transport import Start, TransportLearner

__all__ = ["FokkerPlanckLearner", "fokker_planck"]


@record
class FokkerPlanckLearner(TransportLearner):
    """Particles that follow dz/dt = grad log p(z | y) - grad log q_t(z) to the posterior.

    Their density q_t is then that of Langevin diffusion, without its noise (Chen, Dai & Song 2019, Eq. 12,
    from which the particle flow Bayes rule starts). The score of q_t is that of the smoothed set, whose
    kernels keep its mean and covariance, so that a normal posterior is met exactly. The time is cut into
    steps of one length (Euler's method). The target and the coordinates are those of
    `credo.particles.transport.TransportLearner`.

    Arguments:
        model: a `Model`, of which only `log_prob` is needed; `joint(model)` for mini-batches.
        particles: the number N, at least 2.
        dynamics: how a particle moves between observations.
        steps: how many steps the flow takes.
        step_size: the length of a step; in these coordinates a flow towards a normal law has rate 1.
        start: "prior", where particles start as predicted; "map", moved by the affine Gaussian map.

    Raises:
        CredoError: one of the settings is not allowed.

    Cost of a step of the flow: N gradients and N^2 P. Approximate: the kernels blur what is finer than they
    are, such as the gap between two modes.

    Example:
        >>> import credo
        >>> learner = FokkerPlanckLearner(credo.Model(lambda z, x: z, credo.Normal(1.0)), particles=50)
        >>> belief, info = learner.step(learner.init(jnp.zeros(1)), None, jnp.full(1, 2.0))
        >>> round(float(belief.mean[0]))
        1
    """

    model: Model
    particles: int = static_field(default=256)
    dynamics: Dynamics = Static()
    steps: int = static_field(default=50)
    step_size: ArrayLike = 0.1
    start: Start = static_field(default="prior")

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive("step_size", self.step_size)

    def carry(self, v: Array, log_weights: Array, target: Target) -> Array:
        """The particles after `steps` steps of Euler's method."""
        length = jnp.asarray(self.step_size).astype(v.dtype)

        def step(number: int, v: Array) -> Array:
            own = smooth(v, log_weights)
            _, slopes = gradients(lambda points: target(points) - own.log_prob(points), v)
            return v + length * slopes

        end: Array = jax.lax.fori_loop(0, self.steps, step, v)
        return end


def fokker_planck(
    model: Model,
    particles: int = 256,
    dynamics: Dynamics | None = None,
    *,
    steps: int = 50,
    step_size: ArrayLike = 0.1,
    start: Start = "prior",
) -> FokkerPlanckLearner:
    """The deterministic Fokker-Planck flow; see `FokkerPlanckLearner`.

    Arguments:
        model, particles, steps, step_size, start: as for `FokkerPlanckLearner`.
        dynamics: a `Transition`, or any other dynamics; None stands still.

    Returns:
        The learner.

    Example:
        >>> import credo
        >>> fokker_planck(credo.Model(lambda z, x: z, credo.Normal(1.0)), 50).particles
        50
    """
    dynamics = Static() if dynamics is None else dynamics
    return FokkerPlanckLearner(model, particles, dynamics, steps, step_size, start)
