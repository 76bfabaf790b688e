"""Linear regression, one row at a time: the recursive posterior ends where ridge regression on all rows ends.

    w ~ N(0, alpha I),    y_t = w' x_t + N(0, beta),    x_t ~ N(0, I)

With a static weight vector the Kalman filter is Bayes' rule. So at every t its mean is the ridge estimate
with penalty lambda = beta / alpha on the rows so far, and the sum of its log evidences is
log N(y | 0, alpha X X' + beta I). Both hold to rounding error, so they are computed in double precision,
whatever the global setting of JAX is.
"""

from __future__ import annotations

import jax
import numpy as np

from credo_papers.engine.cell_folder import Cells
from credo_papers.engine.experiment import Outcome, Size
from credo_papers.engine.portions import Progress
from credo_papers.engine.quantities import Row, mean_se
from credo_papers.kalman.kf_linreg_figure import draw
from credo_papers.kalman.kf_linreg_learner import batch_evidence, learn, make_learner, ridge
from credo_papers.kalman.kf_linreg_plan import ALPHA, PUBLISHED, PUBLISHED_RMSE, SETS
from credo_papers.kalman.kf_linreg_world import BETA, ROWS, TEST_ROWS, WEIGHTS, simulate

__all__ = ["run"]


def run(size: Size, seed: int, progress: Progress, cells: Cells | None = None) -> Outcome:
    """Learn many data sets at once, in double precision, and compare with ridge regression on all rows."""
    count = SETS[size]
    progress(0.0, f"simulating {count} data sets")
    data = [simulate(seed, index) for index in range(count)]
    x, y, x_test, y_test = (np.stack([one[key] for one in data]) for key in ("x", "y", "x_test", "y_test"))
    progress(0.1, f"learning {count} data sets, row by row")
    with jax.enable_x64(True):
        learner = make_learner()
        prior = learner.init(np.zeros(2), var=ALPHA)
        learned = learn(learner, prior, x, y)
        means, sds, evidences, forecasts, variances = (np.asarray(array) for array in learned)
    progress(0.6, "solving for all rows at once")
    batch = np.stack([ridge(*pair) for pair in zip(x, y, strict=True)])
    exact = np.array([batch_evidence(*pair) for pair in zip(x, y, strict=True)])

    gaps = np.abs(means - batch).max(axis=2)
    rmse = np.sqrt(np.mean((y_test[:, None, :] - means @ np.swapaxes(x_test, 1, 2)) ** 2, axis=2))
    ridge_rmse = np.sqrt(np.mean((y_test - np.einsum("nri,ni->nr", x_test, batch[:, -1])) ** 2, axis=1))
    inside = np.abs(means[:, -1] - WEIGHTS) <= 1.959964 * sds[:, -1]
    totals = evidences.sum(axis=1)
    # each row is forecast before it is learned; ridge regression on all rows has seen what it is asked
    squares = (y - forecasts) ** 2
    hindsight = (y - np.einsum("nri,ni->nr", x, batch[:, -1])) ** 2
    share = squares / variances
    running = np.sqrt(np.cumsum(squares, axis=1) / np.arange(1, ROWS + 1))
    running_hindsight = np.sqrt(np.cumsum(hindsight, axis=1) / np.arange(1, ROWS + 1))
    median = float(np.median(gaps[:, -1]))
    largest = float(gaps[:, -1].max())
    mismatch = float(np.abs(totals - exact).max())
    published = "published: one data set"
    series = {
        "t": np.arange(1, ROWS + 1),
        **{f"mean_{i}": means[0, :, i] for i in range(2)},
        **{f"sd_{i}": sds[0, :, i] for i in range(2)},
        **{f"ridge_{i}": batch[0, :, i] for i in range(2)},
        "test_rmse": rmse[0],
        "gap_largest": gaps.max(axis=0),
        "gap_median": np.median(gaps, axis=0),
        "log_evidence": evidences[0],
        "prequential_rmse": running[0],
        "hindsight_rmse": running_hindsight[0],
        "square_mean": squares.mean(axis=0),
        "square_said": variances.mean(axis=0),
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
    rows = (
        Row("|mean - ridge| at T, median", median, None, PUBLISHED["median"], note=f"{count} data sets"),
        Row("|mean - ridge| at T, largest", largest, None, PUBLISHED["largest"], note=published),
        Row("|mean - ridge| at any t, largest", float(gaps.max()), note="ridge anew on the first t rows"),
        Row("|log evidence - batch|, largest", mismatch, note=f"of {exact.mean():.0f} nats"),
        Row("test RMSE at T", *mean_se(rmse[:, -1]), PUBLISHED_RMSE, note=f"{published}, not available"),
        Row("test RMSE, recursive - ridge, largest", float(np.abs(rmse[:, -1] - ridge_rmse).max())),
        Row("prequential RMSE", *mean_se(running[:, -1]), note="each row before it is learned"),
        Row("prequential RMSE of ridge on all rows", *mean_se(running_hindsight[:, -1]), note="in hindsight"),
        Row(
            "prequential square / variance said",
            *mean_se(share.mean(axis=1)),
            note="1 expected",
        ),
        Row("truth inside the 95% interval at T", *mean_se(inside.mean(axis=1)), note="0.95 expected"),
    )
    return Outcome(rows, settings, seeds, series, arrays, lambda: draw(series, float(ridge_rmse[0]), count))
