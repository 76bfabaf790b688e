"""Off-policy evaluation of slates, against values that are enumerated."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from credo import CredoError, DataError
from credo.bandits import Log
from credo.bandits.evaluation import evaluate_slates

LIKED = np.array([0.2, 0.5, 0.7])
LOGGED, WANTED = np.array([0.5, 0.3, 0.2]), np.array([0.1, 0.3, 0.6])
PLACES = (1.0, 0.5)


def _clicks(first: int, second: int, *, cascade: bool) -> tuple[float, float]:
    """The chances of a click at both places: a cascade stops at the first click; else both places matter."""
    if cascade:
        return LIKED[first], (1.0 - LIKED[first]) * LIKED[second]
    return LIKED[first] * LIKED[second], LIKED[second]


def _chance(shares: np.ndarray, first: int, second: int) -> float:
    return float(shares[first] * shares[second] / (1.0 - shares[first]))


def _truth(shares: np.ndarray, *, cascade: bool) -> float:
    """The value by enumeration."""
    return sum(
        _chance(shares, *pair) * float(np.dot(PLACES, _clicks(*pair, cascade=cascade)))
        for pair in itertools.permutations(range(3), 2)
    )


def _log(count: int, seed: int, *, cascade: bool = True) -> Log:
    rng = np.random.default_rng(seed)
    pairs = list(itertools.permutations(range(3), 2))
    drawn = rng.choice(len(pairs), count, p=[_chance(LOGGED, *pair) for pair in pairs])
    arms = np.array(pairs)[drawn]
    chances = np.array([_clicks(*pair, cascade=cascade) for pair in pairs])[drawn]
    clicks = np.zeros((count, 2))
    if cascade:
        clicks[:, 0] = rng.random(count) < chances[:, 0]
        clicks[:, 1] = (clicks[:, 0] == 0) & (rng.random(count) < LIKED[arms[:, 1]])
    else:
        clicks[:] = rng.random((count, 2)) < chances
    allowed = np.ones((count, 2, 3), bool)
    allowed[np.arange(count), 1, arms[:, 0]] = False
    shares = np.stack([LOGGED[arms[:, 0]], LOGGED[arms[:, 1]] / (1.0 - LOGGED[arms[:, 0]])], axis=1)
    ids = [f"s{slate}{mark}" for slate in range(count) for mark in ("", "#2")]
    rewards = np.where((clicks[:, :1] > 0) & (np.arange(2) == 1), np.nan, clicks) if cascade else clicks
    return Log(
        ("a", "b", "c"),
        arms.reshape(-1),
        rewards.reshape(-1),
        shares.reshape(-1),
        allowed=allowed.reshape(-1, 3),
        ids=np.array(ids),
    )


@pytest.mark.table
@pytest.mark.parametrize("estimator", ["sips", "rips", "dr"])
@pytest.mark.parametrize("interval", ["likelihood", "bootstrap"])
def test_estimates_are_right_in_the_mean_and_intervals_hold(estimator: Any, interval: Any) -> None:
    truth, runs = _truth(WANTED, cascade=True), 40 if interval == "bootstrap" else 200
    found = [
        evaluate_slates(
            _log(400, seed), WANTED, estimator=estimator, places=PLACES, interval=interval, level=0.9
        )
        for seed in range(runs)
    ]
    values = np.array([one.value for one in found])
    assert abs(values.mean() - truth) < 4 * values.std() / np.sqrt(runs)
    hits = sum(one.low <= truth <= one.high for one in found)
    assert hits >= 0.9 * runs - 4 * np.sqrt(0.09 * runs)


@pytest.mark.slow
def test_weights_down_to_a_place_vary_less_and_are_wrong_where_a_reward_depends_on_what_is_below() -> None:
    logs = [_log(400, seed) for seed in range(100)]
    spread = {
        name: np.std([evaluate_slates(log, WANTED, estimator=name, places=PLACES).value for log in logs])
        for name in ("sips", "rips", "dr")
    }
    assert spread["dr"] < 0.95 * spread["rips"] < 0.9 * spread["sips"]
    log, truth = _log(40_000, 0, cascade=False), _truth(WANTED, cascade=False)
    sips = evaluate_slates(log, WANTED, estimator="sips", places=PLACES, level=0.999)
    rips = evaluate_slates(log, WANTED, estimator="rips", places=PLACES, level=0.999)
    assert sips.low < truth < sips.high and not rips.low < truth < rips.high


def test_policies_of_all_kinds_are_the_same_one() -> None:
    log = _log(300, 1)

    def drawn(_: object, allowed: np.ndarray) -> np.ndarray:
        left: np.ndarray = WANTED * allowed
        return left / float(left.sum())

    assert evaluate_slates(log, WANTED).value == evaluate_slates(log, drawn).value
    own = evaluate_slates(log, LOGGED, estimator="rips")
    np.testing.assert_allclose(own.value, own.on_policy, rtol=1e-12)
    assert own.unit == "slate" and own.rows == 300 and "a slate" in str(own)
    one = evaluate_slates(log, ["c", "b"], estimator="sips")
    rows = (log.chosen.reshape(-1, 2) == [2, 1]).all(axis=1)
    by_hand = np.nan_to_num(log.rewards.reshape(-1, 2))[rows].sum() / _chance(LOGGED, 2, 1) / 300
    np.testing.assert_allclose(one.value, by_hand, rtol=1e-12)


def test_slates_without_a_reward_or_a_place_are_left_out_and_said() -> None:
    log = _log(50, 2)
    rewards, kept = log.rewards.copy(), np.ones(100, bool)
    rewards[:2], kept[2] = np.nan, False
    other = replace(log, rewards=rewards).take(kept)
    found = evaluate_slates(other, LOGGED, estimator="rips")
    assert found.rows == 48 and found.warnings[0].startswith("2 slates have no reward, or lack a place")


@pytest.mark.parametrize(
    ("change", "options", "error", "words"),
    [
        ({"ids": None}, {}, DataError, "the log must have ids"),
        ({"ids": ["a#x"] + ["b"] * 19}, {}, DataError, "row 0 has 'a#x'"),
        ({"rewards": [np.nan] * 20}, {}, DataError, "two or more slates with rewards; it has 0 among 10"),
        ({}, {"places": [1.0]}, CredoError, "places must be a finite weight for each of the 2 places"),
        ({}, {"policy": ["a", "a"]}, CredoError, "policy must name 2 different arms"),
        (
            {"allowed": np.eye(3, dtype=bool)[_log(10, 3).chosen]},
            {"policy": ["a", "b"]},
            DataError,
            "'a' may not",
        ),
        ({}, {"policy": [0.5, 0.2, 0.2]}, CredoError, "policy must be probabilities that sum to 1"),
        ({}, {"estimator": "ips"}, CredoError, "estimator must be one of sips, rips, dr"),
    ],
)
def test_what_cannot_be_evaluated_is_refused(
    change: dict[str, Any], options: dict[str, Any], error: type[Exception], words: str
) -> None:
    log = _log(10, 3)
    settings = {"rewards": log.rewards, "allowed": log.allowed, "ids": log.ids, **change}
    rewards = settings.pop("rewards")
    with pytest.raises(error, match=words):
        evaluate_slates(
            Log(log.arms, log.chosen, rewards, log.propensities, **settings), **{"policy": WANTED, **options}
        )


@pytest.mark.parametrize("estimator", ["sips", "rips"])
def test_a_slate_of_fewer_places_gains_nothing_at_those_that_it_lacks(estimator: Any) -> None:
    log = _log(60, 4)
    rewards = np.nan_to_num(log.rewards)
    rewards[0] = 1.0  # whatever stands in the first row belongs to its own slate
    kept = np.ones(120, bool)
    kept[3::4] = False  # every other slate has one place
    short = replace(log, rewards=rewards).take(kept)
    found = evaluate_slates(short, LOGGED, estimator=estimator)
    assert found.rows == 60
    assert found.warnings == ("there are 60 slates only, so that the interval may be too narrow",)
    np.testing.assert_allclose(found.value, rewards[kept].sum() / 60, rtol=1e-12)
    np.testing.assert_allclose(found.on_policy, rewards[kept].sum() / 60, rtol=1e-12)
    # clicks at the second places of the other slates count half with a weight of one half
    half = evaluate_slates(short, LOGGED, estimator=estimator, places=[1.0, 0.5])
    by_hand = (rewards[::2].sum() + 0.5 * (rewards * kept)[1::2].sum()) / 60
    np.testing.assert_allclose(half.value, by_hand, rtol=1e-12)
