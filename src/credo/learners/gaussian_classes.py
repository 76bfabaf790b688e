"""Classes whose columns are normal, with conjugate beliefs: naive Bayes with exact Bayesian parameters."""

from __future__ import annotations

import math
from collections.abc import Callable

import jax.numpy as jnp
import jax.scipy.special as jss

from credo.beliefs import ClassNormals, ClassParameters
from credo.core.errors import CredoError, require_integer, require_interval, require_positive
from credo.core.keys import as_key
from credo.core.names import ForecastName
from credo.core.records import record, replace, static_field
from credo.core.trees import as_like
from credo.core.types import Array, ArrayLike, DTypeLike, Key, PyTree
from credo.learners.base import Info, Learner, accept, usable
from credo.learners.conjugate import closed_form
from credo.likelihoods import Expectation, LatentExpectation, Predictive
from credo.likelihoods.categorical import (
    ClassLikelihood,
    class_outputs,
    class_slots,
    known_classes,
    reference_class,
)
from credo.likelihoods.elliptical import drop_one
from credo.linalg.matrices import identity, precision

__all__ = ["GaussianClasses", "SampledClasses"]

_HALF_STEP = (1 / 64, -5 / 2048, 61 / 49152, -1385 / 1048576, 50521 / 20971520)
"""log Gamma(a + 1/2) - log Gamma(a) = log(w) / 2 + sum_n c_n w^-2n with w = a - 1/4, for a large a."""


@record
class SampledClasses:
    """The function x -> E[y | theta, x] for parameters theta that were drawn from a belief."""

    likelihood: ClassLikelihood
    params: ClassParameters
    share: Array
    clip: ArrayLike | None = None

    def __call__(self, x: PyTree) -> Array:
        """The expected observation at one row x: the probability of 1, or the class probabilities (C,)."""
        params = self.params
        row, seen, _ = _read(x, params.mean, self.clip)
        gap = row[None, :] - params.mean
        logs = -0.5 * (gap**2 / params.var + jnp.log(params.var))
        log_p = jnp.log(jnp.maximum(params.p, precision(params.p.dtype).tiny))
        joint = log_p + self.share * jnp.sum(jnp.where(seen[None, :], logs, 0.0), axis=1)
        return drop_one(self.likelihood.mean(class_outputs(self.likelihood, joint)))


@record
class GaussianClasses(Learner[ClassNormals]):
    """A learner of classes whose columns are normal: naive Bayes, with exact Bayes for all its parameters.

    A row x (D,) of class y has independent columns,

        y ~ Categorical(p),         x_j | y = c ~ N(m_cj, v_cj),            p ~ Dirichlet(count),
        m_cj | v_cj ~ N(0, v_cj / confidence),         v_cj ~ InverseGamma(shape, scale),

    for which the belief stays of this form. With n, m, k, a, b the counts, means, rows, shapes and scales of
    the belief, the forecast is

        p(c | x, past) ~ n_c prod_j t_{2 a}(x_j; m, b (1 + 1/k) / a)^share,                  j over columns,

    where t_{2 a} is the density of a Student-t with 2 a degrees of freedom, and a row of class c and weight w
    makes it

        n + w,    k + w,    m + w (x - m) / (k + w),    a + w/2,    b + w k (x - m)^2 / (2 (k + w)).

    Inputs should be standardised: the prior is centred at 0, and its variances are in units of 1. Source:
    Bernardo & Smith 1994, Bayesian Theory, section 5.2.

    Arguments:
        columns: the number D of inputs of a row.
        likelihood: what labels there are: `Bernoulli()`, `Categorical(classes)`, or `OpenCategorical` for
            classes that come later, which take nothing from the others before they are known.
        tied: whether all classes share the variance of a column, so that log odds are nearly linear in x.
        count: the prior pseudo-count of each class, above 0.
        confidence: how many rows the prior mean 0 is worth, above 0.
        shape, scale: the prior distribution of the variances, above 0; it is worth 2 `shape` rows, and the
            typical variance is scale / shape.
        share: a power in [0, 1] of what the columns say together. Columns that are correlated say in part the
            same, which the model counts more than once; 1 is exact Bayes under the model, and 0 leaves the
            rates of the classes alone.
        forgetting: the share of the evidence that is kept for a unit of time, in (0, 1]; 1 never forgets.
        clip: the largest size of an input that counts, above 0; None for any.
        missing: whether rows with missing inputs (NaN) are learned; beside learners that refuse them, which
            would fail at rows that this one learns, it should refuse them, too.

    Raises:
        CredoError: a number is outside its range, `likelihood` is another one, or (later) a row has another
            number of inputs.

    The belief and, with `share=1`, the evidence of each label are exact. A missing input (NaN) leaves its
    column out, exactly, or an update refuses its row. A row with an infinite input, or one whose square is
    not finite, is refused by an update, while a forecast leaves out the column. Only whole labels are
    learned.

    `expect` is approximate: it takes the log odds to be normal, with their exact means and covariance under
    the belief. As `sample_function` does, it takes parameters from the belief before x was seen; the forecast
    also counts x as evidence about them, so that the means differ a little.

    Cost: 2 C D logarithms a row.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> learner = GaussianClasses(2, credo.Bernoulli())
        >>> xs, ys = jnp.array([[1.0, 0.5], [-1.0, jnp.nan], [1.2, -0.5]]), jnp.array([1, 0, 1])
        >>> belief, trace = credo.run(learner, learner.init(), xs, ys)
        >>> belief.counts.tolist(), round(float(learner.forecast(belief, jnp.array([1.0, 0.0])).probs[1]), 2)
        ([2.0, 3.0], 0.9)
    """

    columns: int = static_field()
    likelihood: ClassLikelihood
    tied: bool = static_field(default=False)
    count: ArrayLike = 1.0
    confidence: ArrayLike = 1.0
    shape: ArrayLike = 2.0
    scale: ArrayLike = 1.0
    share: ArrayLike = 1.0
    forgetting: ArrayLike = 1.0
    clip: ArrayLike | None = None
    missing: bool = static_field(default=True)

    def __post_init__(self) -> None:
        require_integer("columns", self.columns, 1)
        if not isinstance(self.likelihood, ClassLikelihood):
            raise CredoError(
                f"likelihood must be Bernoulli, Categorical or OpenCategorical; got {self.likelihood!r}.",
                field="likelihood",
            )
        for name in ("count", "confidence", "shape", "scale"):
            require_positive(name, getattr(self, name))
        require_interval("share", self.share, 0.0, 1.0)
        require_interval("forgetting", self.forgetting, 1e-9, 1.0)
        if self.clip is not None:
            require_positive("clip", self.clip)

    @property
    def takes_missing(self) -> bool:
        return self.missing

    def init(self, params: PyTree = None, *, var: PyTree = 1.0) -> ClassNormals:
        """The prior. The arguments are ignored."""
        return self._prior(float)

    def _prior(self, dtype: DTypeLike) -> ClassNormals:
        classes = class_slots(self.likelihood)
        table = (classes, self.columns)
        shared = (1 if self.tied else classes, self.columns)

        def full(value: ArrayLike, shape: tuple[int, ...]) -> Array:
            return jnp.broadcast_to(jnp.asarray(value, dtype), shape)

        return ClassNormals(
            full(self.count, (classes,)),
            jnp.zeros(table, dtype),
            full(self.confidence, table),
            full(self.shape, shared),
            full(self.scale, shared),
            jnp.zeros((), jnp.int32),
        )

    def time_update(self, belief: ClassNormals, dt: ArrayLike | None) -> ClassNormals:
        keep = as_like(self.forgetting, belief.mean) ** (1.0 if dt is None else as_like(dt, belief.mean))
        return replace(belief.toward(self._prior(belief.mean.dtype), keep), t=belief.t + 1)

    def _joint(self, belief: ClassNormals, square: Array, seen: Array) -> Array:
        """log p(c, x | past) up to a constant (C,), of the squared distances (x - m)^2 (C, D)."""
        narrow = 1.0 / (2.0 * belief.scale * (1.0 + 1.0 / belief.rows))
        logs = _log_height(belief.shape, narrow) - (belief.shape + 0.5) * _log_one_plus(square * narrow)
        told = as_like(self.share, square) * jnp.sum(jnp.where(seen[None, :], logs, 0.0), axis=1)
        return known_classes(self.likelihood, jnp.log(belief.counts) + told)

    def predictive(
        self,
        belief: ClassNormals,
        x: PyTree,
        method: ForecastName | None,
        samples: int | None,
        key: Key | None,
    ) -> Predictive:
        closed_form(method)
        row, seen, _ = _read(x, belief.mean, self.clip)
        joint = self._joint(belief, (row[None, :] - belief.mean) ** 2, seen)
        return self.likelihood.plugin(class_outputs(self.likelihood, joint))

    def measurement_update(
        self, belief: ClassNormals, x: PyTree, y: PyTree, weight: ArrayLike, key: Key | None
    ) -> tuple[ClassNormals, Info]:
        row, seen, squares = _read(x, belief.mean, self.clip)
        label = _label(y, belief.mean)
        observed, used = usable(
            self.likelihood.observed(label) & (label == jnp.round(label)), weight, belief.mean.dtype
        )
        gap = row[None, :] - belief.mean
        square = gap**2
        joint = self._joint(belief, square, seen)
        joint = joint - jnp.max(joint)
        own = (jnp.arange(joint.shape[0], dtype=joint.dtype) == label).astype(joint.dtype)
        log_evidence = jnp.sum(own * joint) - jnp.log(jnp.sum(jnp.exp(joint)))
        added = (used * own)[:, None] * seen.astype(row.dtype)[None, :]
        rows = belief.rows + added
        move = added / rows
        half = 0.5 * added
        error = 0.5 * belief.rows * move * square
        if self.tied:
            half, error = (jnp.sum(one, axis=0, keepdims=True) for one in (half, error))
        new = ClassNormals(
            belief.counts + used * own,
            belief.mean + move * gap,
            rows,
            belief.shape + half,
            belief.scale + error,
            belief.t,
        )
        log_evidence = jnp.where(used > 0, log_evidence, 0.0)
        return accept(belief, new, log_evidence, observed, squares if self.missing else x, y, used)

    def expectation(self, belief: ClassNormals, x: PyTree) -> Expectation:
        row, seen, _ = _read(x, belief.mean, self.clip)
        mean, cov = _log_moments(belief, (row[None, :] - belief.mean) ** 2, seen)
        share = as_like(self.share, row)
        joint = jss.digamma(belief.counts) + share * mean
        cov = share**2 * cov + jnp.diag(jss.polygamma(1, belief.counts))
        eta = class_outputs(self.likelihood, known_classes(self.likelihood, joint))
        if reference_class(self.likelihood):
            cov = cov[1:, 1:] + cov[0, 0] - cov[1:, :1] - cov[:1, 1:]
        return LatentExpectation(self.likelihood, eta[None, :], cov)

    def function_draw(self, belief: ClassNormals, key: Key) -> Callable[[PyTree], Array]:
        share = as_like(self.share, belief.mean)
        return SampledClasses(self.likelihood, belief.sample(as_key(key)), share, self.clip)

    def draws(self, belief: ClassNormals, key: Key, shape: tuple[int, ...]) -> ClassParameters:
        """Draws of p (*shape, C), and of the means and variances (*shape, C, D)."""
        drawn = belief.sample(as_key(key), shape)
        p = jnp.exp(known_classes(self.likelihood, jnp.log(drawn.p)))
        return replace(drawn, p=p / jnp.sum(p, axis=-1, keepdims=True))


def _read(x: PyTree, like: Array, clip: ArrayLike | None) -> tuple[Array, Array, Array]:
    """A row (D,) with 0 for what cannot be used; what can be; and what is finite for a row to learn."""
    if jnp.shape(x) != like.shape[1:]:
        raise CredoError(f"x must be a row of {like.shape[1]} inputs; got shape {jnp.shape(x)}.", field="x")
    row = as_like(x, like)
    squares = 8.0 * row * row  # (x - m)^2 is at most 4 times the largest square
    seen = jnp.isfinite(squares)
    if clip is not None:
        row = jnp.clip(row, -as_like(clip, row), as_like(clip, row))
    return jnp.where(seen, row, 0.0), seen, jnp.where(jnp.isnan(row), 0.0, squares)


def _label(y: PyTree, like: Array) -> Array:
    if jnp.size(y) != 1:
        raise CredoError(f"y must be one class label (a whole number); got shape {jnp.shape(y)}.", field="y")
    return as_like(y, like).reshape(())


def _log_height(shape: Array, narrow: Array) -> Array:
    """log Gamma(a + 1/2) - log Gamma(a) + log(narrow / pi) / 2, with one logarithm."""
    steps = 12 if shape.dtype == jnp.float64 else 3  # to where the series has the digits of the dtype
    above = shape
    below = shape + 0.5
    for index in range(1, steps):
        above = above * (shape + index)
        below = below * (shape + (index + 0.5))
    large = shape + (steps - 0.25)
    ratio = above / below
    inverse = 1.0 / (large * large)
    series = jnp.zeros_like(shape)
    for term in reversed(_HALF_STEP):
        series = inverse * (term + series)
    return series + 0.5 * jnp.log(ratio * ratio * large * narrow * (1.0 / math.pi))


def _log_one_plus(z: Array) -> Array:
    """log(1 + z) to the last digits for z >= 0, in half the time of `log1p` on a CPU.

    What 1 + z loses of a small z is added to the logarithm, and `maximum` keeps compilers from taking that
    for 0.
    """
    whole = jnp.maximum(1.0 + z, 1.0)
    return jnp.log(whole) + jnp.where(z < 1.0, z - (whole - 1.0), 0.0)


def _log_moments(belief: ClassNormals, square: Array, seen: Array) -> tuple[Array, Array]:
    """Mean (C,) and covariance (C, C) of log p(x | c, theta) over theta, up to what all classes share.

    With u = 1/v ~ Gamma(a, b) and g = x - m, it is log(u) / 2 - (g sqrt(u) + z / sqrt(k))^2 / 2 a column,
    for a standard normal z; E[u] = a / b, Var[u] = a / b^2, Var[log u] = psi'(a), Cov[u, log u] = 1 / b.
    """
    a = belief.shape
    b = belief.scale
    k = belief.rows
    mean = -0.5 * (square * a / b + 1.0 / k)
    var = square * a / (b * k) + 0.5 / k**2
    slope = 0.5 * square * jnp.sqrt(a) / b
    if not belief.tied:
        mean = mean + 0.5 * (jss.digamma(a) - jnp.log(b))
        var = var + 0.25 * jss.polygamma(1, a) - 0.5 * square / b + slope**2
    mean, var, slope = (jnp.where(seen[None, :], one, 0.0) for one in (mean, var, slope))
    cov = identity(mean.shape[0], mean.dtype) * jnp.sum(var, axis=1)[:, None]
    return jnp.sum(mean, axis=1), cov + slope @ slope.T if belief.tied else cov
