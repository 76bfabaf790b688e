"""The extended Kalman filter with a diagonal covariance and the diagonal empirical Fisher information."""

from __future__ import annotations

import functools
from typing import TypeAlias

import jax
import jax.numpy as jnp

from credo.core.errors import CredoError
from credo.core.keys import require_key
from credo.core.records import record
from credo.core.trees import as_like
from credo.core.types import Array, ArrayLike, Key, PyTree
from credo.core.verbs import verb
from credo.covariances import Diagonal
from credo.dynamics import RandomWalk
from credo.ekf import transform
from credo.ekf.transform import (
    FisherLearner,
    LogLikelihood,
    Rate,
    Transform,
    compiled,
    fisher_learner,
    fresh,
    own_params,
    require_flag,
    require_numbers,
    require_settings,
    settle,
    spread,
)
from credo.models import Model

__all__ = ["DiagFisherState", "build", "init", "learner", "sample", "update"]

_AT_ONCE = 32768
"""The most numbers of gradients to hold at once beside the sums: small models take many rows at once."""


Sums: TypeAlias = tuple[Array, PyTree, PyTree]
"""Over the rows so far: the log-likelihood, and its gradient and the square of that, leaf by leaf."""


@record
class DiagFisherState:
    """The belief N(params, diag(sd_diag^2)), and what the last update reported.

    Attributes:
        params: the mean, a tree.
        sd_diag: standard deviations, a tree like `params`.
        log_likelihood: the mean over the rows of the last batch that was taken in, at the mean before it; 0
            at first.
        aux: the aux that the log-likelihood returned for the last batch; None at first, and where there is
            none.
        step: how many batches were taken in.
        ok: whether the last batch was taken in.

    Example:
        >>> state = init(jnp.zeros(2))
        >>> state.sd_diag, bool(state.ok)
        (Array([1., 1.], dtype=float32), True)
    """

    params: PyTree
    sd_diag: PyTree
    log_likelihood: Array
    aux: PyTree
    step: Array
    ok: Array


EKFDiagState = DiagFisherState
"""The name of the state in the `posteriors` package, whose transforms these are."""


def build(
    log_likelihood: LogLikelihood,
    lr: Rate,
    transition_sd: PyTree = 0.0,
    per_sample: bool = False,
    init_sds: PyTree = 1.0,
) -> Transform[DiagFisherState]:
    """The diagonal Fisher EKF as a transform.

    One update takes, elementwise, s' = sqrt(s^2 + transition_sd^2); g and h, the means over the rows of grad
    l_i and (grad l_i)^2 at the old mean; s = (s'^-2 + lr h)^(-1/2); and mu + lr s^2 g, with the new s.
    Source: Ollivier 2018 (arXiv 1703.00209), with the diagonal of the empirical Fisher information as its
    curvature.

    Arguments:
        log_likelihood: `(params, batch) -> (value, aux)`. Code is compiled once per function, so make it only
            once.
        lr: the strength of a batch of any size, at least 0, or a schedule, a function of `state.step`.
        transition_sd: the standard deviation of the parameters' drift in an update, at least 0; a number, or
            a tree like `params`.
        per_sample: whether `log_likelihood` returns one value a row, (B,), each of its own row only. If not,
            it returns one number, and is called row by row with batches of one, so that a mean over the
            batch and a sum agree.
        init_sds: the initial standard deviations: a number, or a tree like `params` of numbers or arrays. A
            parameter with 0 stays as it is.

    Returns:
        A `Transform`: `init(params)` and `update(state, batch, inplace=False)`.

    Raises:
        CredoError: an argument is of another kind or out of range.

    Cost of an update: B forward and reverse passes of one row, time and memory P beyond them. Rows are
    scanned, so gradients of a whole batch (B, P) are never held. It is an approximation: the empirical Fisher
    is not the Hessian where the model does not fit, and covariances between parameters are dropped.

    Example:
        >>> from credo.ekf import diag_fisher
        >>> def log_likelihood(params, batch):
        ...     x, y = batch
        ...     return jnp.mean(-0.5 * (y - x @ params) ** 2), None
        >>> transform = diag_fisher.build(log_likelihood, lr=1.0)
        >>> state = transform.init(jnp.zeros(2))
        >>> state = transform.update(state, (jnp.ones((4, 2)), jnp.ones(4)))
        >>> state.params, state.sd_diag
        (Array([0.5, 0.5], dtype=float32), Array([0.70710677, 0.70710677], dtype=float32))
    """
    require_settings(log_likelihood, lr)
    require_numbers("transition_sd", transition_sd)
    require_numbers("init_sds", init_sds)
    require_flag("per_sample", per_sample)
    return Transform(
        functools.partial(init, init_sds=init_sds),
        functools.partial(
            update, log_likelihood=log_likelihood, lr=lr, transition_sd=transition_sd, per_sample=per_sample
        ),
    )


def init(params: PyTree, init_sds: PyTree = 1.0) -> DiagFisherState:
    """The belief before any data.

    Arguments:
        params: the mean, a tree of floating-point arrays; it is copied.
        init_sds: standard deviations, as in `build`.

    Returns:
        A `DiagFisherState`.

    Raises:
        CredoError: `params` is empty or not floating point; `init_sds` is below 0 or does not fit.

    Example:
        >>> init(jnp.zeros(2)).params
        Array([0., 0.], dtype=float32)
    """
    mean = own_params(params)
    sd = spread(init_sds, mean, "init_sds")
    return DiagFisherState(mean, sd, *fresh(mean))


def update(
    state: DiagFisherState,
    batch: PyTree,
    log_likelihood: LogLikelihood,
    lr: Rate,
    transition_sd: PyTree = 0.0,
    per_sample: bool = False,
    inplace: bool = False,
) -> DiagFisherState:
    """Take in one batch. For the arithmetic and the other arguments see `build`.

    Arguments:
        state: the belief.
        batch: a tree of arrays that share a leading axis of B rows.
        inplace: whether to give the buffers of the old belief to the new one. The old state cannot be used
            afterwards, and no second copy of the belief is held. Inside a compiled function this changes
            nothing: there the compiler decides.

    Returns:
        The new state. If a number in the batch or in the result is not finite, it has the belief, the
        step and the log-likelihood of the old one bit by bit, and `ok` is False.

    Raises:
        CredoError: the state, the batch or the result of `log_likelihood` is of another kind.

    Example:
        >>> def log_likelihood(params, batch):
        ...     return jnp.mean(-0.5 * (batch - params) ** 2), None
        >>> state = update(init(jnp.zeros(1)), jnp.ones((4, 1)), log_likelihood, lr=1.0)
        >>> int(state.step), state.params
        (1, Array([0.5], dtype=float32))
    """
    if not isinstance(state, DiagFisherState):
        raise CredoError(f"state must be a DiagFisherState, made by init; got {type(state).__name__}.")
    require_numbers("transition_sd", transition_sd)
    return _update(state, batch, log_likelihood, lr, transition_sd, per_sample, inplace)


def _core(
    state: DiagFisherState,
    batch: PyTree,
    log_likelihood: LogLikelihood,
    rate: Array,
    transition_sd: PyTree,
    per_sample: bool,
) -> tuple[DiagFisherState, PyTree]:
    mean = state.params
    count = transform.row_total(batch)
    gradient = transform.row_gradient(log_likelihood, per_sample)

    def step(sums: Sums, chunk: PyTree) -> tuple[Sums, PyTree]:
        (values, aux), slopes = transform.each(lambda row: gradient(mean, row), chunk)
        squares = jax.tree.map(jnp.square, slopes)
        parts = (values.astype(state.log_likelihood.dtype), slopes, squares)
        sums = jax.tree.map(lambda total, leaf: total + jnp.sum(leaf, axis=0), sums, parts)
        return sums, None if per_sample else aux

    size = _AT_ONCE // sum(leaf.size for leaf in jax.tree.leaves(mean))
    zeros = jax.tree.map(jnp.zeros_like, (state.log_likelihood, mean, mean))
    # XLA's CPU backend adds a row's outer products to the sums as fast as it writes them, but takes 5 to 100
    # times as long to sum over the leading axis of a large stack of gradients; a stack pays for small models.
    sums, aux = transform.fold(step, zeros, batch, count, min(count, size) if size >= 4 else 1)
    value, slope, square = jax.tree.map(lambda total: total / count, sums)

    def move(mu: Array, sd: Array, g: Array, h: Array, drift: ArrayLike) -> tuple[Array, Array, Array]:
        lr = as_like(rate, mu)
        var = sd**2 + as_like(drift, mu) ** 2
        growth = 1.0 + lr * var * h
        var = var / growth
        return mu + lr * var * g, jnp.sqrt(var), growth

    drifts = spread(transition_sd, mean, "transition_sd")
    steps = jax.tree.map(move, mean, state.sd_diag, slope, square, drifts)
    params, sd, growth = jax.tree.transpose(jax.tree.structure(mean), jax.tree.structure((0, 0, 0)), steps)
    new = DiagFisherState(params, sd, value, None, state.step + 1, state.ok)
    if per_sample:
        aux = transform.whole_aux(log_likelihood, mean, batch, count)
    return settle(state, new, rate, (batch, params, growth)), transform.tidy(aux)


_update = compiled(_core)


@verb(static=("sample_shape",))
def _sample(state: DiagFisherState, sample_shape: tuple[int, ...], key: Array) -> PyTree:
    leaves, structure = jax.tree.flatten(state.params)
    keys = jax.random.split(key, len(leaves))

    def draw(one: Array, mean: Array, sd: Array) -> Array:
        shape = (*sample_shape, *mean.shape)
        return jnp.broadcast_to(mean, shape) + jnp.broadcast_to(sd, shape) * jax.random.normal(
            one, shape, mean.dtype
        )

    return jax.tree.unflatten(structure, map(draw, keys, leaves, jax.tree.leaves(state.sd_diag)))


def sample(state: DiagFisherState, sample_shape: tuple[int, ...] = (), key: Key | None = None) -> PyTree:
    """Parameters drawn from the belief.

    Arguments:
        state: the belief.
        sample_shape: leading axes of every leaf.
        key: a key, or an integer seed.

    Returns:
        A tree like `state.params`, its leaves with the leading axes.

    Raises:
        CredoError: there is no key.

    Example:
        >>> sample(init(jnp.zeros(2)), (5,), key=0).shape
        (5, 2)
    """
    return _sample(state, tuple(sample_shape), require_key(key, "sample"))


def learner(model: Model, lr: Rate, transition_sd: ArrayLike = 0.0) -> FisherLearner:
    """The same arithmetic as a learner, with the five verbs, for a `Model` in place of a log-likelihood.

    It is LIN-EF with a diagonal precision, the gain of the covariance that is kept, a random walk, and every
    observation of weight lr / B (B = 1, or the rows of a `joint` model). `init(params, var=sd**2)` is the
    prior.

    Arguments:
        model: a `Model`; `joint(model)` for mini-batches.
        lr: as in `build`; a schedule is a function of the number of earlier steps.
        transition_sd: the standard deviation of the drift in a step, at least 0; a number or an array (P,).

    Returns:
        A `FisherLearner`.

    Raises:
        CredoError: an argument is of another kind or out of range.

    Cost: B gradients are held at once (B, P).

    Example:
        >>> import credo
        >>> from credo.ekf import diag_fisher
        >>> model = credo.joint(credo.Model(lambda w, x: x @ w, credo.Normal(1.0)))
        >>> learner = diag_fisher.learner(model, lr=1.0)
        >>> belief, info = learner.step(learner.init(jnp.zeros(2)), jnp.ones((4, 2)), jnp.ones(4))
        >>> belief.mean.round(4)
        Array([0.5, 0.5], dtype=float32)
    """
    require_numbers("transition_sd", transition_sd)
    return fisher_learner(model, Diagonal(), RandomWalk(transition_sd**2), lr)
