"""Exact posteriors of small models, and the divergence of a Gaussian from them."""

from __future__ import annotations

import numpy as np

__all__ = ["gaussian_divergence", "laplace", "logistic_divergence", "logistic_evidence"]

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(32)


def gaussian_divergence(
    mean: np.ndarray, cov: np.ndarray, exact_mean: np.ndarray, exact_prec: np.ndarray
) -> float:
    """Return KL(N(m, S) || N(m*, inv(L*))) in nats.

    Arguments:
        mean, cov: m (D,) and S (D, D).
        exact_mean, exact_prec: m* (D,) and the precision L* (D, D).

    Example:
        >>> gaussian_divergence(np.ones(1), np.eye(1), np.zeros(1), np.eye(1))
        0.5
    """
    gap = mean - exact_mean
    logs = np.linalg.slogdet(exact_prec)[1] + np.linalg.slogdet(cov)[1]
    return float(0.5 * (np.trace(exact_prec @ cov) + gap @ exact_prec @ gap - len(gap) - logs))


def laplace(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mode (D,) of logistic regression with the prior N(0, I), and the precision (D, D) there.

    Both are found by Newton's method.

    Arguments:
        x, y: rows (N, D) and labels 0 or 1 (N,).
    """
    w = np.zeros(x.shape[1])
    eye = np.eye(x.shape[1])
    for _ in range(100):
        p = 1 / (1 + np.exp(-x @ w))
        prec = eye + (x * (p * (1 - p))[:, None]).T @ x
        step = np.linalg.solve(prec, x.T @ (y - p) - w)
        w = w + step
        if np.abs(step).max() < 1e-12:
            break
    p = 1 / (1 + np.exp(-x @ w))
    return w, eye + (x * (p * (1 - p))[:, None]).T @ x


def logistic_evidence(x: np.ndarray, y: np.ndarray, *, seed: int, draws: int = 20_000) -> tuple[float, float]:
    """Return log Z of logistic regression with the prior N(0, I), and its standard error.

    It is an importance sample from a Student distribution with 10 degrees of freedom around the Laplace
    approximation.

    Arguments:
        x, y: rows (N, D) and labels 0 or 1 (N,).
        seed: the seed of the draws.
        draws: how many.
    """
    from scipy.special import gammaln

    d = x.shape[1]
    nu = 10.0
    mode, prec = laplace(x, y)
    chol = np.linalg.cholesky(prec)
    rng = np.random.default_rng([seed, len(y)])
    z = rng.normal(size=(draws, d)) / np.sqrt(rng.chisquare(nu, size=(draws, 1)) / nu)
    w = mode + np.linalg.solve(chol.T, z.T).T
    norm = (
        gammaln((nu + d) / 2) - gammaln(nu / 2) - 0.5 * d * np.log(nu * np.pi) + np.log(np.diag(chol)).sum()
    )
    log_q = norm - 0.5 * (nu + d) * np.log1p((z**2).sum(axis=1) / nu)
    signs = 2.0 * y - 1.0
    log_p = -np.logaddexp(0.0, -(w @ x.T) * signs[None, :]).sum(axis=1)
    log_p += -0.5 * (w**2).sum(axis=1) - 0.5 * d * np.log(2 * np.pi)
    ratio = log_p - log_q
    top = ratio.max()
    weights = np.exp(ratio - top)
    return float(np.log(weights.mean()) + top), float(weights.std() / weights.mean() / draws**0.5)


def logistic_divergence(
    mean: np.ndarray, cov: np.ndarray, x: np.ndarray, y: np.ndarray, evidence: float
) -> float:
    """Return KL(N(m, S) || p) in nats, p the posterior of logistic regression with the prior N(0, I).

    It is exact but for the evidence: the expected log-likelihood of a row is an integral over its one logit.

    Arguments:
        mean, cov: m (D,) and S (D, D).
        x, y: rows (N, D) and labels 0 or 1 (N,).
        evidence: log Z of the posterior.
    """
    d = len(mean)
    signs = 2.0 * y - 1.0
    centre = x @ mean
    sd = np.sqrt(np.maximum(np.einsum("nd,de,ne->n", x, cov, x), 0.0))
    logits = (centre[:, None] + sd[:, None] * _NODES[None, :]) * signs[:, None]
    fit = -(np.logaddexp(0.0, -logits) @ _WEIGHTS).sum() / np.sqrt(2 * np.pi)
    prior = -0.5 * (mean @ mean + np.trace(cov)) - 0.5 * d * np.log(2 * np.pi)
    entropy = 0.5 * np.linalg.slogdet(cov)[1] + 0.5 * d * (1 + np.log(2 * np.pi))
    return float(evidence - fit - prior - entropy)
