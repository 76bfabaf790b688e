"""Options of the wrappers do what they say."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.adapt.setups import INNER, WALKS, XS, YS, P, T, begin

import credo
from credo.adapt import ChangeProbability, Experts, LossRate, RunLength, named
from credo.core.records import replace


def test_young_segments_are_kept_while_there_is_room() -> None:
    plain, patient = RunLength(INNER, 1e-6, 3), RunLength(INNER, 1e-6, 3, protect=2)
    for learner, young in ((plain, False), (patient, True)):
        belief, _ = credo.run(learner, begin(learner), XS[:5], YS[:5])
        alive = np.asarray(belief.segments.run_length)[np.asarray(belief.log_weights) > -np.inf]
        assert ({0, 1} <= set(alive.tolist())) == young and 4 in alive


def test_alarms_obey_their_threshold_and_separation() -> None:
    ys = jnp.concatenate([jnp.zeros(20), jnp.full(20, 8.0)])
    ones = jnp.ones((40, P))
    for threshold, separation, count in ((0.5, 5, 1), (1.0, 5, 0), (0.5, 100, 0)):
        learner = RunLength(INNER, 0.01, 4, threshold=threshold, separation=separation)
        _, trace = credo.run(learner, begin(learner), ones, ys)
        assert int(trace.extras.alarm.sum()) == count


@pytest.mark.slow
def test_a_change_just_after_the_first_step_or_an_alarm_is_reported_with_a_separation_of_0_alone() -> None:
    ys = np.concatenate([np.zeros(3), np.full(17, 8.0), np.full(2, -8.0), np.full(18, 24.0)])
    found = {}
    for separation in (5, 0):
        learner = RunLength(INNER, 0.01, 4, separation=separation)
        _, trace = credo.run(learner, begin(learner), np.ones((40, P)), ys)
        found[separation] = np.flatnonzero(trace.extras.alarm).tolist()
    assert found == {5: [20], 0: [3, 20, 22]}


def moments(weights: Any, means: Any, covs: Any) -> tuple[Any, Any]:
    """Of a mixture."""
    centre = weights @ means
    gaps = means - centre
    return centre, np.einsum("k,kij->ij", weights, covs + gaps[:, :, None] * gaps[:, None, :])


def test_interacting_experts_are_the_multiple_model_of_blom_and_bar_shalom() -> None:
    switch = np.array([[0.9, 0.1], [0.1, 0.9]])
    weights, means, covs = np.full(2, 0.5), np.zeros((2, P)), np.stack([1.5 * np.eye(P)] * 2)
    for x, y in zip(np.asarray(XS), np.asarray(YS), strict=True):
        joint = weights[:, None] * switch
        weights = joint.sum(axis=0)
        mixed = [moments(joint[:, k] / weights[k], means, covs) for k in range(2)]
        for k, q in enumerate((0.0, 0.1)):
            mean, cov = mixed[k][0], mixed[k][1] + q * np.eye(P)
            var, gap = x @ cov @ x + 0.2, y - x @ mean
            weights[k] *= np.exp(-0.5 * gap**2 / var) / np.sqrt(2 * np.pi * var)
            gain = cov @ x / var
            means[k], covs[k] = mean + gain * gap, cov - np.outer(gain, gain) * var
        weights = weights / weights.sum()
    learner = Experts(WALKS, 0.1, mixing=True)
    belief, _ = credo.run(learner, begin(learner), XS, YS)
    np.testing.assert_allclose(belief.weights, weights, atol=1e-10)
    np.testing.assert_allclose(belief.beliefs.mean, means, atol=1e-10)


@pytest.mark.slow
def test_a_matrix_says_which_expert_follows_which_and_losses_may_take_the_place_of_densities() -> None:
    stuck = Experts(WALKS, jnp.array([[0.0, 1.0], [0.0, 1.0]]))
    belief, _ = credo.run(stuck, begin(stuck), XS[:3], YS[:3])
    np.testing.assert_allclose(belief.weights, [0.0, 1.0], atol=1e-15)

    judged = Experts(WALKS, 0.0, loss=lambda forecast, y: (forecast.mean - y) ** 2, learning_rate=0.7)
    belief, _ = credo.run(judged, begin(judged), XS, YS)
    losses = np.zeros(2)
    for k, walk in enumerate(WALKS):
        inner = begin(walk)
        for x, y in zip(XS, YS, strict=True):
            predicted = walk.predict(inner)
            losses[k] += float((walk.forecast(predicted, x).mean - y) ** 2)
            inner, _ = walk.update(predicted, x, y)
    np.testing.assert_allclose(belief.log_weights[1] - belief.log_weights[0], 0.7 * (losses[0] - losses[1]))
    # an observation counts by its weight
    before = judged.predict(belief)
    gaps = []
    for weight in (1.0, 0.25, 0.0):
        after, _ = judged.update(before, XS[0], YS[0], weight=weight)
        moved = after.log_weights - before.log_weights
        gaps.append(float(moved[1] - moved[0]))
    assert gaps[0] != 0.0
    np.testing.assert_allclose(gaps[1:], [0.25 * gaps[0], 0.0], atol=1e-12)


def test_losses_may_count_in_units_of_their_running_mean() -> None:
    rate = LossRate(0.6, least=0.5, first=2.0, rows=3.0, forgetting=0.9)
    learner = Experts(WALKS, 0.1, loss=lambda forecast, y: (forecast.mean - y) ** 2, learning_rate=rate)
    belief = begin(learner)
    inner = [begin(walk) for walk in WALKS]
    weights, total, count = np.full(2, 0.5), 6.0, 3.0
    for t, (x, y) in enumerate(zip(XS, YS, strict=True)):
        omega = 0.5 if t % 3 == 0 else 1.0
        weights = 0.9 * weights + 0.1 * weights[::-1]
        losses = np.zeros(2)
        for k, walk in enumerate(WALKS):
            predicted = walk.predict(inner[k])
            losses[k] = float((walk.forecast(predicted, x).mean - y) ** 2)
            inner[k], _ = walk.update(predicted, x, y, weight=omega)
        eta = 0.6 / max(total / count, 0.5)
        total = 0.9**omega * total + omega * float(weights @ losses)
        count = 0.9**omega * count + omega
        weights = weights * np.exp(-eta * omega * losses)
        weights = weights / weights.sum()
        belief, _ = learner.step(belief, x, y, weight=omega)
    np.testing.assert_allclose(belief.weights, weights, atol=1e-10)
    sums: Any = belief.losses
    np.testing.assert_allclose([sums.total, sums.count], [total, count], rtol=1e-10)
    # losses and their unit may be multiplied by any number
    wide = replace(rate, least=5.0, first=20.0)
    other = Experts(WALKS, 0.1, loss=lambda forecast, y: 10.0 * (forecast.mean - y) ** 2, learning_rate=wide)
    np.testing.assert_allclose(
        credo.run(other, begin(other), XS, YS)[0].weights,
        credo.run(learner, begin(learner), XS, YS)[0].weights,
        atol=1e-10,
    )


def test_a_failed_expert_has_no_part_in_the_mean_loss() -> None:
    def loss(forecast: Any, y: Any) -> Any:
        error = (forecast.mean - y) ** 2
        return jnp.where(error > 1.0, jnp.inf, error)

    learner = Experts(WALKS, 0.0, loss=loss, learning_rate=LossRate())
    belief: Any = begin(learner)
    after: Any
    after, _ = learner.step(belief, XS[0], 100.0)  # neither has a finite loss
    np.testing.assert_array_equal(after.losses.total, belief.losses.total)
    with pytest.raises(credo.CredoError, match="needs a loss"):
        Experts(WALKS, learning_rate=LossRate())
    with pytest.raises(credo.CredoError, match="forgetting"):
        LossRate(forgetting=1.5)


def test_a_limit_bounds_what_a_gradient_may_forget() -> None:
    learner = ChangeProbability(
        INNER, 0.0, kind="inflation", method="gradient", learning_rate=100.0, limit=0.3
    )
    _, trace = credo.run(learner, begin(learner), XS, YS)
    assert float(trace.extras.max()) == 0.3


@pytest.mark.slow
def test_every_named_method_is_a_learner() -> None:
    robust = credo.RecursiveLearner(INNER.model, credo.Full("dense"))
    learners: dict[str, Any] = {
        "rl_pr": named.rl_pr(INNER),
        "bocd": named.bocd(INNER, capacity=T),
        "rl_mmpr": named.rl_mmpr(INNER, capacity=2),
        "rl_oupr": named.rl_oupr(INNER),
        "rlcc_pr": named.rlcc_pr(INNER, 2),
        "cpt_mmpr": named.cpt_mmpr(INNER, capacity=2),
        "cpl_mci": named.cpl_mci(INNER, capacity=2),
        "cpl_sub": named.cpl_sub(INNER, capacity=2),
        "cpp_ou": named.cpp_ou(INNER, levels=3),
        "cpp_aci": named.cpp_aci(INNER, levels=3),
        "me_lssm": named.me_lssm(WALKS),
        "wolf_rl_pr": named.wolf_rl_pr(robust, capacity=2),
    }
    constant = {"c_static", "c_aci", "c_ou", "bam"}
    assert set(learners) | constant == set(named.__all__)
    for name, learner in learners.items():
        start = begin(learner)
        mean = jax.eval_shape(lambda one=learner, at=start: one.step(at, XS[0], YS[0])[0].mean)
        assert mean.shape == (P,), name
    mass = np.exp(np.asarray(learners["cpp_aci"].log_prior))
    np.testing.assert_allclose(mass.sum(), 1.0, rtol=1e-6)
