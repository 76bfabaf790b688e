"""The common parts of both transforms: the two functions, checks of their arguments, and compilation."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Generic, NamedTuple, Protocol, TypeAlias, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from credo.core.errors import CredoError, require_nonnegative
from credo.core.records import replace
from credo.core.trees import all_finite, as_like, ravel, select
from credo.core.types import Array, ArrayLike, PyTree
from credo.learners.base import isolate

__all__ = ["LogLikelihood", "Rate", "Transform", "is_number"]

LogLikelihood: TypeAlias = Callable[[PyTree, PyTree], tuple[ArrayLike, PyTree]]
"""`log_likelihood(params, batch) -> (value, aux)`: a number for the batch, or with `per_sample` one number a
row; and a tree of arrays to be handed on, or None.
"""

Rate: TypeAlias = ArrayLike | Callable[[Array], ArrayLike]
"""A learning rate: a number, or a schedule, a function of the number of updates so far, as in optax."""

Report: TypeAlias = tuple[Array, Array, Array]
"""The report of a state on its last update: log_likelihood, step, ok."""


class State(Protocol):
    """A belief of a transform, with what its last update reported."""

    @property
    def log_likelihood(self) -> Array:
        """The mean over the rows of the last batch."""
        ...

    @property
    def step(self) -> Array:
        """The number of batches that were taken in."""
        ...

    @property
    def ok(self) -> Array:
        """Whether the last batch was taken in."""
        ...


S = TypeVar("S", bound=State)
"""The kind of state that a transform keeps."""

Core: TypeAlias = Callable[[S, PyTree, LogLikelihood, Array, PyTree, bool], tuple[S, PyTree]]
"""The arithmetic of an update: (state, batch, log_likelihood, rate, drift, per_sample) -> (state, aux)."""

Update: TypeAlias = Callable[[S, PyTree, LogLikelihood, Rate, PyTree, bool, bool], S]
"""An update as `compiled` returns it; the last argument is whether it is in place."""


class Transform(NamedTuple, Generic[S]):
    """A method as two functions, to which its settings are bound (they can be read in `update.keywords`).

    Attributes:
        init: `init(params) -> state`.
        update: `update(state, batch, inplace=False) -> state`.

    Example:
        >>> from credo.ekf import diag_fisher
        >>> transform = diag_fisher.build(lambda w, x: (jnp.mean(-((x - w) ** 2)), None), lr=0.5)
        >>> transform.update.keywords["lr"]
        0.5
    """

    init: functools.partial[S]
    update: functools.partial[S]


def is_number(value: object) -> bool:
    """Whether this is a number or an array of numbers (traced ones too)."""
    return isinstance(value, jax.Array | np.ndarray | np.generic | float | int)


def compiled(core: Core[S]) -> Update[S]:
    """The public update, compiled twice: keeping the old belief, and donating all but what it reports."""

    def precise(
        belief: S,
        report: Report,
        batch: PyTree,
        lr: ArrayLike | None,
        drift: PyTree,
        log_likelihood: LogLikelihood,
        schedule: Callable[[Array], ArrayLike] | None,
        per_sample: bool,
    ) -> tuple[S, PyTree]:
        # the fences make a step the same program in a loop and in a scan, so that it gives the same bits
        belief, report, batch, lr, drift = isolate((belief, report, batch, lr, drift))
        value, step, ok = report
        state = replace(belief, log_likelihood=value, step=step, ok=ok)
        rate = jnp.asarray(lr if schedule is None else schedule(step))
        if rate.shape != ():
            raise CredoError(f"lr must be one number; its shape is {rate.shape}.")
        with jax.default_matmul_precision("highest"):
            result: tuple[S, PyTree] = isolate(core(state, batch, log_likelihood, rate, drift, per_sample))
            return result

    static = ("log_likelihood", "schedule", "per_sample")
    plain = jax.jit(precise, static_argnames=static)
    in_place = jax.jit(precise, static_argnames=static, donate_argnames="belief")

    def call(
        state: S,
        batch: PyTree,
        log_likelihood: LogLikelihood,
        lr: Rate,
        drift: PyTree,
        per_sample: bool,
        inplace: bool,
    ) -> S:
        require_settings(log_likelihood, lr)
        require_flag("per_sample", per_sample)
        require_flag("inplace", inplace)
        for path, leaf in jax.tree_util.tree_leaves_with_path(batch):
            if not is_number(leaf):
                where = "batch" + jax.tree_util.keystr(path)
                raise CredoError(f"{where} must be an array; got {leaf!r}.")
        arrays = [leaf for leaf in jax.tree.leaves(state) if isinstance(leaf, jax.Array)]
        if any(not isinstance(array, Tracer) and array.is_deleted() for array in arrays):
            raise CredoError("state was given away by an update in place; go on with the one it returned.")
        run = in_place if inplace else plain
        belief = replace(state, log_likelihood=None, aux=None, step=None, ok=None)
        report = (state.log_likelihood, state.step, state.ok)
        rate, schedule = (None, lr) if callable(lr) else (lr, None)
        result: tuple[S, PyTree] = run(
            belief, report, batch, rate, drift, log_likelihood, schedule, bool(per_sample)
        )
        new, aux = result
        return replace(new, aux=aux)

    return call


def require_settings(log_likelihood: LogLikelihood, lr: Rate) -> None:
    """Refuse a log-likelihood that cannot be hashed, or a learning rate out of range."""
    if not callable(log_likelihood):
        raise CredoError(
            f"log_likelihood must be a function (params, batch) -> (value, aux); got {log_likelihood!r}."
        )
    for field, value in (("log_likelihood", log_likelihood), ("lr", lr)):
        if callable(value):
            try:
                hash(value)
            except TypeError:
                raise CredoError(
                    f"{field} must be hashable, as it is compiled once per function; wrap "
                    f"{type(value).__name__} in a function."
                ) from None
    if callable(lr):
        return
    if not is_number(lr) or np.ndim(lr) > 0:
        raise CredoError(f"lr must be one number, or a schedule, a function of the step; got {lr!r}.")
    require_nonnegative("lr", lr)


def require_flag(field: str, value: object) -> None:
    """Refuse a value that is neither True nor False."""
    if not isinstance(value, bool | np.bool_):
        raise CredoError(f"{field} must be True or False; got {value!r}.")


def own_params(params: PyTree) -> PyTree:
    """Copies of the parameters, so that an update in place cannot reach the caller's arrays."""
    ravel_dtype(params)
    return jax.tree.map(lambda leaf: jnp.array(leaf, jnp.asarray(leaf).dtype, copy=True), params)


def require_numbers(field: str, value: PyTree) -> None:
    """Refuse a number, or any in a tree, that is below 0 or not finite."""
    for path, leaf in jax.tree_util.tree_leaves_with_path(value):
        name = field + jax.tree_util.keystr(path)
        if not is_number(leaf):
            raise CredoError(f"{name} must be a number or an array; got {leaf!r}.")
        require_nonnegative(name, leaf)


def spread(value: PyTree, params: PyTree, field: str) -> PyTree:
    """Give every parameter its number, leaf by leaf: from a number, or a tree of numbers or arrays."""
    try:
        full = jax.tree.broadcast(value, params)
    except ValueError:
        raise CredoError(
            f"{field} must be a number, or a tree like params, {jax.tree.structure(params)}; got "
            f"{jax.tree.structure(value)}."
        ) from None

    def fill(path: tuple[object, ...], leaf: ArrayLike, like: Array) -> Array:
        try:
            return jnp.broadcast_to(as_like(leaf, like), like.shape)
        except ValueError:
            raise CredoError(
                f"{field}{jax.tree_util.keystr(path)} must broadcast to the shape {like.shape} of its "
                f"parameter; got shape {jnp.shape(leaf)}."
            ) from None

    return jax.tree_util.tree_map_with_path(fill, full, params)


def fresh(params: PyTree) -> tuple[Array, None, Array, Array]:
    """The report of a state before any data: log_likelihood, aux, step, ok."""
    dtype = ravel_dtype(params)
    return jnp.zeros((), dtype), None, jnp.zeros((), jnp.int32), jnp.ones((), bool)


def ravel_dtype(params: PyTree) -> np.dtype:
    """The widest dtype of the parameters."""
    widest: np.dtype = jax.eval_shape(lambda tree: ravel(tree)[0], params).dtype
    return widest


def settle(state: S, new: S, rate: Array, checked: PyTree) -> S:
    """The new state where the rate and everything `checked` (the batch included) is sound; else the old one,
    bit by bit, with `ok` False.
    """
    ok = all_finite((rate, new.log_likelihood, checked)) & (rate >= 0)
    return replace(select(ok, new, state), ok=ok)
