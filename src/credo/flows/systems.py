"""Updates of linear dynamical systems of which every sequence has another one."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp

from credo.core.errors import CredoError, require_integer
from credo.core.records import record, static_field
from credo.core.types import Array, PyTree
from credo.flows.tasks import Filtered, LinearSystem, Stage, Tasks, linear_log_likelihood, observed, renewed

__all__ = ["LinearSystemTasks"]


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
