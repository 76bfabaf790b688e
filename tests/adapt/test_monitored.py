"""Monitored learners: against a reference beside the test, on planted changes, and as learners."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from tests.adapt.setups import INNER, WALKS, XS, YS, P, T, bad_rows_leave, begin, same_bits
from tests.streams.setups import bitwise
from tests.tiers import few

import credo
from credo.adapt import Experts, Monitored, RunLength, Stacked, alarms, segmentation
from credo.adapt.monitored import (
    MOST_GAIN,
    POWERS,
    RATES,
    SIZES,
    LevelChanges,
    flatter_gain,
    share_losses,
    size_losses,
)

MODEL = credo.Model(lambda w, x: x @ w, credo.Normal(0.2))
MODEL_OF_CLASSES = credo.Model(lambda w, x: x @ w, credo.Bernoulli())


def reference(likelihoods: np.ndarray, hazard: float, capacity: int, young: int) -> list[tuple[float, float]]:
    """P(a change with the row) and P(one in the latest 100 rows), by probabilities of (run length, level)."""
    size = likelihoods.shape[1]
    stay, jump = np.zeros((size, size)), np.zeros((size, size))
    for i in range(size):
        if i > 0:
            stay[i, i - 1] = 0.01
        if i < size - 1:
            stay[i, i + 1] = 0.001
        stay[i, i] = 1 - stay[i].sum()
        first = min(i + 3, size - 1)
        jump[i, first:] = 1 / (size - first)
    joint, starts, answers = np.full((1, size), 1 / size), np.zeros(1, int), []
    for t, row in enumerate(likelihoods):
        newborn = hazard * joint.sum(axis=0) @ jump
        joint = joint @ stay
        if t:
            joint = np.vstack([(1 - hazard) * joint, newborn])
            starts = np.append(starts, t)
        joint = joint * row
        joint = joint / joint.sum()
        change = joint[starts == t].sum() if t else 1.0
        weights = joint.sum(axis=1)
        if len(weights) > capacity:
            keep = np.arange(len(weights)) != np.argmin(weights + 1e6 * (t - starts < young))
            joint, starts = joint[keep] / joint[keep].sum(), starts[keep]
        recent = joint[(t - starts < 100) & (starts > 0)].sum()
        answers.append((change, recent))
    return answers


@pytest.mark.parametrize("kind", ["class", "number"])
def test_changes_are_those_of_levels_that_move_little_within_a_segment(kind: str) -> None:
    rng = np.random.default_rng(1)
    if kind == "class":
        ys = (rng.uniform(size=150) < np.where(np.arange(150) < 110, 0.1, 0.8)).astype(float)
        learner: Any = Monitored(credo.BetaBernoulli(), hazard=0.01)
        belief, xs = learner.init(), None
        prior = learner.learner.init()
        _, trace = credo.run(learner.learner, prior, None, jnp.asarray(ys))
        u = 1 - np.exp(np.asarray(trace.log_evidence))[:, None]
        logs = u * np.log(RATES) + (1 - u) * np.log(1 - RATES)
    else:
        ys, xs = np.where(np.arange(150) < 110, 0.1, 1.0) * rng.normal(size=150), jnp.zeros((150, P))
        learner = Monitored(INNER, hazard=0.01, unit=0.5)
        belief = begin(learner)
        logs = -1.5 * np.log1p((ys[:, None] / 0.5 / SIZES) ** 2 / 2) - np.log(SIZES)
    _, trace = credo.run(learner, belief, xs, jnp.asarray(ys))
    expected = np.array(reference(np.exp(logs), 0.01, 20, 10))
    np.testing.assert_allclose(trace.extras.change, expected[:, 0], atol=1e-10)
    np.testing.assert_allclose(trace.extras.recent, expected[:, 1], atol=1e-10)
    assert expected[:100, 1].max() < 0.9 < expected[-1, 1]
    (alarm,) = alarms(trace)
    assert 110 <= alarm < 120 and abs(alarm - int(trace.extras.began[alarm]) - 110) < 5


LEARNERS: dict[str, Any] = {
    "one": INNER,
    "experts": Experts(WALKS),
    "stacked": Stacked(Experts(WALKS), outliers=0.01),
    "run length": RunLength(INNER, 0.1, 3),
}


@pytest.mark.table
@pytest.mark.parametrize("name", LEARNERS)
def test_forecasts_and_evidence_are_those_of_the_learner_inside(name: str) -> None:
    alone, learner = LEARNERS[name], Monitored(LEARNERS[name])
    one, trace = credo.run(alone, begin(alone), XS, YS)
    belief, watched = credo.run(learner, begin(learner), XS, YS)
    pairs = ((belief.belief, one), (watched.log_evidence, trace.log_evidence))
    for pair in (*pairs, (watched.extras.inside, trace.extras)):
        for left, right in zip(*map(jax.tree.leaves, pair), strict=True):
            np.testing.assert_allclose(
                left, right, rtol=1e-12, atol=1e-12
            )  # two programs round in their ways
    predicted = learner.predict(belief)
    other = predicted.belief
    bitwise(learner.forecast(predicted, XS[0]), alone.forecast(other, XS[0]))
    bitwise(learner.sample(predicted, jax.random.key(1)), alone.sample(other, jax.random.key(1)))


@pytest.mark.optimised
@pytest.mark.parametrize("name", few(LEARNERS, "one", "stacked"))
def test_a_loop_a_scan_and_chunks_give_the_same_bits(name: str, tmp_path: Path) -> None:
    same_bits(Monitored(LEARNERS[name], hazard=0.1), tmp_path)


@pytest.mark.parametrize("name", few(["one", "stacked"], "one"))
def test_a_bad_row_is_no_evidence_of_a_change(name: str) -> None:
    learner = Monitored(LEARNERS[name])
    belief, _ = credo.run(learner, begin(learner), XS, YS)
    bad_rows_leave(learner, learner.predict(belief))
    rows, gaps = jnp.concatenate([XS, XS]), jnp.concatenate([YS, jnp.full(T, jnp.nan)])
    after, trace = credo.run(learner, begin(learner), rows, gaps)
    assert not np.asarray(trace.extras.alarm)[T:].any() and not np.asarray(trace.ok)[T:].any()
    assert float(after.recent) < 0.05


def planted(sizes: Any, seed: int = 0) -> np.ndarray:
    """The alarms of errors of so many standard deviations, around a learner that knows their mean."""
    rng = np.random.default_rng(seed)
    ys = np.asarray(sizes) * rng.normal(size=len(sizes))
    learner = Monitored(INNER)
    _, trace = credo.run(learner, begin(learner), jnp.zeros((len(ys), P)), jnp.asarray(ys))
    return alarms(trace)


def test_larger_errors_give_one_alarm_and_smaller_or_slowly_larger_ones_none() -> None:
    steps = np.arange(1000)
    (at,) = planted(np.where(steps < 500, 0.2, 1.0))
    assert 500 <= at < 515
    assert len(planted(np.where(steps < 500, 1.0, 0.1))) == 0
    assert len(planted(0.1 * 20.0 ** (np.arange(6000) / 6000))) == 0
    assert len(planted(np.where(steps == 500, 50.0, 0.2))) == 0  # an outlier
    first, second = planted(np.where(steps < 300, 0.1, np.where(steps < 600, 0.5, 2.5)))
    assert 300 <= first < 330 and 600 <= second < 630


def test_a_learner_that_recovers_is_reported_once() -> None:
    rng = np.random.default_rng(2)
    slopes = np.where(np.arange(1500)[:, None] < 750, [2.0, 1.0], [-2.0, 1.0])
    xs = rng.normal(size=(1500, P))
    ys = (slopes * xs).sum(axis=1) + 0.3 * rng.normal(size=1500)
    walk = credo.RecursiveLearner(MODEL, credo.Full("dense"), dynamics=credo.RandomWalk(1e-2))
    learner = Monitored(walk)
    _, trace = credo.run(learner, begin(learner), jnp.asarray(xs), jnp.asarray(ys))
    (at,) = alarms(trace)
    assert 750 <= at < 760 and abs(at - int(trace.extras.began[at]) - 750) < 3
    recent = np.asarray(trace.extras.recent)
    assert recent[:750].max() < 0.5 and recent[at] > 0.9 and recent[-1] < 0.1


@given(some.floats(0, 1), some.integers(0, 23), some.integers(1, 24))
def test_a_higher_rate_gains_nothing_from_losses_of_at_most_the_level(u: float, level: int, up: int) -> None:
    """E exp of the gain, of losses 0 and 1 whose mean is at most the level: the worst of those in [0, 1]."""
    high = min(level + up, 24)
    ends = np.asarray(jax.vmap(share_losses)(jnp.array([0.0, 1.0])))
    gains = np.exp(ends[:, high] - ends[:, level])
    mean = u * RATES[level]
    assert (1 - mean) * gains[0] + mean * gains[1] <= 1 + 1e-9
    middle = np.asarray(share_losses(jnp.asarray(u)))
    assert np.exp(middle[high] - middle[level]) <= (1 - u) * gains[0] + u * gains[1] + 1e-9


@given(some.lists(some.floats(1e-6, 1.0), min_size=2, max_size=5))
def test_flatter_forecasts_gain_nothing_if_classes_come_as_often_as_forecast(shares: list[float]) -> None:
    probs = np.array(shares) / np.sum(shares)
    flatter = [probs**power / np.sum(probs**power) for power in POWERS]
    gains = [float(flatter_gain(jnp.asarray(probs), jnp.log(one))) for one in probs]
    whole = np.log(np.mean(flatter, axis=0) / probs)
    assert probs @ np.exp(whole) == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(gains, np.minimum(whole, MOST_GAIN), rtol=1e-9, atol=1e-12)


def test_a_class_that_was_impossible_surprises_as_much_as_one_row_can() -> None:
    probs = jnp.array([1.0, 0.0, 0.0])
    assert float(flatter_gain(probs, jnp.log(probs[0]))) == 0.0
    assert float(flatter_gain(probs, jnp.log(probs[1]))) == MOST_GAIN


def test_a_time_keeps_the_largest_surprise_of_its_first_hundred_rows() -> None:
    gains = np.random.default_rng(4).normal(-0.1, 1.0, 250)

    def row(changes: LevelChanges, gain: Any) -> tuple[LevelChanges, LevelChanges]:
        after, _ = changes.later(0.01, None).surprised(gain).learned(jnp.zeros(25), 0.9, 5)
        return after, after

    end, every = jax.lax.scan(row, LevelChanges.first(float), jnp.asarray(gains))
    surprise = 0.0
    found = {1: 0.0}
    for place, gain in enumerate(gains):
        found.setdefault(place + 1, surprise)
        surprise = max(surprise + gain, 0.0)
        for start, most in found.items():
            if place + 1 - start < 100:
                found[start] = max(most, surprise)
        heavy = np.asarray(every.probs[place]).sum(axis=1) > 0  # but the time that was dropped
        wanted = [found[start] for start in every.starts[place][heavy].tolist()]
        np.testing.assert_allclose(np.asarray(every.surprises[place])[heavy], wanted, atol=1e-12)
    assert float(end.surprise) == pytest.approx(surprise)


@pytest.mark.parametrize(("row", "kept"), [(100, 2.5), (101, 0.0)])
def test_the_hundredth_row_after_a_change_is_the_last_that_can_surprise(row: int, kept: float) -> None:
    def later(changes: LevelChanges, gain: Any) -> tuple[LevelChanges, None]:
        return changes.later(0.01, None).surprised(gain), None

    gains = np.where(np.arange(1, 131) == row, 2.5, 0.0)
    changes, _ = jax.lax.scan(later, LevelChanges.first(float), jnp.asarray(gains))
    first = int(np.flatnonzero(np.asarray(changes.starts) == 1)[0])
    assert float(changes.surprises[first]) == kept


def test_a_surprise_counts_though_it_is_over_when_the_higher_level_is_known() -> None:
    """Flatter forecasts gain 5 nats and lose them again within five rows; losses are high for twenty."""

    def row(changes: LevelChanges, facts: Any) -> tuple[LevelChanges, Any]:
        loss, gain = facts
        later = changes.later(0.001, None).surprised(gain)
        after, reported = later.learned(share_losses(loss), 0.9, 5, least=4.5)
        return after, (reported.alarm, later.surprise)

    losses = np.full(240, 0.1)
    losses[200:220] = 0.6
    found = {}
    for start in (20, 200):  # a surprise long before is none of this change
        gains = np.full(240, -0.1)
        gains[start : start + 6] = [2.5, 2.5, 0.0, 0.0, -2.5, -2.5]
        facts = (jnp.asarray(losses), jnp.asarray(gains))
        _, (alarms_, surprise) = jax.lax.scan(row, LevelChanges.first(float), facts)
        found[start] = np.flatnonzero(np.asarray(alarms_))
        assert float(surprise[start + 6]) == 0.0
    assert len(found[20]) == 0
    assert len(found[200]) == 1 and 206 <= found[200][0] < 230


def known(size: float, turned: int, surprise: float) -> np.ndarray:
    """The alarms of a logistic regression that knows its weight, on inputs of a size that becomes 0.5 in
    the middle of 600 rows; the weight has another sign from the row `turned` on.
    """
    rng = np.random.default_rng(5)
    places = np.arange(600)
    xs = np.where(places < 300, size, 0.5)[:, None] * rng.normal(size=(600, 1))
    weight = np.where(places < turned, 2.0, -2.0)
    ys = (rng.uniform(size=600) < 1 / (1 + np.exp(-weight * xs[:, 0]))).astype(float)
    learner = Monitored(credo.bong(MODEL_OF_CLASSES, credo.Full()), surprise=surprise)
    belief = learner.init(jnp.array([2.0]), var=1e-4)
    _, trace = credo.run(learner, belief, jnp.asarray(xs), jnp.asarray(ys))
    return alarms(trace)


def test_rows_that_are_harder_are_no_change_where_the_forecasts_say_so() -> None:
    assert len(known(20.0, 600, surprise=4.5)) == 0
    (at,) = known(20.0, 600, surprise=0.0)  # the losses alone do become larger
    assert 300 <= at < 340


def test_forecasts_that_become_too_sure_are_a_change() -> None:
    (at,) = known(2.0, 150, surprise=4.5)
    assert 150 <= at < 180


def test_counts_several_numbers_and_absurd_errors_have_levels() -> None:
    rng = np.random.default_rng(3)
    rates = np.where(np.arange(600) < 300, 2.0, 20.0)
    learner = Monitored(credo.GammaPoisson())
    _, trace = credo.run(learner, learner.init(), None, jnp.asarray(rng.poisson(rates).astype(float)))
    assert 300 <= alarms(trace)[0] < 310
    both = credo.RecursiveLearner(credo.Model(lambda w, x: w, credo.Normal(jnp.eye(2))), credo.Full("dense"))
    pair = Monitored(both)
    belief, info = pair.step(pair.init(jnp.zeros(2)), None, jnp.ones(2))
    assert bool(info.ok) and bool(jnp.isfinite(belief.recent))
    np.testing.assert_array_equal(size_losses(jnp.asarray(1e30)), size_losses(jnp.asarray(10.0)))


def test_numbers_out_of_range_are_refused_in_a_sentence() -> None:
    for name, value in (("hazard", 1.5), ("threshold", -0.1), ("unit", 0.0), ("surprise", -1.0)):
        with pytest.raises(credo.CredoError, match=name):
            Monitored(INNER, **{name: value})
    _, trace = credo.run(Monitored(INNER), begin(Monitored(INNER)), XS, YS)
    with pytest.raises(credo.CredoError, match="RunLength or ChangeTimes; this one reports no changes"):
        segmentation(trace)


def test_a_row_without_weight_gives_no_alarm() -> None:
    learner, x = Monitored(INNER, hazard=0.01), jnp.zeros(P)
    ys = jnp.asarray(np.random.default_rng(3).normal(size=140) * np.where(np.arange(140) < 120, 0.1, 3.0))
    _, trace = credo.run(learner, begin(learner), jnp.zeros((140, P)), ys)
    first = int(alarms(trace)[0])
    before, _ = credo.run(learner, begin(learner), jnp.zeros((first, P)), ys[:first])
    assert bool(learner.step(before, x, ys[first])[1].extras.alarm)
    assert not bool(learner.step(before, x, ys[first], weight=0.0)[1].extras.alarm)


def test_rows_that_are_not_learned_leave_probabilities_that_sum_to_one() -> None:
    changes = LevelChanges.first(float)
    for _ in range(30):
        changes, _ = changes.later(0.3, None).learned(jnp.zeros(25), 0.9, 5)
    for _ in range(60):  # the lightest time gives way at each of them
        changes = changes.later(0.3, None)
        assert float(changes.probs.sum()) == pytest.approx(1.0, abs=1e-12)
    assert int(changes.t) == 90 and int(changes.starts.max()) == 90
    assert len(set(changes.starts.tolist())) == len(changes.starts)


def test_a_belief_that_was_saved_without_surprises_had_none() -> None:
    first = LevelChanges.first(jnp.float32)
    saved = LevelChanges(first.probs, first.starts, first.reported, first.t)
    bitwise(saved, first)


def test_a_step_of_length_two_has_the_changes_of_two_steps() -> None:
    changes, _ = LevelChanges.first(float).later(0.1, None).learned(jnp.zeros(25), 0.9, 5)
    later = changes.later(0.1, 2.0)
    assert float(later.probs[later.starts == 2].sum()) == pytest.approx(1 - 0.9**2, abs=1e-12)


def test_weights_are_those_of_a_mixture_inside() -> None:
    learner = Monitored(Stacked(Experts(WALKS)))
    belief = begin(learner)
    np.testing.assert_array_equal(belief.weights, belief.belief.weights)
    with pytest.raises(AttributeError, match="it is no mixture"):
        _ = begin(Monitored(INNER)).weights
