"""A normal prior of one particle, conditioned on an observation by linearising the model.

A particle's prior is written as z = c + L u with u ~ N(0, I). Near a point u_k the log-likelihood is replaced
by a constant and e' d - d' V d / 2 with d = J L (u - u_k), where e is the score of the likelihood and
V = A A' its Fisher information. Then p(u | y) = N(mu, inv(I + B'B)) with B = A' J L and

    mu = L'J' inv(I + V J L L'J') (e + V J L u_k) = inv(I + B'B) g,   g = L'J' (e + V J L u_k).

All of it is exact if the model is affine and the noise normal. No noise is inverted, and L may be
singular.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl

from credo.core.records import record, replace
from credo.core.trees import Unravel
from credo.core.types import Array, PyTree
from credo.learners.curvatures import Local
from credo.learners.curvatures.base import Objective
from credo.linalg.jacobians import DenseRows
from credo.linalg.matrices import cholesky, inverse, log_det, symmetric
from credo.linalg.normals import narrow
from credo.models import Model

__all__ = ["Conditioned", "Evidence", "condition", "condition_on"]


@record
class Evidence:
    """One finite observation, its model, and the weight of its log-likelihood (of each row, if joint)."""

    model: Model
    unravel: Unravel
    x: PyTree
    y: PyTree
    weight: Array

    def log_prob(self, value: Array) -> Array:
        """The weighted log-likelihood of one particle (P,)."""
        eta = self.model.outputs(value, self.unravel, self.x)
        return Objective(self.model.likelihood, self.y, self.weight).log_prob(eta)

    def local(self, value: Array, root: Array) -> Local:
        """The log-likelihood near one particle z = value + L u, as rows J L, score e and root A."""
        eta, rows = self.model.linearize(value, self.unravel, self.x)
        return self.local_at(eta, rows.dense() @ root)

    def local_at(self, eta: Array, rows: Array) -> Local:
        """The log-likelihood near the outputs eta (C,), which move by rows (C, k)."""
        likelihood = self.model.likelihood
        score = likelihood.score(eta, self.y)
        root = likelihood.fisher_root(eta, self.y)
        return Local(DenseRows(rows), score, root, eta).weighted(self.weight)


@record
class Conditioned:
    """The distribution of u given the observation, N(mu, inv(I + B'B)), under the linearised model.

    `mean` is mu (P,), or where a smaller step was taken from the prior mean; `rows` are B (m, P), and `slope`
    is the gradient of the quadratic at u = 0 (P,).
    """

    mean: Array
    rows: Array
    slope: Array

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
        # a product with the small inverse, which is computed once where all particles share it
        eye = jnp.eye(size, dtype=noise.dtype)
        return noise @ jsl.solve_triangular(root, eye, lower=True)

    def contract(self, u: Array) -> Array:
        """Points (n, P), contracted by the symmetric root of inv(I + B'B)."""
        rows = self.thin
        return narrow(u, rows, rows, rows @ rows.T)

    def log_ratio(self, u: Array) -> Array:
        """The log ratio of the prior N(0, I) of u to this distribution, at u (P,)."""
        gap = u - self.mean
        bent = self.rows @ gap
        return 0.5 * (gap @ gap + bent @ bent - u @ u - self._volume())

    def _volume(self) -> Array:
        """log det(I + B B')."""
        count, size = self.rows.shape
        inner = self.rows @ self.rows.T if count <= size else self.rows.T @ self.rows
        return log_det(jnp.eye(inner.shape[0], dtype=inner.dtype) + symmetric(inner))


def condition(evidence: Evidence, centre: Array, root: Array, iterations: int, straight: bool) -> Conditioned:
    """Condition the prior N(centre, L L') of one particle: the distribution of u in z = centre + L u.

    The root L may be singular. The model is linearised `iterations` times, each time at the latest mean
    (Gauss-Newton's method). If it is not `straight` (affine, with a quadratic log-likelihood), a whole
    step to the next mean may lead far from both prior and observation: of the shares 1, 1/2, 1/4, 1/8 and 0
    of it, that with the highest posterior density is taken. Cost of an iteration: a Jacobian, C P^2 and C^3,
    and where it is not straight five evaluations of the model.
    """
    at = jnp.zeros(root.shape[1], centre.dtype)
    if straight:
        return condition_on(evidence.local(centre, root), at)

    def height(u: Array) -> Array:
        logs = evidence.log_prob(centre + root @ u) - 0.5 * u @ u
        return jnp.where(jnp.isnan(logs), -jnp.inf, logs)

    def linearized(at: Array) -> Conditioned:
        return condition_on(evidence.local(centre + root @ at, root), at)

    def shortened(at: Array, mean: Array) -> Array:
        shares = jnp.asarray([1.0, 0.5, 0.25, 0.125, 0.0], centre.dtype)
        points = at[None, :] + shares[:, None] * (mean - at)[None, :]
        return points[jnp.argmax(jax.vmap(height)(points))]

    conditioned = linearized(at)
    at = shortened(at, conditioned.mean)
    for _ in range(iterations - 1):
        conditioned = linearized(at)
        at = shortened(at, conditioned.mean)
    return replace(conditioned, mean=at)


def condition_on(local: Local, at: Array) -> Conditioned:
    """Condition N(0, I) on a local model at u_k (k,): weighted rows J L, score e and root A there."""
    outputs = local.rows.dense()
    residual = local.residual + local.bend(outputs @ at)
    system = jnp.eye(outputs.shape[0], dtype=outputs.dtype) + local.bend(outputs @ outputs.T)
    # where all particles share the system, it is inverted once
    mean = (inverse(system) @ residual) @ outputs
    return Conditioned(mean, local.factor.dense(), residual @ outputs)
