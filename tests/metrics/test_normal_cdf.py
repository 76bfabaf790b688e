"""The normal distribution function of the metrics, and the width of the interval of 90%."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr, ndtri

from credo.metrics.summary import normal_cdf
from credo.sessions import tally


def test_it_is_that_of_scipy_to_rounding_and_keeps_shapes_and_missing_numbers() -> None:
    z = np.concatenate([np.linspace(-37.0, 8.5, 301), [np.inf, -np.inf, np.nan]])
    # they may differ by some units in the last place, far out by those of z z / 2 in the exponent
    np.testing.assert_allclose(normal_cdf(z), ndtr(z), rtol=1e-12)
    assert normal_cdf(np.zeros((2, 3))).tolist() == [[0.5] * 3] * 2
    assert normal_cdf(np.zeros(0)).dtype == float


def test_the_interval_of_ninety_percent_is_as_wide_as_it_says() -> None:
    np.testing.assert_allclose(tally.WIDTH, 2 * ndtri(0.95), rtol=1e-15)
