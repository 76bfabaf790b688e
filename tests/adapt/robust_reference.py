"""Robust updates as naive loops in NumPy, and the learners they are compared to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import scipy.special as ss
import scipy.stats as st
from tests.learners.reference import regression, stream

import credo
from credo.adapt import GammaWeight, InverseWishartNoise, OutlierIndicator, StudentTNoise, WoLF

P, T = 3, 8
MATRIX = np.array([[0.3, 0.1], [0.1, 0.2]])
PRIOR = np.array([0.5, 1.0, 2.0])
KALMAN = credo.extended_kalman(regression(0.3))
WALK = credo.extended_kalman(regression(0.3), dynamics=credo.RandomWalk(0.05))
METHODS: dict[str, Callable[[Any], Any]] = {
    "imq": lambda learner: WoLF(learner, 1.5),
    "mahalanobis": lambda learner: WoLF(learner, 2.5, "mahalanobis"),
    "student": lambda learner: StudentTNoise(learner, 3.0, iterations=3),
    "student-once": lambda learner: StudentTNoise(learner, 3.0, iterations=1),
    "gamma": lambda learner: GammaWeight(learner, 1.2, 0.7, iterations=2),
    "wishart": lambda learner: InverseWishartNoise(learner, 3.5, iterations=3),
    "indicator": lambda learner: OutlierIndicator(learner, 2.0, 0.5, iterations=3),
}

TAILED = ("student", "student-once", "gamma", "wishart")

FEW = ("imq", "student", "wishart", "indicator")


Moments: TypeAlias = tuple[np.ndarray, np.ndarray]
Update: TypeAlias = tuple[np.ndarray, np.ndarray, float]


def _with(after: Moments, log_evidence: float) -> Update:
    """An update with its evidence."""
    return after[0], after[1], log_evidence


def residual(mean: np.ndarray, cov: np.ndarray, h: np.ndarray, y: np.ndarray) -> Moments:
    """y - H m and H P H'."""
    return y - h @ mean, h @ cov @ h.T


def kalman(mean: np.ndarray, cov: np.ndarray, h: np.ndarray, y: np.ndarray, noise: np.ndarray) -> Moments:
    """The textbook update."""
    spread = h @ cov @ h.T + noise
    gain = cov @ h.T @ np.linalg.inv(spread)
    return mean + gain @ (y - h @ mean), cov - gain @ spread @ gain.T


def normal(e: np.ndarray, cov: np.ndarray) -> float:
    """log N(e | 0, cov)."""
    density: Any = st.multivariate_normal
    return float(density.logpdf(e, np.zeros(len(e)), cov))


def student(e: np.ndarray, df: float, cov: np.ndarray) -> float:
    """log t(e | df, 0, cov)."""
    density: Any = st.multivariate_t
    return float(density.logpdf(e, np.zeros(len(e)), cov, df))


def wolf(
    mean: np.ndarray, cov: np.ndarray, h: np.ndarray, y: np.ndarray, r: np.ndarray, c: float = 1.5
) -> Update:
    """Inverse multi-quadratic weights: R / W^2."""
    e, s = residual(mean, cov, h, y)
    weight = (1 + e @ e / c**2) ** -0.5
    return _with(kalman(mean, cov, h, y, r / weight**2), normal(e, s + r / weight**2))


def gate(
    mean: np.ndarray, cov: np.ndarray, h: np.ndarray, y: np.ndarray, r: np.ndarray, c: float = 2.5
) -> Update:
    """All or nothing, by the Mahalanobis distance under the noise."""
    e, s = residual(mean, cov, h, y)
    far = np.sqrt(e @ np.linalg.inv(r) @ e)
    if far < c:
        return _with(kalman(mean, cov, h, y, r), normal(e, s + r))
    return mean, cov, normal(e, s + r * far**2 / c**2)


def scaled(
    mean: np.ndarray,
    cov: np.ndarray,
    h: np.ndarray,
    y: np.ndarray,
    r: np.ndarray,
    a: float,
    b: float,
    rounds: int,
) -> Update:
    """Gamma weights."""
    e, s = residual(mean, cov, h, y)
    level, inverse, size = b / a, np.linalg.inv(r), len(e)
    weight = (a + size / 2) / (b + level * e @ np.linalg.solve(s + level * r, e) / 2)
    after = kalman(mean, cov, h, y, r / weight)
    for _ in range(rounds - 1):
        left, spread = residual(after[0], after[1], h, y)
        weight = (a + size / 2) / (b + (left @ inverse @ left + np.trace(inverse @ spread)) / 2)
        after = kalman(mean, cov, h, y, r / weight)
    return _with(after, student(e, 2 * a, s + level * r))


def wishart(
    mean: np.ndarray,
    cov: np.ndarray,
    h: np.ndarray,
    y: np.ndarray,
    r: np.ndarray,
    df: float = 3.5,
    rounds: int = 3,
) -> Update:
    """An inverse-Wishart covariance for each observation."""
    e, s = residual(mean, cov, h, y)
    second = np.outer(e, e) * (e @ np.linalg.solve(s + r, e)) / (e @ np.linalg.solve(r, e))
    after = kalman(mean, cov, h, y, (df * r + second) / (df + 1))
    for _ in range(rounds - 1):
        left, spread = residual(after[0], after[1], h, y)
        after = kalman(mean, cov, h, y, (df * r + np.outer(left, left) + spread) / (df + 1))
    tail = df - len(e) + 1
    return _with(after, student(e, tail, s + r * df / tail))


def indicator(
    mean: np.ndarray,
    cov: np.ndarray,
    h: np.ndarray,
    y: np.ndarray,
    r: np.ndarray,
    a: float = 2.0,
    b: float = 0.5,
) -> Update:
    """Three rounds on the inlier indicator."""
    e, s = residual(mean, cov, h, y)
    inverse, inlier, distance = np.linalg.inv(r), 1.0, e @ np.linalg.solve(s + r, e)
    after = (mean, cov)
    for _ in range(3):
        log_in, log_out = ss.digamma(a + inlier) - distance / 2, ss.digamma(b + 1 - inlier)
        inlier = np.exp(log_in) / (np.exp(log_in) + np.exp(log_out))
        after = kalman(mean, cov, h, y, r / inlier) if inlier > 0 else (mean, cov)
        left, spread = residual(after[0], after[1], h, y)
        distance = left @ inverse @ left + np.trace(inverse @ spread)
    peak = normal(np.zeros(len(e)), r)
    return _with(after, np.log((a * np.exp(normal(e, s + r)) + b * np.exp(peak)) / (a + b)))


def _scaled(a: float, b: float, rounds: int) -> Callable[..., Update]:
    """Gamma weights with these numbers."""

    def update(mean: np.ndarray, cov: np.ndarray, h: np.ndarray, y: np.ndarray, r: np.ndarray) -> Update:
        return scaled(mean, cov, h, y, r, a, b, rounds)

    return update


NAIVE: dict[str, Callable[..., Update]] = {
    "imq": wolf,
    "mahalanobis": gate,
    "student": _scaled(1.5, 1.5, 3),
    "student-once": _scaled(1.5, 1.5, 1),
    "gamma": _scaled(1.2, 0.7, 2),
    "wishart": wishart,
    "indicator": indicator,
}


def data(outputs: int) -> tuple[np.ndarray, np.ndarray]:
    """A regression with two outliers."""
    xs, ys = stream(P, T, outputs)
    ys[2] += 7.0
    ys[5] -= 30.0
    return xs, ys


def elbo(mean: Any, cov: Any, h: Any, y: Any, r: Any, after: Any, spread: Any, df: float, kind: str) -> float:  # noqa: PLR0913 - the parts of one call, in their order
    """The evidence lower bound for the belief N(after, spread) and the best q of the noise, term by term."""
    size, inverse = len(y), np.linalg.inv(r)
    left, pushed = residual(after, spread, h, y)
    second = np.outer(left, left) + pushed
    solved, gap = np.linalg.inv(cov), after - mean
    bend = np.trace(solved @ spread) - len(mean) + gap @ solved @ gap
    divergence = 0.5 * (bend + np.linalg.slogdet(cov)[1] - np.linalg.slogdet(spread)[1])
    logs = -0.5 * size * np.log(2 * np.pi)
    if kind == "student":
        a, b = df / 2, df / 2
        c, d = a + size / 2, b + np.trace(inverse @ second) / 2
        log_w = ss.digamma(c) - np.log(d)
        fit = (
            logs - 0.5 * np.linalg.slogdet(r)[1] + size / 2 * log_w - 0.5 * c / d * np.trace(inverse @ second)
        )
        prior = a * np.log(b) - ss.gammaln(a) + (a - 1) * log_w - b * c / d
        return float(fit + prior + st.gamma(c, scale=1 / d).entropy() - divergence)
    scale, count = df * r + second, df + 1
    log_w = ss.digamma((count - np.arange(size)) / 2).sum() + size * np.log(2) - np.linalg.slogdet(scale)[1]
    expected = count * np.linalg.inv(scale)

    def log_gamma(a: float) -> float:
        terms = ss.gammaln(a - 0.5 * np.arange(size))
        return float(size * (size - 1) / 4 * np.log(np.pi) + terms.sum())

    def log_density(psi: np.ndarray, nu: float) -> float:
        constant = nu / 2 * np.linalg.slogdet(psi)[1] - nu * size / 2 * np.log(2) - log_gamma(nu / 2)
        return float(constant + (nu - size - 1) / 2 * log_w - 0.5 * np.trace(psi @ expected))

    fit = logs + 0.5 * log_w - 0.5 * np.trace(expected @ second)
    return float(fit + log_density(df * r, df) - log_density(scale, count) - divergence)
