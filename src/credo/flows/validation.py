"""Scores of an operator on sequences that training does not see."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from credo.core.loops import each
from credo.core.types import Array, PyTree
from credo.flows.objective import Loss, stage_loss
from credo.flows.operator import FlowOperator
from credo.flows.tasks import Tasks
from credo.particles.density import bandwidths, log_gaussian, log_kde

__all__ = ["validate"]


def validate(
    operator: FlowOperator,
    params: PyTree,
    tasks: Tasks[Any],
    key: Array,
    *,
    sequences: int = 16,
    stages: int = 25,
    loss: Loss = "elbo",
) -> dict[str, Array]:
    """The mean loss and cross-entropies over fresh sequences, stage by stage.

    Arguments:
        operator, params: the operator.
        tasks: where the sequences come from.
        key: their key; with the same key two operators see the same sequences.
        sequences, stages: how many sequences, and how many updates of each.
        loss: the loss to report.

    Returns:
        Means over sequences, each with one number a stage (stages,): the loss; its floor, NaN where it is not
        known; and the cross-entropies from the posterior (its samples in the stages) to the kernel density
        estimate, "kde", and to the normal law of the particles, "gaussian".
    """

    def sequence(own: Array) -> dict[str, Array]:
        first, second = jax.random.split(own)

        def one(task: Any, key: Array) -> tuple[Any, dict[str, Array]]:
            keys = jax.random.split(key)
            seen, stage = tasks.observe(task, keys[0])
            value, new = stage_loss(operator, params, tasks, stage, loss)
            width = bandwidths(new, stage.log_weights)
            scores = {
                "loss": value,
                "floor": stage.floor,
                "kde": -jnp.mean(log_kde(stage.targets, new, stage.log_weights, width)),
                "gaussian": -jnp.mean(log_gaussian(stage.targets, new, stage.log_weights)),
            }
            return tasks.advance(seen, stage, new, keys[1]), scores

        return jax.lax.scan(one, tasks.begin(first), jax.random.split(second, stages))[1]

    table = each(sequence, jax.random.split(key, sequences))
    return {name: jnp.mean(column, axis=0) for name, column in table.items()}
