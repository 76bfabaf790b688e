"""What training minimises, for one update.

"elbo" is the evidence bound of the paper's Eq 20 for a single update, with the density of the discrete map:

    E_n[ log p(x_n) - log |det T'(x_n)| - log p(y | T x_n) - log p(T x_n) ]  >=  -log p(y),

with equality where T takes the prior p to the posterior. "likelihood" asks for the density that the map gives
to samples of the posterior, which misses no mode:

    -E_m[ log p(T^-1 x_m) - log |det T'(T^-1 x_m)| ]  >=  entropy of the posterior.
"""

from __future__ import annotations

from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import jax
import jax.numpy as jnp

from credo.core.types import Array, PyTree
from credo.flows.operator import FlowOperator
from credo.flows.tasks import Stage, Tasks

__all__ = ["Loss", "stage_loss"]

Loss: TypeAlias = Literal["elbo", "likelihood"]
"""What is minimised."""


@runtime_checkable
class Chain(Protocol):
    """Tasks whose stage is a chain of updates, and whose loss is their own."""

    def segment_loss(self, operator: FlowOperator, params: PyTree, stage: Any) -> tuple[Array, Array]:
        """The loss of a stage, and the particles (N, d) at its end."""
        ...


def stage_loss(
    operator: FlowOperator, params: PyTree, tasks: Tasks[Any], stage: Stage, loss: Loss
) -> tuple[Array, Array]:
    """The loss of one update, and where the operator takes the particles (N, d)."""
    if isinstance(tasks, Chain):
        value, last = tasks.segment_loss(operator, params, stage)
        return value, jax.lax.stop_gradient(last)

    def log_likelihood(value: Array) -> Array:
        return tasks.log_likelihood(value, stage.x, stage.y)

    bayes = operator.transport(params, stage.values, stage.log_weights, log_likelihood, stage.x, stage.y)
    new = jax.lax.stop_gradient(bayes.forward(stage.values))
    if loss == "likelihood":
        origins, log_det = bayes.backward(stage.targets)
        return -jnp.mean(stage.prior.log_prob(origins) - log_det), new
    places, log_det = bayes.forward_density(stage.points)
    before, after = stage.prior.log_prob(stage.points), stage.prior.log_prob(places)
    gaps = before - log_det - jax.vmap(log_likelihood)(places) - after
    return jnp.mean(gaps), new
