"""The protocol of curvatures, which say what is measured at an observation, and those at the mean.

A curvature looks at one observation and returns a `Local` model of the log-likelihood: rows J (k, P), a
residual e (k,) and a small factor A, which stand for the gradient g = J' e and the expected Hessian G = -J' A
A' J.

LIN-HESS and LIN-EF measure at the mean of the belief.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp

from credo.core.keys import require_key
from credo.core.records import record, replace, static_field
from credo.core.trees import Unravel
from credo.core.types import Array, PyTree
from credo.covariances import Readable
from credo.likelihoods import Rows as JointRows
from credo.likelihoods.base import LikelihoodBase
from credo.linalg.jacobians import OuterRows, Rows, as_rows
from credo.linalg.matrices import bend, kalman_weights, precision, safe_sqrt
from credo.models import Model
from credo.models.model import MANY

__all__ = [
    "Curvature",
    "LinearizedEmpiricalFisher",
    "LinearizedGaussNewton",
    "Local",
    "Objective",
    "Penalty",
    "Site",
]

_HALVINGS = (1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24)
"""The shares of a step that are tried are 2^-n for these n."""

# The mode of an observation is found when a step moves the outputs by less than this share of their size,
# or after so many steps: where a rate is far too large, each step takes off 1 of its logarithm.
CLOSE = 1e-3
MOST = 100


@record
class Penalty:
    """The penalty of the prior N(mu0, S0) on two shifts s and s* of the mean, and on all between them.

    Attributes:
        here: s' inv(S0) s of the shift at which a step starts.
        cross: s' inv(S0) s* with the one at which it ends.
        there: s*' inv(S0) s*.

    Example:
        >>> float(Penalty(jnp.asarray(4.0), jnp.asarray(0.0), jnp.asarray(2.0)).at(jnp.asarray(0.5)))
        0.75
    """

    here: Array
    cross: Array
    there: Array

    def at(self, share: Array) -> Array:
        """Minus the log density of the prior at s + a (s* - s), up to a constant."""
        left = 1.0 - share
        return 0.5 * (left**2 * self.here + 2.0 * share * left * self.cross + share**2 * self.there)


@record
class Objective:
    """The weighted log-likelihood of one observation (or joint rows) as a function of the outputs eta.

    Attributes:
        likelihood: the likelihood.
        y: the observation.
        weight: one number, or one a row (B,).
        plain: whether the rows of the local model are the Jacobian of the outputs, and not centred.
    """

    likelihood: LikelihoodBase
    y: PyTree
    weight: Array
    plain: bool = static_field(default=True)

    def log_prob(self, eta: Array) -> Array:
        """The weighted log p(y | eta), a scalar."""
        if self.weight.size == 1:
            return self.weight.reshape(()) * self.likelihood.log_prob(eta, self.y)
        assert isinstance(self.likelihood, JointRows)
        values = jax.vmap(self.likelihood.each.log_prob)(eta.reshape(self.weight.size, -1), self.y)
        return jnp.sum(jnp.where(self.weight > 0, self.weight * values, 0.0))

    def share(self, eta: Array, move: Array, penalty: Penalty) -> Array:
        """The share of a step to take: 1, or less where the whole step would overshoot.

        A step from a shift s of the mean to s* moves the outputs of the linearised model by J (s* - s), and
        the log posterior by log p(y | eta + J (s* - s)) - log p(y | eta), less what the prior says against
        it. That is above 0 if log p is quadratic. If log p bends, as for a classifier that is sure and wrong,
        or a scale whose logarithm is an output, it may be far below 0: the step then leads to parameters that
        both the prior and the observation contradict. Of the shares 1/2, 1/4, ... the best one is taken.

        Arguments:
            eta: the outputs (C,) where the step starts.
            move: J (s* - s) (C,), by which the whole step moves them.
            penalty: what the prior says against both ends.
        """

        def gain(share: Array) -> Array:
            return self.log_prob(eta + share * move) - penalty.at(share)

        shares = jnp.asarray([0.5**n for n in _HALVINGS], eta.dtype)
        gains = jax.vmap(gain)(shares)
        gains = jnp.where(jnp.isfinite(gains), gains, -jnp.inf)
        best = jnp.argmax(gains)
        none = jnp.zeros((), eta.dtype)
        here = self.log_prob(eta) - penalty.at(none)
        slack = 64 * precision(eta.dtype).eps * (1.0 + jnp.abs(here))
        less = jnp.where(gains[best] > here, shares[best], none)
        return jax.lax.stop_gradient(jnp.where(gain(none + 1.0) >= here - slack, none + 1.0, less))

    def height(self, eta: Array, weights: Array, inner: Array) -> Array:
        """The log posterior at the shift S0 J' w of the linearised model, up to a constant.

        Arguments:
            eta: the outputs (C,) at the prior mean.
            weights: w (C,).
            inner: M = J S0 J' (C, C).
        """
        move = inner @ weights
        return self.log_prob(eta + move) - 0.5 * weights @ move

    def local(self, eta: Array, rows: Rows) -> Local:
        """The local model at the outputs `eta` (C,), where `rows` (C, P) are their Jacobian."""
        score = self.likelihood.score(eta, self.y)
        root = self.likelihood.fisher_root(eta, self.y)
        information = self.likelihood.information_root(eta, self.y)
        return Local(rows, score, root, eta, information=information).weighted(self.weight)

    def mode(self, eta: Array, rows: Rows, inner: Array) -> Array:
        """The weights w (C,) with which mu0 + S0 J' w is the mode of the model that is linear in theta.

        Newton's steps in the space of the outputs, each as long as the posterior grows, until one moves them
        by less than `CLOSE` of their size. No derivative passes through them: whoever measures again at
        the mode has one step with the right derivative.

        Arguments:
            eta: the outputs (C,) at the prior mean.
            rows: J (C, P), their Jacobian.
            inner: M = J S0 J' (C, C).

        Cost: C^3 a step, whatever P.
        """
        objective, eta, rows, inner = jax.lax.stop_gradient((self, eta, rows, inner))

        def far(state: tuple[Array, Array, Array]) -> Array:
            _, change, count = state
            return (change > CLOSE) & (count < MOST)

        def newton(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            weights, _, count = state
            before = inner @ weights
            local = objective.local(eta + before, rows)
            target = kalman_weights(local.root, local.residual + local.bend(before), inner)
            after = inner @ target
            penalty = Penalty(weights @ before, weights @ after, target @ after)
            share = objective.share(eta + before, after - before, penalty)
            change = share * jnp.max(jnp.abs(after - before)) / (1.0 + jnp.max(jnp.abs(eta + after)))
            return jnp.where(share > 0.0, weights + share * (target - weights), weights), change, count + 1

        start = jnp.zeros_like(eta), jnp.full((), jnp.inf, eta.dtype), jnp.zeros((), jnp.int32)
        weights, _, _ = jax.lax.while_loop(far, newton, start)
        return weights


@dataclass(frozen=True)
class Site:
    """One observation, finite and weighted, and the model that explains it.

    Attributes:
        model, likelihood: the model, and its likelihood in units of its noise.
        unravel: the layout of the parameters.
        x, y: the observation.
        weight: the weight of the log-likelihood: one number, or for a joint model one number a row (B,).
        key: the key of this step, for Monte Carlo curvatures; None if none was given.

    Example:
        >>> import credo
        >>> from credo.core.trees import ravel
        >>> from credo.learners import Site
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(1.0))
        >>> vector, unravel = ravel(jnp.asarray([1.0, 2.0]))
        >>> site = Site(model, model.likelihood, unravel, jnp.ones(2), jnp.ones(1), jnp.ones(()), None)
        >>> site.outputs(vector).tolist()
        [3.0]
    """

    model: Model
    likelihood: LikelihoodBase
    unravel: Unravel
    x: PyTree
    y: PyTree
    weight: Array
    key: Array | None

    def outputs(self, vector: Array) -> Array:
        """The outputs eta (C,) of the model at the parameters `vector` (P,)."""
        return self.model.outputs(vector, self.unravel, self.x)

    @property
    def objective(self) -> Objective:
        """The weighted log-likelihood as a function of the outputs."""
        return Objective(self.likelihood, self.y, self.weight)

    def log_likelihood(self, vector: Array) -> Array:
        """The weighted log p(y | theta, x), a scalar."""
        return self.objective.log_prob(self.outputs(vector))

    def key_of(self, iteration: Array | int, common: bool) -> Array:
        """The key of one inner iteration, or of all of them where draws are common.

        Raises:
            CredoError: no key was given.
        """
        key = require_key(self.key, "a Monte Carlo curvature")
        if common:
            return key
        return jax.random.fold_in(key, iteration)


@record
class Local:
    """The log-likelihood near a point, as its gradient J' e and expected Hessian -J' A A' J - diag(d).

    Attributes:
        rows: J (k, P): an array, or any `credo.linalg.jacobians.Rows`; kept as the latter.
        residual: e (k,).
        root: A (k, m), or the diagonal (k,) of a diagonal A.
        eta: the model's outputs at that point (C,), or at M draws (M, C).
        diagonal: d (P,), or None for 0.
        objective: the log-likelihood as a function of the outputs, where steps are to be kept from
            overshooting; None if the whole step is always taken.
        information: a root of what the observation adds to the precision, if A is that of a steeper
            curvature, which only bounds its step; None if it is A.

    Example:
        >>> from credo.learners import Local
        >>> one = jnp.ones(1)
        >>> local = Local(jnp.asarray([[1.0, 2.0]]), 0.5 * one, one, one)
        >>> local.gradient, local.weighted(jnp.asarray(0.0)).gradient
        (Array([0.5, 1. ], dtype=float32), Array([0., 0.], dtype=float32))
    """

    rows: Rows
    residual: Array
    root: Array
    eta: Array
    diagonal: Array | None = None
    objective: Objective | None = None
    information: Array | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", as_rows(self.rows))

    def weighted(self, weight: Array) -> Local:
        """The local model of the log-likelihood times a weight.

        Arguments:
            weight: one number, or one number an observation (B,); rows of weight 0 become zero.
        """
        each = jnp.repeat(weight.reshape(-1), self.rows.shape[0] // weight.size)
        rows = self.rows if weight.size == 1 else self.rows.where(each > 0)
        heights = safe_sqrt(each)
        root = _scaled(heights, self.root)
        information = None if self.information is None else _scaled(heights, self.information)
        diagonal = self.diagonal if weight.size > 1 or self.diagonal is None else weight * self.diagonal
        residual = each * self.residual
        return replace(
            self, rows=rows, residual=residual, root=root, diagonal=diagonal, information=information
        )

    def counted(self, inner: Array, before: Array | None = None) -> Local:
        """The same step of the mean, with a precision that grows by the `information`, which is not None.

        With V = A A' of the steeper curvature, W of the information and M = J S J', Kalman's step is that of
        the weights w = inv(I + V M) e. It is also that of W, for the residual (I + W M) w.

        Arguments:
            inner: M (k, k).
            before: the outputs' shift (k,) since the prior, at a later iteration: the residual to which the
                step belongs is then e + V z, and so is the one that is returned.
        """
        assert self.information is not None
        residual = self.residual if before is None else self.residual + self.bend(before)
        weights = kalman_weights(self.root, residual, inner)
        residual = weights + bend(self.information, inner @ weights)
        return replace(self, residual=residual, root=self.information, information=None)

    @property
    def factor(self) -> Rows:
        """B = A' J (m, P): the precision that this observation adds is B' B."""
        return self.rows.attenuate(self.root)

    def precision(self) -> Array:
        """The precision -G = B' B + diag(d) (P, P) that this observation adds, for inspection and tests."""
        factor = self.factor.dense()
        precision = factor.T @ factor
        if self.diagonal is None:
            return precision
        return precision + jnp.diag(self.diagonal)

    @property
    def gradient(self) -> Array:
        """g = J' e (P,)."""
        return self.rows.pull(self.residual)

    def share(self, inner: Array) -> Array | None:
        """The share of Kalman's step from the prior to take, given M = J S J'; None for all of it.

        With w = inv(I + A A' M) e the step moves the outputs by M w, and the prior says w' M w / 2 against
        it. See `Objective.share`.
        """
        if self.objective is None:
            return None
        weights = kalman_weights(self.root, self.residual, inner)
        move = inner @ weights
        none = jnp.zeros((), move.dtype)
        return self.objective.share(self.eta, move, Penalty(none, none, weights @ move))

    def bend(self, outputs: Array) -> Array:
        """The product A A' z, for z (k,) or (k, n) in the space of the rows."""
        return bend(self.root, outputs)


def _scaled(heights: Array, root: Array) -> Array:
    """A root (k, m), or a diagonal (k,), whose rows are multiplied by these heights (k,)."""
    if root.ndim == 1:
        return heights * root
    return heights[:, None] * root


class Curvature(ABC):
    """The measurement at an observation, given the belief N(mean, cov).

    To add a curvature, write a record with `local`. It then works with every rule and every family.

    Example:
        A curvature that measures the gradient and the empirical Fisher of one parameter alone:

        >>> import credo
        >>> from credo.learners import Curvature, Local
        >>> @credo.record
        ... class OneParameter(Curvature):
        ...     which: int = credo.static_field(default=0)
        ...
        ...     def local(self, site, mean, cov, iteration=0):
        ...         slope = jax.grad(site.log_likelihood)(mean)
        ...         row = jnp.where(jnp.arange(mean.shape[0]) == self.which, slope, 0.0)
        ...         one = jnp.ones(1, mean.dtype)
        ...         return Local(row[None, :], one, one, site.outputs(mean))
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> learner = credo.bong(model, credo.Full(), OneParameter(1))
        >>> belief, info = learner.step(learner.init(jnp.zeros(2)), jnp.ones(2), 1.0)
        >>> [round(value, 3) for value in belief.mean.tolist()]
        [0.0, 0.099]
    """

    linear: ClassVar[bool] = False
    """Whether `rows` is the Jacobian of the outputs, so that J S J' is their covariance."""

    sampled: ClassVar[bool] = False
    """Whether `eta` are draws (M, C) from the belief."""

    @abstractmethod
    def local(self, site: Site, mean: Array, cov: Readable, iteration: Array | int = 0) -> Local:
        """The weighted local model of log p(y | theta, x) around the belief.

        Arguments:
            site: the observation and its model.
            mean, cov: the belief at which to measure: a mean (P,) and a covariance.
            iteration: the number of the inner iteration, for draws.

        Returns:
            The gradient and the expected Hessian there, in rows.
        """


@record
class LinearizedGaussNewton(Curvature):
    """LIN-HESS: the generalised Gauss-Newton Hessian -J' V J of the model linearised at the mean.

    There is one row for each output. It is exact for linear-Gaussian models, where the update is Kalman's.

    A step of BONG from there may overshoot where the log-likelihood bends: a classifier that is sure and
    wrong has almost no curvature, so that the step is as long as the prior is wide, and a network then runs
    away. With `step_control` such a step, and no other, is shortened until the linearised posterior is higher
    than where it started (a damped Gauss-Newton step; Bell & Cathey 1993, Skoglund et al. 2015).

    Cost: C reverse passes.

    Arguments:
        step_control: whether a step that overshoots is shortened; False takes every step as it is.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> learner = credo.bong(model, credo.Full(), credo.LinearizedGaussNewton())
        >>> belief, info = learner.step(learner.init(jnp.zeros(2)), jnp.ones(2), 1.0, key=0)
        >>> bool(info.ok)
        True
    """

    step_control: bool = static_field(default=True)

    linear: ClassVar[bool] = True

    def local(self, site: Site, mean: Array, cov: Readable, iteration: Array | int = 0) -> Local:
        """J = d eta / d theta, e = d log p / d eta, A A' = V.

        If there are many classes, J is (I - 1 p') J and A is diagonal: e sums to 0, so that J' e and
        J' A A' J stay the same, and no product of C x C matrices is needed.
        """
        eta, rows = site.model.linearize(mean, site.unravel, site.x, layered=cov.layered)
        rows = cov.admit(rows)
        objective = site.objective
        centre = site.likelihood.centre(eta) if eta.shape[0] >= MANY and isinstance(rows, OuterRows) else None
        if centre is not None and isinstance(rows, OuterRows):
            score = site.likelihood.score(eta, site.y)
            local = Local(rows.centre(centre), score, jnp.sqrt(centre), eta).weighted(site.weight)
            objective = replace(objective, plain=False)
        else:
            local = objective.local(eta, rows)
        exact = site.likelihood.quadratic or not self.step_control
        if exact:
            return local
        return replace(local, objective=objective)


@record
class LinearizedEmpiricalFisher(Curvature):
    """LIN-EF: the gradient g at the mean and the empirical Fisher -g g', with one row an observation.

    It is not consistent: the empirical Fisher is far from the Hessian when residuals are large, so means and
    variances can settle at wrong values. On a linear regression with each of three prior means 3 sd off, the
    belief ends 5.1 away, from 5.2, at 0.05 times the right sd. The curvature is provided because it is cheap,
    and because published methods use it.

    Cost: one reverse pass.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> learner = credo.bong(model, credo.Full(), credo.LinearizedEmpiricalFisher())
        >>> belief, info = learner.step(learner.init(jnp.zeros(2)), jnp.ones(2), 1.0, key=0)
        >>> bool(info.ok)
        True
    """

    def local(self, site: Site, mean: Array, cov: Readable, iteration: Array | int = 0) -> Local:
        """J = the gradients, one row an observation; e = 1, A = I."""
        eta, rows = site.model.gradient_rows(mean, site.unravel, site.x, site.y, site.likelihood)
        ones = jnp.ones(rows.shape[0], rows.dtype)
        return Local(cov.admit(rows), ones, ones, eta).weighted(site.weight)
