"""Robust learners are weighted Kalman filters: against naive loops in NumPy, and what an outlier may do."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats as st
from tests.adapt.robust_reference import (
    FEW,
    KALMAN,
    MATRIX,
    METHODS,
    NAIVE,
    PRIOR,
    TAILED,
    WALK,
    P,
    T,
    data,
)
from tests.learners.reference import close, linear, regression, stream

import credo
from credo.adapt import GammaWeight, InverseWishartNoise, OutlierIndicator, RunLength, StudentTNoise, WoLF
from credo.core.errors import CredoError
from credo.core.types import ArrayLike


@pytest.mark.table
@pytest.mark.parametrize(("name", "outputs"), [(name, 2) for name in METHODS] + [(name, 0) for name in FEW])
def test_every_step_is_that_of_the_naive_weighted_filter(name: str, outputs: int) -> None:
    xs, ys = data(outputs)
    noise = MATRIX if outputs else np.array([[0.3]])
    model = regression(jnp.asarray(MATRIX) if outputs else 0.3)
    learner = METHODS[name](credo.extended_kalman(model, dynamics=credo.RandomWalk(0.05)))
    belief, trace = credo.run(learner, learner.init(jnp.ones(P), var=PRIOR), jnp.asarray(xs), jnp.asarray(ys))
    mean, cov, evidence = np.ones(P), np.diag(PRIOR), []
    for x, y in zip(xs, ys, strict=True):
        h = np.atleast_2d(x)
        mean, cov, one = NAIVE[name](mean, cov + 0.05 * np.eye(P), h, np.atleast_1d(y), noise)
        evidence.append(one)
    close(belief.mean, mean)
    close(belief.cov.dense(), cov)
    close(trace.log_evidence, evidence)
    assert bool(trace.ok.all()) and trace.extras.weight.shape == (T,)


def test_the_evidence_of_wolf_is_a_normal_density_whose_scale_is_a_standard_deviation() -> None:
    learner = WoLF(KALMAN, 0.5)
    _, info = learner.update(learner.init(jnp.zeros(P), var=2.0), jnp.ones(P), 3.0)
    weight = 1 / np.sqrt(1 + 3.0**2 / 0.5**2)
    close(info.log_evidence, st.norm.logpdf(3.0, 0.0, np.sqrt(6.0 + 0.3 / weight**2)))
    close(info.extras.weight, weight**2)


@pytest.mark.table
@pytest.mark.parametrize(
    ("wide", "tolerance"),
    [
        (WoLF(WALK, 1e8), 1e-10),
        (WoLF(WALK, 1e8, "mahalanobis"), 1e-10),
        (StudentTNoise(WALK, 1e9), 1e-6),
        (GammaWeight(WALK, 1e9, 1e9), 1e-6),
        (InverseWishartNoise(WALK, 1e9), 1e-6),
        (OutlierIndicator(WALK, 1.0, 1e-9), 1e-6),
    ],
    ids=["imq", "mahalanobis", "student", "gamma", "wishart", "indicator"],
)
def test_a_wide_threshold_or_light_tails_give_the_learner_inside(wide: Any, tolerance: float) -> None:
    # tails and the prior probability of an outlier differ from their limits by 1e-9 and less, times distances
    xs, ys = map(jnp.asarray, stream(P, T))
    start = WALK.init(jnp.zeros(P))
    want, plain = credo.run(WALK, start, xs, ys)
    got, trace = credo.run(wide, wide.init(jnp.zeros(P)), xs, ys)
    close(got.mean, want.mean, tolerance)
    close(got.cov.dense(), want.cov.dense(), tolerance)
    if not isinstance(wide, StudentTNoise | GammaWeight | InverseWishartNoise):
        close(trace.log_evidence, plain.log_evidence, tolerance)


@pytest.mark.table
@pytest.mark.parametrize("name", FEW)
def test_an_outlier_hardly_moves_the_belief_and_the_farther_the_less(name: str) -> None:
    xs, ys = stream(P, T, 2)
    learner = METHODS[name](KALMAN)
    belief, _ = credo.run(learner, learner.init(jnp.zeros(P)), jnp.asarray(xs), jnp.asarray(ys))
    moves = []
    for far in (1e2, 1e4, 1e6):
        after, info = learner.update(belief, jnp.asarray(xs[0]), jnp.asarray(ys[0] + far))
        moves.append(float(jnp.max(jnp.abs(after.mean - belief.mean))))
        assert bool(info.ok) and bool(jnp.isfinite(info.log_evidence))
    plain, _ = KALMAN.update(belief, jnp.asarray(xs[0]), jnp.asarray(ys[0] + 1e6))
    assert moves[2] <= moves[1] <= moves[0] < 0.1 and moves[2] < 1e-4
    assert float(jnp.max(jnp.abs(plain.mean - belief.mean))) > 1e4


@pytest.mark.table
@pytest.mark.parametrize("name", list(METHODS))
def test_farther_never_has_more_evidence_and_an_outlier_favours_no_belief(name: str) -> None:
    learner = METHODS[name](KALMAN)
    x = jnp.asarray([1.0, 0.0, 0.0])

    def evidence(far: float, var: float) -> float:
        return float(learner.update(learner.init(jnp.zeros(P), var=var), x, far)[1].log_evidence)

    fars = [0.0, 0.5, 1.0, 1.3, 1.4, 2.0, 5.0, 50.0, 1e3, 1e6]
    values = [evidence(far, 0.1) for far in fars]
    assert all(a >= b - 1e-12 for a, b in itertools.pairwise(values))
    # a t density far out goes with scale^df, here at most 2^(3.5 / 2); every other method forgets the belief
    tail = 1.75 * np.log(2.0) + 1e-6 if name in TAILED else 1e-6
    assert abs(evidence(1e6, 0.1) - evidence(1e6, 0.5)) < tail


@pytest.mark.table
@pytest.mark.parametrize("name", list(METHODS))
def test_missing_and_weightless_observations_give_the_belief_back_bit_by_bit(name: str) -> None:
    learner = METHODS[name](KALMAN)
    belief, _ = learner.step(learner.init(jnp.zeros(P)), jnp.ones(P), 1.0)
    cases: list[tuple[ArrayLike, ArrayLike, ArrayLike, bool]] = [
        (jnp.ones(P), jnp.nan, 1.0, False),
        (jnp.ones(P), jnp.inf, 1.0, False),
        (jnp.full(P, jnp.nan), 1.0, 1.0, False),
        (jnp.ones(P), 1.0, 0.0, True),
        (jnp.ones(P), jnp.nan, 0.0, False),
        (jnp.ones(P), 1.0, -1.0, False),
        (jnp.ones(P), 1.0, jnp.nan, False),
        (jnp.full(P, 1e200), 1.0, 1.0, False),
    ]
    for x, y, weight, ok in cases:
        after, info = learner.update(belief, x, y, weight=weight)
        assert after == belief and bool(info.ok) == ok and float(info.log_evidence) == 0.0


@pytest.mark.table
@pytest.mark.parametrize("name", FEW)
def test_a_whole_weight_counts_as_that_of_the_learner_inside(name: str) -> None:
    learner, x, y = METHODS[name](KALMAN), jnp.asarray([1.0, 0.3, -0.2]), 0.4
    start = learner.init(jnp.zeros(P))
    once, info = learner.update(start, x, y, weight=1e-9)
    move = KALMAN.update(start, x, y, weight=1e-9 * float(info.extras.weight))[0].mean
    close(once.mean, move, 1e-15)
    _, full = learner.update(start, x, y)
    close(full.log_evidence, info.log_evidence)


@pytest.mark.optimised
@pytest.mark.parametrize("name", FEW)
def test_beliefs_map_over_vmap_and_loops_scans_and_files_agree(name: str, tmp_path: Any) -> None:
    xs, ys = map(jnp.asarray, data(0))
    learner = METHODS[name](WALK)
    start = learner.init(jnp.zeros(P))
    last, trace = credo.run(learner, start, xs, ys)
    looped, info = learner.step(start, xs[0], ys[0])
    for x, y in zip(xs[1:], ys[1:], strict=True):
        looped, info = learner.step(looped, x, y)
    assert looped == last
    assert float(info.log_evidence) == float(trace.log_evidence[-1])
    both = jax.tree.map(lambda a, b: jnp.stack([a, b]), start, last)
    after, infos = jax.vmap(lambda belief: learner.step(belief, xs[0], ys[0]))(both)
    for i, belief in enumerate((start, last)):
        want, one = learner.step(belief, xs[0], ys[0])
        close(after.mean[i], want.mean)
        close(infos.log_evidence[i], one.log_evidence)
    path = credo.save(tmp_path / "robust.credo", learner, last)
    again, held = credo.load(path, learner)
    assert again == learner and held == last


@pytest.mark.table
@pytest.mark.parametrize("name", FEW)
def test_single_precision_stays_single_and_survives_an_outlier(name: str) -> None:
    xs, ys = stream(P, T, 2)
    xs, ys = xs.astype(np.float32), ys.astype(np.float32)
    learner = METHODS[name](WALK)
    start = learner.init(jnp.zeros(P, jnp.float32))
    want, _ = credo.run(learner, start, jnp.asarray(xs), jnp.asarray(ys))
    ys[4] += 1e6
    belief, trace = credo.run(learner, start, jnp.asarray(xs), jnp.asarray(ys))
    assert belief.mean.dtype == jnp.float32 and trace.log_evidence.dtype == jnp.float32
    assert bool(jnp.all(jnp.isfinite(belief.cov.dense()))) and bool(jnp.all(jnp.isfinite(trace.log_evidence)))
    assert float(jnp.max(jnp.abs(belief.mean - want.mean))) < 0.6
    double = METHODS[name](WALK)
    there, ends = credo.run(
        double, double.init(jnp.zeros(P)), jnp.asarray(xs, jnp.float64), jnp.asarray(ys, jnp.float64)
    )
    # across a residual of 2e6 sds, rounding leaves 2e6 * 6e-8 = 0.1 sds, which an inverse-Wishart counts
    tolerance = 1e-2 if name == "wishart" else 1e-3
    close(belief.mean, there.mean, tolerance)
    close(trace.log_evidence, ends.log_evidence, tolerance)


@pytest.mark.slow
@pytest.mark.table
@pytest.mark.parametrize("name", ["imq", "mahalanobis", "student", "wishart"])
def test_a_low_rank_network_learns_through_outliers(name: str) -> None:
    network = credo.MLP(1, (4,), "tanh")
    learner = METHODS[name](credo.lofi(credo.Model(network, credo.Normal(0.1)), 3))
    rng = np.random.default_rng(0)
    xs = rng.normal(size=(60, 2))
    ys = np.sin(xs[:, 0]) + 0.1 * rng.normal(size=60)
    ys[::10] += 1e5
    start = learner.init(network.init(jax.random.key(0), (2,)), var=0.5)
    belief, trace = credo.run(learner, start, jnp.asarray(xs), jnp.asarray(ys))
    assert bool(trace.ok.all()) and bool(jnp.all(trace.extras.weight[::10] < 1e-3))
    guess = np.asarray(learner.forecast_rows(belief, jnp.asarray(xs)).mean)
    usual = np.arange(60) % 10 != 0
    error = np.sqrt(np.mean((guess - np.sin(xs[:, 0]))[usual] ** 2))
    assert error < 0.4 < np.sin(xs[usual, 0]).std()


@pytest.mark.slow
def test_a_large_network_is_linearised_by_its_layers() -> None:
    network = credo.MLP(1, (100, 80), "tanh")
    learner = InverseWishartNoise(credo.lofi(credo.Model(network, credo.Normal(0.1)), 2), 3.0)
    start = learner.init(network.init(jax.random.key(0), (2,)), var=0.01)
    assert start.size > 8192
    x, y = jnp.asarray([0.3, -0.2]), 2.0
    forecast = jax.jit(learner.forecast)
    before = forecast(start, x)
    belief, info = jax.jit(learner.update)(start, x, y)
    close(info.log_evidence, before.log_prob(y), 1e-5)
    assert bool(info.ok) and float(before.mean) < float(forecast(belief, x).mean) < y


def test_a_fisher_ekf_and_an_iterated_one_can_be_inside() -> None:
    from credo.ekf import diag_fisher

    xs, ys = map(jnp.asarray, data(0))
    for inner in (diag_fisher.learner(regression(0.3), 1.0), credo.iterated_ekf(regression(0.3))):
        learner = StudentTNoise(inner, 3.0)
        belief, trace = credo.run(learner, learner.init(jnp.zeros(P)), xs, ys)
        assert bool(trace.ok.all()) and float(jnp.max(jnp.abs(belief.mean))) < 5.0


@pytest.mark.slow
def test_thresholds_map_over_vmap_and_have_derivatives() -> None:
    xs, ys = map(jnp.asarray, data(0))

    def evidence(threshold: Any) -> Any:
        learner = WoLF(KALMAN, threshold)
        return jnp.sum(credo.run(learner, learner.init(jnp.zeros(P)), xs, ys)[1].log_evidence)

    at = 1.5
    slope = (evidence(at + 1e-6) - evidence(at - 1e-6)) / 2e-6
    close(jax.grad(evidence)(at), slope, 1e-5)
    close(jax.vmap(evidence)(jnp.asarray([1.0, at]))[1], evidence(at))


@pytest.mark.slow
@pytest.mark.parametrize(
    "robust", [WoLF(KALMAN, 1.5), StudentTNoise(KALMAN, 3.0, evidence="bound")], ids=["imq", "student"]
)
def test_run_lengths_take_an_outlier_for_no_change_and_a_new_level_for_one(robust: Any) -> None:
    ys = np.concatenate([np.zeros(15), 3.0 * np.ones(6)])
    ys = ys + 0.5 * np.random.default_rng(3).normal(size=21)
    ys[10] = 50.0

    def follow(inner: Any) -> tuple[Any, Any]:
        learner = RunLength(inner, hazard=0.02, capacity=6)
        start = learner.init(jnp.zeros(1), var=4.0)
        return credo.run(learner, start, jnp.ones((21, 1)), jnp.asarray(ys))

    belief, trace = follow(robust)
    assert float(trace.extras.change[10]) < 0.1 < 0.9 < float(follow(KALMAN)[1].extras.change[10])
    assert int(trace.extras.alarm.sum()) == 1 and int(belief.map_run_length) == 5
    close(belief.mean, 3.0, 0.5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: WoLF(KALMAN, 0.0), "threshold must be finite and above 0; got 0.0"),
        (lambda: WoLF(KALMAN, 1.0, cast(Any, "imk")), "weighting must be one of imq, mahalanobis; got 'imk'"),
        (lambda: StudentTNoise(KALMAN, -1.0), "df must be finite and above 0"),
        (lambda: StudentTNoise(KALMAN, iterations=0), "iterations must be a whole number at least 1; got 0"),
        (
            lambda: StudentTNoise(KALMAN, evidence=cast(Any, "bounds")),
            "evidence must be one of predictive, bound; got 'bounds' .did you mean 'bound'",
        ),
        (lambda: GammaWeight(KALMAN, shape=0.0), "shape must be finite and above 0"),
        (lambda: GammaWeight(KALMAN, rate=0.0), "rate must be finite and above 0"),
        (lambda: OutlierIndicator(KALMAN, inliers=0.0), "inliers must be finite and above 0"),
        (lambda: OutlierIndicator(KALMAN, outliers=0.0), "outliers must be finite and above 0"),
        (
            lambda: InverseWishartNoise(credo.extended_kalman(regression(jnp.ones(3))), 2.0),
            "df must be above C - 1 = 2 for 3 outputs; got 2.0",
        ),
        (
            lambda: WoLF(cast(Any, credo.BetaBernoulli()), 1.0),
            "learner must be a learner whose outputs.*for WoLF; got BetaBernoulli",
        ),
        (
            lambda: StudentTNoise(credo.extended_kalman(credo.Model(linear, credo.Bernoulli()))),
            "likelihood must be a Normal with a known variance for StudentTNoise; got Bernoulli",
        ),
        (
            lambda: WoLF(credo.normal_inverse_gamma(regression()), 1.0),
            "must have a known variance for WoLF: a number, .C,. or .C, C.; got an InverseGamma prior",
        ),
        (
            lambda: WoLF(credo.extended_kalman(credo.joint(regression())), 1.0),
            "WoLF weighs one observation a step: learner.model must not be joint",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(make: Callable[[], object], message: str) -> None:
    with pytest.raises(CredoError, match=message):
        make()
