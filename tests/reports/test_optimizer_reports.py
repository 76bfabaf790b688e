"""Faults that others reported of Bayesian optimisation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from credo import bandits
from credo.core.errors import CredoError

LINE: Any = {"x": (0.0, 1.0)}


def optimizer(bounds: Any, **options: Any) -> bandits.Optimizer:
    return bandits.Optimizer(None, bounds, **options)


def asked(best: bandits.Optimizer, count: int) -> list[Any]:
    """So many first points, which are spread without a learner."""
    return [best.ask() for _ in range(count)]


def test_a_function_that_gives_no_number_counts_as_a_trial_that_failed() -> None:
    """scikit-optimize/scikit-optimize#482: an objective that is NaN somewhere ends the search by an error."""
    best = bandits.minimize(lambda point: math.nan, LINE, evaluations=3)
    assert [value for _, value in best.history] == [None] * 3
    with pytest.raises(CredoError, match="there is no best point before the first value"):
        _ = best.best
    again = optimizer(LINE)
    with pytest.raises(CredoError, match="value must be a finite number; got nan"):
        again.tell({"x": 0.5}, math.nan)
    assert again.history == []


def test_a_search_in_which_all_trials_failed_goes_on() -> None:
    """SheffieldML/GPyOpt#136: a search cannot be told that a trial gave no value."""
    best = optimizer(LINE, seed=1)
    for _ in range(5):
        best.tell(best.ask(), None)
    point: Any = best.ask()
    history: Any = best.history
    tried = [one["x"] for one, _ in history]
    assert 0.0 <= point["x"] <= 1.0 and min(abs(point["x"] - one) for one in tried) > 1e-3


@pytest.mark.slow
def test_values_that_are_all_equal_are_no_error() -> None:
    """scikit-optimize/scikit-optimize#994: equal values in a row are standardised by zero, which is NaN."""
    best = optimizer(LINE, seed=0)
    for x in (0.1, 0.4, 0.5, 0.9):
        best.tell({"x": x}, -1.0)
    point: Any = best.ask()
    assert 0.0 <= point["x"] <= 1.0 and best.best == ({"x": 0.1}, -1.0)
    mean, sd = best.expect([{"x": 0.4}, {"x": 0.7}])
    np.testing.assert_allclose(mean, -1.0, atol=1e-3)
    assert np.isfinite(sd).all()


def test_points_that_are_told_again_and_again_are_no_error() -> None:
    """meta-pytorch/botorch#179: points that come twice make a covariance that has no factor."""
    best = optimizer(LINE, seed=0)
    for x, value in ((0.5, 1.0),) * 5 + ((0.25, 2.0),) * 3:
        best.tell({"x": x}, value)
    mean, sd = best.expect([{"x": 0.5}, {"x": 0.25}])
    np.testing.assert_allclose(mean, [1.0, 2.0], atol=0.05)
    assert np.isfinite(sd).all() and best.recommended == {"x": 0.25}


def test_options_of_several_kinds_come_back_as_they_were() -> None:
    """scikit-optimize/scikit-optimize#958: options that are numbers and texts all come back as texts."""
    options = [0.8, 1, "sqrt", "log2", None]
    best = optimizer({"k": options}, initial=20)
    points = asked(best, 20)
    assert {(type(point["k"]), point["k"]) for point in points} == {(type(one), one) for one in options}
    with pytest.raises(CredoError, match=r"k must be one of 0\.8, 1, 'sqrt', 'log2', None; got True"):
        best.tell({"k": True}, 1.0)


def test_a_list_of_two_numbers_is_two_options_and_no_range() -> None:
    """scikit-optimize/scikit-optimize#1064: a list of two numbers is taken for a range."""
    points = asked(optimizer({"n": [250, 500]}, initial=12), 12)
    assert {point["n"] for point in points} == {250, 500}


def test_points_of_a_logarithmic_range_stay_inside_and_reach_its_ends() -> None:
    """optuna/optuna#5457: on a logarithmic scale points are outside of their range."""
    best = optimizer({"eps": (1e-7, 0.1, "log"), "n": (1, 4, "log", "whole")}, initial=40, seed=2)
    points = asked(best, 40)
    assert all(1e-7 <= point["eps"] <= 0.1 for point in points)
    assert min(point["eps"] for point in points) < 1e-6 and max(point["eps"] for point in points) > 1e-2
    assert {point["n"] for point in points} == {1, 2, 3, 4} and {type(point["n"]) for point in points} == {
        int
    }
    for end in (1e-7, 0.1):
        best.tell({"eps": end, "n": 4}, 1.0)
    with pytest.raises(CredoError, match=r"eps must be a number from 1e-07 to 0\.1; got 0\.11"):
        best.tell({"eps": 0.11, "n": 4}, 1.0)


def test_a_variable_of_one_value_is_a_constant() -> None:
    """scikit-optimize/scikit-optimize#615: a variable with one option makes a search fail."""
    best = optimizer({"k": ["a"], "w": (3, 3, "whole"), "r": (1.5, 1.5), "x": (0.0, 1.0)}, initial=6)
    points = asked(best, 6)
    assert all((point["k"], point["w"], point["r"]) == ("a", 3, 1.5) for point in points)
    assert len({point["x"] for point in points}) == 6
    best.tell(points[0], 1.0)
    assert best.best[0] == points[0]


@pytest.mark.parametrize(
    ("bounds", "says"),
    [
        ({"x": (-1e308, 1e308)}, "the bounds of x must be less than 8e307 apart"),
        ([[-1e308, 1e308]], r"the bounds of bounds\[0\] must be less than 8e307 apart"),
        ({"n": (0, 10**400, "whole")}, "the bounds of n must be two finite numbers"),
        ([[0, 10**400]], r"bounds must be an array \(d, 2\)"),
    ],
)
def test_a_range_whose_width_is_beyond_all_numbers_is_refused(bounds: Any, says: str) -> None:
    """facebookresearch/nevergrad#1592: the width of the widest range of numbers overflows."""
    with pytest.raises(CredoError, match=says):
        optimizer(bounds)


def test_a_whole_number_beyond_all_floats_is_outside_of_a_range() -> None:
    """microsoft/MLOS#773: a number that is too large for the machine ends the search with its own error."""
    best = optimizer({"n": (0, 2**60, "whole")})
    assert len({point["n"] for point in asked(best, 3)}) == 3
    with pytest.raises(CredoError, match="n must be a whole number from 0 to"):
        best.tell({"n": 10**400}, 1.0)
    best.tell({"n": 2**53 + 1}, 1.0)
    assert best.best[0] == {"n": 2**53 + 1}
