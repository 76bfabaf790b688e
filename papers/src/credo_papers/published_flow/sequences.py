"""Sequences of Algorithm 1, cut into segments (Eq 19), whose particles the operator itself carries along.

A task of these is a whole sequence. Its stage is a segment: particles at the start, and the observations
until the end. After the training step of a segment, the particles that the operator made begin the next one,
with the kernel density of Eq 18 for their prior.
"""

from __future__ import annotations

import types
from abc import abstractmethod
from typing import Any, Literal, TypeAlias, get_args

import jax
import jax.numpy as jnp

from credo.core.errors import CredoError, require_choice, require_integer
from credo.core.records import record, static_field
from credo.core.types import Array, ArrayLike, PyTree
from credo.flows.densities import KernelDensity
from credo.flows.operator import FlowOperator
from credo.flows.tasks import Stage, Tasks, dense, linear_log_likelihood, renewed
from credo.linalg.matrices import cholesky, psd_root
from credo.particles.density import log_kde
from credo_papers.published_flow.loss import (
    TransitionMode,
    absorbed_loss,
    propagated_loss,
    static_loss,
)
from credo_papers.published_flow.priors import DirichletMixtures, NormalMixture, SegmentPrior, normal_prior

__all__ = ["LinearSequences", "Restart", "Segment", "Sequence", "SequenceTasks"]

Restart: TypeAlias = Literal["particles", "exact"]
"""The start of a segment: the operator's particles (Eq 19), or new ones from the exact posterior."""


@record
class Segment(Stage):
    """A segment to learn from: a stage whose observations x, y have a leading axis.

    Attributes:
        key: key data of the noise of moving particles.
    """

    key: Array


@record
class Sequence:
    """A task that stands between two segments.

    Attributes:
        truth: the hidden state (d,).
        first: the prior of the task.
        exact: the exact posterior, if it is known; otherwise `first`.
        values: the particles (N, d).
        count: the number of observations so far.
    """

    truth: Array
    first: NormalMixture
    exact: NormalMixture
    values: Array
    count: Array


class SequenceTasks(Tasks[Sequence]):
    """Sequences for Algorithm 1. A subclass is a record with these fields, and writes the model.

    Attributes:
        particles: the number N of particles.
        length: the number of observations of a sequence.
        segment: the number of observations between two training steps; a divisor of `length`, None for all.
        restart: what later segments begin with, "particles" or "exact".
        targets: how many samples of the posterior a segment has at its end.
        mode: whether the flow absorbs the transition of a moving state, or particles are propagated.
        scored: over how many of the particles the loss is averaged, None for all; see
            `credo_papers.published_flow.loss`.
    """

    particles: int
    length: int
    segment: int | None
    restart: Restart
    targets: int
    mode: TransitionMode
    scored: int | None

    known = False
    """Whether the exact posterior is known."""

    @property
    @abstractmethod
    def moving(self) -> bool:
        """Whether the state moves between observations."""

    def check(self) -> None:
        """Refuse settings that are out of range; for `__post_init__` of a subclass."""
        for name in ("particles", "length", "targets"):
            require_integer(name, getattr(self, name), 2 if name == "particles" else 1)
        require_choice("restart", self.restart, get_args(Restart))
        require_choice("mode", self.mode, get_args(TransitionMode))
        if self.scored is not None:
            require_integer("scored", self.scored, 1)
        if self.segment is not None:
            require_integer("segment", self.segment, 1)
            if self.length % self.segment:
                raise CredoError(
                    f"segment must divide the length {self.length}; got {self.segment}.", field="segment"
                )
        if self.restart == "exact" and not self.known:
            raise CredoError(
                "restart must be 'particles' where the exact posterior is not known; got 'exact'.",
                field="restart",
            )

    @abstractmethod
    def prior(self, key: Array) -> NormalMixture:
        """The prior of a new task."""

    @abstractmethod
    def emit(self, truth: Array, key: Array) -> tuple[Array, PyTree, PyTree]:
        """Advance the truth and observe it: the new truth, x and y."""

    @abstractmethod
    def move(self, values: Array, key: Array) -> Array:
        """Particles (N, d) after the transition, which is asked for where the state moves."""

    @abstractmethod
    def log_forecast(self, points: Array, before: Array) -> Array:
        """log 1/N sum_j p(x_m | x_{m-1}^j) of points (K, d), from particles (N, d): (K,)."""

    def segment_loss(self, operator: FlowOperator, params: PyTree, stage: Segment) -> tuple[Array, Array]:
        """The loss of a segment, and the particles (N, d) at its end."""
        data = (stage.x, stage.y)
        if not self.moving:
            likelihood = self.log_likelihood
            return static_loss(operator, params, stage.values, stage.prior, likelihood, *data, self.scored)
        if self.mode == "propagated":
            key = jax.random.wrap_key_data(stage.key)
            functions = (self.log_likelihood, self.move)
            return propagated_loss(operator, params, stage.values, *functions, *data, key, self.scored)
        densities = (stage.prior, self.log_likelihood, self.log_forecast)
        return absorbed_loss(operator, params, stage.values, *densities, *data, self.scored)

    def learn(self, exact: NormalMixture, x: PyTree, y: PyTree) -> tuple[NormalMixture, Array]:
        """The exact posterior after an observation, and log p(y | past); unknown by default."""
        return exact, jnp.asarray(jnp.nan, exact.means.dtype)

    def total_floor(self, log_evidences: Array) -> Array:
        """The least expected loss of a segment, from log p(y | past) of its observations (L,)."""
        return -jnp.sum(log_evidences)

    def begin(self, key: Array) -> Sequence:
        keys = jax.random.split(key, 3)
        first = self.prior(keys[0])
        truth = first.draw(keys[1], 1)[0]
        values = first.draw(keys[2], self.particles)
        return Sequence(truth, first, first, values, jnp.zeros((), jnp.int32))

    def observe(self, task: Sequence, key: Array) -> tuple[Sequence, Segment]:
        keys = jax.random.split(key, 4)
        size = self.length if self.segment is None else self.segment

        def turn(state: Any, own: Array) -> tuple[Any, Any]:
            truth, exact = state
            truth, x, y = self.emit(truth, own)
            exact, log_evidence = self.learn(exact, x, y)
            return (truth, exact), (x, y, log_evidence)

        start = (task.truth, task.exact)
        (truth, exact), (xs, ys, heights) = jax.lax.scan(turn, start, jax.random.split(keys[0], size))
        values = task.values if self.restart == "particles" else task.exact.draw(keys[1], self.particles)
        equal = jnp.full(self.particles, -jnp.log(float(self.particles)), values.dtype)
        floor = self.total_floor(heights)
        if self.restart == "exact" or self.segment in (None, self.length):
            prior: Any = task.exact
        else:
            prior = SegmentPrior(task.first, KernelDensity.of(values, equal), task.count > 0)
            # a cumulative loss is about the prior, which is now an estimate
            floor = floor if self.moving else jnp.where(task.count > 0, jnp.nan, floor)
        targets = exact.draw(keys[2], self.targets)
        targets = targets if self.known else jnp.full_like(targets, jnp.nan)
        after = Sequence(truth, task.first, exact, values, task.count + size)
        own = jax.random.key_data(keys[3])
        return after, Segment(values, equal, values, prior, xs, ys, targets, floor, own)

    def advance(self, task: Sequence, stage: Stage, values: Array, key: Array) -> Sequence:
        # from exact priors the operator's particles are not needed, and XLA need not compute them
        values = values if self.restart == "particles" else task.values
        after = Sequence(task.truth, task.first, task.exact, values, task.count)
        return renewed(after, task.count >= self.length, self.begin(key))


@record
class LinearSequences(SequenceTasks):
    """Sequences of a linear Gaussian model, of a moving state or, without a transition, of a static one.

        x_0 ~ prior,  x_t = A x_{t-1} + N(0, Q)  or  x_t = x_0,  y_t = B x_t + N(0, R)

    The exact posterior and the floor of the loss are known from Kalman's filter, also for a prior that is a
    mixture: then it is a mixture of filters.

    Arguments:
        observation: B (k, d).
        observation_cov: R (k, k), or its variance.
        transition: A (d, d), or None for a static state.
        transition_cov: Q (d, d), or its variance.
        initial_cov: the covariance (d, d) of the prior N(0, .), or its variance.
        priors: `DirichletMixtures`, from which every task draws a prior of its own; None for the normal one.
        mode: whether the flow absorbs the transition (as the published code), or particles are propagated.
        particles, length, segment, restart, targets, scored: as for `SequenceTasks`.

    Raises:
        CredoError: a shape does not fit, or a setting is out of range.

    Example:
        >>> tasks = LinearSequences(jnp.eye(2), 9.0, particles=32, length=20, segment=10)
        >>> task, stage = tasks.observe(tasks.begin(jax.random.key(0)), jax.random.key(1))
        >>> stage.values.shape, stage.y.shape
        ((32, 2), (10, 2))
    """

    observation: Array
    observation_cov: ArrayLike
    transition: Array | None = None
    transition_cov: ArrayLike = 1.0
    initial_cov: ArrayLike = 1.0
    priors: DirichletMixtures | None = None
    mode: TransitionMode = static_field(default="absorbed")
    particles: int = static_field(default=256)
    length: int = static_field(default=25)
    segment: int | None = static_field(default=None)
    restart: Restart = static_field(default="particles")
    targets: int = static_field(default=1)
    scored: int | None = static_field(default=None)

    known = True
    tables = types.MappingProxyType({"priors": DirichletMixtures})
    """The records that tables inside the settings of a training stand for."""

    def __post_init__(self) -> None:
        self.check()
        size = self.dim
        if self.transition is not None and jnp.shape(self.transition) != (size, size):
            raise CredoError(
                f"transition must have a row and a column for each of the {size} columns of observation; got "
                f"shape {jnp.shape(self.transition)}.",
                field="transition",
            )
        if self.priors is not None and self.priors.dim != size:
            raise CredoError(f"priors must have the dimension {size}; got {self.priors.dim}.", field="priors")

    @property
    def dim(self) -> int:
        return int(jnp.shape(self.observation)[1])

    @property
    def moving(self) -> bool:
        return self.transition is not None

    @property
    def matrices(self) -> tuple[Array, Array]:
        """B (k, d) and R (k, k)."""
        look = jnp.asarray(self.observation)
        return look, dense(self.observation_cov, look.shape[0], look)

    @property
    def motion(self) -> tuple[Array, Array]:
        """A (d, d) and Q (d, d)."""
        move = jnp.asarray(self.transition)
        return move, dense(self.transition_cov, self.dim, move)

    def prior(self, key: Array) -> NormalMixture:
        look = jnp.asarray(self.observation)
        if self.priors is not None:
            drawn: NormalMixture = jax.tree.map(lambda a: a.astype(look.dtype), self.priors.draw(key))
            return drawn
        return normal_prior(jnp.zeros(self.dim, look.dtype), dense(self.initial_cov, self.dim, look))

    def emit(self, truth: Array, key: Array) -> tuple[Array, PyTree, PyTree]:
        keys = jax.random.split(key)
        look, blur = self.matrices
        if self.transition is not None:
            truth = self.move(truth[None, :], keys[0])[0]
        noise = psd_root(blur) @ jax.random.normal(keys[1], look.shape[:1], look.dtype)
        return truth, None, look @ truth + noise

    def move(self, values: Array, key: Array) -> Array:
        """Particles (N, d) after the transition."""
        move, noise = self.motion
        return values @ move.T + jax.random.normal(key, values.shape, values.dtype) @ psd_root(noise).T

    def learn(self, exact: NormalMixture, x: PyTree, y: PyTree) -> tuple[NormalMixture, Array]:
        if self.transition is not None:
            exact = exact.move(*self.motion)
        return exact.condition(*self.matrices, y)

    def total_floor(self, log_evidences: Array) -> Array:
        # the loss of a static state is cumulative
        return -jnp.sum(log_evidences if self.transition is not None else jnp.cumsum(log_evidences))

    def log_likelihood(self, value: Array, x: PyTree, y: PyTree) -> Array:
        look, blur = self.matrices
        return linear_log_likelihood(value, y, look, blur)

    def log_forecast(self, points: Array, before: Array) -> Array:
        move, noise = self.motion
        root = cholesky(noise)
        inside = jax.scipy.linalg.solve_triangular(
            root, jnp.concatenate([points, before @ move.T]).T, lower=True
        )
        here, there = jnp.split(inside.T, [points.shape[0]])
        heights = log_kde(here, there, None, jnp.ones((), there.dtype))
        return heights - jnp.sum(jnp.log(jnp.diagonal(root)))
