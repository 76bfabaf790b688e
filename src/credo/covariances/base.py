"""The protocol that every covariance and every family answers to."""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp

__all__ = ["Covariance", "Family", "Iterate", "attenuated", "bend", "kalman_shift"]


class Covariance:
    """A positive definite P x P matrix S, held in some economical form; never mutated."""

    kind: ClassVar[str] = "full"
    """Which expected Hessian the family can take in: "full", "diagonal" or "low-rank"."""

    @property
    def size(self) -> int:
        """The number P of rows."""
        raise NotImplementedError

    def couple(self, rows: jax.Array) -> tuple[jax.Array, jax.Array]:
        """rows S (k, P) and rows S rows' (k, k), for rows (k, P), sharing the work; the latter is PSD by
        construction.
        """
        raise NotImplementedError

    def mv(self, rows: jax.Array) -> jax.Array:
        """The product rows S, for one vector (P,) or several (k, P); S is symmetric, so this is also S v."""
        return self.couple(rows.reshape(-1, self.size))[0].reshape(rows.shape)

    def push(self, jacobian: jax.Array) -> jax.Array:
        """The covariance J S J' (C, C) of the outputs of a linear map J (C, P)."""
        return self.couple(jacobian)[1]

    def condition(self, factor: jax.Array) -> Covariance:
        """Add the precision B' B of the rows B (k, P), then keep what the family keeps."""
        raise NotImplementedError

    def absorb(self, rows: jax.Array, residual: jax.Array, root: jax.Array) -> tuple[jax.Array, Covariance]:
        """Kalman's update with a local model of gradient J' e and Hessian -J' A A' J: how far the mean moves,
        and the covariance that is kept.

        The move S J' inv(I + A A' J S J') e is that of the exact posterior, before anything is forgotten.

        Arguments:
            rows: J (k, P).
            residual: e (k,).
            root: A (k, m), or the diagonal (k,) of a diagonal A.
        """
        shift = kalman_shift(root, residual, *self.couple(rows))
        return shift, self.condition(attenuated(root, rows))

    def add_precision(self, precision: jax.Array) -> Covariance:
        """Add a diagonal precision (P,), exactly."""
        raise NotImplementedError

    def precise(self, vector: jax.Array) -> jax.Array:
        """The product inv(S) v for a vector (P,)."""
        raise NotImplementedError

    def blend(self, other: Any, share: jax.Array) -> Covariance:
        """The covariance of precision (1 - a) inv(S) + a inv(T), for a covariance T of the same family."""
        raise NotImplementedError

    def iterate(self, rows: int) -> Iterate:
        """An iterate that starts here, for an inner loop that brings at most `rows` rows of precision."""
        raise NotImplementedError

    def ascend(
        self,
        mean: jax.Array,
        slope: jax.Array,
        factor: jax.Array,
        diagonal: jax.Array | None,
        prior: Any,
        rate: jax.Array,
        parameters: str | None,
        retraction: str,
    ) -> tuple[jax.Array, Covariance]:
        """One step of plain gradient ascent in the family's own parameters, from the gradients by mean and
        covariance.

        The objective E has dE / d mean = u and dE / dS = N / 2 with N = -B' B - diag(d), to which an ELBO
        adds L - L0. Sources: Jones, Chang & Murphy 2024 (BOG, BBB), rederived and checked against automatic
        differentiation.

        Arguments:
            mean: the mean here (P,).
            slope: u (P,).
            factor: B (k, P).
            diagonal: d (P,), or None for 0.
            prior: the covariance inv(L0) of the ELBO's prior, or None where E has no such term.
            rate: the learning rate.
            parameters: "natural" (L mu, -L / 2), "moment" (mu, S), or None for the family's own: natural, or
                (mu, y, W) for a low-rank precision, which has no other.
            retraction: "safe" stays positive definite, whatever the rate; "exact" takes the step as it is,
                and gives NaN where it leaves the positive definite matrices.
        """
        raise NotImplementedError

    def temper(
        self, factor: jax.Array, diagonal: jax.Array | None, prior: Any, rate: jax.Array, retraction: str
    ) -> Covariance:
        """S + a S N S with N = L - L0 - B' B - diag(d): a natural-gradient step in the moments."""
        raise NotImplementedError

    def affine(self, scale: jax.Array, noise: jax.Array) -> Covariance:
        """diag(a) S diag(a) + diag(d), exactly; `scale` a and `noise` d are scalars or (P,)."""
        raise NotImplementedError

    def mix(self, scale: jax.Array, other: Covariance, share: jax.Array) -> Covariance:
        """a^2 S + b T for numbers a = `scale` and b = `share` and a covariance T of the same family.

        Exact for `Full` and `Diagonal`; `LowRank` takes T for diagonal.
        """
        return self.affine(scale, share * other.diag())

    def collapse(self, weights: jax.Array, deviations: jax.Array) -> Covariance:
        """The covariance of a mixture of K Gaussians: sum_k w_k (S_k + d_k d_k'), then what the family keeps.

        Here the arrays of `self` have a leading axis K.

        Arguments:
            weights: w (K,), which sum to one.
            deviations: d (K, P), the means minus the mixture's mean.
        """
        raise NotImplementedError

    def scale(self, factor: jax.Array) -> Covariance:
        """S times a positive number, exactly."""
        raise NotImplementedError

    def linear(self, transition: jax.Array, noise: jax.Array) -> Covariance:
        """F S F' + Q for dense F and Q (P, P), then keep what the family keeps."""
        raise NotImplementedError

    @property
    def deviates(self) -> int:
        """How many standard normal numbers make a draw."""
        return self.size

    @property
    def dtype(self) -> Any:
        """The dtype of the numbers here."""
        return jax.tree.leaves(self)[0].dtype

    def color(self, deviates: jax.Array) -> jax.Array:
        """Standard normal numbers (..., P) made draws of N(0, S), linearly and exactly."""
        raise NotImplementedError

    def sample(self, key: jax.Array, shape: tuple[int, ...] = ()) -> jax.Array:
        """Exact draws from N(0, S), of shape `shape` + (P,)."""
        return self.color(jax.random.normal(key, (*shape, self.deviates), self.dtype))

    def logdet(self) -> jax.Array:
        """The logarithm of the determinant of S."""
        raise NotImplementedError

    def diag(self) -> jax.Array:
        """The variances (P,)."""
        raise NotImplementedError

    def dense(self) -> jax.Array:
        """The matrix S (P, P); for inspection and tests."""
        raise NotImplementedError

    @property
    def sd(self) -> jax.Array:
        """The standard deviations (P,)."""
        return jnp.sqrt(self.diag())


def attenuated(root: jax.Array, rows: Any) -> Any:
    """A' J (m, P) for A (k, m), or the diagonal (k,) of a diagonal A, and rows J (k, P)."""
    return root[:, None] * rows if root.ndim == 1 else root.T @ rows


def bend(root: jax.Array, outputs: jax.Array) -> jax.Array:
    """A A' z for z (k,) or (k, n), with A (k, m) or the diagonal (k,) of a diagonal A."""
    if root.ndim == 1:
        square = root**2
        return square * outputs if outputs.ndim == 1 else square[:, None] * outputs
    return root @ (root.T @ outputs)


def kalman_shift(root: jax.Array, residual: jax.Array, cross: Any, inner: jax.Array) -> jax.Array:
    """S J' inv(I + V J S J') e with V = A A': the mean's move under the exact posterior of a local model
    (P,).

    Solved in the small space of the rows without inverting V or the noise, so it holds when the model is
    certain (V = 0, no attenuation of a confident mistake) and when the noise is tiny.

    Arguments:
        root: A (k, m), or the diagonal (k,) of a diagonal A.
        residual: e (k,).
        cross, inner: J S (k, P) and J S J' (k, k).
    """
    system = jnp.eye(inner.shape[0], dtype=inner.dtype) + bend(root, inner)
    solved = residual / system[0] if inner.shape[0] == 1 else jnp.linalg.solve(system, residual)
    return solved @ cross


class Iterate:
    """A belief on the way from a prior N(mu0, inv(L0)) to a posterior; see `credo.covariances.iterates`."""

    whole: ClassVar[bool] = False
    """Whether `cov` forgets nothing and multiplies at once, so that the mean is S d."""

    def blend(self, share: jax.Array) -> Covariance:
        """The covariance of precision (1 - a) L + a L0."""
        raise NotImplementedError

    def dual(self, shift: jax.Array, tracked: jax.Array) -> jax.Array:
        """d = L (mu - mu0) (P,), from the shift mu - mu0 and from d as the rule has tracked it."""
        raise NotImplementedError

    def advance(
        self, blended: Covariance, share: jax.Array, factor: jax.Array, diagonal: jax.Array | None
    ) -> Iterate:
        """Add B' B + diag(d) to the precision of `blended` (as `blend(share)` gave it)."""
        raise NotImplementedError

    @property
    def cov(self) -> Covariance:
        """The covariance here."""
        raise NotImplementedError

    def keep(self) -> Covariance:
        """The covariance here, in its family's own form."""
        return self.cov


class Family:
    """What is kept of a Gaussian's covariance."""

    def init(self, var: jax.Array, *, random: float = 0.0) -> Covariance:
        """The covariance diag(var) for variances (P,).

        Arguments:
            var: the variances.
            random: for a low-rank factor, the share of the precision (from 0, below 1) that random directions
                take at the start; other families have nothing to start and ignore it.
        """
        raise NotImplementedError

    def from_dense(self, matrix: jax.Array) -> Covariance:
        """The member of the family that stands for a dense covariance (P, P); exact only where the family can
        hold it.
        """
        raise NotImplementedError
