"""Gradient baselines on optax: online SGD, Adam, and replay from a buffer of the latest observations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import jax
import jax.numpy as jnp
import numpy as np

from credo.beliefs import Point
from credo.core.errors import CredoError, require_choice, require_integer, require_positive
from credo.core.fields import declare, field
from credo.core.names import ForecastName
from credo.core.records import record, static_field
from credo.core.trees import as_like, blank_row, ravel
from credo.core.types import Array, ArrayLike, Key, PyTree
from credo.dynamics import Dynamics, Static
from credo.learners.acceptance import legible
from credo.learners.base import Info, Learner, SampledFunction, accept, clean, usable
from credo.likelihoods import DrawnExpectation, Expectation, Predictive, PredictiveRows, Rows
from credo.models.model import Model, as_model
from credo.models.partial import start

if TYPE_CHECKING:
    import optax

__all__ = ["Buffer", "GradientLearner", "adam", "replay", "sgd"]

OptimizerName: TypeAlias = Literal["sgd", "momentum", "adam"]
"""The names of the optimisers, which are those of optax."""

declare("ScaleByAdamState", count="nonnegative", nu="nonnegative")


def _optimizer(name: OptimizerName) -> optax.GradientTransformation:
    """The optimiser of a name, from optax, which only those wait for who use it."""
    import optax

    if name == "momentum":
        return optax.trace(0.9)
    return optax.scale_by_adam() if name == "adam" else optax.identity()


@record
class Buffer:
    """The latest N observations, first in, first out, of which `count` are real."""

    x: PyTree = field(raw=True)
    y: PyTree = field("observations")
    weight: Array = field("nonnegative", raw=True)
    count: Array = field("nonnegative")

    def init_arguments(self) -> dict[str, PyTree]:
        """The arguments of `init` that a belief with this part began from: an observation, by its shapes."""
        depth = np.ndim(self.count) + 1
        return {"example": blank_row((self.x, self.y), depth)}

    def push(self, x: PyTree, y: PyTree, weight: Array) -> Buffer:
        """Replace the oldest observation by a new one."""

        def store_at(store: Array, item: ArrayLike) -> Array:
            return store.at[self.count % self.weight.shape[0]].set(jnp.asarray(item).astype(store.dtype))

        x, y, weight = jax.tree.map(store_at, (self.x, self.y, self.weight), (x, y, weight))
        return Buffer(x, y, weight, self.count + 1)


@record
class GradientLearner(Learner[Point]):
    """Gradient steps on -log p(y | x, theta), as a baseline that keeps no uncertainty.

    Arguments:
        model: a `Model`.
        learning_rate: a number above 0, which multiplies the direction of the optimiser.
        optimizer: "sgd", "momentum" or "adam", as in optax.
        steps: the number of gradient steps for each observation.
        capacity: how many of the latest observations each step averages over; 1 uses only the new one.
        dynamics: how parameters move between observations; only the effect on the mean counts.

    Raises:
        CredoError: a number is out of range, or there is no such optimiser.

    Cost: `steps` x (`capacity` + 1) gradients an observation.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> learner = GradientLearner(model, 0.01, optimizer="momentum")
        >>> belief, info = learner.step(learner.init(jnp.zeros(2)), jnp.ones(2), 1.0)
        >>> [round(value, 3) for value in belief.mean.tolist()]
        [0.1, 0.1]
    """

    model: Model
    learning_rate: ArrayLike = 1e-2
    optimizer: OptimizerName = static_field(default="sgd")
    steps: int = static_field(default=1)
    capacity: int = static_field(default=1)
    dynamics: Dynamics = Static()

    def __post_init__(self) -> None:
        require_positive("learning_rate", self.learning_rate)
        require_choice("optimizer", self.optimizer, get_args(OptimizerName))
        require_integer("steps", self.steps, 1)
        require_integer("capacity", self.capacity, 1)

    def init(self, params: PyTree = None, *, var: PyTree = 1.0, example: PyTree = None) -> Point:
        """The initial parameters.

        Arguments:
            params: a pytree of floating-point arrays.
            var: ignored, because there is no uncertainty.
            example: one observation (x, y), which gives the buffer its shapes. It is needed where `capacity`
                is above 1.

        Raises:
            CredoError: `capacity` is above 1, and there is no `example`.
        """
        as_model(self.model)
        mean, unravel = ravel(start(self.model, params))
        buffer = None
        if self.capacity > 1:
            if example is None:
                raise CredoError(
                    "a replay buffer needs its shapes: pass example=(x, y), one observation, to init."
                )

            def room(leaf: ArrayLike) -> Array:
                return jnp.zeros((self.capacity, *jnp.shape(leaf)), jnp.asarray(leaf).dtype)

            x, y = jax.tree.map(room, example)
            rows = (self.model.likelihood.rows(example[1]),) if self.model.batched else ()
            buffer = Buffer(x, y, jnp.zeros((self.capacity, *rows), mean.dtype), jnp.zeros((), jnp.int32))
        anchor = self.dynamics.anchor(mean, None)
        state = _optimizer(self.optimizer).init(mean)
        return Point(mean, state, buffer, jnp.zeros((), jnp.int32), unravel, anchor)

    def time_update(self, belief: Point, dt: ArrayLike | None) -> Point:
        mean, _ = self.dynamics.move(belief.mean, None, belief.anchor, belief.t, dt)
        return Point(mean, belief.state, belief.buffer, belief.t + 1, belief.unravel, belief.anchor)

    def predictive(
        self, belief: Point, x: PyTree, method: ForecastName | None, samples: int | None, key: Key | None
    ) -> Predictive:
        if method not in (None, "plugin"):
            raise CredoError(
                f"a gradient learner has no uncertainty: method must be 'plugin'; got {method!r}."
            )
        likelihood = self.model.likelihood
        if self.model.batched:
            each = self.model.each

            def one(row: PyTree) -> Predictive:
                return each.likelihood.plugin(each.outputs(belief.mean, belief.unravel, row))

            return PredictiveRows(jax.vmap(one)(x))
        return likelihood.plugin(
            self.model.outputs(belief.mean, belief.unravel, x), likelihood.init_noise(belief.mean.dtype)
        )

    def measurement_update(
        self, belief: Point, x: PyTree, y: PyTree, weight: ArrayLike, key: Key | None
    ) -> tuple[Point, Info]:
        likelihood = self.model.likelihood
        unravel = belief.unravel
        dtype = belief.mean.dtype
        noise = likelihood.init_noise(dtype)
        known = likelihood.given_noise(noise)
        safe_y, there = legible(likelihood, y)
        observed, used = usable(there, weight, dtype)
        safe_x = clean(x)

        def loss(mean: Array, x: PyTree, y: PyTree, weight: Array) -> Array:
            eta = self.model.outputs(mean, unravel, x)
            if weight.ndim:
                assert isinstance(known, Rows)
                each = jax.vmap(known.each.log_prob)(eta.reshape(weight.shape[0], -1), y)
                return -jnp.sum(weight * each)
            return -weight * known.log_prob(eta, y)

        buffer = None if belief.buffer is None else belief.buffer.push(safe_x, safe_y, used)

        def objective(mean: Array) -> Array:
            if buffer is None:
                return loss(mean, safe_x, safe_y, used)
            total = jnp.sum(jax.vmap(loss, (None, 0, 0, 0))(mean, buffer.x, buffer.y, buffer.weight))
            return total / jnp.maximum(jnp.minimum(buffer.count, self.capacity), 1).astype(dtype)

        optimizer = _optimizer(self.optimizer)
        mean = belief.mean
        state = belief.state
        for _ in range(self.steps):
            slope = jax.grad(objective)(mean)
            with jax.numpy_dtype_promotion("standard"):  # optax mixes Python numbers with its step count
                direction, state = optimizer.update(slope, state, mean)
            assert isinstance(direction, jax.Array)
            mean = mean - as_like(self.learning_rate, mean) * direction
        new = Point(mean, state, buffer, belief.t, unravel, belief.anchor)
        eta = self.model.outputs(belief.mean, unravel, safe_x)
        log_evidence = jnp.where(jnp.any(used > 0), likelihood.plugin(eta, noise).log_prob(safe_y), 0.0)
        # the buffer holds observations as they came, of which some outputs may be missing
        return accept(belief, new, log_evidence, jnp.any(observed), x, y, used, (new.mean, new.state))

    def expectation(self, belief: Point, x: PyTree) -> Expectation:
        """The expected observations at the parameters, without any uncertainty."""
        eta = self.model.outputs(belief.mean, belief.unravel, x)
        likelihood, rows = self.model.rows_of(eta, x)
        return DrawnExpectation(jax.vmap(likelihood.mean)(rows).reshape(1, -1), jnp.zeros(1, eta.dtype))

    def function_draw(self, belief: Point, key: Key) -> SampledFunction:
        """The function at the parameters."""
        return SampledFunction(self.model.each, belief.mean, None, belief.unravel)

    def draws(self, belief: Point, key: Key, shape: tuple[int, ...]) -> PyTree:
        return belief.unravel(jnp.broadcast_to(belief.mean, (*shape, belief.mean.shape[0])))


def sgd(model: Model, learning_rate: ArrayLike = 1e-2) -> GradientLearner:
    """Online stochastic gradient descent: one step for each observation.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> learner = sgd(model, 0.01)
        >>> belief, info = learner.step(learner.init(jnp.zeros(2)), jnp.ones(2), 1.0)
        >>> [round(value, 3) for value in belief.mean.tolist()]
        [0.1, 0.1]
    """
    return GradientLearner(model, learning_rate, "sgd")


def adam(model: Model, learning_rate: ArrayLike = 1e-3) -> GradientLearner:
    """Online Adam (Kingma & Ba 2015): one step for each observation.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> learner = adam(model, 0.01)
        >>> belief, info = learner.step(learner.init(jnp.zeros(2)), jnp.ones(2), 1.0)
        >>> [round(value, 3) for value in belief.mean.tolist()]
        [0.01, 0.01]
    """
    return GradientLearner(model, learning_rate, "adam")


def replay(
    model: Model,
    learning_rate: ArrayLike = 1e-2,
    *,
    optimizer: OptimizerName = "sgd",
    capacity: int = 10,
    steps: int = 1,
) -> GradientLearner:
    """Gradient steps on the mean loss of the latest `capacity` observations (first in, first out).

    Example:
        >>> import credo, jax.numpy as jnp
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> learner = replay(model, 0.01, capacity=3)
        >>> belief = learner.init(jnp.zeros(2), example=(jnp.ones(2), 1.0))
        >>> belief.buffer.weight.shape
        (3,)
    """
    return GradientLearner(model, learning_rate, optimizer, steps, capacity)
