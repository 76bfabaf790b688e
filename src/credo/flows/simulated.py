"""Tasks that are simulated from a learner's own model: no filter is needed, and none is exact but one."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

from credo.beliefs import Particles, Source
from credo.core.errors import CredoError, require_integer
from credo.core.records import record, replace, static_field
from credo.core.types import Array, ArrayLike, PyTree
from credo.dynamics import Static
from credo.flows.densities import KernelDensity
from credo.flows.learner import FlowFilter
from credo.flows.tasks import Stage, Tasks, renewed
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
    """Updates along the operator's own path: its particles after one update are the prior of the next.

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
        >>> model = credo.Model(lambda z, x: z, credo.StudentT(3.0, 0.3))
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
        old = task.belief
        learner = self.learner
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


@record
class Reservoir:
    """Draws of the prior (R, d), and the log weights (R,) that the observations so far give them."""

    values: Array
    log_weights: Array


@record
class StaticTasks(Tasks[Simulation]):
    """Updates of parameters that stand still, with exact posteriors by importance sampling.

    A task keeps many draws of the prior with the weights that its observations give them. Prior sets are
    resampled from them, so that training sees exact sets at every stage, and so are samples of the posterior
    for the loss "likelihood". This needs a prior that is not too much wider than the posterior.

    Arguments:
        learner, start, inputs: as for `SimulatedTasks`, with dynamics that stand still.
        length: the number of observations of a sequence.
        reservoir: the number R of draws.
        targets: how many samples of the posterior a stage has.
        truth: where the true parameters are drawn; None for the prior. Posteriors are those of the prior in
            any case.
        bandwidth: the kernels of the prior's density, in Silverman's bandwidths.
        follow: whether a prior set is what the operator made of the one before, and not an exact set. With
            the loss "likelihood" the operator then learns to mend its own errors.

    Raises:
        CredoError: parameters move, or a number is out of its range.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> model = credo.Model(lambda z, x: z, credo.StudentT(3.0, 0.3))
        >>> operator = credo.flows.Operator(dim=1, width=2, hidden=4).begin()
        >>> learner = credo.pfbr(model, operator, particles=20)
        >>> tasks = credo.flows.StaticTasks(learner, learner.init(jnp.zeros(1)), reservoir=200)
        >>> task, stage = tasks.observe(tasks.begin(jax.random.key(0)), jax.random.key(1))
        >>> stage.targets.shape
        (64, 1)
    """

    learner: FlowFilter
    start: Particles
    length: int = static_field(default=30)
    reservoir: int = static_field(default=4096)
    targets: int = static_field(default=64)
    truth: Source | None = None
    bandwidth: ArrayLike = 0.5
    follow: bool = static_field(default=False)
    inputs: Callable[[Array, Array], PyTree] | None = static_field(default=None)

    def __post_init__(self) -> None:
        for name in ("length", "targets"):
            require_integer(name, getattr(self, name), 1)
        require_integer("reservoir", self.reservoir, self.learner.particles)
        if not isinstance(self.learner.dynamics, Static):
            raise CredoError("learner must have dynamics that stand still here.", field="learner")
        if isinstance(self.start, Particles) and self.start.source is None:
            raise CredoError("start must know the prior from which its particles come.", field="start")

    @property
    def dim(self) -> int:
        return self.start.size

    def begin(self, key: Array) -> Simulation:
        source = self.start.source
        assert source is not None
        first, second, third = jax.random.split(key, 3)
        values = source.draw(first, self.reservoir).astype(self.start.values.dtype)
        # in order along some direction, so that systematic resampling spreads samples evenly along it
        direction = jax.random.normal(third, (self.dim,), values.dtype)
        values = values[jnp.argsort(values @ direction)]
        weights = jnp.full(self.reservoir, -jnp.log(float(self.reservoir)), values.dtype)
        truth = (source if self.truth is None else self.truth).draw(second, 2)[0].astype(values.dtype)
        return Simulation(truth, replace(self.start, source=None), Reservoir(values, weights))

    def observe(self, task: Simulation, key: Array) -> tuple[Simulation, Stage]:
        keys = jax.random.split(key, 5)
        belief = task.belief
        draws = task.state
        count = self.learner.particles
        x = None if self.inputs is None else self.inputs(keys[0], belief.t)
        eta = self.learner.model.outputs(task.truth, belief.unravel, x)
        y = self.learner.model.likelihood.sample(eta, keys[1])
        values: Array
        values, points = (draws.values[resample(own, draws.log_weights, count)] for own in keys[2:4])
        if self.follow:
            values = jnp.where(belief.t > 0, belief.values, values)
        logs = draws.log_weights + self.learner.log_likelihood(draws.values, belief.unravel, x, y)
        log_evidence = jax.nn.logsumexp(logs)
        after = replace(draws, log_weights=logs - log_evidence)
        targets = draws.values[resample(keys[4], after.log_weights, self.targets)]
        equal = belief.equal(values)
        prior = KernelDensity.of(values, equal.log_weights, self.bandwidth)
        stage = Stage(values, equal.log_weights, points, prior, x, y, targets, -log_evidence)
        return Simulation(task.truth, replace(belief, t=belief.t + 1), after), stage

    def advance(self, task: Simulation, stage: Stage, values: Array, key: Array) -> Simulation:
        thin = jnp.exp(-jax.nn.logsumexp(2 * task.state.log_weights)) < 0.01 * self.reservoir
        lost = ~jnp.all(jnp.isfinite(task.state.log_weights))
        lost |= ~jnp.all(jnp.isfinite(values))
        after = replace(task, belief=replace(task.belief, values=values))
        return renewed(after, (task.belief.t >= self.length) | thin | lost, self.begin(key))

    def log_likelihood(self, value: Array, x: PyTree, y: PyTree) -> Array:
        return self.learner.log_likelihood(value[None, :], self.start.unravel, x, y)[0]
