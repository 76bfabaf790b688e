"""Shrunk weights are the published ones, and their bounds those that loops over rows and bounds find."""

from __future__ import annotations

import math
from typing import get_args

import numpy as np
import pytest

from credo.bandits.evaluation.shrinkage import Cut, candidate_bounds, cut_by, tuned_bound


def _cut(w: float, cut: str, c: float) -> float:
    if c == math.inf:
        return w
    if cut == "clip":
        return w if w < c else c
    if cut == "drop":
        return w if w <= c else 0.0
    return c * c / (w * w + c * c) * w


def _rows(seed: int, rows: int = 60) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=rows), np.exp(1.5 * rng.normal(size=rows)), rng.normal(size=rows) + 0.3


@pytest.mark.parametrize("cut", get_args(Cut))
def test_a_cut_weight_is_the_published_one(cut: Cut) -> None:
    _, weights, _ = _rows(0)
    for bound in (0.3, 1.0, 5.0, math.inf):
        want = [_cut(w, cut, bound) for w in weights]
        np.testing.assert_allclose(cut_by(weights, cut, bound), want, rtol=1e-12)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("cut", get_args(Cut))
def test_the_estimated_error_is_least_at_the_bound(cut: Cut, seed: int) -> None:
    direct, weights, errors = _rows(seed)
    found = []
    for c in candidate_bounds(weights):
        terms, off = [], []
        for v, w, e in zip(direct, weights, errors, strict=True):
            g = _cut(w, cut, c)
            terms.append(v + g * e)
            off.append((g - w) * e)
        found.append(np.var(terms, ddof=1) / 60 + np.mean(off) ** 2)
    best = tuned_bound(direct, weights, errors, cut, "mse")
    assert found[list(candidate_bounds(weights)).index(best)] == pytest.approx(min(found), abs=1e-10)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("cut", get_args(Cut))
def test_slope_stops_where_intervals_no_longer_meet(cut: Cut, seed: int) -> None:
    direct, weights, errors = _rows(seed)
    errors = errors + 0.2 * weights  # great weights have other errors, so that small bounds are biased
    low, high, best = -math.inf, math.inf, math.inf
    for c in sorted(candidate_bounds(weights), reverse=True):
        terms = [v + _cut(w, cut, c) * e for v, w, e in zip(direct, weights, errors, strict=True)]
        mean, sd = float(np.mean(terms)), float(np.std(terms, ddof=1)) / math.sqrt(60)
        low, high = max(low, mean - 0.5 * sd), min(high, mean + 0.5 * sd)
        if low > high:
            break
        best = c
    assert tuned_bound(direct, weights, errors, cut, "slope") == pytest.approx(best, abs=1e-10)
