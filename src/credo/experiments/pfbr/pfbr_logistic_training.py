"""What is trained for classifiers: tasks with real digits, and labels by weights drawn from the prior."""

from __future__ import annotations

from collections.abc import Mapping

import jax
import jax.numpy as jnp

from credo.core.types import Array
from credo.experiments.engine.cell_folder import Cells
from credo.experiments.engine.portions import Progress
from credo.experiments.pfbr.pfbr_logistic_world import Digits, logistic_problem
from credo.experiments.pfbr.pfbr_problem import Problem
from credo.experiments.pfbr.pfbr_training import simulated, train_methods

__all__ = ["train_logistic"]

LENGTH = 20
"""Batches of a task in training."""


def train_logistic(
    data: Digits,
    particles: int,
    steps: Mapping[str, int],
    batch: int,
    seed: int,
    cells: Cells | None,
    progress: Progress,
) -> tuple[Problem, dict[str, float]]:
    """Return the problem with everything trained for it, and the seconds of each training.

    Every task has weights of its own, so that an operator must learn from labels.

    Arguments:
        data: the digits, of which the first part is used.
        particles: the number of particles in training.
        steps: of gradient descent, by the name of the method.
        batch: labels of an observation.
        seed: of the training.
        cells: where finished pieces are kept; None keeps none.
        progress: is called before each training.
    """
    rows = jnp.asarray(data.train_x, float)

    def inputs(key: Array, t: Array) -> Array:
        return rows[jax.random.randint(key, (batch,), 0, rows.shape[0])]

    problem = logistic_problem()
    flows = simulated(problem, particles, LENGTH, steps, inputs=inputs)
    return train_methods(f"pfbr-logistic batch={batch}", problem, flows, seed, cells, progress)
