"""Standardised learners are the tables' scaling and the learner inside, done by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from scipy import stats
from tests.adapt.moments_reference import Naive, standardised
from tests.adapt.setups import INNER, MODEL, WALKS, P, linear
from tests.streams.setups import bitwise

import credo
from credo.adapt import Calibrated, Experts, RunLength, RunningMoments, Standardized
from credo.beliefs import InverseGamma
from credo.likelihoods import NormalPredictive, Rescaled
from credo.likelihoods.rescaled import FARTHEST
from credo.streams.scoring import score_chunk

T, WARMUP, CLIP = 24, 4, 3.0
RNG = np.random.default_rng(3)
ROWS = RNG.normal([50.0, -3.0], [10.0, 0.1], size=(T, P))
NUMBERS = 200.0 + 3.0 * ROWS @ [1.0, 5.0] + RNG.normal(size=T)
CLASSES = (ROWS[:, 0] > 50.0).astype(np.int32)
RAW, YS = jnp.asarray(ROWS), jnp.asarray(NUMBERS)

LEARNED = credo.RecursiveLearner(
    credo.Model(linear, credo.Normal(InverseGamma(3.0, 1.0))), credo.Full("dense")
)
BOTH = Standardized(INNER, targets=True, clip=CLIP, warmup=WARMUP)


def begin(learner: Any, dtype: Any = float) -> Any:
    """The first belief over two parameters and two inputs."""
    return learner.init(jnp.zeros(P, dtype), var=1.5, size=P)


def by_hand(rows: np.ndarray) -> np.ndarray:
    """Each row standardised by those before it."""
    return standardised(rows, CLIP)


@pytest.mark.slow
def test_it_is_the_scaling_and_the_learner_done_by_hand() -> None:
    inner = LEARNED
    learner = credo.replace(BOTH, learner=inner)
    xs, ys, weights = ROWS.copy(), NUMBERS.copy(), np.ones(T)
    xs[1, 0], xs[9, 1], xs[12], xs[14, 0] = np.nan, np.inf, [1e200, -1e200], 1e5
    ys[6], ys[13], ys[17] = np.nan, np.inf, 1e4
    weights[2], weights[15] = 0.0, 0.0
    good = [i for i in range(T) if weights[i] and np.isfinite(ys[i])]
    seen = np.where(np.abs(xs) < 1e100, xs, np.nan)
    z, target = by_hand(seen[good]), Naive()
    for y in ys[good][:WARMUP].tolist():
        target.observe(y)
    belief = inner.init(jnp.zeros(P), var=1.5)
    step = jax.jit(lambda belief, x, y, weight: inner.step(belief, x, y, weight=weight)[0])

    @jax.jit
    def told(belief: Any, x: Any, away: Any) -> tuple[Any, Any, Any]:
        distribution = inner.forecast(belief, x)
        return distribution.log_prob(away), distribution.mean, distribution.quantile(0.9)

    for i in range(WARMUP):
        belief = step(belief, z[i], target.z(float(ys[good][i]), CLIP), 1.0)
    logs, means, quantiles = [], [], []
    for i in range(WARMUP, len(good)):
        y, location, scale = float(ys[good][i]), target.mean, target.sd
        away = np.clip((y - location) / scale, -FARTHEST, FARTHEST)
        density, mean, quantile = map(float, told(belief, z[i], away))
        logs.append(density - np.log(scale))
        means.append(location + scale * mean)
        quantiles.append(location + scale * quantile)
        learned = np.clip(away, -min(CLIP, target.count**0.5), min(CLIP, target.count**0.5))
        belief = step(belief, z[i], learned, min(1.0, (8 / abs(away)) ** 2))
        target.observe(y)
    last, outcome, info = score_chunk(
        learner,
        begin(learner),
        jnp.asarray(xs),
        jnp.asarray(ys),
        weights=jnp.asarray(weights),
        levels=jnp.array([0.9]),
    )
    late, known = jnp.asarray(good[WARMUP:]), jnp.asarray(good)
    assert outcome.mean is not None and outcome.quantiles is not None
    np.testing.assert_allclose(last.belief.mean, belief.mean, rtol=0, atol=1e-10)
    np.testing.assert_allclose(last.belief.cov.dense(), belief.cov.dense(), rtol=0, atol=1e-10)
    np.testing.assert_allclose(info.log_evidence[late], logs, rtol=1e-10)
    np.testing.assert_allclose(outcome.mean[late], means, rtol=1e-10)
    np.testing.assert_allclose(outcome.quantiles[late, 0], quantiles, rtol=1e-10)
    np.testing.assert_allclose(info.log_evidence[known], outcome.log_prob[known])
    assert info.ok.tolist() == np.isfinite(ys).tolist() and int(last.t) == T


_ENTRIES = st.one_of(
    st.floats(-3, 3), st.floats(-1e-4, 1e-4), st.floats(90, 110), st.sampled_from([0.0, 1e6, -1e9, np.nan])
)


@given(st.lists(st.tuples(_ENTRIES, st.integers(1, 14)), max_size=12), st.integers(0, 2**31))
def test_moments_are_those_of_the_naive_reference(runs: list[tuple[float, int]], seed: int) -> None:
    rng, naive, moments = np.random.default_rng(seed), Naive(), RunningMoments.empty((), float)
    entries = [x + (x == x) * scale * rng.normal() for x, n in runs for scale in [rng.choice([0, 1e-6, 0.1])]
               for _ in range(n)]  # fmt: skip
    for x in entries:
        moments = _observe(moments, jnp.asarray(float(x)))
        naive.observe(float(x))
        assert int(moments.count) == naive.count and int(moments.restarts) == naive.restarts
        np.testing.assert_allclose(float(moments.mean), naive.mean, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(float(moments.sd), naive.sd, rtol=1e-6, atol=1e-7)


_observe = jax.jit(lambda moments, x: moments.observe(x))


@pytest.mark.parametrize("absurd", [1e3, 1e6, 1e9, 1e14, -1e6])
@pytest.mark.parametrize("place", [0, 1, 3, 9, 300])
def test_one_absurd_entry_leaves_no_trace(absurd: float, place: int) -> None:
    entries = np.random.default_rng(5).normal(size=400)
    entries[place] = absurd
    rest = np.delete(entries, place)
    moments = RunningMoments.empty((), jnp.float32)
    for x in entries:
        moments = _observe(moments, jnp.float32(x))
    # what is wrong is less than the standard error of the moments themselves
    assert abs(float(moments.mean) - rest.mean()) < 0.05 and abs(float(moments.sd) / rest.std() - 1) < 0.05


@pytest.mark.parametrize("change", [lambda x: 1000 * x, lambda x: x + 1e6, lambda x: 1e6 - 1000 * x])
def test_other_units_for_good_are_taken_up_within_sixty_entries(change: Any) -> None:
    rng, moments = np.random.default_rng(6), RunningMoments.empty((), jnp.float32)
    for x in rng.normal(5.0, 1.0, size=900):
        moments = _observe(moments, jnp.float32(x))
    new = change(rng.normal(5.0, 1.0, size=60))
    for x in new:
        moments = _observe(moments, jnp.float32(x))
    assert int(moments.restarts) == 1
    np.testing.assert_allclose(float(moments.mean), new.mean(), atol=new.std() / 2)
    np.testing.assert_allclose(float(moments.sd), new.std(), rtol=0.3)


def test_inputs_alone_are_scaled_for_classes_and_some_of_them_pass() -> None:
    inner = credo.RecursiveLearner(credo.Model(linear, credo.Bernoulli()), credo.Full("dense"))
    learner = Standardized(inner, clip=CLIP)
    belief = learner.init(jnp.zeros(P), size=P, scaled=jnp.array([True, False]))
    rows = ROWS.copy()
    rows[5, 1] = np.nan
    z = np.stack([by_hand(rows)[:, 0], np.nan_to_num(rows[:, 1])], axis=1)
    after, trace = credo.run(learner, belief, jnp.asarray(rows), CLASSES)
    alone, reports = credo.run(inner, inner.init(jnp.zeros(P)), jnp.asarray(z), CLASSES)
    np.testing.assert_allclose(after.mean, alone.mean, rtol=0, atol=1e-10)
    np.testing.assert_allclose(trace.log_evidence, reports.log_evidence, rtol=0, atol=1e-10)
    assert after.inputs is not None and after.inputs.count.tolist() == [T, 0]
    plain = Standardized(inner, inputs=False)
    same, _ = credo.run(plain, plain.init(jnp.zeros(P)), jnp.asarray(rows), CLASSES)
    clean, _ = credo.run(inner, inner.init(jnp.zeros(P)), jnp.asarray(np.nan_to_num(rows)), CLASSES)
    np.testing.assert_allclose(same.mean, clean.mean, rtol=0, atol=1e-12)


@pytest.mark.optimised
@pytest.mark.parametrize(
    "learner", [BOTH, RunLength(BOTH, 0.1, 2, overflow="merge")], ids=["alone", "inside"]
)
def test_a_loop_a_scan_chunks_and_a_pack_give_the_same_bits(learner: Any, tmp_path: Path) -> None:
    half = T // 2
    first, early = credo.run(learner, begin(learner), RAW[:half], YS[:half])
    again, belief = credo.load(credo.save(tmp_path / "half.credo", learner, first), learner)
    bitwise((learner, first), (again, belief))
    last, late = credo.run(again, belief, RAW[half:], YS[half:])
    if learner is BOTH:
        live = credo.pack(learner, begin(learner))
        logs = [live.step(x, y).log_evidence for x, y in zip(ROWS, NUMBERS.tolist(), strict=True)]
        belief = live.belief
    else:
        belief, logs = begin(learner), []
        for x, y in zip(RAW, YS, strict=True):
            belief, info = learner.step(belief, x, y)
            logs.append(info.log_evidence)
    bitwise(last, belief)
    bitwise(jnp.concatenate([early.log_evidence, late.log_evidence]), jnp.asarray(logs))


@pytest.mark.slow
def test_mixtures_of_standardised_learners_forecast_in_the_units_of_the_target() -> None:
    members = [credo.replace(BOTH, learner=Calibrated(walk, (0.0, 1.0), tails=(4.0,))) for walk in WALKS]
    learner = Experts(members, 0.1)
    belief, trace = credo.run(learner, begin(learner), RAW.at[20, 1].set(jnp.nan), YS)
    assert trace.ok.all()

    @jax.jit
    def answers(belief: Any, x: Any) -> Any:
        distribution = learner.predictive(belief, x, None, None, None)
        parts = jax.vmap(lambda one, inner: one.expectation(inner, x).mean)(learner.bank, belief.beliefs)
        at = distribution.quantile(0.25)
        expected = learner.expectation(belief, x).mean
        return (
            distribution.log_prob(at),
            distribution.cdf(at),
            distribution.mean,
            distribution.sd,
            expected,
            belief.weights @ parts,
        )

    log_prob, share, mean, sd, expected, average = map(np.asarray, answers(belief, RAW[0]))
    assert np.isfinite(log_prob) and abs(share - 0.25) < 1e-6
    assert abs(mean - NUMBERS[0]) < 3 * sd < 60
    np.testing.assert_allclose(expected, average)


@pytest.mark.slow
def test_targets_that_do_not_differ_wait_until_one_does() -> None:
    ys = np.where(np.arange(T) < 7, 5.0, NUMBERS)
    belief, _ = credo.run(BOTH, begin(BOTH), RAW[:7], jnp.asarray(ys[:7]))
    assert belief.waiting is not None and int(belief.waiting.filled) == WARMUP
    assert float(jnp.abs(belief.mean).max()) == 0
    assert float(BOTH.forecast(BOTH.predict(belief), RAW[7]).mean) == 5.0
    belief, info = BOTH.step(belief, RAW[7], ys[7])
    assert bool(info.ok) and belief.waiting is not None and int(belief.waiting.filled) == 0
    assert float(jnp.abs(belief.mean).max()) > 0
    np.testing.assert_allclose(float(belief.units[0]), ys[:8].mean())


@pytest.mark.table
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_moments_lose_no_digits_to_offsets_and_long_streams(dtype: Any) -> None:
    count = 20_000
    rows = np.stack([1.7e9 + 1000.0 * RNG.normal(size=count), 1e-6 * RNG.normal(size=count)], axis=1)
    rows[0] = [0.0, 1e4]  # a first value far from the others
    single = rows.astype(dtype)

    def learn(moments: Any, x: Any) -> Any:
        return moments.observe(x), None

    start = RunningMoments.empty((2,), dtype)
    moments, _ = jax.jit(lambda start, xs: jax.lax.scan(learn, start, xs))(start, jnp.asarray(single))
    exact = single[1:].astype(np.float64)  # ten rows that lie close together began the moments again
    # half a step of the dtype for the mean, and the rounding of 20,000 sums for the variance
    for_mean, for_sd = (1e-7, 1e-4) if dtype == jnp.float32 else (1e-13, 1e-11)
    np.testing.assert_allclose(moments.mean, exact.mean(axis=0), rtol=for_mean)
    np.testing.assert_allclose(moments.sd, exact.std(axis=0, ddof=1), rtol=for_sd)
    batch = start.of(exact)
    np.testing.assert_allclose(batch.sd, exact.std(axis=0, ddof=1), rtol=1e-6)
    assert batch.fixed.all() and bool(jnp.all(batch.observe(jnp.ones(2, dtype)).values == batch.values))


@pytest.mark.slow
def test_times_in_single_precision_keep_the_digits_that_they_have() -> None:
    seconds = (1.7e9 + 1000.0 * RNG.normal(size=300)).astype(np.float32)
    learner = Standardized(credo.RecursiveLearner(MODEL), clip=8.0)
    rows = np.stack([seconds, np.ones_like(seconds)], axis=1)
    belief, _ = credo.run(learner, begin(learner, jnp.float32), jnp.asarray(rows), jnp.zeros(300))
    z = np.asarray(jax.vmap(lambda x: learner.encode(belief, x))(jnp.asarray(rows)))
    exact = (seconds - seconds.astype(float).mean()) / seconds.astype(float).std(ddof=1)
    np.testing.assert_allclose(z[:, 0], exact, atol=1e-3)
    assert not z[:, 1].any()


def test_a_scaling_that_is_fixed_is_that_of_the_batch() -> None:
    weights = np.where(np.arange(T) % 3 == 0, 2.0, 1.0)
    weights[4] = 0.0
    belief = BOTH.fix(begin(BOTH), ROWS, NUMBERS, weights=weights)
    often = np.repeat(np.arange(T), weights.astype(int))
    rows, numbers = ROWS[often], NUMBERS[often]
    z = np.clip((ROWS - rows.mean(axis=0)) / rows.std(axis=0, ddof=1), -CLIP, CLIP)
    target = np.clip((NUMBERS - numbers.mean()) / numbers.std(ddof=1), -CLIP, CLIP)
    after, _ = credo.run(BOTH, belief, RAW, YS)
    alone, _ = credo.run(INNER, INNER.init(jnp.zeros(P), var=1.5), jnp.asarray(z), jnp.asarray(target))
    np.testing.assert_allclose(after.mean, alone.mean, rtol=0, atol=1e-10)
    bitwise((after.inputs, after.target), (belief.inputs, belief.target))
    same = BOTH.fix(after)
    bitwise((same.inputs, same.target), (after.inputs, after.target))


@pytest.mark.slow
def test_decisions_are_in_the_units_of_the_target() -> None:
    belief, _ = credo.run(BOTH, begin(BOTH), RAW, YS)
    location, scale = map(float, belief.units)
    x = RAW[3]
    z = BOTH.encode(belief, x)
    distribution, inside = BOTH.expect(belief, x), INNER.expect(belief.belief, z)
    np.testing.assert_allclose(distribution.mean, location + scale * inside.mean)
    np.testing.assert_allclose(distribution.var, scale**2 * inside.var)
    np.testing.assert_allclose(
        distribution.quantile(0.9), location + scale * stats.norm.ppf(0.9, inside.mean, inside.sd), rtol=1e-9
    )
    function, same = BOTH.sample_function(belief, 0), INNER.sample_function(belief.belief, 0)
    np.testing.assert_allclose(function(x), location + scale * same(z), rtol=1e-12)


def test_a_rescaled_distribution_is_the_distribution_of_the_rescaled_number() -> None:
    distribution = Rescaled(
        NormalPredictive(jnp.ones(1), 4.0 * jnp.eye(1)), jnp.asarray(10.0), jnp.asarray(3.0)
    )
    exact: Any = stats.norm(13.0, 6.0)
    ys = np.array([-3.0, 12.0, 40.0])
    np.testing.assert_allclose([distribution.log_prob(y) for y in ys], exact.logpdf(ys), rtol=1e-12)
    np.testing.assert_allclose([distribution.cdf(y) for y in ys], exact.cdf(ys), rtol=1e-6)
    np.testing.assert_allclose(distribution.quantile(jnp.array([0.1, 0.7])), exact.ppf([0.1, 0.7]), rtol=1e-9)
    np.testing.assert_allclose([distribution.mean, distribution.var, distribution.sd], [13.0, 36.0, 6.0])
    heavy = distribution.heavier(jnp.asarray(4.0))
    np.testing.assert_allclose([heavy.mean, heavy.var], [13.0, 36.0])


def test_what_cannot_be_scaled_is_refused_in_a_sentence() -> None:
    with pytest.raises(credo.CredoError, match="clip must"):
        Standardized(INNER, clip=0.0)
    with pytest.raises(credo.CredoError, match="warmup must"):
        Standardized(INNER, warmup=1)
    with pytest.raises(credo.CredoError, match="size must be the number of inputs"):
        BOTH.init(jnp.zeros(P))
    with pytest.raises(credo.CredoError, match="scaled must hold one truth value an input"):
        BOTH.init(jnp.zeros(P), size=P, scaled=jnp.ones(1, bool))
    belief = begin(BOTH)
    with pytest.raises(credo.CredoError, match="x must be one row of 2 inputs"):
        BOTH.step(belief, jnp.zeros(3), 1.0)
    with pytest.raises(credo.CredoError, match="one number a step"):
        BOTH.step(belief, RAW[0], jnp.ones(2))
    with pytest.raises(credo.CredoError, match="has no units"):
        _ = begin(Standardized(INNER)).units
    with pytest.raises(credo.CredoError, match=r"xs must be \(N, 2\)"):
        BOTH.fix(belief, ROWS[:, :1])


@pytest.mark.slow
def test_more_inputs_are_those_that_were_missing_before() -> None:
    narrow, _ = credo.run(BOTH, begin(BOTH), RAW[:3], YS[:3])
    more = jnp.concatenate([RAW, RAW[::-1]], axis=1)
    wide = BOTH.widen(narrow, jnp.zeros(2 * P), var=1.5, size=2 * P)
    wide, _ = credo.run(BOTH, wide, more[3:], YS[3:])
    start = BOTH.init(jnp.zeros(2 * P), var=1.5, size=2 * P)
    whole, _ = credo.run(BOTH, start, more.at[:3, P:].set(jnp.nan), YS)
    for left, right in zip(jax.tree.leaves(wide), jax.tree.leaves(whole), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-10, atol=1e-10)


HURTFUL = st.sampled_from([0.0, 1.0, -2.5, 1e-30, 1e14, 1e30, -3e38, np.nan, np.inf, -np.inf])


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(HURTFUL, HURTFUL, HURTFUL, st.sampled_from([0.0, 1.0, 0.5])), min_size=8, max_size=24)
)
def test_no_rows_make_a_belief_that_is_not_finite(rows: list[tuple[float, ...]]) -> None:
    table = np.full((24, 4), np.nan, np.float32)
    table[: len(rows)] = np.array(rows, np.float32)
    xs, ys, weights = jnp.asarray(table[:, :2]), jnp.asarray(table[:, 2]), jnp.asarray(table[:, 3])
    weights = jnp.where(jnp.isnan(weights), 0, weights)
    belief, trace = credo.run(BOTH, begin(BOTH, jnp.float32), xs, ys, weights=weights)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(belief))
    assert np.isfinite(trace.log_evidence).all()
    distribution = BOTH.forecast(BOTH.predict(belief), xs[0])
    assert np.isfinite([distribution.mean, distribution.sd]).all() and float(distribution.sd) > 0
