"""The five verbs of a learner, and the functions that a learner writes for them.

This module holds all that a learner or wrapper of your own needs: `Learner`, `Belief`, `Info`, and the
functions by which an update is accepted or refused. An `OutputLearner` also says how uncertain the outputs of
its model are.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol, TypeVar

import jax
import jax.numpy as jnp

from credo.core.errors import CredoError
from credo.core.names import ForecastName
from credo.core.platforms import in_branch
from credo.core.records import record, replace, static_field
from credo.core.trees import Unravel
from credo.core.types import Array, ArrayLike, Key, PyTree
from credo.core.verbs import verb
from credo.learners.acceptance import Info, accept, clean, isolate, sound, usable
from credo.learners.extensible import Expecting, Extensible
from credo.likelihoods import Predictive, PredictiveRows
from credo.likelihoods.elliptical import drop_one
from credo.models.model import Model

__all__ = [
    "Belief",
    "Info",
    "Learner",
    "OutputLearner",
    "SampledFunction",
    "accept",
    "clean",
    "isolate",
    "require_learner",
    "sound",
    "usable",
]

B = TypeVar("B")
"""The kind of belief that a learner keeps."""


class Belief(Protocol):
    """The common part of all beliefs: a count of the time steps. A belief is a pytree; see `credo.record`."""

    @property
    def t(self) -> Array:
        """The number of calls of `predict`: a whole number."""
        ...


class Learner(Expecting[B], Extensible[B]):
    """The base of every learner. It provides the verbs, which are compiled once per structure.

    A subclass is a record and writes five functions without a decorator: `init`, `time_update`, `predictive`,
    `measurement_update` and `draws`. The verbs `predict`, `forecast`, `update`, `step` and `sample` are
    compiled from them. Wrappers call the uncompiled functions of the learner inside, so that a whole stack of
    learners is one program.

    All five must be traceable by JAX. Hyper-parameters are leaves of the record, so `jax.vmap` and `jax.grad`
    go through a learner. A belief is any record with a clock `t` (see `Belief`). `time_update` adds 1 to it,
    and nothing else changes it.

    Raises:
        TypeError: one of the five functions is missing.

    Example:
        A moving average, with unit noise for its forecasts:

        >>> import credo
        >>> from credo.learners.base import accept, usable
        >>> @credo.record
        ... class Level:
        ...     mean: jax.Array
        ...     t: jax.Array
        >>> @credo.record
        ... class MovingAverage(credo.Learner[Level]):
        ...     share: float = 0.5
        ...
        ...     def init(self, params=None, *, var=1.0):
        ...         return Level(jnp.asarray(params), jnp.zeros((), jnp.int32))
        ...
        ...     def time_update(self, belief, dt):
        ...         return credo.replace(belief, t=belief.t + 1)
        ...
        ...     def predictive(self, belief, x, method, samples, key):
        ...         return credo.Normal(1.0).plugin(belief.mean.reshape(1))
        ...
        ...     def measurement_update(self, belief, x, y, weight, key):
        ...         observed, used = usable(~jnp.isnan(y), weight, belief.mean.dtype)
        ...         gap = jnp.where(observed, y - belief.mean, 0.0)
        ...         new = credo.replace(belief, mean=belief.mean + used * self.share * gap)
        ...         log_evidence = self.predictive(belief, x, None, None, key).log_prob(y)
        ...         return accept(belief, new, log_evidence, observed, x, y, used)
        ...
        ...     def draws(self, belief, key, shape):
        ...         return jnp.broadcast_to(belief.mean, shape)
        >>> learner = MovingAverage()
        >>> belief, trace = credo.run(learner, learner.init(0.0), None, jnp.array([1.0, jnp.nan, 2.0]))
        >>> float(belief.mean), trace.ok.tolist()
        (1.25, [True, False, True])
    """

    @verb
    def predict(self, belief: B, dt: ArrayLike | None = None) -> B:
        """The time update: apply the dynamics over one step.

        Arguments:
            belief: the belief after the latest observation.
            dt: the length of the step, at least 0; None means 1.

        Returns:
            The predicted belief.
        """
        return self.time_update(belief, dt)

    @verb(static=("method", "samples"))
    def forecast(
        self,
        belief: B,
        x: PyTree,
        *,
        method: ForecastName | None = None,
        samples: int | None = None,
        key: Key | None = None,
    ) -> Predictive:
        """The distribution p(y | x, past) of the next observation at one row x. Nothing is learned.

        Arguments:
            belief: the *predicted* belief.
            x: one row of inputs, or several rows for a joint model.
            method: "linearized" (function space; the default), "plugin" (at the mean), "mc" (networks
                evaluated at draws of the parameters) or "linearized-mc" (draws of the linearised outputs).
            samples: how many draws, for the Monte Carlo methods (default 100).
            key: the key of those draws.

        Returns:
            The predictive distribution.

        Raises:
            CredoError: the learner has no such method, or a key is missing.
        """
        return self.predictive(belief, x, method, samples, key)

    @verb(static=("method", "samples"))
    def forecast_rows(
        self,
        belief: B,
        xs: PyTree,
        *,
        method: ForecastName | None = None,
        samples: int | None = None,
        key: Key | None = None,
    ) -> PredictiveRows:
        """The forecasts for N rows at one belief.

        Rows are taken 16 at a time, so the memory is that of 16 Jacobians (16, C, P) for any number of rows.

        Arguments:
            belief: the predicted belief.
            xs: rows of inputs, with a leading axis N.
            method, samples, key: as for `forecast`.

        Returns:
            The predictives, all of whose answers have a leading axis N.
        """
        return PredictiveRows(
            jax.lax.map(lambda x: self.predictive(belief, x, method, samples, key), xs, batch_size=16)
        )

    @verb
    def update(
        self, belief: B, x: PyTree, y: PyTree, *, weight: ArrayLike = 1.0, key: Key | None = None
    ) -> tuple[B, Info]:
        """The measurement update: take in the observation y at x.

        Arguments:
            belief: the predicted belief.
            x, y: one row of inputs and its observation.
            weight: a number, at least 0, that multiplies the log-likelihood. With 0 the belief comes back bit
                by bit.
            key: a key, for learners that draw; step t uses fold_in(key, belief.t).

        Returns:
            The new belief and an `Info`. A NaN target, or an update whose result is not finite, gives the
            belief back bit by bit with `ok=False`.
        """
        return self.measurement_update(belief, x, y, weight, key)

    @verb
    def step(
        self,
        belief: B,
        x: PyTree,
        y: PyTree,
        *,
        weight: ArrayLike = 1.0,
        dt: ArrayLike | None = None,
        key: Key | None = None,
    ) -> tuple[B, Info]:
        """Predict, then update: one step of a stream.

        Arguments:
            belief: the belief after the latest observation.
            x, y, weight, key: as for `update`.
            dt: as for `predict`.

        Returns:
            The new belief and an `Info`.
        """
        # The barriers keep the compiler from merging a step with the program around it, or from moving parts
        # of it out of a loop; the branch lays the step out in memory in one way everywhere. A step is then
        # the same program in a Python loop, in a scan and in any chunk, and gives the same bits.
        self, belief, x, y, weight, dt, key = isolate((self, belief, x, y, weight, dt, key))

        def take(belief: B) -> tuple[B, Info]:
            return self.measurement_update(self.time_update(belief, dt), x, y, weight, key)

        def leave(belief: B) -> tuple[B, Info]:
            new, info = jax.eval_shape(take, belief)
            same = jax.tree.map(lambda leaf, like: jnp.asarray(leaf, like.dtype), belief, new)
            return same, jax.tree.map(lambda like: jnp.zeros(like.shape, like.dtype), info)

        result: tuple[B, Info] = isolate(in_branch(take, belief, otherwise=leave))
        return result

    @verb(static=("shape",))
    def sample(self, belief: B, key: Key, shape: tuple[int, ...] = ()) -> PyTree:
        """Draw parameters from the belief.

        Arguments:
            belief: any belief of this learner.
            key: the key of the draws.
            shape: the leading axes of the result.

        Returns:
            Parameter trees, with leading axes `shape`.
        """
        return self.draws(belief, key, shape)

    @property
    def takes_missing(self) -> bool:
        """Whether rows with missing inputs (NaN) can be learned, and forecast as they are.

        Other learners refuse such a row, and are scored by a forecast with 0 in their place.
        """
        return False

    @abstractmethod
    def time_update(self, belief: B, dt: ArrayLike | None) -> B:
        """Advance the belief by a step of time. `predict` compiles this function.

        Arguments:
            belief: the belief after the latest observation.
            dt: the length of the step; None means 1.

        Returns:
            The predicted belief, whose clock `t` is one step later.
        """

    @abstractmethod
    def predictive(
        self, belief: B, x: PyTree, method: ForecastName | None, samples: int | None, key: Key | None
    ) -> Predictive:
        """The distribution of the next observation. `forecast` compiles this function.

        Arguments:
            belief: the predicted belief; nothing is learned.
            x: one row of inputs.
            method: how the forecast is computed; None leaves the choice to the learner. A learner refuses a
                method that it does not know.
            samples: how many draws, for the Monte Carlo methods; None for the default.
            key: the key of those draws.

        Returns:
            p(y | x, past).
        """

    def scaled_predictive(self, belief: B, x: PyTree, scale: ArrayLike | None) -> Predictive:
        """The forecast in which the variance that is due to the belief is multiplied by `scale`.

        Arguments:
            belief, x: as for `predictive`.
            scale: at least 0; with 0 the mean of the belief is trusted, with 1 the belief. None stands for 0
                as well, and then nothing is integrated.

        Returns:
            The forecast. A learner without a variance has one for all scales, which this default gives.
        """
        return self.predictive(belief, x, None, None, None)

    @abstractmethod
    def measurement_update(
        self, belief: B, x: PyTree, y: PyTree, weight: ArrayLike, key: Key | None
    ) -> tuple[B, Info]:
        """Take in an observation. `update` compiles this function.

        The belief must come back bit by bit where y is missing, the weight is 0, or the result would not be
        finite; `accept` ensures this. The clock `t` does not change.

        Arguments:
            belief: the predicted belief.
            x, y: one row of inputs and its observation.
            weight: a number, at least 0, that multiplies the log-likelihood.
            key: the key of the stream, for learners that draw; step t uses fold_in(key, belief.t).

        Returns:
            The new belief and an `Info`, whose `log_evidence` is that of the belief before the update.
        """

    @abstractmethod
    def draws(self, belief: B, key: Key, shape: tuple[int, ...]) -> PyTree:
        """Draw parameters. `sample` compiles this function.

        Arguments:
            belief: any belief of this learner.
            key: the key of the draws: a key or a seed (see `credo.core.keys.as_key`).
            shape: the leading axes of the result.

        Returns:
            Parameter trees, with leading axes `shape`.
        """


def require_learner(field: str, value: object) -> None:
    """Refuse a value that is not a learner."""
    if not isinstance(value, Learner):
        raise CredoError(
            f"{field} must be a credo.Learner, such as credo.bong(model); got {value!r}.", field=field
        )


@record
class SampledFunction:
    """A function x -> E[y | theta, x] for one theta that was drawn from a belief.

    The outputs are linearised at the mean of the belief, eta(x) = f(mean, x) + J(x) step, which is exact for
    models that are linear in their parameters. For networks it is the function that `forecast` believes in:
    the outputs of a network at drawn weights are far more variable where the belief is wide. `step` (P,) is
    the drawn parameters minus `mean` (P,), or None for the function at `mean` itself.
    """

    model: Model
    mean: Array
    step: Array | None
    unravel: Unravel = static_field()

    def __call__(self, x: PyTree) -> Array:
        """The expected observation at one row x: a scalar for one output, else (C,)."""

        def outputs(vector: Array) -> Array:
            return self.model.outputs(vector, self.unravel, x)

        if self.step is None:
            eta = outputs(self.mean)
        else:
            base, move = jax.jvp(outputs, (self.mean,), (self.step,))
            eta = base + move
        return drop_one(self.model.likelihood.mean(eta))


class OutputLearner(Learner[B]):
    """A learner of a model, which knows the mean and covariance of the outputs eta at a row x."""

    model: Model

    @abstractmethod
    def output_moments(self, belief: B, x: PyTree) -> tuple[Array, Array]:
        """The mean (C,) and covariance (C, C) of the model's outputs under the predicted belief."""

    def scaled_predictive(self, belief: B, x: PyTree, scale: ArrayLike | None) -> Predictive:
        """The linearised forecast of outputs N(eta, scale cov); a `vmap` over scales computes both once."""
        if self.model.batched:
            single: OutputLearner[B] = replace(self, model=self.model.each)
            return PredictiveRows(jax.vmap(lambda row: single.scaled_predictive(belief, row, scale))(x))
        eta, cov = self.output_moments(belief, x)
        if scale is None:
            return self.model.likelihood.plugin(eta, getattr(belief, "noise", None))
        return self.model.likelihood.scaled(eta, cov, scale, getattr(belief, "noise", None))
