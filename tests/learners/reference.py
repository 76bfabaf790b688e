"""Naive references in NumPy: Kalman filters, ridge regression, evidence, normal-inverse-gamma."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.stats

import credo

st: Any = scipy.stats  # its annotations are those of another distribution in places


def linear(params: Any, x: Any) -> Any:
    """x w: the outputs of a linear model; x is (P,) for one output or (C, P) for several."""
    return x @ params


def stream(size: int, steps: int, outputs: int = 0, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and observations of a linear regression."""
    rng = np.random.default_rng(seed)
    xs = rng.normal(size=(steps, outputs, size) if outputs else (steps, size))
    ys = xs @ rng.normal(size=size) + 0.3 * rng.normal(size=xs.shape[:-1])
    return xs, ys


def classes(size: int, steps: int, count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and labels."""
    rng = np.random.default_rng(seed)
    xs = rng.normal(size=(steps, size))
    return xs, np.argmax(xs @ rng.normal(size=(size, count)) + rng.gumbel(size=(steps, count)), axis=1)


def kalman_filter(
    mean: np.ndarray,
    cov: np.ndarray,
    xs: np.ndarray,
    ys: np.ndarray,
    noise: np.ndarray,
    transition: np.ndarray | float = 1.0,
    offset: np.ndarray | float = 0.0,
    drift: np.ndarray | float = 0.0,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The textbook filter: the last mean and covariance, and the log evidence of each observation.

    `noise` is R (C, C), `transition` F, `offset` b, `drift` Q; numbers stand for multiples of the identity.
    """
    size, evidence = len(mean), []
    f = np.eye(size) * transition if np.ndim(transition) == 0 else np.asarray(transition)
    q = np.eye(size) * drift if np.ndim(drift) == 0 else np.asarray(drift)
    for x, y in zip(xs, ys, strict=True):
        h, y = np.atleast_2d(x), np.atleast_1d(y)
        mean, cov = f @ mean + offset, f @ cov @ f.T + q
        spread = h @ cov @ h.T + noise
        evidence.append(st.multivariate_normal(h @ mean, spread).logpdf(y))
        gain = cov @ h.T @ np.linalg.inv(spread)
        mean, cov = mean + gain @ (y - h @ mean), cov - gain @ spread @ gain.T
    return mean, cov, np.array(evidence)


def ridge(mean: np.ndarray, cov: np.ndarray, xs: np.ndarray, ys: np.ndarray, noise: float) -> tuple[Any, ...]:
    """The batch answer: posterior mean and covariance, and the log marginal likelihood of all data."""
    rows, targets = xs.reshape(-1, xs.shape[-1]), ys.reshape(-1)
    precision = np.linalg.inv(cov) + rows.T @ rows / noise
    posterior = np.linalg.inv(precision)
    centre = posterior @ (np.linalg.solve(cov, mean) + rows.T @ targets / noise)
    marginal = st.multivariate_normal(rows @ mean, rows @ cov @ rows.T + noise * np.eye(len(targets)))
    return centre, posterior, marginal.logpdf(targets)


def normal_inverse_gamma(
    mean: np.ndarray, cov: np.ndarray, shape: float, scale: float, xs: np.ndarray, ys: np.ndarray
) -> tuple[Any, ...]:
    """Batch regression with unknown noise variance: mean, covariance in its units, shape, scale, evidence."""
    rows, targets = xs.reshape(-1, xs.shape[-1]), ys.reshape(-1)
    centre, posterior, _ = ridge(mean, cov, rows, targets, 1.0)
    gap = targets - rows @ mean
    spread = rows @ cov @ rows.T + np.eye(len(targets))
    after = scale + 0.5 * gap @ np.linalg.solve(spread, gap)
    marginal = st.multivariate_t(rows @ mean, scale / shape * spread, 2 * shape)
    return centre, posterior, shape + 0.5 * len(targets), after, marginal.logpdf(targets)


def regression(noise: Any = 0.09) -> credo.Model:
    """A linear model with normal noise."""
    return credo.Model(linear, credo.Normal(noise))


def arrays(*values: np.ndarray) -> tuple[Any, ...]:
    """As JAX arrays."""
    return tuple(jnp.asarray(v) for v in values)


def close(got: Any, want: Any, tolerance: float = 1e-10) -> None:
    """Equal to 1e-10, relative or absolute."""
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=tolerance, atol=tolerance)


def alike(one: object, other: object) -> bool:
    """Whether two trees have the same structure."""
    structure: object = jax.tree.structure(one)
    return structure == jax.tree.structure(other)


def right_choices(agent: Any, steps: int) -> np.ndarray:
    """Which of an agent's choices were the arm that pays 1, which the sign of the first input says."""
    rng, belief, right = np.random.default_rng(0), agent.init(), []
    for step in range(steps):
        x = jnp.asarray(rng.normal(size=2))
        choice, best = agent.decide(belief, x, key=step), int(x[0] > 0)
        right.append(int(choice.arm) == best)
        belief, info = agent.update(belief, x, choice.arm, float(right[-1]))
        assert bool(info.ok)
    return np.array(right)


def streams_alike(learner: Any, xs: Any, ys: Any, cut: int, folder: Path) -> None:
    """A loop, a scan, and a scan that is cut and goes on from a file give the same bits."""
    whole, trace = credo.run(learner, learner.init(), xs, ys)
    belief, evidence = learner.init(), []
    for x, y in zip(xs, ys, strict=True):
        belief, info = learner.step(belief, x, y)
        evidence.append(float(info.log_evidence))
    assert belief == whole and evidence == trace.log_evidence.tolist()
    half, _ = credo.run(learner, learner.init(), xs[:cut], ys[:cut])
    again, kept = credo.load(credo.save(folder / "half.credo", learner, half))
    assert again == learner and kept == half
    assert credo.run(again, kept, xs[cut:], ys[cut:])[0] == whole
