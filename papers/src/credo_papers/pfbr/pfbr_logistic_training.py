"""The training of classifiers: updates of tasks with real digits, each of which is turned by an angle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp

from credo.beliefs import Particles
from credo.core.records import record, replace, static_field
from credo.core.types import Array, PyTree
from credo.flows import FlowFilter, Operator, Stage, Tasks, pfbr
from credo.flows.densities import NormalDensity
from credo.flows.tasks import renewed
from credo_papers.engine.cell_folder import Cells
from credo_papers.engine.portions import Progress
from credo_papers.pfbr.pfbr_logistic_world import Digits, logistic_problem
from credo_papers.pfbr.pfbr_problem import Problem
from credo_papers.pfbr.pfbr_training import Flows, train_methods

__all__ = ["OPERATOR", "DigitTasks", "train_logistic"]

LENGTH = 60
"""Batches of a task in training, as many as a scored task has."""

OPERATOR: dict[str, Any] = {"iterations": 6, "damping": 0.5}
"""Settings of our operators: how often the likelihood of a batch is linearised, and how carefully."""


@record
class TurnedDigits:
    """A task: by how much its digits are turned, and the belief on the operator's own way."""

    angle: Array
    belief: Particles


@record
class DigitTasks(Tasks[TurnedDigits]):
    """Updates with batches of real digits, whose first two components are turned by U(-180, 180) degrees.

    No weights are true here: the labels are those of the digits. The prior of an update is the normal
    distribution with the moments of the operator's particles, and the loss is taken at other draws of it.

    Arguments:
        learner: the learner to train for.
        start: the belief before any data.
        x: all digits (M, 50).
        y: their classes (M,).
        batch: labels of an observation.
        length: batches of a task.
    """

    learner: FlowFilter
    start: Particles
    x: Array
    y: Array
    batch: int = static_field(default=32)
    length: int = static_field(default=LENGTH)

    @property
    def dim(self) -> int:
        return self.start.size

    def begin(self, key: Array) -> TurnedDigits:
        source = self.start.source
        assert source is not None
        first, second = jax.random.split(key)
        belief = self.start.equal(source.draw(first, self.learner.particles))
        angle = jax.random.uniform(second, (), belief.values.dtype, -jnp.pi, jnp.pi)
        return TurnedDigits(angle, belief)

    def observe(self, task: TurnedDigits, key: Array) -> tuple[TurnedDigits, Stage]:
        first, second = jax.random.split(key)
        rows = jax.random.randint(first, (self.batch,), 0, self.x.shape[0])
        cos = jnp.cos(task.angle)
        sin = jnp.sin(task.angle)
        turn = jnp.stack([jnp.stack([cos, sin]), jnp.stack([-sin, cos])])
        x = self.x[rows]
        x = x.at[:, :2].set(x[:, :2] @ turn)
        old = task.belief
        prior = NormalDensity.of(old.values, old.log_weights)
        noise = jax.random.normal(second, old.values.shape, old.values.dtype)
        points = prior.mean[None, :] + noise @ prior.root.T
        unknown = jnp.full((), jnp.nan, noise.dtype)
        after = replace(task, belief=replace(old, t=old.t + 1))
        return after, Stage(old.values, old.log_weights, points, prior, x, self.y[rows], points[:1], unknown)

    def advance(self, task: TurnedDigits, stage: Stage, values: Array, key: Array) -> TurnedDigits:
        after = replace(task, belief=replace(task.belief, values=values))
        lost = ~jnp.all(jnp.isfinite(values))
        return renewed(after, (task.belief.t >= self.length) | lost, self.begin(key))

    def log_likelihood(self, value: Array, x: PyTree, y: PyTree) -> Array:
        return self.learner.log_likelihood(value[None, :], self.start.unravel, x, y)[0]


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

    Arguments:
        data: the digits, of which the first part is used.
        particles: the number of particles in training.
        steps: of gradient descent, by the name of the method.
        batch: labels of an observation.
        seed: the seed of the training.
        cells: where finished pieces are kept; None keeps none.
        progress: is called before each training.
    """
    x, y = (jnp.asarray(part, float) for part in (data.train_x, data.train_y))
    problem = logistic_problem()

    def tasks(blank: Operator) -> Tasks[Any]:
        learner = pfbr(problem.model, blank, particles)
        return DigitTasks(learner, problem.begin(learner, jax.random.key(0)), x, y, batch)

    name = f"pfbr-logistic batch={batch} particles={particles}"
    return train_methods(name, problem, Flows(tasks, steps, OPERATOR), seed, cells, progress)
