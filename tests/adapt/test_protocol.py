"""Every wrapper is a learner: the verbs, their promises, and the limits in which it is another."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.adapt.setups import INNER, MODEL, WALKS, WRAPPED, XS, YS, P, T, begin
from tests.streams.setups import bitwise

import credo
from credo.adapt import ChangeProbability, ChangeTimes, Experts, RunLength, SoftReset, WeightedPast

# what their neighbours in the table go through, too
ALIKE = ("moments", "map", "experts in run length", "learned hazard", "robust in run length in experts")


@pytest.mark.optimised
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.thorough] * (name in ALIKE)) for name in WRAPPED]
)
def test_a_loop_and_a_run_that_goes_on_from_a_file_give_the_same_bits(name: str, tmp_path: Path) -> None:
    learner = WRAPPED[name]
    start, half = begin(learner), T // 2
    first, _ = credo.run(learner, start, XS[:half], YS[:half], key=0)
    credo.save(tmp_path / "half.credo", learner, first)
    again, resumed = credo.load(tmp_path / "half.credo", learner)
    bitwise((learner, first), (again, resumed))
    whole, _ = credo.run(again, resumed, XS[half:], YS[half:], key=0)
    belief = start
    for x, y in zip(XS, YS, strict=True):
        belief, _ = learner.step(belief, x, y, key=0)
    bitwise(belief, whole)


@pytest.mark.table
@pytest.mark.parametrize("name", WRAPPED)
def test_wrappers_are_learners(name: str) -> None:
    learner = WRAPPED[name]
    belief, trace = credo.run(learner, begin(learner), XS[:3], YS[:3], key=0)
    assert bool(trace.ok.all()) and bool(jnp.all(jnp.isfinite(trace.log_evidence)))
    predicted, forecast, draws, (updated, infos) = _probe(learner, belief)
    mean, sd, log_prob = forecast
    normal, missing, weightless, infinite, outlying = (
        jax.tree.map(lambda leaf, i=i: leaf[i], (updated, infos)) for i in range(len(CASES))
    )
    # the evidence is the forecast's density
    np.testing.assert_allclose(log_prob, normal[1].log_evidence, atol=1e-9)
    assert bool(jnp.isfinite(mean)) and float(sd) > 0 and draws.shape == (3, P)
    assert normal[0].mean.shape == (P,) and bool(jnp.all(normal[0].var > 0))
    # a missing or weightless observation leaves the predicted belief, bit by bit
    for (left, report), ok in ((missing, False), (weightless, True), (infinite, False)):
        bitwise(left, predicted)
        assert bool(report.ok) == ok and float(report.log_evidence) == 0
    # an outlier leaves everything sound
    assert all(bool(jnp.all(~jnp.isnan(leaf))) for leaf in jax.tree.leaves(outlying))


CASES = jnp.asarray([[float(YS[3]), 1.0], [jnp.nan, 1.0], [1.0, 0.0], [jnp.inf, 1.0], [1e6, 1.0]])
"""Observations, and their weights."""


@jax.jit
def _probe(learner: Any, belief: Any) -> Any:
    """The other verbs, in one program."""
    predicted = learner.predict(belief)
    forecast = learner.forecast(predicted, XS[3])
    updates = jax.vmap(lambda case: learner.update(predicted, XS[3], case[0], weight=case[1], key=0))(CASES)
    answers = (forecast.mean, forecast.sd, forecast.log_prob(YS[3]))
    return predicted, answers, learner.sample(predicted, jax.random.key(1), (3,)), updates


@pytest.mark.slow
def test_wrappers_vmap_and_keep_single_precision() -> None:
    learner = RunLength(INNER, 0.1, 3)

    @jax.jit
    def inside(belief: Any) -> Any:
        predicted = learner.predict(learner.step(belief, XS[0], YS[0])[0])
        forecast = learner.forecast(predicted, XS[1])
        low, high = forecast.interval(0.9)
        return forecast.cdf(high) - forecast.cdf(low)

    np.testing.assert_allclose(inside(begin(learner)), 0.9, atol=1e-9)
    small = jax.tree.map(lambda a: a.astype(jnp.float32), (XS, YS))
    start = learner.init(jnp.zeros(P, jnp.float32))
    belief, trace = credo.run(learner, start, *small)
    assert {leaf.dtype for leaf in jax.tree.leaves(belief)} == {jnp.dtype("float32"), jnp.dtype("int32")}
    assert trace.log_evidence.dtype == jnp.float32

    @jax.jit
    def total(hazard: jax.Array) -> jax.Array:
        return credo.run(RunLength(INNER, hazard, 3), begin(learner), XS, YS)[1].log_evidence.sum()

    hazards = jnp.asarray([0.01, 0.1 + 1e-6, 0.1 - 1e-6])
    together = jax.vmap(total)(hazards)
    np.testing.assert_allclose(together[0], total(hazards[0]), rtol=1e-12)
    slope = jax.jit(jax.grad(total))(jnp.asarray(0.1))
    np.testing.assert_allclose(slope, (together[1] - together[2]) / 2e-6, rtol=1e-5)


@pytest.mark.table
@pytest.mark.parametrize(
    "learner",
    [
        RunLength(INNER, 0.0, 3),
        ChangeTimes(INNER, 0.0, 2),
        SoftReset(INNER, 0.0),
        Experts([INNER]),
        ChangeProbability(INNER, (1.0,)),
        ChangeProbability(INNER, (1.0,), method="map"),
        ChangeProbability(INNER, (0.0,), kind="inflation"),
    ],
    ids=lambda learner: type(learner).__name__,
)
def test_a_world_that_never_changes_leaves_the_learner_itself(learner: Any) -> None:
    inner, trace = credo.run(INNER, begin(INNER), XS, YS)
    belief, report = credo.run(learner, begin(learner), XS, YS)
    np.testing.assert_allclose(report.log_evidence, trace.log_evidence, rtol=1e-12)
    np.testing.assert_allclose(belief.mean, inner.mean, rtol=1e-12)
    np.testing.assert_allclose(belief.var, inner.var, rtol=1e-12)


@pytest.mark.optimised
def test_a_hazard_of_zero_and_one_expert_are_the_inner_learner_bit_by_bit() -> None:
    inner, trace = credo.run(INNER, begin(INNER), XS, YS)
    learners: list[Any] = [RunLength(INNER, 0.0, 1), Experts([INNER], 0.0)]
    for learner in learners:
        belief, report = credo.run(learner, begin(learner), XS, YS)
        bitwise(report.log_evidence, trace.log_evidence)
        bitwise(jax.tree.map(lambda leaf: leaf[0], belief.beliefs), inner)


def test_a_hazard_of_one_starts_anew_at_every_step() -> None:
    learners: list[Any] = [RunLength(INNER, 1.0, 2), SoftReset(INNER, 1.0)]
    for learner in learners:
        belief, report = credo.run(learner, begin(learner), XS, YS)
        once = begin(INNER)
        for t in range(T):
            once, info = INNER.step(begin(INNER), XS[t], YS[t])
            np.testing.assert_allclose(report.log_evidence[t], info.log_evidence, rtol=1e-12)
        np.testing.assert_allclose(belief.mean, once.mean, rtol=1e-12)


def test_constant_auxiliary_variables_agree_where_they_forget_nothing() -> None:
    named = credo.adapt.named
    runs = [
        credo.run(learner, learner.init(jnp.zeros(P)), XS, YS)[0].mean
        for learner in (named.c_static(INNER), named.c_aci(INNER, 0.0), named.c_ou(INNER, 1.0))
    ]
    np.testing.assert_allclose(runs[1], runs[0], rtol=1e-12)
    np.testing.assert_allclose(runs[2], runs[0], rtol=1e-12)


def test_experts_follow_the_recursion_of_magill() -> None:
    learner = Experts(WALKS, 0.1)
    switch = np.array([[0.9, 0.1], [0.1, 0.9]])
    weights, beliefs, logs = np.full(2, 0.5), [begin(walk) for walk in WALKS], []
    for x, y in zip(XS, YS, strict=True):
        weights = switch.T @ weights
        steps = [walk.step(belief, x, y) for walk, belief in zip(WALKS, beliefs, strict=True)]
        beliefs = [belief for belief, _ in steps]
        joint = weights * np.exp([float(info.log_evidence) for _, info in steps])
        logs.append(np.log(joint.sum()))
        weights = joint / joint.sum()
    belief, trace = credo.run(learner, begin(learner), XS, YS)
    np.testing.assert_allclose(trace.log_evidence, logs, atol=1e-10)
    np.testing.assert_allclose(belief.weights, weights, atol=1e-10)
    np.testing.assert_allclose(trace.extras[-1], weights, atol=1e-10)


def test_soft_resets_follow_their_equations() -> None:
    hazard, learner = 0.6, SoftReset(INNER, 0.6)
    m0, s0 = np.zeros(P), 1.5 * np.eye(P)
    mean, cov, resets = m0, s0, 0
    for t in range(T):
        x, y, h = np.asarray(XS[t]), float(YS[t]), hazard if t else 0.0

        def density(mean: Any, cov: Any, x: Any = x, y: float = y) -> float:
            var = x @ cov @ x + 0.2
            return float(np.exp(-0.5 * (y - x @ mean) ** 2 / var) / np.sqrt(2 * np.pi * var))

        keep = density(mean, cov) * (1 - h) / (density(mean, cov) * (1 - h) + density(m0, s0) * h)
        if keep > 0.5:
            mean, cov = keep * mean + (1 - keep) * m0, keep**2 * cov + (1 - keep**2) * s0
        else:
            mean, cov, resets = m0, s0, resets + 1
        gain = cov @ x / (x @ cov @ x + 0.2)
        mean, cov = mean + gain * (y - x @ mean), cov - np.outer(gain, gain) * (x @ cov @ x + 0.2)
    belief, _ = credo.run(learner, begin(learner), XS, YS)
    assert resets > 0
    np.testing.assert_allclose(belief.mean, mean, atol=1e-10)
    np.testing.assert_allclose(belief.belief.cov.dense(), cov, atol=1e-10)


def test_the_marginal_over_levels_keeps_two_moments_and_the_map_is_the_best_of_them() -> None:
    levels, log_prior = np.array([1.0, 0.6, 0.0]), np.log([0.7, 0.2, 0.1])
    belief = INNER.step(begin(INNER), XS[0], YS[0])[0]
    prior = begin(INNER)
    parts = []
    for level in levels:
        child = credo.replace(
            belief,
            mean=level * belief.mean,
            cov=credo.covariances.DenseCovariance(
                level**2 * belief.cov.dense() + (1 - level**2) * prior.cov.dense()
            ),
        )
        parts.append(INNER.update(credo.replace(child, t=child.t + 1), XS[1], YS[1]))
    logs = log_prior + np.array([float(info.log_evidence) for _, info in parts])
    weights = np.exp(logs - np.logaddexp.reduce(logs))
    means = np.array([part.mean for part, _ in parts])
    centre = weights @ means
    cov = sum(
        w * (np.asarray(part.cov.dense()) + np.outer(m - centre, m - centre))
        for w, m, (part, _) in zip(weights, means, parts, strict=True)
    )
    for method in ("marginal", "map"):
        learner: Any = ChangeProbability(INNER, tuple(levels), tuple(log_prior), method=method)
        after, trace = credo.run(learner, begin(learner), XS[:2], YS[:2])
        np.testing.assert_allclose(trace.log_evidence[1], np.logaddexp.reduce(logs), atol=1e-10)
        best = parts[int(np.argmax(logs))][0]
        target = (centre, cov) if method == "marginal" else (best.mean, best.cov.dense())
        np.testing.assert_allclose(after.mean, target[0], atol=1e-10)
        np.testing.assert_allclose(after.belief.cov.dense(), target[1], atol=1e-10)


def test_a_gradient_of_levels_goes_uphill_from_where_it_was() -> None:
    learner = ChangeProbability(
        INNER, 0.05, kind="inflation", method="gradient", learning_rate=0.01, iterations=1
    )
    belief = learner.step(begin(learner), XS[0], YS[0])[0]

    def score(q: float) -> jax.Array:
        cov = credo.covariances.DenseCovariance(belief.belief.cov.dense() + q * jnp.eye(P))
        return INNER.forecast(credo.replace(belief.belief, cov=cov), XS[1]).log_prob(YS[1])

    q = float(belief.level)
    slope = (score(q + 1e-6) - score(q - 1e-6)) / 2e-6
    after, _ = learner.step(belief, XS[1], YS[1])
    np.testing.assert_allclose(float(after.level), max(q + 0.01 * float(slope), 0.0), atol=1e-8)


@pytest.mark.slow
def test_a_memory_of_certain_observations_is_the_learner_and_doubts_what_does_not_fit() -> None:
    sure = WeightedPast(INNER, T, iterations=0, entry=1 - 1e-12)
    belief, _ = credo.run(sure, begin(sure), XS, YS)
    inner, _ = credo.run(INNER, begin(INNER), XS, YS)
    np.testing.assert_allclose(belief.mean, inner.mean, atol=1e-9)
    doubting = WeightedPast(INNER, T, iterations=20, learning_rate=2.0, penalty=0.1)
    belief, _ = credo.run(doubting, begin(doubting), XS, YS)
    old, new = np.asarray(belief.weights[:5]), np.asarray(belief.weights[5:])
    assert old.mean() < 0.6 < 0.8 < new.mean()


@pytest.mark.table
@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: RunLength(INNER, 1.5), "hazard must be in"),
        (lambda: RunLength(INNER, 0.1, 0), "capacity"),
        (lambda: RunLength(INNER, 0.1, overflow=cast(Any, "forget")), "overflow must be one of"),
        (lambda: RunLength(INNER, 0.1, 3, cast(Any, "prior")), "conditional_prior"),
        (lambda: ChangeTimes(INNER, 0.1, 3, overflow="merge"), "overflow"),
        (lambda: RunLength(INNER, 0.1, 3, credo.adapt.Subset()), "ChangeTimes"),
        (lambda: SoftReset(INNER, credo.adapt.LearnedHazard()), "hazard"),
        (lambda: Experts([INNER, credo.vd_ekf(MODEL)], mixing=True), "mixing needs .* learner 1 has"),
        (lambda: credo.adapt.bank([INNER, credo.vd_ekf(MODEL)]), "the same structure"),
        (lambda: Experts(WALKS).init(credo.adapt.Each([jnp.zeros(P)])), "one value a learner, 2 in all"),
        (lambda: Experts([]), "at least one"),
        (lambda: begin(Experts(INNER)), "list of learners"),
        (lambda: ChangeProbability(INNER, (1.0, 2.0)), "levels"),
        (lambda: ChangeProbability(INNER, (1.0, 0.5), (0.0,)), "log_prior"),
        (lambda: WeightedPast(INNER).init(jnp.zeros(P)), "example"),
        (lambda: WeightedPast(cast(Any, "ekf")), "learner must be a credo.Learner"),
        (lambda: credo.adapt.segmentation(credo.adapt.Changes(*[jnp.zeros(3)] * 8), 7), "upto"),
    ],
)
def test_refusals_name_the_field(make: Any, words: str) -> None:
    with pytest.raises(credo.CredoError, match=words):
        make()
