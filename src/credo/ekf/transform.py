"""What both transforms share: the pair of functions, the checks of their arguments, and compilation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.errors import CredoError, require_nonnegative
from credo.core.records import replace
from credo.core.trees import all_finite, as_like, ravel, select
from credo.learners.base import isolate

__all__ = ["LogLikelihood", "Rate", "Transform", "is_number"]

LogLikelihood = Callable[[Any, Any], tuple[Any, Any]]
"""`log_likelihood(params, batch) -> (value, aux)`: a number for the batch, or with `per_sample` one number a
row; and a tree of arrays to be handed on, or None.
"""

Rate = float | jax.Array | Callable[[jax.Array], Any]
"""A learning rate: a number, or a schedule, a function of the number of updates so far, as in optax."""


class Transform(NamedTuple):
    """A method as two functions, its settings bound to them (they can be read in `update.keywords`).

    Attributes:
        init: `init(params) -> state`.
        update: `update(state, batch, inplace=False) -> state`.
    """

    init: Callable[..., Any]
    update: Callable[..., Any]


def is_number(value: Any) -> bool:
    """Whether this is a number or an array of numbers (traced ones too)."""
    return isinstance(value, jax.Array | np.ndarray | np.generic | float | int)


def compiled(core: Callable[..., tuple[Any, Any]]) -> Callable[..., Any]:
    """The public update made of the arithmetic `core(state, batch, log_likelihood, rate, drift, per_sample)
    -> (state, aux)`, compiled twice: with the old belief kept, and with its buffers donated.

    Only the belief is donated. What a state reports (numbers that people keep for a plot) stays readable.
    """

    def precise(
        belief: Any,
        report: tuple[Any, ...],
        batch: Any,
        lr: Any,
        drift: Any,
        log_likelihood: LogLikelihood,
        schedule: Any,
        per_sample: bool,
    ) -> tuple[Any, Any]:
        # the fences make a step the same program in a loop and in a scan, so that it gives the same bits
        belief, report, batch, lr, drift = isolate((belief, report, batch, lr, drift))
        value, step, ok = report
        state = replace(belief, log_likelihood=value, step=step, ok=ok)
        rate = jnp.asarray(lr if schedule is None else schedule(step))
        if rate.shape != ():
            raise CredoError(f"lr must be one number; its shape is {rate.shape}.")
        with jax.default_matmul_precision("highest"):
            return isolate(core(state, batch, log_likelihood, rate, drift, per_sample))

    static = ("log_likelihood", "schedule", "per_sample")
    kept = jax.jit(precise, static_argnames=static)
    donated = jax.jit(precise, static_argnames=static, donate_argnames="belief")

    def call(
        state: Any,
        batch: Any,
        log_likelihood: LogLikelihood,
        lr: Any,
        drift: Any,
        per_sample: bool,
        inplace: bool,
    ) -> Any:
        require_settings(log_likelihood, lr)
        require_flag("per_sample", per_sample)
        require_flag("inplace", inplace)
        for path, leaf in jax.tree_util.tree_leaves_with_path(batch):
            if not is_number(leaf):
                where = "batch" + jax.tree_util.keystr(path)
                raise CredoError(f"{where} must be an array; got {leaf!r}.")
        if any(_is_dead(leaf) for leaf in jax.tree.leaves(state)):
            raise CredoError("state was given away by an update in place; go on with the one it returned.")
        run = donated if inplace else kept
        belief = replace(state, log_likelihood=None, aux=None, step=None, ok=None)
        report = (state.log_likelihood, state.step, state.ok)
        rate, schedule = (None, lr) if callable(lr) else (lr, None)
        new, aux = run(belief, report, batch, rate, drift, log_likelihood, schedule, bool(per_sample))
        return replace(new, aux=aux)

    return call


def _is_dead(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array) and not isinstance(leaf, jax.core.Tracer) and leaf.is_deleted()


def require_settings(log_likelihood: Any, lr: Any) -> None:
    """Refuse a log-likelihood or a learning rate that cannot be used."""
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


def require_flag(field: str, value: Any) -> None:
    """Refuse what is neither True nor False."""
    if not isinstance(value, bool | np.bool_):
        raise CredoError(f"{field} must be True or False; got {value!r}.")


def own_params(params: Any) -> Any:
    """Copies of the parameters, so that an update in place cannot reach the caller's arrays.

    Raises:
        CredoError: there are none, or one is not floating point.
    """
    ravel_dtype(params)
    return jax.tree.map(lambda leaf: jnp.array(leaf, jnp.asarray(leaf).dtype, copy=True), params)


def require_numbers(field: str, value: Any) -> None:
    """Refuse a number, or any in a tree, that is below 0 or not finite."""
    for path, leaf in jax.tree_util.tree_leaves_with_path(value):
        name = field + jax.tree_util.keystr(path)
        if not is_number(leaf):
            raise CredoError(f"{name} must be a number or an array; got {leaf!r}.")
        require_nonnegative(name, leaf)


def spread(value: Any, params: Any, field: str) -> Any:
    """Give every parameter its number, leaf by leaf: from a number, or from a tree of numbers or arrays.

    Raises:
        CredoError: the structure or a shape does not fit.
    """
    try:
        full = jax.tree.broadcast(value, params)
    except ValueError:
        raise CredoError(
            f"{field} must be a number, or a tree like params, {jax.tree.structure(params)}; got "
            f"{jax.tree.structure(value)}."
        ) from None

    def fill(path: Any, leaf: Any, like: jax.Array) -> jax.Array:
        try:
            return jnp.broadcast_to(as_like(leaf, like), like.shape)
        except ValueError:
            raise CredoError(
                f"{field}{jax.tree_util.keystr(path)} must broadcast to the shape {like.shape} of its "
                f"parameter; got shape {jnp.shape(leaf)}."
            ) from None

    return jax.tree_util.tree_map_with_path(fill, full, params)


def fresh(params: Any) -> tuple[jax.Array, None, jax.Array, jax.Array]:
    """What a state reports before any data: log_likelihood, aux, step, ok."""
    dtype = ravel_dtype(params)
    return jnp.zeros((), dtype), None, jnp.zeros((), jnp.int32), jnp.ones((), bool)


def ravel_dtype(params: Any) -> Any:
    """The widest dtype of the parameters."""
    return jax.eval_shape(lambda tree: ravel(tree)[0], params).dtype


def settle(state: Any, new: Any, rate: jax.Array, checked: Any) -> Any:
    """The new state where the rate and everything `checked` (the batch included) is sound; else the old one,
    bit by bit, with `ok` False.
    """
    ok = all_finite((rate, new.log_likelihood, checked)) & (rate >= 0)
    return replace(select(ok, new, state), ok=ok)
