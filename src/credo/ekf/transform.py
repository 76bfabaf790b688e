"""The common parts of both transforms: the two functions, checks of their arguments, and compilation.

Both are learners, too, and both need the gradients of a log-likelihood, row by row of a batch.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Generic, NamedTuple, Protocol, TypeAlias, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from credo.beliefs import Gaussian
from credo.core.errors import CredoError, require_nonnegative
from credo.core.records import record, replace
from credo.core.trees import all_finite, as_like, ravel, select
from credo.core.types import Array, ArrayLike, Key, PyTree
from credo.covariances import Family
from credo.dynamics import Dynamics
from credo.learners import BONGRule, Info, LinearizedEmpiricalFisher, RecursiveLearner
from credo.learners.base import isolate
from credo.learners.rules.base import Schedule, rate_at
from credo.models import Model

__all__ = [
    "FisherLearner",
    "LogLikelihood",
    "Rate",
    "Transform",
    "fisher_learner",
    "fold",
    "is_number",
    "row_gradient",
    "row_total",
    "tidy",
    "whole_aux",
]

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


@record
class FisherLearner(RecursiveLearner):
    """A recursive learner whose observations each count lr / B.

    `diag_fisher.learner` and `dense_fisher.learner` build it.

    Arguments:
        model, family, curvature, rule, dynamics, forecasting: as in `RecursiveLearner`.
        lr: the strength of an observation, or of all rows of a `joint` model together, at least 0; or a
            schedule, a function of the number of earlier steps.

    Raises:
        CredoError: `lr` is below 0.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(1.0))
        >>> learner = credo.ekf.diag_fisher.learner(model, lr=0.5)
        >>> credo.replace(learner, lr=1.0).lr
        1.0
    """

    lr: Rate = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if callable(self.lr) and not isinstance(self.lr, Schedule):
            object.__setattr__(self, "lr", Schedule(self.lr))
        elif not callable(self.lr):
            require_nonnegative("lr", self.lr)

    def measurement_update(
        self, belief: Gaussian, x: PyTree, y: PyTree, weight: ArrayLike, key: Key | None
    ) -> tuple[Gaussian, Info]:
        count = self.model.likelihood.rows(y) if self.model.batched else 1
        rate = rate_at(self.lr, belief.t, belief.mean.dtype)
        tempered = as_like(weight, belief.mean) * rate / count
        return super().measurement_update(belief, x, y, tempered, key)


def fisher_learner(model: Model, family: Family, dynamics: Dynamics, lr: Rate) -> FisherLearner:
    """LIN-EF with the gain of the covariance that is kept."""
    return FisherLearner(model, family, LinearizedEmpiricalFisher(), BONGRule(gain="kept"), dynamics, lr=lr)


T = TypeVar("T")

C = TypeVar("C")
"""The values that are carried from chunk to chunk."""

Row: TypeAlias = Callable[[PyTree, PyTree], tuple[tuple[Array, PyTree], PyTree]]
"""(params, one row) -> ((value, aux), gradient)."""


def row_total(batch: PyTree) -> int:
    """The number B of rows, the common length of the leading axis of the batch's arrays."""
    sizes: dict[str, int] = {}
    for path, leaf in jax.tree_util.tree_leaves_with_path(batch):
        name = "batch" + jax.tree_util.keystr(path)
        if jnp.ndim(leaf) == 0:
            raise CredoError(f"{name} must have a leading axis, one entry a row; got a scalar.")
        sizes[name] = jnp.shape(leaf)[0]
    if not sizes:
        raise CredoError(f"batch must hold at least one array with a leading axis of rows; got {batch!r}.")
    if len(set(sizes.values())) > 1:
        lengths = ", ".join(f"{name}: {size}" for name, size in sizes.items())
        raise CredoError(f"all arrays of batch must have the same number of rows; got {lengths}.")
    count = next(iter(sizes.values()))
    if count == 0:
        raise CredoError("batch must hold at least one row; got 0.")
    return count


def row_gradient(log_likelihood: LogLikelihood, per_sample: bool) -> Row:
    """The value, aux and gradient of one row as a batch of one, where sum and average agree."""

    def value(params: PyTree, row: PyTree) -> tuple[Array, PyTree]:
        number, aux = _pair(log_likelihood(params, jax.tree.map(lambda leaf: leaf[None], row)))
        shape = (1,) if per_sample else ()
        if number.shape != shape:
            what = "one number a row, shape (1,) for one row" if per_sample else "one number for its batch"
            other = "" if number.shape not in ((), (1,)) else f"; or build with per_sample={not per_sample}"
            raise CredoError(
                f"log_likelihood must return {what}, when per_sample={per_sample}; got shape {number.shape}"
                f"{other}."
            )
        return number.reshape(()), aux

    gradient: Row = jax.value_and_grad(value, has_aux=True)
    return gradient


def _pair(result: object) -> tuple[Array, PyTree]:
    """The value and the aux that a log-likelihood returned."""
    if not isinstance(result, tuple) or len(result) != 2:
        got = f"a tuple of {len(result)}" if isinstance(result, tuple) else type(result).__name__
        raise CredoError(
            f"log_likelihood must return two things, (value, aux), with None for aux where there is nothing "
            f"to hand on; got {got}."
        )
    value, aux = result
    if not is_number(value):
        raise CredoError(f"log_likelihood must return a number as its value; got {type(value).__name__}.")
    value = jnp.asarray(value)
    if not jnp.issubdtype(value.dtype, jnp.floating):
        raise CredoError(f"log_likelihood must return a real number; got dtype {value.dtype}.")
    for path, leaf in jax.tree_util.tree_leaves_with_path(aux):
        if not is_number(leaf):
            name = "aux" + jax.tree_util.keystr(path)
            raise CredoError(f"{name} must be an array, as compiled code hands aux on; got {leaf!r}.")
    return value, jax.tree.map(jnp.asarray, aux)


def whole_aux(log_likelihood: LogLikelihood, params: PyTree, batch: PyTree, count: int) -> PyTree:
    """The aux of a function that takes the whole batch and returns one value a row."""
    value, aux = _pair(log_likelihood(params, batch))
    if value.shape != (count,):
        raise CredoError(
            f"log_likelihood must return one number a row, shape ({count},) for this batch, when "
            f"per_sample=True; got shape {value.shape}."
        )
    return aux


def tidy(aux: PyTree) -> PyTree:
    """The aux, or None if it has no elements, so that the state has one structure from the start."""
    if any(leaf.size for leaf in jax.tree.leaves(aux)):
        return aux
    return None


def fold(
    step: Callable[[C, PyTree], tuple[C, PyTree]], carry: C, batch: PyTree, count: int, size: int
) -> tuple[C, PyTree]:
    """Scan `step(carry, chunk) -> (carry, out)` over chunks of `size` rows; the last may be shorter."""
    whole = count // size if size < count else 0
    outs = []
    if whole:
        cut = whole * size
        chunks = jax.tree.map(lambda leaf: leaf[:cut].reshape(whole, size, *leaf.shape[1:]), batch)
        carry, out = jax.lax.scan(step, carry, chunks, unroll=2 if size == 1 else 1)
        outs.append(jax.tree.map(lambda leaf: leaf.reshape(cut, *leaf.shape[2:]), out))
        batch = jax.tree.map(lambda leaf: leaf[cut:], batch)
    if whole * size < count:
        carry, out = step(carry, batch)
        outs.append(out)
    return carry, jax.tree.map(lambda *leaves: jnp.concatenate(leaves) if whole else leaves[0], *outs)


def each(function: Callable[[PyTree], T], chunk: PyTree) -> T:
    """`function` of every row of a chunk, stacked; without `vmap` if there is one row."""
    if jax.tree.leaves(chunk)[0].shape[0] == 1:
        one = function(jax.tree.map(lambda leaf: leaf[0], chunk))
        stack: T = jax.tree.map(lambda leaf: leaf[None], one)
    else:
        stack = jax.vmap(function)(chunk)
    return stack
