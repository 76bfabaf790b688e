"""What figures of experiments need beside `credo.plots`."""

from __future__ import annotations

import numpy as np
import pytest

from credo_papers.engine.pictures import ellipse


@pytest.mark.parametrize("radius", [0.5, 2.0])
def test_an_ellipse_has_its_radius(radius: float) -> None:
    cov, mean = np.array([[2.0, 0.3], [0.3, 0.5]]), np.array([1.0, -2.0])
    gaps = ellipse(mean, cov, radius) - mean
    np.testing.assert_allclose(np.sum(gaps * np.linalg.solve(cov, gaps.T).T, axis=1), radius**2, rtol=1e-10)
