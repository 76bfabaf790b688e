"""A normal prior of one particle, conditioned on an observation by linearising the model.

A particle's prior is written as z = c + L u with u ~ N(0, I). Near a point u_k the log-likelihood is replaced
by l_k + e' d - d' V d / 2 with d = J L (u - u_k), where e is the score of the likelihood and V = A A' its
Fisher information. Then p(u | y) = N(mu, inv(I + B'B)) with B = A' J L, and its normaliser is known:

    g = L'J' (e + V J L u_k),   mu = L'J' inv(I + V J L L'J') (e + V J L u_k)
    log Z = h + g' mu / 2 - log det(I + B B') / 2,   h the height of the quadratic at u = 0

All of it is exact where the model is affine and the noise normal. No noise is inverted, and L may be
singular.
"""

from __future__ import annotations

import jax.numpy as jnp
import jax.scipy.linalg as jsl

from credo.core.records import record
from credo.core.trees import Unravel
from credo.core.types import Array, PyTree
from credo.learners.curvatures import Local
from credo.learners.curvatures.overshoot import Objective
from credo.linalg.gains import kalman_weights
from credo.linalg.jacobians import DenseRows
from credo.linalg.matrices import cholesky, log_det, symmetric
from credo.linalg.normals import narrow
from credo.models import Model

__all__ = ["Conditioned", "Evidence", "condition", "condition_on"]


@record
class Evidence:
    """One observation: the model, the data and the weight of the log-likelihood.

    Attributes:
        model: the model of the observation.
        unravel: the layout of the parameters.
        x, y: the observation, finite.
        weight: what multiplies the log-likelihood: a number, or for a joint model one number a row.
    """

    model: Model
    unravel: Unravel
    x: PyTree
    y: PyTree
    weight: Array

    def local(self, value: Array, root: Array) -> tuple[Local, Array]:
        """The log-likelihood near one particle z = value + L u: rows J L, score e, root A; and its height."""
        eta, rows = self.model.linearize(value, self.unravel, self.x)
        return self.local_at(eta, rows.dense() @ root)

    def local_at(self, eta: Array, rows: Array) -> tuple[Local, Array]:
        """The log-likelihood near the outputs eta (C,), which move by rows (C, k); and its height there."""
        likelihood = self.model.likelihood
        score, root = likelihood.score(eta, self.y), likelihood.fisher_root(eta, self.y)
        local = Local(DenseRows(rows), score, root, eta).weighted(self.weight)
        return local, Objective(likelihood, self.y, self.weight).log_prob(eta)


@record
class Conditioned:
    """The law of u given the observation, N(mean, inv(I + B'B)), under the linearised model.

    Attributes:
        mean: mu (P,).
        rows: B (m, P).
        slope: g (P,), the gradient of the quadratic at u = 0.
        height: the quadratic at u = 0.
    """

    mean: Array
    rows: Array
    slope: Array
    height: Array

    @property
    def thin(self) -> Array:
        """At most P rows with the same B'B."""
        count, size = self.rows.shape
        rows: Array = self.rows if count <= size else jnp.linalg.qr(self.rows, mode="r")
        return rows

    def squeeze(self, noise: Array) -> Array:
        """Draws of N(0, I), (n, P), as draws of N(0, inv(I + B'B)). Cost min(m, P)^3, and n m P."""
        count, size = self.rows.shape
        if count < size:
            return narrow(noise, self.rows, self.rows, self.rows @ self.rows.T)
        root = cholesky(jnp.eye(size, dtype=noise.dtype) + symmetric(self.rows.T @ self.rows))
        return jsl.solve_triangular(root, noise.T, lower=True, trans=1).T

    def contract(self, u: Array) -> Array:
        """Points (n, P), contracted by the symmetric root of inv(I + B'B)."""
        rows = self.thin
        return narrow(u, rows, rows, rows @ rows.T)

    def log_model(self, u: Array) -> Array:
        """The log-likelihood that the linearised model gives to u (P,)."""
        bent = self.rows @ u
        return self.height + self.slope @ u - 0.5 * bent @ bent

    @property
    def log_normalizer(self) -> Array:
        """The log evidence of the linearised model."""
        count, size = self.rows.shape
        inner = self.rows @ self.rows.T if count <= size else self.rows.T @ self.rows
        volume = log_det(jnp.eye(inner.shape[0], dtype=inner.dtype) + symmetric(inner))
        return self.height + 0.5 * self.slope @ self.mean - 0.5 * volume


def condition(evidence: Evidence, centre: Array, root: Array, iterations: int = 1) -> Conditioned:
    """Condition the prior N(centre, L L') of one particle on an observation.

    Arguments:
        evidence: the observation.
        centre: the prior mean (P,), where the model is linearised first.
        root: L (P, P), which may be singular.
        iterations: how often the model is linearised, each time at the latest posterior mean (the iterated
            extended Kalman filter, which is Gauss-Newton's method for the mode).

    Returns:
        The law of u in z = centre + L u. Cost of an iteration: a Jacobian, C P^2 and C^3.
    """
    at = jnp.zeros(root.shape[1], centre.dtype)
    for _ in range(iterations):
        local, height = evidence.local(centre + root @ at, root)
        conditioned = condition_on(local, height, at)
        at = conditioned.mean
    return conditioned


def condition_on(local: Local, height: Array, at: Array) -> Conditioned:
    """Condition N(0, I) on a local model that was measured at u_k.

    Arguments:
        local: rows J L, score e and root A there, weighted.
        height: the log-likelihood there.
        at: u_k (k,).
    """
    outputs = local.rows.dense()
    there = outputs @ at
    residual = local.residual + local.bend(there)
    rows = local.factor.dense()
    mean = kalman_weights(local.root, residual, outputs @ outputs.T) @ outputs
    back = rows @ at
    level = height - local.residual @ there - 0.5 * back @ back
    return Conditioned(mean, rows, residual @ outputs, level)
