"""A batch fit: variational inference on a whole data set, beside the recursive learner of a stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import jax
import jax.numpy as jnp
import numpy as np

from credo.beliefs import Gaussian
from credo.core.errors import CredoError, require_choice, require_integer, require_nonnegative
from credo.core.keys import as_key, require_key
from credo.core.records import replace
from credo.core.trees import all_finite, select
from credo.core.types import Array, ArrayLike, Key, PyTree
from credo.core.verbs import verb
from credo.covariances import Covariance
from credo.covariances.divergence import divergence
from credo.learners import Learner, RecursiveLearner, Site
from credo.learners.base import clean, usable
from credo.learners.rules.batch import Batch, iterate_batch
from credo.likelihoods.mixture import integration_nodes
from credo.linalg.matrices import psd_root
from credo.models import Model
from credo.streams.run import leading

__all__ = ["BatchFit", "fit"]

Expectation: TypeAlias = Literal["linearized", "mc"]
"""The way in which the expected log-likelihood of the ELBO is computed."""

# The least number of rows that are measured together, and the parameters from which there are no more.
BLOCK = 64
WIDE = 4096

Rows: TypeAlias = tuple[PyTree, PyTree, Array, Array]
"""Rows of the data: x, y, the weight and the number of each, with leading axes (blocks, rows)."""


class BatchFit(NamedTuple):
    """The result of `fit`.

    Attributes:
        belief: the belief after the last iteration.
        elbo: the ELBO of the prior and of the belief after each iteration (I + 1,), in nats.
        standard_error: its Monte Carlo standard error (I + 1,); 0 if it is not estimated from draws.
        ok: whether each iteration was taken (I,); one whose result is not finite leaves the belief as it was.
        method: how the expected log-likelihood was computed: "linearized" or "mc".

    Example:
        >>> import credo
        >>> learner = credo.extended_kalman(credo.Model(lambda w, x: x @ w, credo.Normal(0.1)))
        >>> result = fit(learner, learner.init(jnp.zeros(2)), (jnp.eye(2), jnp.ones(2)), iterations=3)
        >>> result.elbo.shape, result.method
        ((4,), 'linearized')
    """

    belief: Gaussian
    elbo: Array
    standard_error: Array
    ok: Array
    method: Expectation


def fit(
    learner: Learner[Any],
    belief: Gaussian,
    data: tuple[PyTree, PyTree],
    *,
    iterations: int = 100,
    weights: ArrayLike | None = None,
    method: Expectation | None = None,
    samples: int = 100,
    key: Key | None = None,
) -> BatchFit:
    """Fit a learner's belief to a whole data set at once, by its own rule, curvature and family.

    The belief maximises the evidence lower bound, of which the trace reports every iteration:

        ELBO(q) = E_q[log p(D | theta)] - KL(q | prior) <= log p(D)

    Each iteration measures all rows at the latest belief and steps from there, with the prior as its anchor
    (see `credo.learners.rules.batch`). BLR and BBB take the steps of their rule, with its learning rate and
    any schedule over the iterations. BONG takes natural steps of size 1, and BOG those of BBB. They take the
    place of the rule's own iterations. Rows are exchangeable: dynamics and the clock of the belief stand
    still.

    Arguments:
        learner: a `RecursiveLearner`, such as `bong`, `blr` or `extended_kalman` give, whose noise is known.
            A joint model is fitted to single rows.
        belief: the prior, such as `learner.init` gives.
        data: (X, Y), with a leading axis N. Rows with NaN in Y are left out.
        iterations: I, at least 1; one of BONG is exact if the model is linear and the noise normal.
        weights: the weights (N,) of the log-likelihoods, or None for 1.
        method: how E_q[log p(D | theta)] is computed. "linearized" takes the outputs of the model linearised
            at the mean: exact for linear models with normal noise, by 64-point quadrature for other
            likelihoods of one output, by 256 fixed points for several. "mc" takes the mean over draws,
            unbiased for every model, with a standard error. None is "mc" where the curvature draws, else
            "linearized".
        samples: how many draws "mc" takes.
        key: a key, for "mc" and for curvatures that draw.

    Returns:
        The belief and the trace of the ELBO.

    Raises:
        CredoError: the learner is no `RecursiveLearner` or its noise is learned, there is no observation,
            lengths differ, a number is out of range, or a key is missing.

    Cost: I passes over the data. `Full` costs P^2 a row and P^3 an iteration. `LowRank` and `Diagonal` hold
    min(N C, P) rows of P numbers, and solve a system of that size, unless the rule has gain "kept": then no
    rows are held, and a row costs what it costs on a stream.

    Example:
        The ELBO of the exact posterior is the log evidence, which the recursive learner sums row by row:

        >>> import credo
        >>> learner = credo.extended_kalman(credo.Model(lambda w, x: x @ w, credo.Normal(0.1)))
        >>> xs, ys = jax.random.normal(jax.random.key(0), (20, 2)), jnp.ones(20)
        >>> prior = learner.init(jnp.zeros(2))
        >>> result = fit(learner, prior, (xs, ys), iterations=1)
        >>> _, trace = credo.run(learner, prior, xs, ys)
        >>> bool(abs(result.elbo[-1] - trace.log_evidence.sum()) < 1e-3)
        True
    """
    if not isinstance(learner, RecursiveLearner):
        raise CredoError(
            "learner must be a RecursiveLearner, such as bong(...) or extended_kalman(...) give, to be "
            f"fitted to a whole data set; got {type(learner).__name__}.",
            field="learner",
        )
    if belief.noise is not None:
        raise CredoError(
            "belief must have a noise that is known, to be fitted to a whole data set: give the Normal "
            "likelihood a number in place of InverseGamma.",
            field="belief",
        )
    xs, ys = data
    length = leading(xs=xs, ys=ys, weights=weights)
    if length == 0:
        raise CredoError("data must hold at least one observation; got length 0.", field="data")
    require_integer("iterations", iterations, 1)
    require_integer("samples", samples, 1)
    require_nonnegative("weights", weights)
    sampled = learner.curvature.sampled
    if method is None:
        method = "mc" if sampled else "linearized"
    require_choice("method", method, get_args(Expectation))
    one_key = None if key is None else as_key(key)
    if sampled or method == "mc":
        require_key(one_key, "fit with draws")
    model = learner.model.each if learner.model.batched else learner.model
    heights = jnp.ones(length) if weights is None else jnp.asarray(weights)
    rows = _blocks((xs, ys, heights, jnp.arange(length)), length, _together(belief.size))
    fitted = replace(learner, model=model)
    trace = _iterate(fitted, belief, rows, one_key, iterations, method, samples)
    return BatchFit(*trace, method)


def _together(size: int) -> int:
    """The number of rows to measure together: about P, since their QR decomposition costs P^3 or more."""
    if size > WIDE:
        return BLOCK
    return max(BLOCK, min(size, 512))


def _blocks(rows: Rows, length: int, size: int) -> Rows:
    """The rows in blocks; the last one is filled with copies of the last row, of weight 0."""
    size = min(size, length)
    count = -(-length // size)

    def split(leaf: ArrayLike) -> Array:
        array = jnp.asarray(leaf)
        filling = jnp.broadcast_to(array[-1:], (count * size - length, *array.shape[1:]))
        return jnp.concatenate([array, filling]).reshape(count, size, *array.shape[1:])

    weights: Array
    xs, ys, weights, numbers = jax.tree.map(split, rows)
    real = jnp.arange(count * size).reshape(count, size) < length
    return xs, ys, jnp.where(real, weights, 0.0), numbers


@verb(static=("iterations", "method", "samples"))
def _iterate(
    learner: RecursiveLearner,
    prior: Gaussian,
    rows: Rows,
    key: Array | None,
    iterations: int,
    method: Expectation,
    samples: int,
) -> tuple[Gaussian, Array, Array, Array]:
    """All iterations in one scan, and the ELBO of the last belief."""

    def salted(i: Array, salt: int) -> Array | None:
        if key is None:
            return None
        return jax.random.fold_in(jax.random.fold_in(key, i), salt)

    def bound(mean: Array, cov: Covariance, i: Array) -> tuple[Array, Array]:
        totals = _expected(learner.model, prior, mean, cov, rows, method, samples, salted(i, 0))
        spread = jnp.std(totals, ddof=1) if len(totals) > 1 else jnp.zeros((), totals.dtype)
        elbo = jnp.mean(totals) - divergence(mean, cov, prior.mean, prior.cov)
        return elbo, spread / np.sqrt(len(totals))

    def body(state: tuple[Array, Covariance], i: Array) -> tuple[tuple[Array, Covariance], PyTree]:
        mean, cov = state
        measures = _Measures(learner, prior, mean, cov, rows, salted(i, 1), i)
        batch = Batch(prior.mean, prior.cov, mean, cov, measures.gather, measures.condition, i + 1)
        new = iterate_batch(learner.rule, batch)
        ok = all_finite(new)
        return select(ok, new, state), (*bound(mean, cov, i), ok)

    start = (prior.mean, prior.cov)
    (mean, cov), (elbo, error, ok) = jax.lax.scan(body, start, jnp.arange(iterations))
    last = bound(mean, cov, jnp.asarray(iterations))
    elbo, error = (jnp.append(values, end) for values, end in zip((elbo, error), last, strict=True))
    return replace(prior, mean=mean, cov=cov), elbo, error, ok


@dataclass(frozen=True)
class _Measures:
    """The measurements of all rows at one iterate."""

    learner: RecursiveLearner
    prior: Gaussian
    mean: Array
    cov: Covariance
    rows: Rows
    key: Array | None
    iteration: Array

    def _one(self, x: PyTree, y: PyTree, weight: Array, number: Array) -> tuple[Array, Array, Array | None]:
        """The gradient (P,), rows (m, P) and diagonal (P,) of one row of the data."""
        learner = self.learner
        likelihood = self.learner.model.likelihood
        key = None if self.key is None else jax.random.fold_in(self.key, number)
        used = _used(likelihood.observed(y), weight, x, y, self.mean)
        site = Site(learner.model, likelihood, self.prior.unravel, clean(x), clean(y), used, key)
        local = learner.curvature.local(site, self.mean, self.cov, self.iteration)
        return local.gradient, local.factor.dense(), local.diagonal

    def _block(self, block: Rows) -> tuple[Array, Array, Array | None]:
        gradients, factors, diagonals = jax.vmap(self._one)(*block)
        diagonal = None if diagonals is None else diagonals.sum(axis=0)
        return gradients.sum(axis=0), factors.reshape(-1, self.cov.size), diagonal

    def condition(self, cov: Covariance, share: Array) -> tuple[Covariance, Array]:
        """Add a times the precision of all rows to a covariance, and sum the gradients."""

        def body(state: tuple[Covariance, Array], block: Rows) -> tuple[tuple[Covariance, Array], None]:
            kept, total = state
            gradient, factor, diagonal = self._block(block)
            if diagonal is not None:
                kept = kept.add_precision(share * diagonal)
            return (kept.condition(jnp.sqrt(share) * factor), total + gradient), None

        start = (cov, jnp.zeros_like(self.mean))
        rows = self.rows
        first = jax.tree.map(lambda leaf: leaf[0], rows)
        if jax.eval_shape(lambda state: state, start) != jax.eval_shape(
            lambda state: body(state, first)[0], start
        ):
            start, _ = body(start, first)  # a blend of two low-rank covariances has the rows of both
            rows = jax.tree.map(lambda leaf: leaf[1:], rows)
        return jax.lax.scan(body, start, rows)[0]

    def gather(self) -> tuple[Array, Array, Array | None]:
        """The gradient, and at most P rows with the precision of all rows, by QR decompositions."""
        size = self.cov.size
        shapes = jax.eval_shape(self._block, jax.tree.map(lambda leaf: leaf[0], self.rows))
        if len(self.rows[2]) * shapes[1].shape[0] <= size:
            gradients, factors, diagonals = jax.lax.map(self._block, self.rows)
            diagonal = None if diagonals is None else diagonals.sum(axis=0)
            return gradients.sum(axis=0), factors.reshape(-1, size), diagonal

        def body(state: PyTree, block: Rows) -> tuple[PyTree, None]:
            factor, total = state
            gradient, rows, diagonal = self._block(block)
            factor = jnp.linalg.qr(jnp.concatenate([factor, rows]), mode="r")
            return (factor, jax.tree.map(jnp.add, total, (gradient, diagonal))), None

        zero = jnp.zeros_like(self.mean)
        start = (zero, None if shapes[2] is None else zero)
        empty = jnp.zeros((size, size), self.mean.dtype)
        (factor, (gradient, diagonal)), _ = jax.lax.scan(body, (empty, start), self.rows)
        return gradient, factor, diagonal


def _used(observed: Array, weight: Array, x: PyTree, y: PyTree, like: Array) -> Array:
    """The weight of a row, which is 0 if it is missing or not finite."""
    good, used = usable(observed, weight, like.dtype)
    return jnp.where(good & all_finite(x) & all_finite(y), used, 0.0)


def _expected(
    model: Model,
    prior: Gaussian,
    mean: Array,
    cov: Covariance,
    rows: Rows,
    method: Expectation,
    samples: int,
    key: Array | None,
) -> Array:
    """The expected log-likelihood of all rows (1,), or the log-likelihood at each of M draws (M,)."""
    likelihood = model.likelihood
    draws = mean[None, :]
    if method == "mc":
        assert key is not None
        draws = mean[None, :] + cov.sample(key, (samples,))

    def one(x: PyTree, y: PyTree, weight: Array, number: Array) -> Array:
        used = _used(likelihood.observed(y), weight, x, y, mean)
        x = clean(x)
        y = clean(y)
        if method == "mc":
            etas = jax.vmap(lambda vector: model.outputs(vector, prior.unravel, x))(draws)
            values = jax.vmap(lambda eta: likelihood.log_prob(eta, y))(etas)
        else:
            eta, jacobian = model.jacobian(mean, prior.unravel, x)
            nodes, shares = integration_nodes(eta.shape[0], eta.dtype)
            etas = eta[None, :] + nodes @ psd_root(cov.push(jacobian)).T
            each = jax.vmap(lambda eta: likelihood.log_prob(eta, y))(etas)
            values = (jnp.exp(shares) @ each)[None]
        return jnp.where(used > 0, used * values, 0.0)

    def block(total: Array, rows: Rows) -> tuple[Array, None]:
        return total + jax.vmap(one)(*rows).sum(axis=0), None

    count = samples if method == "mc" else 1
    return jax.lax.scan(block, jnp.zeros(count, mean.dtype), rows)[0]
