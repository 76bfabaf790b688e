"""Reports of updates, and the rules by which updates are accepted or refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import jax
import jax.numpy as jnp

from credo.core.errors import CredoError, require_nonnegative
from credo.core.platforms import in_branch
from credo.core.records import record
from credo.core.trees import all_finite, select
from credo.core.types import Array, ArrayLike, DTypeLike, PyTree
from credo.likelihoods.base import LikelihoodBase

__all__ = ["Info", "accept", "call_fenced", "clean", "isolate", "legible", "scored", "sound", "usable"]

B = TypeVar("B")
T = TypeVar("T")


@record
class Info:
    """The report of an update, beside the new belief.

    Attributes:
        log_evidence: log p(y_t | x_t, past) before the update, in nats; 0 for a missing observation.
        ok: whether the observation was taken in. It is False for a missing observation (NaN), and where the
            update would have given a belief that is not finite; the belief then stays as it was.
        extras: whatever else a method reports.

    Example:
        >>> import credo
        >>> learner = credo.bong(credo.Model(lambda w, x: x @ w, credo.Normal(0.1)), credo.Full())
        >>> belief, info = learner.step(learner.init(jnp.zeros(2)), jnp.ones(2), jnp.nan)
        >>> bool(info.ok), float(info.log_evidence)
        (False, 0.0)
    """

    log_evidence: Array
    ok: Array
    extras: PyTree = None


def isolate(tree: T) -> T:
    """The same values, across which the compiler moves no arithmetic."""
    values: T = jax.lax.optimization_barrier(jax.tree.map(jnp.asarray, tree))
    return values


def call_fenced(function: Callable[..., T], arguments: tuple[PyTree, ...]) -> T:
    """The value of a function, with the same bits in a Python loop, in a scan and in any chunk.

    Barriers keep the compiler from merging the function with the program around it, or from moving parts of
    it out of a loop; the branch of `in_branch` lays the function out in memory in one way everywhere.
    """
    inputs = isolate(arguments)
    value: T = isolate(in_branch(function, *inputs))
    return value


def clean(tree: PyTree) -> PyTree:
    """Data with 0 for NaN and infinities, so that no derivative sees them; `accept` refuses the step."""

    def fix(leaf: ArrayLike) -> Array:
        array = jnp.asarray(leaf)
        if jnp.issubdtype(array.dtype, jnp.floating):
            return jnp.where(jnp.isfinite(array), array, 0)
        return array

    return jax.tree.map(fix, tree)


def scored(y: PyTree) -> PyTree:
    """The part of an observation that a forecast can score: no infinities, and NaN only beside numbers.

    If nothing was observed, all of it is finite, so that no density is NaN.
    """

    def fix(leaf: Array, safe: Array) -> Array:
        if leaf.size < 2 or not jnp.issubdtype(leaf.dtype, jnp.floating):
            return safe
        missing = jnp.isnan(leaf)
        return jnp.where(missing & ~jnp.all(missing), leaf, safe)

    return jax.tree.map(fix, jax.tree.map(jnp.asarray, y), clean(y))


def legible(likelihood: LikelihoodBase, y: PyTree) -> tuple[PyTree, Array]:
    """The part of an observation that a likelihood can read, and whether that is anything.

    NaN remains where some outputs are observed and these are not. The second result is a boolean, or for a
    joint model one boolean a row.
    """
    seen = likelihood.seen(y)
    whole = likelihood.observed(y)
    if seen is None:
        return clean(y), whole
    outputs = seen.reshape(*whole.shape, -1)
    some = jnp.any(outputs, axis=-1)
    missing = ~outputs & some[..., None]

    def blank(leaf: Array) -> Array:
        return jnp.where(missing.reshape(leaf.shape), jnp.nan, leaf)

    return jax.tree.map(blank, clean(y)), some


def usable(observed: Array, weight: ArrayLike, dtype: DTypeLike) -> tuple[Array, Array]:
    """Which observations can be used, and the weight of each, which is 0 if one cannot.

    Such a one was observed (a boolean, or for a joint model one a row) and has a finite weight of at least 0.
    """
    require_nonnegative("weight", weight)
    weights = jnp.asarray(weight).astype(dtype)
    if weights.ndim and weights.shape != observed.shape:
        allowed = f"a number or one a row {observed.shape}" if observed.ndim else "a number"
        raise CredoError(f"weight must be {allowed}; got shape {weights.shape}.")
    good = observed & jnp.isfinite(weights) & (weights >= 0)
    return good, jnp.where(good, weights, 0.0)


def sound(new: PyTree, scored: Array, observed: Array, x: PyTree, y: PyTree, weight: ArrayLike) -> Array:
    """Whether an update is sound: the data are present and finite, and so are the belief and the evidence."""
    finite_y = all_finite(jax.tree.map(lambda leaf: jnp.where(jnp.isnan(leaf), 0, leaf), y))
    finite = all_finite(x) & finite_y & all_finite(new) & scored
    return observed & finite & jnp.all(jnp.isfinite(jnp.asarray(weight)))


def accept(  # noqa: PLR0913 - the parts of an update, in its order
    old: B,
    new: B,
    log_evidence: Array,
    observed: Array,
    x: PyTree,
    y: PyTree,
    weight: ArrayLike,
    witness: PyTree = None,
    scored: Array | None = None,
) -> tuple[B, Info]:
    """Take the new belief only where the data are present and finite and the result is; else the old bits.

    `x` and `y` are as the user passed them, and `weight` as `usable` returns it: all zero means no update.
    `witness` is a part of the new belief that is finite only if all of it is: where a few numbers tell, the
    choice between the beliefs is made in the pass that writes the new one. `scored` says whether the evidence
    is finite, if that is known without it: a program that does not return it then does not compute it.
    """
    scored = jnp.isfinite(log_evidence) if scored is None else scored
    ok = sound(new if witness is None else witness, scored, observed, x, y, weight)
    belief = select(ok & jnp.any(jnp.asarray(weight) != 0), new, old)
    return belief, Info(jnp.where(ok, log_evidence, 0.0), ok)
