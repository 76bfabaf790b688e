"""Stein variational gradient descent."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from credo.core.errors import require_positive
from credo.core.records import record, static_field
from credo.core.types import Array, ArrayLike
from credo.dynamics import Dynamics, Static
from credo.linalg.matrices import column_sums
from credo.models.model import Model
from credo.particles.moves import Target, gradients
from credo.particles.transport import Start, TransportLearner

__all__ = ["SteinLearner", "stein_direction", "svgd"]

MANY = 64
"""How many particles the median distance is taken of; to sort all N^2 would cost more than all else."""


@record
class SteinLearner(TransportLearner):
    """Stein variational gradient descent (Liu & Wang 2016), one posterior after another.

    Every particle moves along phi(z) = sum_j w_j (k(z_j, z) grad log p(z_j) + grad_j k(z_j, z)), each
    number divided by the root of a running mean of its squares (AdaGrad as in their code), at a learning rate
    that falls to 0 as a cosine. The kernel is k(z, z') = exp(-|z - z'|^2 / h), h = the median of the
    squared distances (of the first 64 particles) over log N. The target p and the coordinates are those of
    `credo.particles.transport.TransportLearner`.

    Arguments:
        model: a `Model`, of which only `log_prob` is needed; `joint(model)` for mini-batches.
        particles: the number N, at least 2.
        dynamics: how a particle moves between observations.
        steps: how many steps the flow takes.
        learning_rate: the learning rate of the first step, in standard deviations of the posterior.
        start: "prior", where particles start as predicted; "map", moved by the affine Gaussian map.

    Raises:
        CredoError: one of the settings is not allowed.

    Cost of a step of the flow: N gradients and N^2 P. Approximate: the fixed points have too small variances,
    the more so the more parameters there are.

    Example:
        >>> import credo
        >>> learner = SteinLearner(credo.Model(lambda z, x: z, credo.Normal(1.0)), particles=50)
        >>> belief, info = learner.step(learner.init(jnp.zeros(1)), None, jnp.full(1, 2.0))
        >>> round(float(belief.mean[0]))
        1
    """

    model: Model
    particles: int = static_field(default=256)
    dynamics: Dynamics = Static()
    steps: int = static_field(default=100)
    learning_rate: ArrayLike = 0.1
    start: Start = static_field(default="prior")

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive("learning_rate", self.learning_rate)

    def carry(self, v: Array, log_weights: Array, target: Target) -> Array:
        """The particles after `steps` steps."""
        weights = jnp.exp(log_weights)
        rate = jnp.asarray(self.learning_rate).astype(v.dtype)
        shares = 0.5 * (1.0 + jnp.cos(jnp.pi * jnp.arange(self.steps, dtype=v.dtype) / self.steps))

        def step(state: tuple[Array, Array], share: Array) -> tuple[tuple[Array, Array], None]:
            v, squares = state
            direction = stein_direction(v, weights, gradients(target, v)[1])
            squares = jnp.where(share < 1, 0.9 * squares + 0.1 * direction**2, direction**2)
            return (v + rate * share * direction / (1e-6 + jnp.sqrt(squares)), squares), None

        (v, _), _ = jax.lax.scan(step, (v, jnp.zeros_like(v)), shares)
        return v


def stein_direction(values: Array, weights: Array, slopes: Array) -> Array:
    """The direction (N, P) of Stein's method, by the target's slopes at the particles. Cost: N^2 P."""
    count = values.shape[0]
    middle = values - (weights @ values)[None, :]
    norms = jnp.sum(middle**2, axis=1)
    squares = jnp.maximum(norms[:, None] + norms[None, :] - 2.0 * middle @ middle.T, 0.0)
    few = squares[:MANY, :MANY]
    width = jnp.median(few) / jnp.log(jnp.asarray(count, values.dtype))
    width = jnp.where(width > 0, width, 1.0)
    kernel = jnp.exp(-squares / width) * weights[:, None]
    # sum_j w_j grad_j k(z_j, z) = 2 / h sum_j w_j k(z_j, z) (z - z_j)
    repulsion = middle * column_sums(kernel)[:, None] - kernel.T @ middle
    return kernel.T @ slopes + 2.0 / width * repulsion


def svgd(
    model: Model,
    particles: int = 256,
    dynamics: Dynamics | None = None,
    *,
    steps: int = 100,
    learning_rate: ArrayLike = 0.1,
    start: Start = "prior",
) -> SteinLearner:
    """Stein variational gradient descent from one posterior to the next; see `SteinLearner`.

    Arguments:
        model, particles, steps, learning_rate, start: as for `SteinLearner`.
        dynamics: a `Transition`, or any other dynamics; None stands still.

    Returns:
        The learner.

    Example:
        >>> import credo
        >>> svgd(credo.Model(lambda z, x: z, credo.Normal(1.0)), 50).particles
        50
    """
    dynamics = Static() if dynamics is None else dynamics
    return SteinLearner(model, particles, dynamics, steps, learning_rate, start)
