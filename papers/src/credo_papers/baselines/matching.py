"""Likelihood matching: a belief about new features that predicts on a memory what the old one predicted."""

from __future__ import annotations

import jax.numpy as jnp

from credo.core.types import Array

__all__ = ["match_predictions"]


def match_predictions(
    outputs: Array, root: Array, rows: Array, prior_mean: Array, prior_root: Array, prior_outputs: Array
) -> tuple[Array, Array]:
    """The belief N(m, S) about D new weights that keeps a joint distribution of N linear outputs.

    Let J (N, D) be the Jacobian of the N outputs in the new weights, N(m0, S0) their prior, with outputs f0,
    and N(f, C) the distribution to be kept, C = R R'. Then

        G = S0 J' inv(J S0 J'),   m = m0 + G (f - f0),   S = (I - G J) S0 (I - G J)' + G C G',

    which is the prior's distribution of the weights *given* the outputs, averaged over the distribution of
    the outputs that is kept (Jeffrey's rule). Of all beliefs that keep it, it is the nearest to the prior in
    Kullback-Leibler divergence. Nabati, Zahavy & Mannor 2021 (arXiv 2102.03799) ask for the variances C_nn
    alone, and search for such an S by projected gradients; here means, variances and covariances are kept in
    closed form.

    Arguments:
        outputs: the means f that are kept (N,).
        root: a root R of the covariance that is kept (N, M).
        rows: J (N, D); rows of zeros are left out.
        prior_mean, prior_root: m0 (D,), and W with S0 = W W' (D, D).
        prior_outputs: f0 (N,), the outputs at m0.

    Returns:
        m (D,), and a root of S (D, D), which is not triangular.

    The distribution is kept exactly where the rows that are not zero are linearly independent, so that N is
    at most D. Otherwise it is kept in the directions in which the new features can tell the outputs apart, by
    the pseudo-inverse. Cost: N D^2 + N^2 D.

    Example:
        >>> f, R = jnp.array([1.0, -1.0]), jnp.array([[0.1, 0.0], [0.2, 0.3]])
        >>> J = jnp.array([[1.0, 0.0, 2.0], [0.0, 1.0, 1.0]])
        >>> mean, W = match_predictions(f, R, J, jnp.zeros(3), jnp.eye(3), jnp.zeros(2))
        >>> (J @ mean).round(4).tolist(), bool(jnp.allclose(J @ W @ W.T @ J.T, R @ R.T, atol=1e-5))
        ([1.0, -1.0], True)
    """
    half = rows @ prior_root  # J W, whose left singular vectors are those of J S0 J'
    left, values, right = jnp.linalg.svd(half, full_matrices=False)
    kept = values > values[0] * max(half.shape) * jnp.finfo(half.dtype).eps
    inverse = jnp.where(kept, 1.0 / jnp.where(kept, values, 1.0), 0.0)
    gain = prior_root @ ((right.T * inverse[None, :]) @ left.T)
    mean = prior_mean + gain @ (outputs - prior_outputs)
    # S = W (I - V V' + V T T' V') W' with the right singular vectors V, so that W is only changed along them
    size = values.shape[0]
    triangle = jnp.linalg.qr((inverse[:, None] * (left.T @ root)).T, mode="r")
    square = jnp.zeros((size, size), half.dtype).at[: triangle.shape[0]].set(triangle).T
    change = square - jnp.diag(kept.astype(half.dtype))
    return mean, prior_root + (prior_root @ right.T) @ change @ right
