"""Curvatures: what is measured at the data.

A curvature looks at one observation and returns a `Local` model of the log-likelihood: rows J (k, P), a
residual e (k,) and a small factor A, which stand for the gradient g = J' e and the expected Hessian G = -J' A
A' J. Monte Carlo curvatures are in `credo.learners.monte_carlo`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from credo.core.keys import require_key
from credo.core.records import record, replace
from credo.core.trees import Unravel
from credo.covariances import Covariance
from credo.covariances.base import attenuated, bend
from credo.likelihoods.base import LikelihoodBase
from credo.linalg.matrices import safe_sqrt
from credo.linalg.outer import mask_rows
from credo.models import Model

__all__ = ["Curvature", "LinearizedEmpiricalFisher", "LinearizedGaussNewton", "Local", "Site"]


@dataclass(frozen=True)
class Site:
    """One observation, finite and weighted, and the model that explains it.

    Attributes:
        model, likelihood: the model, and its likelihood in units of its noise.
        unravel: the parameters' layout.
        x, y: the observation.
        weight: of the log-likelihood: one number, or one a row (B,) of a joint model.
        key: the key of this step, for Monte Carlo curvatures; None where none was given.
    """

    model: Model
    likelihood: LikelihoodBase
    unravel: Unravel
    x: Any
    y: Any
    weight: jax.Array
    key: jax.Array | None

    def outputs(self, vector: jax.Array) -> jax.Array:
        """eta (C,) at the parameters `vector` (P,)."""
        return self.model.outputs(vector, self.unravel, self.x)

    def log_likelihood(self, vector: jax.Array) -> jax.Array:
        """The weighted log p(y | theta, x), a scalar."""
        eta = self.outputs(vector)
        if self.weight.size == 1:
            return self.weight.reshape(()) * self.likelihood.log_prob(eta, self.y)
        each = self.likelihood.each  # type: ignore[attr-defined]
        values = jax.vmap(each.log_prob)(eta.reshape(self.weight.size, -1), self.y)
        return jnp.sum(jnp.where(self.weight > 0, self.weight * values, 0.0))

    def key_of(self, iteration: jax.Array | int, common: bool) -> jax.Array:
        """The key of one inner iteration; the same in all of them where draws are common."""
        key = require_key(self.key, "a Monte Carlo curvature")
        return key if common else jax.random.fold_in(key, iteration)


@record
class Local:
    """The log-likelihood near a point, as its gradient J' e and expected Hessian -J' A A' J - diag(d).

    Attributes:
        rows: J (k, P), an array or `credo.linalg.outer.OuterRows`.
        residual: e (k,).
        root: A (k, m), or the diagonal (k,) of a diagonal A.
        eta: the model's outputs there (C,), or at M draws (M, C).
        diagonal: d (P,), or None for 0.
    """

    rows: Any
    residual: jax.Array
    root: jax.Array
    eta: jax.Array
    diagonal: jax.Array | None = None

    def weighted(self, weight: jax.Array) -> Local:
        """The same for weight times the log-likelihood: one weight, or one an observation (B,), where rows of
        weight 0 vanish.
        """
        each = jnp.repeat(weight.reshape(-1), self.rows.shape[0] // weight.size)
        rows = self.rows if weight.size == 1 else mask_rows(self.rows, each > 0)
        heights = safe_sqrt(each)
        root = heights * self.root if self.root.ndim == 1 else heights[:, None] * self.root
        diagonal = self.diagonal if weight.size > 1 or self.diagonal is None else weight * self.diagonal
        return replace(self, rows=rows, residual=each * self.residual, root=root, diagonal=diagonal)

    @property
    def factor(self) -> Any:
        """B = A' J (m, P): the precision that this observation adds is B' B."""
        return attenuated(self.root, self.rows)

    @property
    def gradient(self) -> jax.Array:
        """g = J' e (P,)."""
        return self.residual @ self.rows

    def bend(self, outputs: jax.Array) -> jax.Array:
        """A A' z for z (k,) or (k, n) in the space of the rows."""
        return bend(self.root, outputs)


class Curvature:
    """What is measured at an observation, given the belief N(mean, cov)."""

    linear: bool = False
    """Whether `rows` is the Jacobian of the outputs, so that J S J' is their covariance."""

    sampled: bool = False
    """Whether `eta` are draws (M, C) from the belief."""

    def local(self, site: Site, mean: jax.Array, cov: Covariance, iteration: jax.Array | int = 0) -> Local:
        """The weighted local model of log p(y | theta, x) around the belief.

        Arguments:
            site: the observation.
            mean, cov: the belief at which to measure: (P,) and a covariance.
            iteration: the number of the inner iteration, for draws.
        """
        raise NotImplementedError


@record
class LinearizedGaussNewton(Curvature):
    """LIN-HESS: linearise the model at the mean; the generalised Gauss-Newton Hessian -J' V J. Rows: one an
    output.

    Exact for linear-Gaussian models, where the update is Kalman's. Cost: C reverse passes.
    """

    linear = True

    def local(self, site: Site, mean: jax.Array, cov: Covariance, iteration: jax.Array | int = 0) -> Local:
        """J = d eta / d theta, e = d log p / d eta, A A' = V."""
        measure = site.model.jacobian if cov.kind == "full" else site.model.linearize
        eta, rows = measure(mean, site.unravel, site.x)
        likelihood = site.likelihood
        made = Local(rows, likelihood.score(eta, site.y), likelihood.fisher_root(eta, site.y), eta)
        return made.weighted(site.weight)


@record
class LinearizedEmpiricalFisher(Curvature):
    """LIN-EF: one gradient g at the mean and the empirical Fisher -g g'. Rows: one an observation.

    Cost: one reverse pass. Not consistent: the empirical Fisher is far from the Hessian when residuals are
    large, so means and variances can settle at wrong values (on a linear regression with each of three prior
    means 3 sd off it ends 5.1 away, from 5.2, at 0.05 times the right sd). It is here for its cost, and for
    parity with published methods.
    """

    def local(self, site: Site, mean: jax.Array, cov: Covariance, iteration: jax.Array | int = 0) -> Local:
        """J = the gradients, one row an observation; e = 1, A = I."""
        eta, _, rows = site.model.gradients(mean, site.unravel, site.x, site.y, site.likelihood)
        ones = jnp.ones(rows.shape[0], rows.dtype)
        return Local(rows, ones, ones, eta).weighted(site.weight)
