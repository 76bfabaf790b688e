"""The peer of `bayesopt-ackley`: a Gaussian process of scikit-learn, with its upper bound on a grid."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from credo_papers.bandits.bayesopt_ackley_plan import EVALUATIONS, INITIAL
from credo_papers.bandits.bayesopt_ackley_world import HIGH, LOW, ackley

__all__ = ["gaussian_process"]


def gaussian_process(rng: np.random.Generator) -> np.ndarray:
    """One search, with a squared-exponential kernel and noise, refitted at each step.

    Arguments:
        rng: the random numbers.

    Returns:
        The values (T,).
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    grid = np.linspace(LOW, HIGH, 2001)
    # Three points that are spread evenly, as for our methods: the sequence of the golden ratio.
    share = np.mod(rng.uniform() + (np.sqrt(5.0) - 1.0) / 2.0 * np.arange(1, INITIAL + 1), 1.0)
    points = list(LOW + (HIGH - LOW) * share)
    values = [float(ackley(np.float64(x))) for x in points]
    kernel = ConstantKernel(1.0) * RBF(1.0, (0.2, 10.0)) + WhiteKernel(1e-3, (1e-6, 1.0))
    while len(points) < EVALUATIONS:
        model = GaussianProcessRegressor(
            kernel, normalize_y=True, n_restarts_optimizer=2, random_state=int(rng.integers(2**31))
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(np.array(points)[:, None], np.array(values))
        forecast: Any = model.predict(grid[:, None], return_std=True)
        mean, sd = forecast
        points.append(float(grid[np.argmax(mean + 2.0 * sd)]))
        values.append(float(ackley(np.float64(points[-1]))))
    return np.array(values)
