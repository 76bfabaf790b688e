"""The world of `kf-linreg`: rows of a linear regression with fixed weights.

y_t = w' x_t + N(0, beta),    x_t ~ N(0, I)
"""

from __future__ import annotations

import numpy as np

from credo_papers.engine.plain_data import Arrays

__all__ = ["BETA", "ROWS", "TEST_ROWS", "WEIGHTS", "simulate"]

ROWS = 500
TEST_ROWS = 500
WEIGHTS = np.array([0.29, 0.72])
BETA = 1.0
"""The variance of the noise."""


def simulate(seed: int, index: int) -> Arrays:
    """Return one data set: `x` (500, 2), `y` (500,), and as many test rows, `x_test` and `y_test`.

    Arguments:
        seed: the seed of the experiment.
        index: the index of the data set.
    """
    rng = np.random.default_rng([seed, 0, index])
    x = rng.normal(size=(ROWS + TEST_ROWS, 2))
    y = x @ WEIGHTS + np.sqrt(BETA) * rng.normal(size=ROWS + TEST_ROWS)
    return {"x": x[:ROWS], "y": y[:ROWS], "x_test": x[ROWS:], "y_test": y[ROWS:]}
