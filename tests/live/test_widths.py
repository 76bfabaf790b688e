"""How much wider forecasts of several steps become than they were computed."""

from __future__ import annotations

import numpy as np
import pytest

from credo.core.errors import FormatError
from credo.live.series import Widths


def test_the_width_of_a_step_is_by_the_errors_of_it_and_its_neighbours() -> None:
    errors = np.array([[1.0, 2.0, np.nan, 3.0, 9.0], [0.0, 1.0, 1.0, np.nan, 2.0]])
    widths = Widths.empty(5)
    for row in errors:
        widths = widths.add(row)
    for step in range(5):
        near = errors[:, max(0, step - 2) : step + 3]
        squares = np.nansum(np.minimum(near**2, 25.0)) / near.shape[1]
        count = np.isfinite(near).sum() / near.shape[1]
        assert widths.factors(5)[step] == pytest.approx(np.sqrt((5 + squares) / (5 + count)))


def test_widths_are_one_before_any_forecast_and_for_new_steps() -> None:
    assert Widths.empty(3).factors(3).tolist() == [1.0, 1.0, 1.0]
    widths = Widths.empty(1).add(np.array([4.0])).factors(5)
    assert widths[0] > 1.0 and widths[3:].tolist() == [1.0, 1.0]


def test_widths_are_saved_and_malformed_ones_refused() -> None:
    widths = Widths.empty(2).add(np.array([1.5, np.nan]))
    again = Widths.from_arrays(widths.arrays())
    np.testing.assert_array_equal(again.factors(2), widths.factors(2))
    for wrong in ({"width_counts": np.ones(3)}, {"width_squares": np.array([np.nan, 1.0])}):
        with pytest.raises(FormatError, match="widths must be finite"):
            Widths.from_arrays(widths.arrays() | wrong)
