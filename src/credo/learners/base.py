"""The five verbs, and what an update reports."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import jax
import jax.numpy as jnp

from credo.core.errors import CredoError, require_nonnegative
from credo.core.records import record
from credo.core.trees import all_finite, select
from credo.core.types import ArrayLike, Key, PyTree
from credo.core.verbs import verb
from credo.likelihoods import Predictive, PredictiveRows

__all__ = ["Info", "Learner", "accept", "clean", "usable"]

B = TypeVar("B")
"""The kind of belief that a learner keeps."""


@record
class Info:
    """What an update reports and no later step needs.

    Attributes:
        log_evidence: log p(y_t | x_t, past) before the update, in nats; 0 for a missing observation.
        ok: whether the observation was taken in; False for a missing one (NaN) and where the update would
            have given a belief that is not finite, in which case the belief stayed as it was.
        extras: whatever else a method reports.
    """

    log_evidence: jax.Array
    ok: jax.Array
    extras: Any = None


class Learner(Generic[B]):
    """The base of every learner: the verbs, compiled once per structure.

    A subclass writes `init`, `time_update`, `predictive`, `measurement_update` and `draws`; all of it must be
    traceable. Learners are records: hyper-parameters are leaves, so `jax.vmap` and `jax.grad` go through
    them.
    """

    def init(self, params: PyTree = None, *, var: PyTree = 1.0) -> B:
        """The belief before any data.

        Arguments:
            params: the prior mean, a pytree of floating-point arrays.
            var: the prior variance: a number, an array (P,), or a tree like `params`.
        """
        raise NotImplementedError

    @verb
    def predict(self, belief: B, dt: ArrayLike | None = None) -> B:
        """The time update: apply the dynamics over a step `dt` (None means 1)."""
        return self.time_update(belief, dt)

    @verb(static=("method", "samples"))
    def forecast(
        self,
        belief: B,
        x: PyTree,
        *,
        method: str | None = None,
        samples: int | None = None,
        key: Key | None = None,
    ) -> Predictive:
        """The distribution p(y | x, past) of the next observation at one row x; nothing is learned.

        Arguments:
            belief: the *predicted* belief.
            x: one row of inputs (for a joint model: several rows).
            method: "linearized" (function space; the default), "plugin" (at the mean), "mc" (networks
                evaluated at draws of the parameters) or "linearized-mc" (draws of the linearised outputs).
            samples: how many draws, for the Monte Carlo methods (default 100).
            key: the key of those draws.
        """
        return self.predictive(belief, x, method, samples, key)

    @verb(static=("method", "samples"))
    def forecast_rows(
        self,
        belief: B,
        xs: PyTree,
        *,
        method: str | None = None,
        samples: int | None = None,
        key: Key | None = None,
    ) -> PredictiveRows:
        """The forecasts for N rows `xs` at one belief; every answer has a leading axis N.

        Rows are taken 16 at a time, so memory is that of 16 Jacobians (16, C, P), however many rows there
        are.
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
            weight: at least 0; multiplies the log-likelihood. 0 gives the belief back bit by bit.
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
        """Predict, then update: one step of a stream."""
        # The barriers keep the compiler from merging a step with the program around it, or from moving parts
        # of it out of a loop; the branch, whose condition the compiler cannot see, lays the step out in
        # memory in one way everywhere. A step is then the same program in a Python loop, in a scan and in any
        # chunk, and gives the same bits.
        self, belief, x, y, weight, dt, key = isolate((self, belief, x, y, weight, dt, key))

        def take(belief: B) -> tuple[B, Info]:
            return self.measurement_update(self.time_update(belief, dt), x, y, weight, key)

        def leave(belief: B) -> tuple[B, Info]:
            made, info = jax.eval_shape(take, belief)
            same = jax.tree.map(lambda leaf, like: jnp.asarray(leaf, like.dtype), belief, made)
            return same, jax.tree.map(lambda like: jnp.zeros(like.shape, like.dtype), info)

        always = jax.lax.optimization_barrier(jnp.asarray(True))
        return isolate(jax.lax.cond(always, take, leave, belief))

    @verb(static=("shape",))
    def sample(self, belief: B, key: Key, shape: tuple[int, ...] = ()) -> PyTree:
        """Parameter trees drawn from the belief, with leading axes `shape`."""
        return self.draws(belief, key, shape)

    def time_update(self, belief: B, dt: ArrayLike | None) -> B:
        raise NotImplementedError

    def predictive(
        self, belief: B, x: PyTree, method: str | None, samples: int | None, key: Key | None
    ) -> Predictive:
        raise NotImplementedError

    def measurement_update(
        self, belief: B, x: PyTree, y: PyTree, weight: Any, key: Key | None
    ) -> tuple[B, Info]:
        raise NotImplementedError

    def draws(self, belief: B, key: Key, shape: tuple[int, ...]) -> PyTree:
        raise NotImplementedError


def isolate(tree: Any) -> Any:
    """The same values, across which the compiler moves no arithmetic."""
    return jax.lax.optimization_barrier(jax.tree.map(jnp.asarray, tree))


def clean(tree: Any) -> Any:
    """The tree with NaN and infinities replaced by 0, so that no derivative sees them; `accept` then rejects
    the step.
    """

    def fix(leaf: Any) -> jax.Array:
        array = jnp.asarray(leaf)
        return (
            jnp.where(jnp.isfinite(array), array, 0) if jnp.issubdtype(array.dtype, jnp.floating) else array
        )

    return jax.tree.map(fix, tree)


def usable(observed: jax.Array, weight: Any, dtype: Any) -> tuple[jax.Array, jax.Array]:
    """Which observations can be used, and the weight of each: 0 where y is missing or the weight is negative
    or not finite.

    Arguments:
        observed: whether y was observed: a boolean, or for a joint model one a row (B,).
        weight: as given: a number, or for a joint model one a row.
    """
    require_nonnegative("weight", weight)
    given = jnp.asarray(weight).astype(dtype)
    if given.ndim and given.shape != observed.shape:
        wanted = f"a number or one a row {observed.shape}" if observed.ndim else "a number"
        raise CredoError(f"weight must be {wanted}; got shape {given.shape}.")
    sound = observed & jnp.isfinite(given) & (given >= 0)
    return sound, jnp.where(sound, given, 0.0)


def accept(
    old: Any, new: Any, log_evidence: jax.Array, observed: jax.Array, x: Any, y: Any, weight: Any
) -> tuple[Any, Info]:
    """Keep the new belief only where the data were there and finite and the result is finite; else the old
    one, bitwise.

    Arguments:
        old, new: the belief before and after.
        log_evidence: of this observation.
        observed: whether any of y was observed.
        x, y: the data as given.
        weight: as given; all zero means no update.
    """
    finite_y = all_finite(jax.tree.map(lambda leaf: jnp.where(jnp.isnan(leaf), 0, leaf), y))
    sound = all_finite(x) & finite_y & all_finite(new) & jnp.isfinite(log_evidence)
    ok = observed & sound & jnp.all(jnp.isfinite(jnp.asarray(weight)))
    kept = select(ok & jnp.any(jnp.asarray(weight) != 0), new, old)
    return kept, Info(jnp.where(ok, log_evidence, 0.0), ok)
