"""Linear regression, one row at a time: the recursive posterior ends where ridge regression on all rows ends.

    w ~ N(0, alpha I),    y_t = w' x_t + N(0, beta),    x_t ~ N(0, I)

With a static weight vector the Kalman filter is Bayes' rule, so at every t its mean is the ridge estimate
with penalty lambda = beta / alpha on the rows so far, and the sum of its log evidences is
log N(y | 0, alpha X X' + beta I). Both hold to rounding error, so they are computed in double precision
(whatever JAX's global setting is).
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

import credo
from credo.experiments.records import Outcome, Progress, Row, Size, mean_se
from credo.plots import PALETTE, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["ridge", "run", "simulate"]

ROWS, TEST_ROWS = 500, 500
SETS = {"quick": 20, "full": 200}
WEIGHTS = np.array([0.29, 0.72])
ALPHA, BETA = 1.0, 1.0


def simulate(seed: int, index: int) -> dict[str, np.ndarray]:
    """One data set: `x` (500, 2), `y` (500,), and as many rows for testing."""
    rng = np.random.default_rng([seed, 0, index])
    x = rng.normal(size=(ROWS + TEST_ROWS, 2))
    y = x @ WEIGHTS + np.sqrt(BETA) * rng.normal(size=ROWS + TEST_ROWS)
    return {"x": x[:ROWS], "y": y[:ROWS], "x_test": x[ROWS:], "y_test": y[ROWS:]}


def ridge(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The ridge estimates (T, 2) on the first 1, 2, ..., T rows, each by solving its normal equations."""
    gram = np.cumsum(x[:, :, None] * x[:, None, :], axis=0) + BETA / ALPHA * np.eye(x.shape[1])
    return np.linalg.solve(gram, np.cumsum(x * y[:, None], axis=0)[..., None])[..., 0]


def batch_evidence(x: np.ndarray, y: np.ndarray) -> float:
    """log N(y | 0, alpha X X' + beta I), from the T x T covariance."""
    cov = ALPHA * x @ x.T + BETA * np.eye(y.size)
    square = y @ np.linalg.solve(cov, y)
    return float(-0.5 * (square + np.linalg.slogdet(cov)[1] + y.size * np.log(2 * np.pi)))


def _predict(weights: jax.Array, x: jax.Array) -> jax.Array:
    return weights @ x


@jax.jit
@functools.partial(jax.vmap, in_axes=(None, None, 0, 0))
def _learn(learner: Any, prior: Any, xs: jax.Array, ys: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The posterior means and standard deviations (T, 2) after each row, and the log evidences (T,)."""

    def body(belief: Any, row: Any) -> tuple[Any, Any]:
        belief, info = learner.step(belief, *row)
        return belief, (belief.mean, belief.sd, info.log_evidence)

    return jax.lax.scan(body, prior, (xs, ys))[1]


def run(size: Size, seed: int, progress: Progress) -> Outcome:
    """Learn many data sets at once, in double precision; compare with ridge regression on all rows."""
    count = SETS[size]
    progress(0.0, f"simulating {count} data sets")
    data = [simulate(seed, index) for index in range(count)]
    x, y, x_test, y_test = (np.stack([one[key] for one in data]) for key in ("x", "y", "x_test", "y_test"))
    progress(0.1, f"learning {count} data sets, row by row")
    with jax.enable_x64(True):
        learner = credo.extended_kalman(credo.Model(_predict, credo.Normal(BETA)))
        prior = learner.init(np.zeros(2), var=ALPHA)
        means, sds, evidences = (np.asarray(array) for array in _learn(learner, prior, x, y))
    progress(0.6, "solving for all rows at once")
    batch = np.stack([ridge(*pair) for pair in zip(x, y, strict=True)])
    exact = np.array([batch_evidence(*pair) for pair in zip(x, y, strict=True)])

    gaps = np.abs(means - batch).max(axis=2)
    rmse = np.sqrt(np.mean((y_test[:, None, :] - means @ np.swapaxes(x_test, 1, 2)) ** 2, axis=2))
    ridge_rmse = np.sqrt(np.mean((y_test - np.einsum("nri,ni->nr", x_test, batch[:, -1])) ** 2, axis=1))
    covered = np.abs(means[:, -1] - WEIGHTS) <= 1.959964 * sds[:, -1]
    totals = evidences.sum(axis=1)
    rows = (
        Row(
            "|mean - ridge| at T, median",
            float(np.median(gaps[:, -1])),
            None,
            "~1e-16",
            note=f"{count} data sets",
        ),
        Row(
            "|mean - ridge| at T, largest",
            float(gaps[:, -1].max()),
            None,
            "7e-16",
            note="published: one data set",
        ),
        Row("|mean - ridge| at any t, largest", float(gaps.max()), note="ridge anew on the first t rows"),
        Row(
            "|log evidence - batch|, largest",
            float(np.abs(totals - exact).max()),
            note=f"of {exact.mean():.0f} nats",
        ),
        Row("test RMSE at T", *mean_se(rmse[:, -1]), 0.977, note="published: one data set, not available"),
        Row("test RMSE, recursive - ridge, largest", float(np.abs(rmse[:, -1] - ridge_rmse).max())),
        Row("truth inside the 95% interval at T", *mean_se(covered.mean(axis=1)), note="0.95 expected"),
    )
    series = {
        "t": np.arange(1, ROWS + 1),
        **{f"mean_{i}": means[0, :, i] for i in range(2)},
        **{f"sd_{i}": sds[0, :, i] for i in range(2)},
        **{f"ridge_{i}": batch[0, :, i] for i in range(2)},
        "test_rmse": rmse[0],
        "gap_largest": gaps.max(axis=0),
        "gap_median": np.median(gaps, axis=0),
        "log_evidence": evidences[0],
    }
    arrays = {
        "gap_at_T": gaps[:, -1],
        "ridge_rmse": ridge_rmse,
        "evidence_batch": exact,
        "evidence_recursive": totals,
    }
    settings = {
        "rows": ROWS,
        "test_rows": TEST_ROWS,
        "data_sets": count,
        "weights": WEIGHTS.tolist(),
        "prior_var": ALPHA,
        "noise_var": BETA,
        "dtype": "float64",
    }
    seeds = {
        "data": f"numpy.random.default_rng([{seed}, 0, i]), i = 0..{count - 1}",
        "figure": "i = 0; gaps: all",
    }
    return Outcome(rows, settings, seeds, series, arrays, lambda: draw(series, float(ridge_rmse[0]), count))


def draw(series: dict[str, np.ndarray], ridge_rmse: float, count: int) -> Figure:
    """The two weights, the test error and the distance to ridge, against the number of rows seen."""
    figure = new_figure()
    figure.suptitle("Linear regression row by row meets ridge regression on all rows")
    (first, second), (error, gap) = figure.subplots(2, 2, sharex=True)
    t = series["t"]
    for i, axes in enumerate((first, second)):
        mean, sd = series[f"mean_{i}"], series[f"sd_{i}"]
        axes.fill_between(
            t, mean - 2 * sd, mean + 2 * sd, color=PALETTE["blue"], alpha=0.2, lw=0, label="± 2 sd"
        )
        axes.plot(t, mean, color=PALETTE["blue"], label="recursive mean")
        axes.axhline(series[f"ridge_{i}"][-1], color=PALETTE["orange"], ls="--", label="ridge, all rows")
        axes.axhline(WEIGHTS[i], color=PALETTE["ink"], ls=":", lw=1.5, label="truth")
        axes.set(
            title=f"Weight {i + 1}, one data set",
            ylabel=f"$w_{i + 1}$",
            ylim=(WEIGHTS[i] - 3, WEIGHTS[i] + 2.2),
        )
        axes.legend(loc="lower right", ncols=2)
    error.plot(t, series["test_rmse"], color=PALETTE["blue"], label="recursive")
    error.axhline(ridge_rmse, color=PALETTE["orange"], ls="--", label="ridge, all rows")
    error.set(title=f"Error on {TEST_ROWS} test rows, one data set", xlabel="rows seen t", ylabel="RMSE")
    error.legend(loc="upper right")
    floor = 1e-17
    gap.plot(t, np.maximum(series["gap_largest"], floor), color=PALETTE["green"], lw=1.2, label="largest")
    gap.plot(t, np.maximum(series["gap_median"], floor), color=PALETTE["blue"], lw=1.2, label="median")
    gap.axhline(np.finfo(float).eps, color=PALETTE["ink"], ls=":", lw=1.5, label="machine epsilon")
    gap.set(title=f"Distance to ridge on the first t rows, {count} data sets", xlabel="rows seen t")
    gap.set(ylabel="|mean - ridge|", yscale="log", ylim=(floor, 1e-13), xscale="log", xlim=(1, ROWS))
    gap.set_xticks([1, 10, 100, ROWS], ["1", "10", "100", f"{ROWS}"])
    gap.legend(loc="upper center", ncols=3)
    return figure
