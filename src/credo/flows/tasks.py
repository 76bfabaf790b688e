"""Tasks of an operator: sequences of updates, of which training sees a pool at different stages.

A task is a sequence with a hidden truth. It stands at some stage; `observe` lets time pass and draws the next
observation, which makes one `Stage`: a prior set, an observation and, as far as they are known, the prior's
density and samples of the posterior. `advance` then takes the task to its next stage, and begins another one
where the sequence is over. Training goes through a pool of tasks, many at a time.

The tasks here are linear dynamical systems: one for all sequences, or another one for each.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Generic, TypeVar

import jax
import jax.numpy as jnp

from credo.core.errors import CredoError, require_integer
from credo.core.records import record, static_field
from credo.core.types import Array, ArrayLike, PyTree
from credo.flows.densities import NormalDensity, SetDensity, standard
from credo.linalg.matrices import cholesky, psd_root, solve_lower, symmetric
from credo.particles.density import normal_log_density

__all__ = ["LinearGaussianTasks", "LinearSystemTasks", "Stage", "Tasks"]

LOG_TWO_PI = math.log(2 * math.pi)

T = TypeVar("T")
"""The state that a task keeps from stage to stage."""


@record
class Stage:
    """One update to learn from.

    Attributes:
        values, log_weights: the prior set (N, d), (N,).
        points: other samples of the prior (K, d), equally weighted, where the loss is taken. A loss at the
            particles themselves would reward an operator for fitting their accidents.
        prior: the density of the prior.
        x, y: the observation.
        targets: samples of the posterior (M, d), at least one.
        floor: the least that the loss of this update can be in expectation, -log p(y | past); NaN if it is
            not known.
    """

    values: Array
    log_weights: Array
    points: Array
    prior: SetDensity
    x: PyTree
    y: PyTree
    targets: Array
    floor: Array


class Tasks(ABC, Generic[T]):
    """A source of updates. A subclass is a record and writes four functions, all traceable.

    Attributes:
        dim: the dimension of the state.
    """

    @property
    @abstractmethod
    def dim(self) -> int: ...

    @abstractmethod
    def begin(self, key: Array) -> T:
        """A new task before its first observation."""

    @abstractmethod
    def observe(self, task: T, key: Array) -> tuple[T, Stage]:
        """Take a step of time and draw the next observation."""

    @abstractmethod
    def advance(self, task: T, stage: Stage, values: Array, key: Array) -> T:
        """The task after the observation.

        Arguments:
            task: the task as `observe` returned it.
            stage: the stage.
            values: where the operator took the particles (N, d), equally weighted as before.
            key: a key.
        """

    @abstractmethod
    def log_likelihood(self, value: Array, x: PyTree, y: PyTree) -> Array:
        """log p(y | value, x), a scalar."""


@record
class Filtered:
    """A task with an exact filter: the truth, the filter's moments, and the number of observations so far."""

    truth: Array
    mean: Array
    cov: Array
    count: Array


@record
class LinearSystem:
    """A linear dynamical system: A (d, d), Q (d, d), B (k, d) and R (k, k)."""

    move: Array
    noise: Array
    look: Array
    blur: Array


@record
class LinearGaussianTasks(Tasks[Filtered]):
    """Updates of linear dynamical systems, whose priors come from the exact (Kalman) filter.

        x_0 ~ N(0, initial_cov),  x_t = A x_{t-1} + N(0, Q),  y_t = B x_t + N(0, R)

    A prior set is drawn from the filter's prediction and given its mean and covariance exactly, so that the
    loss cannot fall below -log p(y_t | y_1:t-1) in expectation.

    Arguments:
        transition: A (d, d).
        transition_cov: Q (d, d), or its variance.
        observation: B (k, d).
        observation_cov: R (k, k), or its variance.
        length: the number of observations of a sequence.
        particles: the number N of particles, above d.
        initial_cov: the covariance (d, d) before the first step, or its variance.
        targets: how many samples of the posterior a stage has.

    Raises:
        CredoError: a shape does not fit.

    Example:
        >>> tasks = LinearGaussianTasks(0.9 * jnp.eye(2), 1.0, jnp.eye(2), 1.0, length=25, particles=32)
        >>> task, stage = tasks.observe(tasks.begin(jax.random.key(0)), jax.random.key(1))
        >>> stage.values.shape, stage.y.shape
        ((32, 2), (2,))
    """

    transition: Array
    transition_cov: ArrayLike
    observation: Array
    observation_cov: ArrayLike
    length: int = static_field(default=25)
    particles: int = static_field(default=256)
    initial_cov: ArrayLike = 1.0
    targets: int = static_field(default=1)

    def __post_init__(self) -> None:
        size = jnp.shape(self.transition)[0]
        if jnp.shape(self.transition) != (size, size) or jnp.shape(self.observation)[1:] != (size,):
            raise CredoError(
                f"observation must have a column for each of the {size} rows and columns of transition; got "
                f"shapes {jnp.shape(self.observation)} and {jnp.shape(self.transition)}."
            )
        require_integer("length", self.length, 1)
        require_integer("particles", self.particles, size + 2)
        require_integer("targets", self.targets, 1)

    @property
    def dim(self) -> int:
        return int(jnp.shape(self.transition)[0])

    def begin(self, key: Array) -> Filtered:
        like = jnp.asarray(self.transition)
        cov = dense(self.initial_cov, self.dim, like)
        truth = psd_root(cov) @ jax.random.normal(key, (self.dim,), like.dtype)
        return Filtered(truth, jnp.zeros(self.dim, like.dtype), cov, jnp.zeros((), jnp.int32))

    @property
    def system(self) -> LinearSystem:
        """The system, with dense covariances."""
        move = jnp.asarray(self.transition)
        look = jnp.asarray(self.observation)
        noise = dense(self.transition_cov, self.dim, move)
        return LinearSystem(move, noise, look, dense(self.observation_cov, look.shape[0], move))

    def observe(self, task: Filtered, key: Array) -> tuple[Filtered, Stage]:
        return observed(self.system, task, None, self.particles, self.targets, key)

    def advance(self, task: Filtered, stage: Stage, values: Array, key: Array) -> Filtered:
        return renewed(task, task.count >= self.length, self.begin(key))

    def log_likelihood(self, value: Array, x: PyTree, y: PyTree) -> Array:
        look = jnp.asarray(self.observation)
        return linear_log_likelihood(value, y, look, dense(self.observation_cov, look.shape[0], look))


def observed(
    system: LinearSystem, task: Filtered, x: PyTree, particles: int, targets: int, key: Array
) -> tuple[Filtered, Stage]:
    """The next observation of a linear system, with the stage that Kalman's filter makes of it."""
    keys = jax.random.split(key, 5)
    move = system.move
    noise = system.noise
    look = system.look
    blur = system.blur
    size = move.shape[0]
    truth = move @ task.truth + psd_root(noise) @ jax.random.normal(keys[0], (size,), move.dtype)
    y = look @ truth + psd_root(blur) @ jax.random.normal(keys[1], look.shape[:1], move.dtype)
    mean = move @ task.mean
    cov = symmetric(move @ task.cov @ move.T) + noise
    root = cholesky(cov)
    values, points = (mean[None, :] + standard(own, particles, size, move.dtype) @ root.T for own in keys[3:])
    spread = look @ cov
    inner = cholesky(symmetric(spread @ look.T) + blur)
    gain = jax.scipy.linalg.cho_solve((inner, True), spread).T
    gap = y - look @ mean
    floor = -normal_log_density(gap[None, :], inner)[0]
    after = Filtered(truth, mean + gain @ gap, symmetric(cov - gain @ spread), task.count + 1)
    draws = jax.random.normal(keys[2], (targets, size), move.dtype)
    samples = after.mean[None, :] + draws @ cholesky(after.cov).T
    equal = jnp.full(particles, -jnp.log(float(particles)), move.dtype)
    return after, Stage(values, equal, points, NormalDensity(mean, root), x, y, samples, floor)


def linear_log_likelihood(value: Array, y: Array, look: Array, cov: Array) -> Array:
    """log N(y | look value, cov) of a value (d,), whitened with products: many values share the factors."""
    root = cholesky(cov)
    unroot = solve_lower(root, jnp.eye(root.shape[0], dtype=root.dtype))
    white = unroot @ y - (unroot @ look) @ value
    return -0.5 * jnp.sum(white**2 + LOG_TWO_PI) - jnp.sum(jnp.log(jnp.diagonal(root)))


def dense(cov: ArrayLike, size: int, like: Array) -> Array:
    """A covariance (size, size) from a matrix, variances, or one variance."""
    array = jnp.asarray(cov, like.dtype)
    if array.ndim == 2:
        return array
    return jnp.diag(jnp.broadcast_to(array, (size,)))


def renewed(task: T, over: Array, fresh: T) -> T:
    """The fresh task where the sequence is over, and otherwise the task."""
    chosen: T = jax.tree.map(lambda new, old: jnp.where(over, new, old), fresh, task)
    return chosen


@record
class Drawn:
    """A task: a system, and how far its exact filter is."""

    system: LinearSystem
    filtered: Filtered


@record
class LinearSystemTasks(Tasks[Drawn]):
    """Updates of linear dynamical systems that are drawn, one for each sequence.

        x_0 ~ N(0, P),  x_t = A x_{t-1} + N(0, Q),  y_t = B x_t + N(0, R)

    P, Q and R are diagonal with independent variances, the log of each of which is uniform between that of
    1 / `spread` and that of `spread`. B has standard normal entries. A has the direction of a matrix of
    standard normal entries, and a spectral norm that is uniform in (0, 1), so that every system is stable.
    An operator that has seen one system alone knows the few precisions that it meets there. Prior sets, the
    loss and its floor are as for `LinearGaussianTasks`.

    Arguments:
        size: the dimension d of the state.
        outputs: the number k of numbers in an observation; None for d.
        spread: the largest variance, above 1.
        length: the number of observations of a sequence.
        particles: the number N of particles, at least d + 2.
        targets: how many samples of the posterior a stage has.

    Raises:
        CredoError: a number is out of its range.

    Example:
        >>> tasks = LinearSystemTasks(2, length=10, particles=32)
        >>> task, stage = tasks.observe(tasks.begin(jax.random.key(0)), jax.random.key(1))
        >>> stage.values.shape, stage.y.shape
        ((32, 2), (2,))
    """

    size: int = static_field()
    outputs: int | None = static_field(default=None)
    spread: float = static_field(default=30.0)
    length: int = static_field(default=10)
    particles: int = static_field(default=256)
    targets: int = static_field(default=1)

    def __post_init__(self) -> None:
        require_integer("size", self.size, 1)
        if self.outputs is not None:
            require_integer("outputs", self.outputs, 1)
        require_integer("length", self.length, 1)
        require_integer("particles", self.particles, self.size + 2)
        require_integer("targets", self.targets, 1)
        if not 1 < self.spread < math.inf:
            raise CredoError(f"spread must be above 1 and finite; got {self.spread!r}.", field="spread")

    @property
    def dim(self) -> int:
        return self.size

    def begin(self, key: Array) -> Drawn:
        keys = jax.random.split(key, 6)
        size = self.size
        seen = self.size if self.outputs is None else self.outputs
        reach = math.log(self.spread)

        def variances(own: Array, count: int) -> Array:
            return jnp.exp(jax.random.uniform(own, (count,), minval=-reach, maxval=reach))

        move = jax.random.normal(keys[0], (size, size))
        move = move * jax.random.uniform(keys[1]) / jnp.linalg.svd(move, compute_uv=False)[0]
        counts = (size, seen, size)
        noise, blur, first = (variances(own, n) for own, n in zip(keys[2:5], counts, strict=True))
        look, truth = (
            jax.random.normal(own, shape)
            for own, shape in zip(jax.random.split(keys[5]), ((seen, size), (size,)), strict=True)
        )
        system = LinearSystem(move, jnp.diag(noise), look, jnp.diag(blur))
        start = jnp.sqrt(first) * truth
        zero = jnp.zeros((), jnp.int32)
        return Drawn(system, Filtered(start, jnp.zeros_like(start), jnp.diag(first), zero))

    def observe(self, task: Drawn, key: Array) -> tuple[Drawn, Stage]:
        x = (task.system.look, task.system.blur)
        after, stage = observed(task.system, task.filtered, x, self.particles, self.targets, key)
        return Drawn(task.system, after), stage

    def advance(self, task: Drawn, stage: Stage, values: Array, key: Array) -> Drawn:
        return renewed(task, task.filtered.count >= self.length, self.begin(key))

    def log_likelihood(self, value: Array, x: PyTree, y: PyTree) -> Array:
        look, blur = x
        return linear_log_likelihood(value, y, look, blur)
