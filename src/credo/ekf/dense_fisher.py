"""The extended Kalman filter with a dense covariance and the empirical Fisher information."""

from __future__ import annotations

import functools
from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from credo.core.errors import CredoError, require_nonnegative, require_positive
from credo.core.keys import require_key
from credo.core.records import record
from credo.core.trees import as_like, ravel
from credo.core.types import Array, ArrayLike, Key, PyTree
from credo.core.verbs import verb
from credo.covariances import Full
from credo.covariances.full import DenseCovariance
from credo.dynamics import LinearGaussian, RandomWalk
from credo.ekf import transform
from credo.ekf.transform import (
    FisherLearner,
    LogLikelihood,
    Rate,
    Transform,
    compiled,
    fisher_learner,
    fresh,
    is_number,
    own_params,
    require_flag,
    require_settings,
    settle,
)
from credo.linalg.matrices import column_sums, symmetric
from credo.models import Model

__all__ = ["DenseFisherState", "build", "init", "learner", "sample", "update"]


Sums: TypeAlias = tuple[Array, Array, Array]
"""Over the rows so far: the log-likelihood, its gradient (P,), and the covariance (P, P) after them."""


@record
class DenseFisherState:
    """The belief N(params, cov), and what the last update reported.

    Attributes:
        params: the mean, a tree of P numbers.
        cov: the covariance (P, P), of the parameters one after another as `jax.flatten_util.ravel_pytree`
            lays them out.
        log_likelihood: the mean over the rows of the last batch that was taken in, at the mean before it; 0
            at first.
        aux: the aux that the log-likelihood returned for the last batch; None at first, and where there is
            none.
        step: how many batches were taken in.
        ok: whether the last batch was taken in.

    Example:
        >>> state = init(jnp.zeros(2))
        >>> state.cov, bool(state.ok)
        (Array([[1., 0.],
               [0., 1.]], dtype=float32), True)
    """

    params: PyTree
    cov: Array
    log_likelihood: Array
    aux: PyTree
    step: Array
    ok: Array


EKFDenseState = DenseFisherState
"""The name of the state in the `posteriors` package, whose transforms these are."""


def build(
    log_likelihood: LogLikelihood,
    lr: Rate,
    transition_cov: ArrayLike = 0.0,
    per_sample: bool = False,
    init_cov: ArrayLike = 1.0,
) -> Transform[DenseFisherState]:
    """The Fisher EKF with a dense covariance as a transform.

    One update takes S' = S + transition_cov; g, the mean over the rows of g_i = grad l_i, and F, the mean of
    g_i g_i', both at the old mean; inv(S) = inv(S') + lr F; and mu + lr S g, with the new S. Source: Ollivier
    2018 (arXiv 1703.00209), with the empirical Fisher information as its curvature.

    Arguments:
        log_likelihood: `(params, batch) -> (value, aux)`. Code is compiled once per function, so make it only
            once.
        lr: the strength of a batch of any size, at least 0, or a schedule, a function of `state.step`.
        transition_cov: the covariance that the parameters' drift adds in an update: a number c for c I, or
            (P, P), symmetric.
        per_sample: whether `log_likelihood` returns one value a row, (B,), each of its own row only. If not,
            it returns one number, and is called row by row with batches of one, so that a mean over the
            batch and a sum agree.
        init_cov: the initial covariance: a number c above 0 for c I, or (P, P), symmetric and positive
            definite.

    Returns:
        A `Transform`: `init(params)` and `update(state, batch, inplace=False)`.

    Raises:
        CredoError: an argument is of another kind or out of range.

    Cost of an update: B forward and reverse passes of one row, then time B P^2 and memory P^2: the rows are
    conditioned on at most P at a time by a Woodbury identity, and no P x P matrix is inverted. Exact for its
    equations, up to the rounding of a difference of covariances; the empirical Fisher is not the Hessian
    where the model does not fit.

    Example:
        >>> from credo.ekf import dense_fisher
        >>> def log_likelihood(params, batch):
        ...     x, y = batch
        ...     return jnp.mean(-0.5 * (y - x @ params) ** 2), None
        >>> transform = dense_fisher.build(log_likelihood, lr=1.0)
        >>> state = transform.init(jnp.zeros(1))
        >>> state = transform.update(state, (jnp.ones((4, 1)), jnp.ones(4)))
        >>> state.params, state.cov
        (Array([0.5], dtype=float32), Array([[0.5]], dtype=float32))
    """
    require_settings(log_likelihood, lr)
    require_covariance("transition_cov", transition_cov, positive=False)
    require_covariance("init_cov", init_cov, positive=True)
    require_flag("per_sample", per_sample)
    return Transform(
        functools.partial(init, init_cov=init_cov),
        functools.partial(
            update, log_likelihood=log_likelihood, lr=lr, transition_cov=transition_cov, per_sample=per_sample
        ),
    )


def init(params: PyTree, init_cov: ArrayLike = 1.0) -> DenseFisherState:
    """The belief before any data.

    Arguments:
        params: the mean, a tree of floating-point arrays; it is copied.
        init_cov: the covariance, as in `build`.

    Returns:
        A `DenseFisherState`.

    Raises:
        CredoError: `params` is empty or not floating point; `init_cov` is not positive definite or does not
            fit.

    Example:
        >>> init(jnp.zeros(2)).params
        Array([0., 0.], dtype=float32)
    """
    require_covariance("init_cov", init_cov, positive=True)
    mean = own_params(params)
    cov = dense(init_cov, ravel(mean)[0], "init_cov")
    return DenseFisherState(mean, cov, *fresh(mean))


def update(
    state: DenseFisherState,
    batch: PyTree,
    log_likelihood: LogLikelihood,
    lr: Rate,
    transition_cov: ArrayLike = 0.0,
    per_sample: bool = False,
    inplace: bool = False,
) -> DenseFisherState:
    """Take in one batch. For the arithmetic and the other arguments see `build`.

    Arguments:
        state: the belief.
        batch: a tree of arrays that share a leading axis of B rows.
        inplace: whether to give the buffers of the old belief to the new one. The old state cannot be used
            afterwards. Inside a compiled function this changes nothing: there the compiler decides.

    Returns:
        The new state. If a number in the batch or in the result is not finite, or a variance is not above
        0, it has the belief, the step and the log-likelihood of the old one bit by bit, and `ok` is False.

    Raises:
        CredoError: the state, the batch or the result of `log_likelihood` is of another kind.

    Example:
        >>> def log_likelihood(params, batch):
        ...     return jnp.mean(-0.5 * (batch - params) ** 2), None
        >>> state = update(init(jnp.zeros(1)), jnp.ones((4, 1)), log_likelihood, lr=1.0)
        >>> int(state.step), state.params
        (1, Array([0.5], dtype=float32))
    """
    if not isinstance(state, DenseFisherState):
        raise CredoError(f"state must be a DenseFisherState, made by init; got {type(state).__name__}.")
    return _update(state, batch, log_likelihood, lr, transition_cov, per_sample, inplace)


def require_covariance(field: str, value: ArrayLike, *, positive: bool) -> None:
    """Refuse what is no number or square symmetric matrix, or has the wrong sign."""
    if not is_number(value):
        raise CredoError(f"{field} must be a number or a matrix (P, P); got {value!r}.")
    shape = np.shape(value)
    if shape == ():
        (require_positive if positive else require_nonnegative)(field, value)
        return
    if len(shape) != 2 or shape[0] != shape[1]:
        raise CredoError(f"{field} must be a number or a matrix (P, P); got shape {shape}.")
    if isinstance(value, Tracer):
        return
    matrix = np.asarray(value, np.float64)
    lowest = np.linalg.eigvalsh(0.5 * (matrix + matrix.T))[0] if np.all(np.isfinite(matrix)) else np.nan
    slack = 1e-6 * np.max(np.abs(matrix))
    if not (np.max(np.abs(matrix - matrix.T)) <= slack and (lowest > 0 if positive else lowest >= -slack)):
        sign = "definite" if positive else "semi-definite"
        raise CredoError(
            f"{field} must be finite, symmetric and positive {sign}; its lowest eigenvalue is {lowest:.3g}."
        )


def dense(value: ArrayLike, like: Array, field: str) -> Array:
    """A matrix (P, P) of a number c, as c I, or of a matrix that fits the vector `like` (P,)."""
    matrix = as_like(value, like)
    size = like.shape[0]
    if matrix.ndim == 2 and matrix.shape != (size, size):
        raise CredoError(f"{field} must be a number or (P, P) = ({size}, {size}); got shape {matrix.shape}.")
    if matrix.ndim == 2:
        return symmetric(matrix)
    return matrix * jnp.eye(size, dtype=like.dtype)


def _core(
    state: DenseFisherState,
    batch: PyTree,
    log_likelihood: LogLikelihood,
    rate: Array,
    transition_cov: ArrayLike,
    per_sample: bool,
) -> tuple[DenseFisherState, PyTree]:
    count = transform.row_total(batch)
    mean, unravel = ravel(state.params)
    gradient = transform.row_gradient(log_likelihood, per_sample)
    lr = as_like(rate, mean)

    def step(carry: Sums, chunk: PyTree) -> tuple[Sums, PyTree]:
        total, slope, cov = carry
        (values, aux), slopes = transform.each(lambda row: gradient(state.params, row), chunk)
        flat = jnp.concatenate(
            [leaf.reshape(values.shape[0], -1).astype(mean.dtype) for leaf in jax.tree.leaves(slopes)], axis=1
        )
        cov = DenseCovariance(cov).condition(jnp.sqrt(lr / count) * flat).matrix
        carry = (total + jnp.sum(values.astype(total.dtype)), slope + column_sums(flat), cov)
        return carry, None if per_sample else aux

    drifted = state.cov + dense(transition_cov, mean, "transition_cov")
    start = (jnp.zeros_like(state.log_likelihood), jnp.zeros_like(mean), drifted)
    (value, slope, cov), aux = transform.fold(step, start, batch, count, min(count, mean.shape[0]))
    params = unravel(mean + lr * (cov @ (slope / count)))
    new = DenseFisherState(params, cov, value / count, None, state.step + 1, state.ok)
    if per_sample:
        aux = transform.whole_aux(log_likelihood, state.params, batch, count)
    positive = jnp.log(jnp.diagonal(cov))
    return settle(state, new, rate, (batch, params, cov, positive)), transform.tidy(aux)


_update = compiled(_core)


@verb(static=("sample_shape",))
def _sample(state: DenseFisherState, sample_shape: tuple[int, ...], key: Array) -> PyTree:
    mean, unravel = ravel(state.params)
    deviations = DenseCovariance(state.cov).sample(key, sample_shape)
    return unravel(deviations + jnp.broadcast_to(mean, deviations.shape))


def sample(state: DenseFisherState, sample_shape: tuple[int, ...] = (), key: Key | None = None) -> PyTree:
    """Parameters drawn from the belief. Cost: P^3 for a Cholesky factor.

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


def learner(model: Model, lr: Rate, transition_cov: ArrayLike = 0.0) -> FisherLearner:
    """The same arithmetic as a learner, with the five verbs, for a `Model` in place of a log-likelihood.

    It is LIN-EF with a full covariance, the gain of the covariance that is kept, additive drift, and every
    observation of weight lr / B (B = 1, or the rows of a `joint` model). `init(params, var=...)` or
    `init(params, cov=...)` is the prior.

    Arguments:
        model: a `Model`; `joint(model)` for mini-batches.
        lr: as in `build`; a schedule is a function of the number of earlier steps.
        transition_cov: as in `build`; a number, or (P, P).

    Returns:
        A `FisherLearner`.

    Raises:
        CredoError: an argument is of another kind or out of range.

    Cost: time B P^2, memory (B, P) and (P, P).

    Example:
        >>> import credo
        >>> from credo.ekf import dense_fisher
        >>> model = credo.joint(credo.Model(lambda w, x: x @ w, credo.Normal(1.0)))
        >>> learner = dense_fisher.learner(model, lr=1.0)
        >>> belief, info = learner.step(learner.init(jnp.zeros(1)), jnp.ones((4, 1)), jnp.ones(4))
        >>> belief.mean.round(4)
        Array([0.5], dtype=float32)
    """
    require_covariance("transition_cov", transition_cov, positive=False)
    if np.ndim(transition_cov) == 2:
        moves = LinearGaussian(jnp.eye(np.shape(transition_cov)[0]), 0.0, transition_cov)
        return fisher_learner(model, Full("dense"), moves, lr)
    return fisher_learner(model, Full("dense"), RandomWalk(transition_cov), lr)
