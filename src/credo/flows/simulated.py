"""Tasks that are simulated from a learner's own model: no filter is needed, and none is exact but one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from credo.beliefs import Particles, Source
from credo.core.errors import CredoError, require_integer
from credo.core.records import record, replace, static_field
from credo.core.trees import Unravel, ravel
from credo.core.types import Array, ArrayLike, PyTree
from credo.dynamics import Static
from credo.flows.densities import KernelDensity
from credo.flows.learner import FlowFilter
from credo.flows.tasks import Stage, Tasks, renewed
from credo.particles.base import ParticleLearner
from credo.particles.density import bandwidths
from credo.particles.resampling import resample

__all__ = ["SimulatedTasks", "StaticTasks"]


@record
class Simulation:
    """A task: the truth, the belief that follows it, and whatever else the tasks keep."""

    truth: Array
    belief: Particles
    state: PyTree = None


@record
class SimulatedTasks(Tasks[Simulation]):
    """Updates on the operator's own way: its particles after one update are the prior of the next.

    The truth is drawn from the prior and moves by the dynamics; observations are drawn from the likelihood.
    A set that has gone wrong is left behind when its sequence is over.

    Arguments:
        learner: the `credo.pfbr` learner to train for, with any operator of the right dimension. Its model,
            dynamics, number of particles, noise and density are taken; the density "kernel" stands for None.
        start: the belief before any data, `learner.init(...)`.
        length: the number of observations of a sequence.
        inputs: `inputs(key, t)`, the x of step t; None for none.

    Raises:
        CredoError: the prior is known by its particles alone, or `length` is below 1.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> model = credo.Model(lambda z, x: z, credo.StudentT(0.3, 3.0))
        >>> operator = credo.flows.Operator(dim=1, width=2, hidden=4).begin()
        >>> learner = credo.pfbr(model, operator, particles=20, dynamics=credo.RandomWalk(0.1))
        >>> tasks = credo.flows.SimulatedTasks(learner, learner.init(jnp.zeros(1)), length=10)
        >>> task, stage = tasks.observe(tasks.begin(jax.random.key(0)), jax.random.key(1))
        >>> stage.values.shape
        (20, 1)
    """

    learner: FlowFilter
    start: Particles
    length: int = static_field(default=25)
    inputs: Callable[[Array, Array], PyTree] | None = static_field(default=None)

    def __post_init__(self) -> None:
        require_integer("length", self.length, 1)
        if isinstance(self.start, Particles) and self.start.source is None:
            raise CredoError("start must know the prior from which its particles come.", field="start")

    @property
    def dim(self) -> int:
        return self.start.size

    def begin(self, key: Array) -> Simulation:
        source = self.start.source
        assert source is not None
        first, second, third = jax.random.split(key, 3)
        values = source.draw(first, self.learner.particles).astype(self.start.values.dtype)
        belief = replace(self.start.equal(values), key=jax.random.key_data(second))
        if belief.parents is not None:
            belief = replace(belief, parents=values)
        truth = source.draw(third, 2)[0].astype(values.dtype)
        return Simulation(truth, belief)

    def observe(self, task: Simulation, key: Array) -> tuple[Simulation, Stage]:
        keys = jax.random.split(key, 5)
        old, learner = task.belief, self.learner
        rest = (old.anchor, old.t, None, old.unravel)
        alone = jnp.zeros(1, task.truth.dtype)
        truth = learner.dynamics.propagate(task.truth[None, :], alone, keys[0], *rest)[0]
        belief = learner.time_update(replace(old, key=jax.random.key_data(keys[1])), None)
        if learner.density in ("transitions", "normal"):
            prior = learner.prior_density(belief)
        else:
            prior = KernelDensity.of(belief.values, belief.log_weights)
        x = None if self.inputs is None else self.inputs(keys[2], belief.t)
        eta = learner.model.outputs(truth, belief.unravel, x)
        y = learner.model.likelihood.sample(eta, keys[3])
        again = learner.time_update(replace(old, key=jax.random.key_data(keys[4])), None)
        points = belief.values if isinstance(learner.dynamics, Static) else again.values
        unknown = jnp.full((), jnp.nan, points.dtype)
        stage = Stage(belief.values, belief.log_weights, points, prior, x, y, truth[None, :], unknown)
        return Simulation(truth, belief, task.state), stage

    def advance(self, task: Simulation, stage: Stage, values: Array, key: Array) -> Simulation:
        after = replace(task, belief=replace(task.belief, values=values))
        lost = ~jnp.all(jnp.isfinite(values))
        return renewed(after, (task.belief.t >= self.length) | lost, self.begin(key))

    def log_likelihood(self, value: Array, x: PyTree, y: PyTree) -> Array:
        return self.learner.log_likelihood(value[None, :], self.start.unravel, x, y)[0]
