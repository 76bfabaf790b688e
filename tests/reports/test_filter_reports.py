"""Faults that others reported of Kalman filters, and of detectors of changes."""

from __future__ import annotations

import math
import pickle
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo.core.errors import CredoError

RNG = np.random.default_rng(0)
TURN = np.array([[0.9, 0.3], [-0.2, 0.8]])
LOOK = np.array([[1.0, 0.5], [0.0, 2.0]])
YS = RNG.normal(size=(12, 2))
TRACKER = credo.kalman(TURN, LOOK, 0.1 * np.eye(2), 0.5 * np.eye(2))
START = TRACKER.init(jnp.zeros(2))


def by_hand(ys: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """The textbook's filter, which takes the rows of the observation that are there."""
    mean, cov, evidence = np.zeros(2), np.eye(2), 0.0
    for y in ys:
        mean, cov = TURN @ mean, TURN @ cov @ TURN.T + 0.1 * np.eye(2)
        there = ~np.isnan(y)
        look, seen = LOOK[there], y[there]
        spread = look @ cov @ look.T + 0.5 * np.eye(len(seen))
        gap = seen - look @ mean
        evidence -= 0.5 * float(gap @ np.linalg.solve(spread, gap) + np.linalg.slogdet(2 * np.pi * spread)[1])
        gain = cov @ look.T @ np.linalg.inv(spread)
        mean, cov = mean + gain @ gap, cov - gain @ look @ cov
    return mean, cov, evidence


@pytest.mark.parametrize("gaps", [[(3, 1), (7, 0)], [(5, 0), (5, 1), (6, 0), (6, 1)]], ids=["parts", "rows"])
def test_what_is_there_of_an_observation_is_learned_and_the_rest_is_left_out(
    gaps: list[tuple[int, int]],
) -> None:
    """pykalman/pykalman#58: an observation of which one part is missing is dropped as a whole."""
    ys = YS.copy()
    for row, column in gaps:
        ys[row, column] = np.nan
    belief, trace = credo.run(TRACKER, START, None, jnp.asarray(ys))
    mean, cov, evidence = by_hand(ys)
    np.testing.assert_allclose(belief.mean, mean, atol=1e-10)
    np.testing.assert_allclose(belief.cov.dense(), cov, atol=1e-10)
    np.testing.assert_allclose(trace.log_evidence.sum(), evidence, atol=1e-10)


def test_after_missing_rows_the_forecast_is_a_number_and_wider() -> None:
    """statsmodels/statsmodels#7684: a state-space model of one's own answers with nulls after a gap."""
    ys = YS.copy()
    ys[8:] = np.nan
    belief, trace = credo.run(TRACKER, START, None, jnp.asarray(ys))
    known, _ = credo.run(TRACKER, START, None, jnp.asarray(YS))
    assert np.isfinite(belief.mean).all() and np.isfinite(np.asarray(trace.log_evidence)).all()
    assert (np.asarray(belief.var) > np.asarray(known.var)).all()
    assert np.asarray(trace.ok).tolist() == [True] * 8 + [False] * 4  # nothing was learned there


def test_covariances_stay_symmetric_and_positive_over_a_long_run() -> None:
    """probml/dynamax#317: filtered covariances are far from symmetric, and have negative eigenvalues."""
    ys = jnp.asarray(RNG.normal(size=(600, 2)))
    tight = credo.kalman(TURN / 0.95, LOOK, 1e-9 * np.eye(2), 1e-6 * np.eye(2))
    belief, trace = credo.run(tight, tight.init(jnp.zeros(2), var=1e8), None, ys)
    cov = np.asarray(belief.cov.dense())
    assert np.array_equal(cov, cov.T) and np.linalg.eigvalsh(cov).min() > 0 and bool(trace.ok.all())


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            {"observation": np.eye(3)[:1]},
            r"observation must be \(C, D\), as wide as the transition of 2; got",
        ),
        ({"observation": np.ones(2)}, r"observation must be \(C, D\).*got shape \(2,\)"),
        ({"transition": np.eye(2, 3)}, r"transition must be a square matrix \(P, P\); got shape \(2, 3\)"),
        ({"transition_cov": np.ones((1, 2))}, r"cov must be a square matrix; got shape \(1, 2\)"),
        ({"transition_cov": np.eye(3)}, r"cov must be a number, \(P,\) or \(P, P\) = \(2, 2\); got"),
        ({"transition_cov": np.ones(3)}, r"cov must be a number, \(P,\) or \(P, P\) = \(2, 2\); got"),
        ({"observation_cov": np.ones(3)}, r"var must be .* got shape \(3,\)"),
        ({"offset": np.ones(3)}, r"offset must be a number or \(P,\) = \(2,\); got shape \(3,\)"),
    ],
)
def test_a_matrix_of_another_shape_is_refused_by_its_name(change: dict[str, Any], says: str) -> None:
    """rlabbe/filterpy#179: a filter takes matrices of the wrong shape, and answers nonsense."""
    parts = {"transition": TURN, "observation": LOOK, "transition_cov": 0.1, "observation_cov": 0.5}
    with pytest.raises(CredoError, match=says):
        learner = credo.kalman(**{**parts, **change})
        jax.eval_shape(learner.step, learner.init(jnp.zeros(2)), None, jnp.zeros(2))


def test_an_observation_without_noise_is_seen_exactly() -> None:
    """rlabbe/filterpy#214: a filter whose noise is zero fails later, in a factorisation."""
    learner = credo.kalman(TURN, LOOK, 0.1, 0.0)
    belief, info = learner.step(learner.init(jnp.zeros(TURN.shape[0])), None, jnp.asarray(YS[0]))
    assert bool(info.ok)
    np.testing.assert_allclose(LOOK @ np.asarray(belief.mean), YS[0], atol=1e-6)


def test_each_step_has_the_noise_of_its_own_length() -> None:
    """pykalman/pykalman#44: of noises that change over time the first one is used for all steps."""
    level = credo.extended_kalman(
        credo.Model(lambda z, x: z[0], credo.Normal(1.0)), dynamics=credo.RandomWalk(0.5)
    )
    dts = np.array([0.0, 1.0, 4.0, 0.25, 9.0, 0.5, 2.0, 1.0, 0.0, 3.0, 1.5, 6.0])
    belief, _ = credo.run(level, level.init(jnp.zeros(1)), None, jnp.asarray(YS[:, 0]), dts=jnp.asarray(dts))
    mean, var = 0.0, 1.0
    for y, dt in zip(YS[:, 0].tolist(), dts.tolist(), strict=True):
        var += 0.5 * dt
        gain = var / (var + 1.0)
        mean, var = mean + gain * (y - mean), (1.0 - gain) * var
    np.testing.assert_allclose([belief.mean[0], belief.var[0]], [mean, var], atol=1e-10)


LEVEL = credo.RunLength(
    credo.RecursiveLearner(credo.Model(lambda w, x: w[0], credo.Normal(1.0)), credo.Full("dense")), 0.02, 6
)
CALM = LEVEL.init(jnp.zeros(1), var=25.0)


def watched(ys: np.ndarray) -> tuple[Any, Any]:
    """The belief after 60 levels, and the trace."""
    assert len(ys) == 60
    return credo.run(LEVEL, CALM, None, jnp.asarray(ys))


def test_a_stream_without_a_change_has_no_alarm() -> None:
    """deepcharles/ruptures#200: a signal that has no change point is given one all the same."""
    for ys in (RNG.normal(size=60), np.full(60, 3.0)):
        _, trace = watched(ys)
        assert credo.alarms(trace).tolist() == [] and credo.segmentation(trace) == [0]
        assert bool(trace.ok.all())


def test_the_probability_of_a_change_answers_to_the_data() -> None:
    """hildensia/bayesian_changepoint_detection#58: the probability of a change is the hazard at all steps."""
    ys = 0.3 * RNG.normal(size=60)
    ys[30:] += 8.0
    _, trace = watched(ys)
    chance = np.asarray(trace.extras.change)
    assert chance[30] > 0.99 and chance[1:30].max() < 0.1 and chance[31:].max() < 0.1


def test_one_change_is_one_alarm() -> None:
    """online-ml/river#574: a detector reports each abrupt change twice or more."""
    ys = 0.3 * RNG.normal(size=60)
    ys[20:] += 8.0
    ys[40:] -= 16.0
    _, trace = watched(ys)
    assert credo.alarms(trace).tolist() == [20, 40] and credo.segmentation(trace) == [0, 20, 40]


def test_a_value_beyond_all_likelihoods_leaves_the_weights_numbers() -> None:
    """hildensia/bayesian_changepoint_detection#24: probabilities of far values underflow in the recursion."""
    ys = RNG.normal(size=60)
    ys[30] = 1e9
    belief, trace = watched(ys)
    assert np.isfinite(np.asarray(trace.log_evidence)).all() and bool(trace.ok.all())
    weights = np.exp(np.asarray(belief.log_weights))
    assert weights.sum() == pytest.approx(1.0, abs=1e-10)
    assert abs(float(belief.mean[0])) < 1.0  # the far value is a segment of its own


def test_an_infinite_value_is_said_and_not_learned() -> None:
    """hildensia/bayesian_changepoint_detection#78: a detector that met NaN answers 0 from then on."""
    for odd in (math.inf, -math.inf, math.nan):
        ys = 0.3 * RNG.normal(size=60)
        ys[20] = odd
        ys[40:] += 8.0
        belief, trace = watched(ys)
        assert np.flatnonzero(~np.asarray(trace.ok)).tolist() == [20]
        assert credo.alarms(trace).tolist() == [40] and np.isfinite(belief.mean).all()


def test_a_detector_does_not_grow_with_the_stream() -> None:
    """hildensia/bayesian_changepoint_detection#13: an online detector must know how long the stream is."""
    belief, _ = watched(RNG.normal(size=60))
    longer, _ = credo.run(LEVEL, belief, None, jnp.asarray(RNG.normal(size=60)))
    sizes = [sum(leaf.size for leaf in jax.tree.leaves(one)) for one in (CALM, belief, longer)]
    assert sizes[0] == sizes[1] == sizes[2] and int(longer.t) == 120
    assert len(pickle.dumps(jax.tree.map(np.asarray, jax.tree.leaves(longer)))) < 10_000
