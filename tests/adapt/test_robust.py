"""Robust learners are weighted Kalman filters: against naive loops in NumPy, and what an outlier may do."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special as ss
import scipy.stats as st
from tests.learners.reference import close, linear, regression, stream

import credo
from credo.adapt.robust import OutlierIndicator, WoLF
from credo.adapt.robust_noise import GammaWeight, InverseWishartNoise, StudentTNoise
from credo.core.errors import CredoError

P, T = 3, 8
MATRIX = np.array([[0.3, 0.1], [0.1, 0.2]])
PRIOR = np.array([0.5, 1.0, 2.0])
KALMAN = credo.extended_kalman(regression(0.3))
WALK = credo.extended_kalman(regression(0.3), credo.RandomWalk(0.05))
METHODS: dict[str, Callable[[Any], Any]] = {
    "imq": lambda learner: WoLF(learner, 1.5),
    "mahalanobis": lambda learner: WoLF(learner, 2.5, "mahalanobis"),
    "student": lambda learner: StudentTNoise(learner, 3.0, iterations=3),
    "student-once": lambda learner: StudentTNoise(learner, 3.0, iterations=1),
    "gamma": lambda learner: GammaWeight(learner, 1.2, 0.7, iterations=2),
    "wishart": lambda learner: InverseWishartNoise(learner, 3.5, iterations=3),
    "indicator": lambda learner: OutlierIndicator(learner, 2.0, 0.5, iterations=3),
}

TAILED = ("student", "student-once", "gamma", "wishart")

FEW = ("imq", "student", "wishart", "indicator")


def residual(mean: np.ndarray, cov: np.ndarray, h: np.ndarray, y: np.ndarray) -> tuple:
    """y - H m and H P H'."""
    return y - h @ mean, h @ cov @ h.T


def kalman(mean: np.ndarray, cov: np.ndarray, h: np.ndarray, y: np.ndarray, noise: np.ndarray) -> tuple:
    """The textbook update."""
    spread = h @ cov @ h.T + noise
    gain = cov @ h.T @ np.linalg.inv(spread)
    return mean + gain @ (y - h @ mean), cov - gain @ spread @ gain.T


def normal(e: np.ndarray, cov: np.ndarray) -> float:
    """log N(e | 0, cov)."""
    return st.multivariate_normal(np.zeros(len(e)), cov).logpdf(e)


def student(e: np.ndarray, df: float, cov: np.ndarray) -> float:
    """log t(e | df, 0, cov)."""
    return st.multivariate_t(np.zeros(len(e)), cov, df).logpdf(e)


def wolf(mean: Any, cov: Any, h: Any, y: Any, r: Any, c: float = 1.5) -> tuple:
    """Inverse multi-quadratic weights: R / W^2."""
    e, s = residual(mean, cov, h, y)
    weight = (1 + e @ e / c**2) ** -0.5
    return *kalman(mean, cov, h, y, r / weight**2), normal(e, s + r / weight**2)


def gate(mean: Any, cov: Any, h: Any, y: Any, r: Any, c: float = 2.5) -> tuple:
    """All or nothing, by the Mahalanobis distance under the noise."""
    e, s = residual(mean, cov, h, y)
    far = np.sqrt(e @ np.linalg.inv(r) @ e)
    if far < c:
        return *kalman(mean, cov, h, y, r), normal(e, s + r)
    return mean, cov, normal(e, s + r * far**2 / c**2)


def scaled(mean: Any, cov: Any, h: Any, y: Any, r: Any, a: float, b: float, rounds: int) -> tuple:
    """Gamma weights."""
    e, s = residual(mean, cov, h, y)
    level, inverse, size = b / a, np.linalg.inv(r), len(e)
    weight = (a + size / 2) / (b + level * e @ np.linalg.solve(s + level * r, e) / 2)
    after = kalman(mean, cov, h, y, r / weight)
    for _ in range(rounds - 1):
        left, spread = residual(*after, h, y)
        weight = (a + size / 2) / (b + (left @ inverse @ left + np.trace(inverse @ spread)) / 2)
        after = kalman(mean, cov, h, y, r / weight)
    return *after, student(e, 2 * a, s + level * r)


def wishart(mean: Any, cov: Any, h: Any, y: Any, r: Any, df: float = 3.5, rounds: int = 3) -> tuple:
    """An inverse-Wishart covariance for each observation."""
    e, s = residual(mean, cov, h, y)
    second = np.outer(e, e) * (e @ np.linalg.solve(s + r, e)) / (e @ np.linalg.solve(r, e))
    after = kalman(mean, cov, h, y, (df * r + second) / (df + 1))
    for _ in range(rounds - 1):
        left, spread = residual(*after, h, y)
        after = kalman(mean, cov, h, y, (df * r + np.outer(left, left) + spread) / (df + 1))
    tail = df - len(e) + 1
    return *after, student(e, tail, s + r * df / tail)


def indicator(mean: Any, cov: Any, h: Any, y: Any, r: Any, a: float = 2.0, b: float = 0.5) -> tuple:
    """Three rounds on the inlier indicator."""
    e, s = residual(mean, cov, h, y)
    inverse, inlier, distance = np.linalg.inv(r), 1.0, e @ np.linalg.solve(s + r, e)
    for _ in range(3):
        log_in, log_out = ss.digamma(a + inlier) - distance / 2, ss.digamma(b + 1 - inlier)
        inlier = np.exp(log_in) / (np.exp(log_in) + np.exp(log_out))
        after = kalman(mean, cov, h, y, r / inlier) if inlier > 0 else (mean, cov)
        left, spread = residual(*after, h, y)
        distance = left @ inverse @ left + np.trace(inverse @ spread)
    peak = normal(np.zeros(len(e)), r)
    return *after, np.log((a * np.exp(normal(e, s + r)) + b * np.exp(peak)) / (a + b))


NAIVE: dict[str, Callable] = {
    "imq": wolf,
    "mahalanobis": gate,
    "student": lambda *now: scaled(*now, 1.5, 1.5, 3),
    "student-once": lambda *now: scaled(*now, 1.5, 1.5, 1),
    "gamma": lambda *now: scaled(*now, 1.2, 0.7, 2),
    "wishart": wishart,
    "indicator": indicator,
}


def data(outputs: int) -> tuple[np.ndarray, np.ndarray]:
    """A regression with two outliers."""
    xs, ys = stream(P, T, outputs)
    ys[2] += 7.0
    ys[5] -= 30.0
    return xs, ys


@pytest.mark.parametrize(("name", "outputs"), [(name, 2) for name in METHODS] + [(name, 0) for name in FEW])
def test_every_step_is_that_of_the_naive_weighted_filter(name: str, outputs: int) -> None:
    xs, ys = data(outputs)
    noise = MATRIX if outputs else np.array([[0.3]])
    model = regression(jnp.asarray(MATRIX) if outputs else 0.3)
    learner = METHODS[name](credo.extended_kalman(model, credo.RandomWalk(0.05)))
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
    close(info.log_evidence, st.norm(0.0, np.sqrt(6.0 + 0.3 / weight**2)).logpdf(3.0))
    close(info.extras.weight, weight**2)


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


def test_the_evidence_of_light_tails_approaches_that_of_the_learner_inside() -> None:
    # log t - log N is of order distance^2 / df
    xs, ys = map(jnp.asarray, stream(P, T))
    _, plain = credo.run(WALK, WALK.init(jnp.zeros(P)), xs, ys)
    for make in (StudentTNoise, InverseWishartNoise):
        learner = make(WALK, 1e6)
        _, trace = credo.run(learner, learner.init(jnp.zeros(P)), xs, ys)
        close(trace.log_evidence, plain.log_evidence, 1e-4)


def elbo(mean: Any, cov: Any, h: Any, y: Any, r: Any, after: Any, spread: Any, df: float, kind: str) -> float:
    """The evidence lower bound for the belief N(after, spread) and the best q of the noise, term by term."""
    size, inverse = len(y), np.linalg.inv(r)
    left, pushed = residual(after, spread, h, y)
    second = np.outer(left, left) + pushed
    solved, gap = np.linalg.inv(cov), after - mean
    bend = np.trace(solved @ spread) - len(mean) + gap @ solved @ gap
    divergence = 0.5 * (bend + np.linalg.slogdet(cov)[1] - np.linalg.slogdet(spread)[1])
    logs = -0.5 * size * np.log(2 * np.pi)
    if kind == "student":
        a, b = df / 2, df / 2
        c, d = a + size / 2, b + np.trace(inverse @ second) / 2
        log_w = ss.digamma(c) - np.log(d)
        fit = (
            logs - 0.5 * np.linalg.slogdet(r)[1] + size / 2 * log_w - 0.5 * c / d * np.trace(inverse @ second)
        )
        prior = a * np.log(b) - ss.gammaln(a) + (a - 1) * log_w - b * c / d
        return fit + prior + st.gamma(c, scale=1 / d).entropy() - divergence
    scale, count = df * r + second, df + 1
    log_w = ss.digamma((count - np.arange(size)) / 2).sum() + size * np.log(2) - np.linalg.slogdet(scale)[1]
    expected = count * np.linalg.inv(scale)

    def log_density(psi: np.ndarray, nu: float) -> float:
        constant = (
            nu / 2 * np.linalg.slogdet(psi)[1] - nu * size / 2 * np.log(2) - ss.multigammaln(nu / 2, size)
        )
        return constant + (nu - size - 1) / 2 * log_w - 0.5 * np.trace(psi @ expected)

    fit = logs + 0.5 * log_w - 0.5 * np.trace(expected @ second)
    return fit + log_density(df * r, df) - log_density(scale, count) - divergence


@pytest.mark.parametrize("kind", ["student", "wishart"])
def test_the_bound_is_the_evidence_lower_bound_term_by_term(kind: str) -> None:
    make = StudentTNoise if kind == "student" else InverseWishartNoise
    model = regression(jnp.asarray(MATRIX))
    learner = make(credo.extended_kalman(model), 3.5, 2, evidence="bound")
    (x,), (y,) = stream(P, 1, 2)
    start = learner.init(jnp.ones(P), var=PRIOR)
    for far in (0.0, 3.0):
        belief, info = learner.update(start, jnp.asarray(x), jnp.asarray(y + far))
        after, spread = np.asarray(belief.mean), np.asarray(belief.cov.dense())
        close(
            info.log_evidence, elbo(np.ones(P), np.diag(PRIOR), x, y + far, MATRIX, after, spread, 3.5, kind)
        )


def test_the_bound_lies_close_below_the_evidence_and_an_outlier_speaks_for_no_belief() -> None:
    model, one = regression(1.0), jnp.ones(1)
    learner = StudentTNoise(credo.extended_kalman(model), 3.0, 3, evidence="bound")
    logs = np.linspace(-60, 8, 20001)
    density = st.gamma(1.5, scale=2 / 3).pdf(np.exp(logs)) * np.exp(logs)
    for var, allowed in [(1e-12, 1e-6), (0.1, 0.1), (1.0, 0.3), (30.0, 0.8)]:
        for y in (0.0, 1.0, 3.0, 10.0, 100.0, 1e5):
            _, info = learner.update(learner.init(jnp.zeros(1), var=var), one, y)
            each = density * st.norm(0, np.sqrt(var + np.exp(-logs))).pdf(y)
            exact = np.log(each.sum() * (logs[1] - logs[0]))
            assert exact - allowed < float(info.log_evidence) < exact + 1e-6
    single = jnp.ones(1, jnp.float32)
    tails = [
        float(learner.update(learner.init(jnp.zeros(1, jnp.float32), var=v), single, 1e6)[1].log_evidence)
        for v in (0.1, 10.0)
    ]
    close(tails[0], tails[1], 1e-5)


@pytest.mark.parametrize("outputs", [0, 2])
def test_student_noise_is_the_gamma_weight_of_half_its_degrees_of_freedom(outputs: int) -> None:
    xs, ys = map(jnp.asarray, data(outputs))
    left, right = StudentTNoise(KALMAN, 3.0), GammaWeight(KALMAN, 1.5, 1.5)
    ends = [credo.run(learner, learner.init(jnp.zeros(P)), xs, ys) for learner in (left, right)]
    close(ends[0][0].mean, ends[1][0].mean)
    close(ends[0][1].log_evidence, ends[1][1].log_evidence)
    scale = GammaWeight(KALMAN, 1.5, 3.0)
    twice = StudentTNoise(credo.extended_kalman(regression(0.6)), 3.0)
    ends = [credo.run(learner, learner.init(jnp.zeros(P)), xs, ys) for learner in (scale, twice)]
    close(ends[0][0].mean, ends[1][0].mean)
    close(ends[0][1].log_evidence, ends[1][1].log_evidence)


def test_with_one_output_the_inverse_wishart_noise_is_student_noise() -> None:
    xs, ys = map(jnp.asarray, data(0))
    left, right = StudentTNoise(KALMAN, 3.0), InverseWishartNoise(KALMAN, 3.0)
    one, first = credo.run(left, left.init(jnp.zeros(P)), xs, ys)
    two, second = credo.run(right, right.init(jnp.zeros(P)), xs, ys)
    close(one.mean, two.mean)
    close(one.cov.dense(), two.cov.dense())
    close(first.log_evidence, second.log_evidence)
    close(first.extras.weight, second.extras.weight)


def test_many_iterations_end_where_the_weight_agrees_with_the_residual_it_leaves() -> None:
    learner = StudentTNoise(KALMAN, 3.0, iterations=300)
    x, y = jnp.asarray([1.0, -0.5, 2.0]), 4.0
    belief, info = learner.update(learner.init(jnp.zeros(P)), x, y)
    left = (y - x @ belief.mean) ** 2 + x @ belief.cov.dense() @ x
    close(info.extras.weight, 4.0 / (3.0 + left / 0.3))


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


@pytest.mark.parametrize("name", list(METHODS))
def test_missing_and_weightless_observations_give_the_belief_back_bit_by_bit(name: str) -> None:
    learner = METHODS[name](KALMAN)
    belief, _ = learner.step(learner.init(jnp.zeros(P)), jnp.ones(P), 1.0)
    cases: list[tuple] = [
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


@pytest.mark.parametrize("name", FEW)
def test_a_whole_weight_counts_as_that_of_the_learner_inside(name: str) -> None:
    learner, x, y = METHODS[name](KALMAN), jnp.asarray([1.0, 0.3, -0.2]), 0.4
    start = learner.init(jnp.zeros(P))
    once, info = learner.update(start, x, y, weight=1e-9)
    move = KALMAN.update(start, x, y, weight=1e-9 * float(info.extras.weight))[0].mean
    close(once.mean, move, 1e-15)
    _, full = learner.update(start, x, y)
    close(full.log_evidence, info.log_evidence)


@pytest.mark.parametrize("name", FEW)
def test_beliefs_map_over_vmap_and_loops_scans_and_files_agree(name: str, tmp_path: Any) -> None:
    xs, ys = map(jnp.asarray, data(0))
    learner = METHODS[name](WALK)
    start = learner.init(jnp.zeros(P))
    last, trace = credo.run(learner, start, xs, ys)
    looped = start
    for x, y in zip(xs, ys, strict=True):
        looped, info = learner.step(looped, x, y)
    close(looped.mean, last.mean, 1e-13)
    close(info.log_evidence, trace.log_evidence[-1], 1e-13)
    both = jax.tree.map(lambda a, b: jnp.stack([a, b]), start, last)
    after, infos = jax.vmap(lambda belief: learner.step(belief, xs[0], ys[0]))(both)
    for i, belief in enumerate((start, last)):
        want, one = learner.step(belief, xs[0], ys[0])
        close(after.mean[i], want.mean)
        close(infos.log_evidence[i], one.log_evidence)
    path = credo.save(tmp_path / "robust.credo", learner, last)
    again, held = credo.load(path, learner)
    assert again == learner and held == last


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


def test_a_large_network_is_linearised_by_its_layers() -> None:
    network = credo.MLP(1, (100, 80), "tanh")
    learner = InverseWishartNoise(credo.lofi(credo.Model(network, credo.Normal(0.1)), 2), 3.0)
    start = learner.init(network.init(jax.random.key(0), (2,)), var=0.01)
    assert start.size > 8192
    x, y = jnp.asarray([0.3, -0.2]), 2.0
    before = learner.forecast(start, x)
    belief, info = learner.update(start, x, y)
    close(info.log_evidence, before.log_prob(y), 1e-5)
    assert bool(info.ok) and float(before.mean) < float(learner.forecast(belief, x).mean) < y


def test_forecasts_match_the_noise() -> None:
    belief = KALMAN.init(jnp.ones(P), var=2.0)
    x, s = jnp.asarray([1.0, 2.0, 0.0]), 10.0
    for name in ("imq", "mahalanobis", "indicator"):
        assert METHODS[name](KALMAN).forecast(belief, x) == KALMAN.forecast(belief, x)
    for learner, df, level in [
        (StudentTNoise(KALMAN, 5.0), 5.0, 1.0),
        (GammaWeight(KALMAN, 2.0, 3.0), 4.0, 1.5),
        (InverseWishartNoise(KALMAN, 5.0), 5.0, 1.0),
    ]:
        forecast: Any = learner.forecast(belief, x)
        density = st.t(df, 3.0, np.sqrt(s + 0.3 * level))
        close(forecast.log_prob(4.0), density.logpdf(4.0))
        close(forecast.var, density.var())
        _, info = learner.update(belief, x, 4.0)
        close(info.log_evidence, density.logpdf(4.0))
        close(forecast.quantile(0.9), density.ppf(0.9), 1e-8)
        close(learner.forecast(belief, x, method="plugin").var, st.t(df, 3.0, np.sqrt(0.3 * level)).var())
    # 4000 draws of a mixture of t(5): the standard error of its mean is sqrt((10 + 0.5) / 4000) = 0.05
    drawn = StudentTNoise(KALMAN, 5.0).forecast(
        belief, x, method="linearized-mc", samples=4000, key=jax.random.key(1)
    )
    close(drawn.mean, 3.0, 0.2)
    close(drawn.var, 10.0 + 0.3 * 5 / 3, 1.0)
    wide = InverseWishartNoise(credo.extended_kalman(regression(jnp.asarray(MATRIX))), 5.0)
    rows: Any = wide.forecast(belief, jnp.eye(2, P))
    close(rows.shape, 2.0 * np.eye(2) + MATRIX * 5 / 4)
    assert float(rows.df) == 4.0
    assert learner.sample(belief, jax.random.key(0), (4,)).shape == (4, P)


def test_a_fisher_ekf_and_an_iterated_one_can_be_inside() -> None:
    from credo.ekf import diag_fisher

    xs, ys = map(jnp.asarray, data(0))
    for inner in (diag_fisher.learner(regression(0.3), 1.0), credo.iterated_ekf(regression(0.3))):
        learner = StudentTNoise(inner, 3.0)
        belief, trace = credo.run(learner, learner.init(jnp.zeros(P)), xs, ys)
        assert bool(trace.ok.all()) and float(jnp.max(jnp.abs(belief.mean))) < 5.0


def test_thresholds_map_over_vmap_and_have_derivatives() -> None:
    xs, ys = map(jnp.asarray, data(0))

    def evidence(threshold: Any) -> Any:
        learner = WoLF(KALMAN, threshold)
        return jnp.sum(credo.run(learner, learner.init(jnp.zeros(P)), xs, ys)[1].log_evidence)

    at = 1.5
    slope = (evidence(at + 1e-6) - evidence(at - 1e-6)) / 2e-6
    close(jax.grad(evidence)(at), slope, 1e-5)
    close(jax.vmap(evidence)(jnp.asarray([1.0, at]))[1], evidence(at))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: WoLF(KALMAN, 0.0), "threshold must be finite and above 0; got 0.0"),
        (lambda: WoLF(KALMAN, 1.0, "imk"), "weighting must be one of imq, mahalanobis; got 'imk'"),
        (lambda: StudentTNoise(KALMAN, -1.0), "df must be finite and above 0"),
        (lambda: StudentTNoise(KALMAN, iterations=0), "iterations must be a whole number at least 1; got 0"),
        (
            lambda: StudentTNoise(KALMAN, evidence="bounds"),
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
            lambda: WoLF(credo.BetaBernoulli(), 1.0),  # type: ignore[arg-type]
            "learner must be a RecursiveLearner.*for WoLF; got BetaBernoulli",
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
def test_what_cannot_be_is_refused_in_a_sentence(make: Callable, message: str) -> None:
    with pytest.raises(CredoError, match=message):
        make()


def test_too_few_degrees_of_freedom_for_the_outputs_take_nothing_in() -> None:
    learner = InverseWishartNoise(KALMAN, 0.5)
    start = learner.init(jnp.zeros(P))
    after, info = learner.update(start, jnp.eye(2, P), jnp.ones(2))
    assert after == start and not bool(info.ok)
