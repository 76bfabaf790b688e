"""The grid of rules, curvatures and families, and naive dense references of its updates in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import credo
from credo.core.records import replace
from credo.covariances import DenseCovariance
from credo.learners import Site

RULES: dict[str, Any] = {"bong": credo.bong, "blr": credo.blr, "bog": credo.bog, "bbb": credo.bbb}
CURVATURES: dict[str, Any] = {
    "lin-hess": "lin-hess",
    "lin-ef": "lin-ef",
    "mc-hess": credo.MonteCarloHessian(2, rank=2),
    "mc-ef": credo.MonteCarloEmpiricalFisher(2),
}
FAMILIES: dict[str, credo.covariances.Family] = {
    "full": credo.Full(),
    "diagonal": credo.Diagonal(),
    "low-rank": credo.LowRank(2),
}

Measured = tuple[np.ndarray, np.ndarray]
Measure = Callable[[np.ndarray], Measured]
"""From a mean (P,) to the gradient g (P,) and the expected Hessian G (P, P)."""


def compiled(function: Callable[..., Any], *args: Any) -> Any:
    """The answer of a function as one compiled program."""
    return jax.jit(function)(*args)


def bent(params: Any, x: Any) -> Any:
    """Outputs that are not linear in the parameters: x (C, P) times tanh of them."""
    return x @ jnp.tanh(params)


class Problem:
    """One observation of a softmax of three non-linear outputs, and a correlated prior."""

    def __init__(self, size: int, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.x, self.y, self.label = rng.normal(size=(3, size)), np.eye(3)[1], jnp.asarray(1)
        self.mean = 0.5 * rng.normal(size=size)
        half = rng.normal(size=(size, size))
        self.cov = half @ half.T / size + 0.3 * np.eye(size)
        self.model = credo.Model(bent, credo.Categorical(3))

    def jacobian(self, mean: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The class probabilities and d eta / d theta."""
        eta = self.x @ np.tanh(mean)
        probs = np.exp(eta - eta.max())
        return probs / probs.sum(), self.x * (1.0 - np.tanh(mean) ** 2)

    def hessian(self, mean: np.ndarray) -> Measured:
        """LIN-HESS."""
        probs, rows = self.jacobian(mean)
        return rows.T @ (self.y - probs), -rows.T @ (np.diag(probs) - np.outer(probs, probs)) @ rows

    def fisher(self, mean: np.ndarray) -> Measured:
        """LIN-EF."""
        slope = self.hessian(mean)[0]
        return slope, -np.outer(slope, slope)

    def update(self, learner: Any, key: Any = None, **init: Any) -> tuple[Any, Any]:
        """One update from the prior, or from a diagonal one with the variances `var`."""
        return self.updates([learner], key, **init)[0]

    def updates(self, learners: list[Any], key: Any = None, **init: Any) -> list[tuple[Any, Any]]:
        """One update of each learner, compiled as one program; `belief.cov` is dense."""
        given = init or {"cov": self.cov}

        def program(learners: list[Any], x: jax.Array, mean: jax.Array) -> list[Any]:
            made = []
            for learner in learners:
                belief, info = learner.update(learner.init(mean, **given), x, self.label, key=key)
                made.append((replace(belief, cov=DenseCovariance(belief.cov.dense())), info))
            return made

        result: list[tuple[Any, Any]] = compiled(
            program, learners, jnp.asarray(self.x), jnp.asarray(self.mean)
        )
        return result


def natural_steps(
    mean: np.ndarray, cov: np.ndarray, measure: Measure, rate: float, iterations: int
) -> tuple[np.ndarray, np.ndarray]:
    """BLR: L <- (1 - a) L + a L0 - a G, m <- m + a S (L0 (m0 - m) + g)."""
    prior = np.linalg.inv(cov)
    here, precision = mean, prior
    for _ in range(iterations):
        g, bend = measure(here)
        precision = (1 - rate) * precision + rate * prior - rate * bend
        here = here + rate * np.linalg.solve(precision, prior @ (mean - here) + g)
    return here, np.linalg.inv(precision)


def natural_moments(
    mean: np.ndarray, cov: np.ndarray, measure: Measure, rate: float, iterations: int
) -> tuple[np.ndarray, np.ndarray]:
    """BLR in the moments: m + a S (g + L0 (m0 - m)), S + a S (G + L - L0) S with the old S."""
    prior, here, spread = np.linalg.inv(cov), mean, cov
    for _ in range(iterations):
        g, bend = measure(here)
        moved = here + rate * spread @ (g + prior @ (mean - here))
        spread = spread + rate * spread @ (bend + np.linalg.inv(spread) - prior) @ spread
        here = moved
    return here, spread


def diagonal_steps(
    mean: np.ndarray, var: np.ndarray, measure: Measure, rate: float, iterations: int, gain: str
) -> tuple[np.ndarray, np.ndarray]:
    """BLR on a diagonal: lam <- (1 - a) lam + a lam0 - a d; with gain "joint" the mean moves by the dense
    posterior of this step.
    """
    prior, here, precision = 1 / var, mean, 1 / var
    for _ in range(iterations):
        g, bend = measure(here)
        blended = (1 - rate) * precision + rate * prior
        precision = blended - rate * np.diag(bend)
        slope = rate * (prior * (mean - here) + g)
        whole = np.diag(precision) if gain == "kept" else np.diag(blended) - rate * bend
        here = here + np.linalg.solve(whole, slope)
    return here, 1 / precision


def diagonal_moments(
    mean: np.ndarray, var: np.ndarray, measure: Measure, rate: float, iterations: int
) -> tuple[np.ndarray, np.ndarray]:
    """BLR on a diagonal in the moments: m + a v (g + lam0 (m0 - m)), v + a v^2 (d + lam - lam0)."""
    prior, here, spread = 1 / var, mean, var
    for _ in range(iterations):
        g, bend = measure(here)
        moved = here + rate * spread * (g + prior * (mean - here))
        spread = spread + rate * spread**2 * (np.diag(bend) + 1 / spread - prior)
        here = moved
    return here, spread


def keep(base: np.ndarray, dense: np.ndarray, rank: int) -> tuple[np.ndarray, np.ndarray]:
    """The diagonal and the rows kept of diag(y) + T for a dense T (P, P), by its eigenvectors."""
    values, vectors = np.linalg.eigh(dense)
    kept = (vectors[:, -rank:] * values[-rank:]) @ vectors[:, -rank:].T
    return base + np.diag(dense - kept), (vectors[:, -rank:] * np.sqrt(np.maximum(values[-rank:], 0))).T


def low_rank_steps(
    mean: np.ndarray,
    base: np.ndarray,
    factor: np.ndarray,
    measure: Measure,
    rate: float,
    iterations: int,
    gain: str,
) -> tuple[np.ndarray, np.ndarray]:
    """BLR on diag(y) + W' W, which forgets at every iteration: the mean and the precision."""
    prior, here, rank = np.diag(base) + factor.T @ factor, mean, factor.shape[0]
    level, rows = base, factor
    for _ in range(iterations):
        g, bend = measure(here)
        low = (1 - rate) * rows.T @ rows + rate * factor.T @ factor - rate * bend
        blended = (1 - rate) * level + rate * base
        whole = np.diag(blended) + low
        level, rows = keep(blended, low, rank)
        slope = rate * (prior @ (mean - here) + g)
        here = here + np.linalg.solve(whole if gain == "joint" else np.diag(level) + rows.T @ rows, slope)
    return here, np.diag(level) + rows.T @ rows


def site(problem: Problem, key: Any = None, weight: float = 1.0) -> Site:
    """The observation as a curvature sees it."""
    unravel = credo.extended_kalman(problem.model).init(jnp.asarray(problem.mean)).unravel
    x, one = jnp.asarray(problem.x), jnp.asarray(weight)
    return Site(problem.model, problem.model.likelihood, unravel, x, problem.label, one, key)


def elbo_steps(
    psi: Any,
    moments: Callable[[Any], tuple[jax.Array, jax.Array]],
    prior: tuple[np.ndarray, np.ndarray] | None,
    expected: Callable[[jax.Array, jax.Array, Any], jax.Array],
    rate: float,
    iterations: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Plain gradient steps on the ELBO by automatic differentiation in psi: the last mean and covariance.

    Arguments:
        psi: the parameters, a pytree; `moments` makes the mean and covariance of them.
        prior: its mean and covariance; None leaves out the divergence from it.
        expected: E log p under N(m, S), given also the mean at which the model is measured.
    """

    def objective(psi: Any, at: jax.Array) -> jax.Array:
        m, s = moments(psi)
        fit = expected(m, s, at)
        if prior is None:
            return fit
        away, inverse = m - prior[0], jnp.linalg.inv(prior[1])
        result: jax.Array = fit - 0.5 * (
            jnp.trace(inverse @ s) + away @ inverse @ away - jnp.linalg.slogdet(s)[1]
        )
        return result

    slope = jax.jit(jax.grad(objective))
    for _ in range(iterations):
        psi = jax.tree.map(lambda p, g: p + rate * g, psi, slope(psi, moments(psi)[0]))
    m, s = moments(psi)
    return np.asarray(m), np.asarray(s)
