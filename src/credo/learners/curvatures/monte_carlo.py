"""Monte Carlo curvatures: expectations over the belief by draws of the parameters.

Source: Jones, Chang & Murphy 2024 (BONG, arXiv 2405.19681), MC-EF and MC-HESS. Where the belief's family
cannot hold a P x P Hessian, MC-HESS measures what it can hold: the diagonal, or the leading directions, from
Hessian-vector products.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl

from credo.core.errors import CredoError, require_choice, require_integer
from credo.core.records import record, replace, static_field
from credo.core.types import Array
from credo.covariances import Readable
from credo.learners.curvatures.base import Curvature, Local, Site
from credo.linalg.jacobians import DenseRows
from credo.linalg.matrices import eigh, kalman_weights, psd_root, safe_sqrt, symmetric_root
from credo.linalg.normals import standard_normals

__all__ = ["MeanHessian", "MonteCarlo", "MonteCarloEmpiricalFisher", "MonteCarloHessian"]


@record
class MonteCarlo(Curvature):
    """The base of Monte Carlo curvatures, which says how they draw.

    Arguments:
        samples: the number M of draws.
        antithetic: whether to draw in pairs mean +- deviation, which cancels the odd part of the gradient's
            noise.
        common: whether all inner iterations of a step (BLR, BBB) use the same normal deviates, so that they
            follow one objective instead of a new one each time.
        quasi: whether to spread the draws evenly (randomised quasi-Monte Carlo; `credo.linalg.normals`),
            which is unbiased, and less noisy where a model has few parameters.

    Raises:
        CredoError: fewer than 1 sample, an odd number of antithetic ones, or (at trace time) no key.
    """

    samples: int = static_field(default=100)
    antithetic: bool = static_field(default=False)
    common: bool = static_field(default=False)
    quasi: bool = static_field(default=False)

    sampled: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_integer("samples", self.samples, 1)
        if self.antithetic and self.samples % 2:
            raise CredoError(
                f"samples must be even for antithetic draws, which come in pairs; got {self.samples}."
            )

    def draw(self, mean: Array, cov: Readable, key: Array) -> Array:
        """Parameters (M, P) drawn from N(mean, cov)."""
        deviates = standard_normals(
            key, self.samples, cov.deviates, mean.dtype, antithetic=self.antithetic, quasi=self.quasi
        )
        return mean[None, :] + cov.color(deviates)


@jax.custom_jvp
def _orthonormal(rows: Array) -> Array:
    """An orthonormal basis (n, P) of the space of the rows (n, P), which may be dependent.

    Its derivative is that of the space, with the basis within the space held fixed. The derivative of the QR
    decomposition itself does not exist where rows are dependent.
    """
    return jnp.linalg.qr(rows.T)[0].T


@_orthonormal.defjvp
def _orthonormal_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    (rows,) = primals
    (tangent,) = tangents
    basis = _orthonormal(rows)
    outside = tangent - (tangent @ basis.T) @ basis
    return basis, jnp.linalg.pinv(rows @ basis.T) @ outside


@record
class MonteCarloEmpiricalFisher(MonteCarlo):
    """MC-EF: the mean gradient and the empirical Fisher G = -mean_m g_m g_m' over draws from the belief.

    Here g_m = grad log p(y | theta_m) for a draw theta_m, and G is the mean of outer products, not the outer
    product of the mean. There is one row for each draw and observation. Like LIN-EF it is not consistent.

    If the model is affine in its parameters and has C <= M outputs, it has C rows instead: the Jacobian
    J, which is the same at all draws. Then g_m = J' s(eta_m), where s is the gradient of log p in the
    outputs, and all that matters of a draw are its outputs, eta_m ~ N(eta, J S J'). These C numbers are drawn
    in place of P, with the same distribution of everything that follows; the mean gradient is J' mean_m s_m,
    and G = -J' (mean_m s_m s_m') J.

    Cost: M reverse passes, and what the family needs for M rows; C and C for affine models.

    Arguments:
        samples, antithetic, common, quasi: how to draw; see `MonteCarlo`.

    Raises:
        CredoError: for the reasons that `MonteCarlo` gives.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> learner = credo.bong(model, credo.Full(), credo.MonteCarloEmpiricalFisher(10))
        >>> belief, info = learner.step(learner.init(jnp.zeros(2)), jnp.ones(2), 1.0, key=0)
        >>> bool(info.ok)
        True
    """

    def local(self, site: Site, mean: Array, cov: Readable, iteration: Array | int = 0) -> Local:
        """J = the gradients at the draws; e = 1 / M, A = I / sqrt(M). For affine models J = the Jacobian."""
        count = jax.eval_shape(site.outputs, mean).shape[0] // site.likelihood.rows(site.y)
        if count <= self.samples and site.model.affine(mean, site.unravel, site.x):
            return self._in_outputs(site, mean, cov, site.key_of(iteration, self.common))
        draws = self.draw(mean, cov, site.key_of(iteration, self.common))

        def one(vector: Array) -> tuple[Array, Array]:
            eta, _, rows = site.model.gradients(vector, site.unravel, site.x, site.y, site.likelihood)
            return eta, rows

        etas, rows = jax.vmap(one)(draws)  # (M, C), (M, B, P)
        flat = jnp.swapaxes(rows, 0, 1).reshape(-1, mean.shape[0])
        ones = jnp.ones(flat.shape[0], flat.dtype)
        root = ones / jnp.sqrt(self.samples).astype(flat.dtype)
        return Local(DenseRows(flat), ones / self.samples, root, etas).weighted(site.weight)

    def _in_outputs(self, site: Site, mean: Array, cov: Readable, key: Array) -> Local:
        """Draws of the outputs: J = the Jacobian, e = mean_m s_m, A A' = mean_m s_m s_m' (each row).

        The root of J S J' is the symmetric one, which is continuous in S, so that common deviates give draws
        that follow the belief.
        """
        eta, rows = site.model.linearize(mean, site.unravel, site.x, layered=cov.layered)
        rows = cov.admit(rows)
        deviates = standard_normals(
            key, self.samples, eta.shape[0], eta.dtype, antithetic=self.antithetic, quasi=self.quasi
        )
        etas = eta[None, :] + deviates @ symmetric_root(cov.push(rows))
        scores = jax.vmap(lambda one: site.likelihood.score(one, site.y))(etas)
        residual = jnp.mean(scores, axis=0)
        observations = site.likelihood.rows(site.y)
        each = eta.shape[0] // observations
        if each == 1:
            return Local(rows, residual, safe_sqrt(jnp.mean(scores**2, axis=0)), etas).weighted(site.weight)
        blocks = jnp.moveaxis(scores.reshape(self.samples, observations, each), 1, 0)
        roots = jax.vmap(lambda block: psd_root(block.T @ block / self.samples))(blocks)
        return Local(rows, residual, jsl.block_diag(*roots), etas).weighted(site.weight)


@record
class MonteCarloHessian(MonteCarlo):
    """MC-HESS: the mean gradient and Hessian of log p(y | theta_m) over draws theta_m from the belief.

    The Hessian of a network is indefinite. Only its negative semi-definite part is used, so that precision is
    never removed. The estimate depends on the family:

    - full: the P x P mean Hessian by M P Hessian-vector products and an eigendecomposition (P^3);
    - diagonal: one probe z of signs a draw, diag = mean_m z * (H_m z) (Hutchinson 1990), cut off at 0; or
      "price": diag = mean_m g_m * (theta_m - mean) / var, without second derivatives (Price's theorem; used
      by IVON, Shen et al. 2024);
    - low rank: the leading `rank` directions of -G by randomised subspace iteration (Halko, Martinsson &
      Tropp 2011) with `rounds` + 2 sets of rank + 5 products of the mean Hessian, then a small eigenproblem.

    A diagonal, or a few directions, say too little of the curvature along the step u = S g that follows from
    them, and on networks such steps grow without bound. One product more, with u, measures it: the gradient
    of the first iteration is multiplied by the share g'u / (g'u + c), where c is what mean_m max(u' H_m u, 0)
    exceeds the kept curvature by. No such step goes beyond the maximum of the quadratic model along it; for
    one output and a linear-Gaussian model that is Kalman's gain.

    Arguments:
        samples, antithetic, common, quasi: how to draw; see `MonteCarlo`.
        estimator: the estimator of the diagonal: "hutchinson" or "price".
        rank: the number of directions measured for a low-rank belief.
        rounds: the number of power iterations for those directions, at least 0.
        step_control: whether to shorten a first gradient that overshoots; published methods do not.

    Raises:
        CredoError: an argument is out of range, or (at trace time) there is no key.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> learner = credo.bong(model, credo.Full(), credo.MonteCarloHessian(10, antithetic=True))
        >>> belief, info = learner.step(learner.init(jnp.zeros(2)), jnp.ones(2), 1.0, key=0)
        >>> bool(info.ok)
        True
    """

    estimator: Literal["hutchinson", "price"] = static_field(default="hutchinson")
    rank: int = static_field(default=10)
    rounds: int = static_field(default=1)
    step_control: bool = static_field(default=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        require_choice("estimator", self.estimator, ["hutchinson", "price"])
        require_integer("rank", self.rank, 1)
        require_integer("rounds", self.rounds, 0)

    def local(self, site: Site, mean: Array, cov: Readable, iteration: Array | int = 0) -> Local:
        """One row carries the gradient; the Hessian comes as further rows, or as a diagonal."""
        first, second = jax.random.split(site.key_of(iteration, self.common))
        draws = self.draw(mean, cov, first)
        etas = jax.vmap(site.outputs)(draws)
        slope = jax.grad(site.log_likelihood)
        return cov.hessian(MeanHessian(self, slope, draws, etas, mean, cov, second, iteration))


@dataclass(frozen=True)
class MeanHessian:
    """The mean gradient and Hessian over M draws, in the three forms that a covariance may ask for.

    `slope` is the gradient of the log-likelihood as a function of the parameters (P,). The draws (M, P), with
    the model's outputs `etas` (M, C), come from the belief of `mean` and `cov`; the `key` is of probes and
    directions.
    """

    curvature: MonteCarloHessian
    slope: Callable[[Array], Array]
    draws: Array
    etas: Array
    mean: Array
    cov: Readable
    key: Array
    iteration: Array | int = 0

    def diagonal(self) -> Local:
        """The diagonal of the negative mean Hessian, cut off at 0."""
        gradients, bends = self.probes()
        g = jnp.mean(gradients, axis=0)
        diagonal = jnp.maximum(-jnp.mean(bends, axis=0), 0.0)
        var = self.cov.diag()
        step = var * g / (1.0 + var * diagonal)

        def along() -> Array:
            if self.curvature.estimator == "price":
                return -(gradients @ step) * ((self.draws - self.mean[None, :]) @ (step / var))
            return self._bends(step)

        share = self._share(g @ step, along, diagonal @ step**2)
        return Local(DenseRows(g[None, :]), share[None], jnp.zeros(1, g.dtype), self.etas, diagonal)

    def _share(self, rise: Array, bends: Callable[[], Array], kept: Array) -> Array:
        """g'u / (g'u + c) for c = mean_m max(bend_m, 0) - kept, if that is above 0; at most 1.

        It is 1 after the first iteration, which starts from the belief before the observation.
        """
        if not self.curvature.step_control:
            return jnp.ones((), rise.dtype)
        missing = jnp.maximum(jnp.mean(jnp.maximum(bends(), 0.0)) - kept, 0.0)
        share = jnp.where(rise > 0, rise / jnp.where(rise > 0, rise + missing, 1.0), 1.0)
        return jnp.where(jnp.asarray(self.iteration) == 0, share, 1.0)

    def _bends(self, step: Array) -> Array:
        """-u' H_m u (M,) for a step u (P,)."""
        bends: Array = jax.lax.map(lambda draw: -step @ jax.jvp(self.slope, (draw,), (step,))[1], self.draws)
        return bends

    def probes(self) -> tuple[Array, Array]:
        """Gradients and estimates of the Hessian's diagonal, one a draw: (M, P) each."""
        if self.curvature.estimator == "price":
            gradients = jax.vmap(self.slope)(self.draws)
            return gradients, gradients * (self.draws - self.mean[None, :]) / self.cov.diag()[None, :]
        signs = jax.random.rademacher(self.key, self.draws.shape, self.draws.dtype)
        gradients, products = jax.vmap(lambda draw, sign: jax.jvp(self.slope, (draw,), (sign,)))(
            self.draws, signs
        )
        return gradients, signs * products

    def leading(self) -> Local:
        """Rows D (rank, P) with D' D near the leading positive part of the negative mean Hessian."""
        g = self._gradient()
        count = min(self.curvature.rank + 5, self.mean.shape[0])
        basis = jax.random.normal(self.key, (count, self.mean.shape[0]), self.mean.dtype)
        for _ in range(self.curvature.rounds + 1):
            basis = _orthonormal(self._products(basis))
        values, vectors = eigh(-self._products(basis) @ basis.T)
        rank = min(self.curvature.rank, count)
        directions = safe_sqrt(values[::-1][:rank])[:, None] * (vectors[:, ::-1][:, :rank].T @ basis)
        local = self._in_rows(directions, g)
        cross, inner = self.cov.couple(local.rows)
        step = cross.pull(kalman_weights(local.root, local.residual, inner))
        share = self._share(g @ step, lambda: self._bends(step), jnp.sum((directions @ step) ** 2))
        return replace(local, residual=share * local.residual)

    def whole(self) -> Local:
        """The positive part of the negative mean Hessian, by its eigenvectors (P, P)."""
        g = self._gradient()
        values, vectors = eigh(-self._products(jnp.eye(self.mean.shape[0], dtype=self.mean.dtype)))
        return self._in_rows(safe_sqrt(values)[:, None] * vectors.T, g)

    def _gradient(self) -> Array:
        return jnp.mean(jax.lax.map(self.slope, self.draws), axis=0)

    def _products(self, block: Array) -> Array:
        """The rows of block (n, P) times the mean Hessian."""

        def one(total: Array, draw: Array) -> tuple[Array, None]:
            return total + jax.vmap(lambda row: jax.jvp(self.slope, (draw,), (row,))[1])(block), None

        return jax.lax.scan(one, jnp.zeros_like(block), self.draws)[0] / self.curvature.samples

    def _in_rows(self, directions: Array, gradient: Array) -> Local:
        """Directions D (n, P) that stand for the Hessian -D' D, and a last row for the gradient."""
        rows = jnp.concatenate([directions, gradient[None, :]], axis=0)
        last = jnp.arange(rows.shape[0]) == rows.shape[0] - 1
        residual = last.astype(gradient.dtype)
        root = 1.0 - last.astype(gradient.dtype)
        return Local(DenseRows(rows), residual, root, self.etas)
