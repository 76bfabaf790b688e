"""Gaussian processes against a naive one in NumPy, with weights, a short memory, bad data and draws."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special as ss
from tests.learners.reference import close, st, streams_alike

import credo

LENGTH = np.array([0.7, 1.3, 0.4])
NUMBERS: dict[str, Any] = {"signal_var": 1.7, "noise_var": 0.05, "offset_var": 0.6}
KERNEL = pytest.mark.parametrize("kernel", ["matern", "squared-exponential"])


def learner_of(kernel: Any = "matern", size: int = 16, **others: Any) -> credo.GaussianProcess:
    """A learner with the numbers of the reference."""
    return credo.GaussianProcess(3, jnp.asarray(LENGTH), kernel=kernel, size=size, **{**NUMBERS, **others})


def rows_of(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows, and noisy values of a curved function."""
    rng = np.random.default_rng(seed)
    xs = rng.uniform(-1, 1, (count, 3))
    return xs, np.sin(3 * xs[:, 0]) + xs[:, 1] * xs[:, 2] + 0.2 * rng.normal(size=count)


def naive(kernel: str, left: np.ndarray, right: np.ndarray, length: np.ndarray = LENGTH) -> np.ndarray:
    """The covariances of the function: a loop over pairs, and Bessel functions for the Matern kernel."""
    out = np.zeros((len(left), len(right)))
    for i, x in enumerate(left):
        for j, z in enumerate(right):
            d = float(np.sqrt((((x - z) / length) ** 2).sum()))
            if kernel == "matern":  # 2^(1 - v) / Gamma(v) s^v K_v(s) with v = 5/2, s = sqrt(2 v) d
                s = np.sqrt(5.0) * d
                r = 1.0 if d == 0 else 2.0**-1.5 / ss.gamma(2.5) * s**2.5 * ss.kv(2.5, s)
            else:
                r = np.exp(-0.5 * d * d)
            out[i, j] = NUMBERS["offset_var"] + NUMBERS["signal_var"] * r
    return out


def posterior(
    kernel: str, xs: np.ndarray, ys: np.ndarray, weights: np.ndarray, at: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Means and covariance of the function at some rows, by one inverse."""
    inverse = np.linalg.inv(naive(kernel, xs, xs) + np.diag(NUMBERS["noise_var"] / weights))
    cross = naive(kernel, at, xs)
    return cross @ inverse @ ys, naive(kernel, at, at) - cross @ inverse @ cross.T


@pytest.mark.slow
@pytest.mark.table
@KERNEL
def test_forecasts_and_evidence_are_those_of_a_naive_process(kernel: str) -> None:
    (xs, ys), (at, _) = rows_of(12), rows_of(5, seed=1)
    weights = np.random.default_rng(2).uniform(0.3, 2.0, 12)
    learner = learner_of(kernel)
    belief = learner.init()
    for x, y, weight in zip(xs, ys, weights, strict=True):
        belief, _ = learner.step(belief, jnp.asarray(x), y, weight=weight)
    mean, cov = posterior(kernel, xs, ys, weights, at)
    distribution = learner.expect(belief, jnp.asarray(at))
    close(distribution.mean, mean)
    close(distribution.var, np.diag(cov))
    joint = learner.joint(belief, jnp.asarray(at))
    close(joint[0], mean)
    close(joint[1], cov)
    for row, centre, var in zip(at, mean, np.diag(cov), strict=True):
        forecast, expected = (
            learner.forecast(belief, jnp.asarray(row)),
            learner.expect(belief, jnp.asarray(row)),
        )
        close(forecast.mean, centre)
        close(forecast.var, var + NUMBERS["noise_var"])
        close(expected.var, var)
    # each evidence is the density of the next target, and together they are that of all of them
    noisy = naive(kernel, xs, xs) + np.diag(NUMBERS["noise_var"] / weights)
    close(learner.log_evidence(belief), st.multivariate_normal(np.zeros(12), noisy).logpdf(ys))
    plain, trace = credo.run(learner, learner.init(), jnp.asarray(xs), jnp.asarray(ys))
    close(jnp.sum(trace.log_evidence), learner.log_evidence(plain))


@pytest.mark.slow
def test_the_oldest_rows_are_forgotten_when_the_memory_is_full() -> None:
    xs, ys = rows_of(11)
    learner = learner_of(size=6)
    belief, _ = credo.run(learner, learner.init(), jnp.asarray(xs), jnp.asarray(ys))
    mean, cov = posterior("matern", xs[5:], ys[5:], np.ones(6), xs)
    close(learner.joint(belief, jnp.asarray(xs))[0], mean)
    close(learner.joint(belief, jnp.asarray(xs))[1], cov)


@pytest.mark.slow
def test_the_same_rows_are_believed_under_other_numbers() -> None:
    xs, ys = map(jnp.asarray, rows_of(9))
    learner, other = learner_of(), learner_of(noise_var=0.3, signal_var=0.4, offset_var=0.0)
    belief, _ = credo.run(learner, learner.init(), xs, ys)
    theirs, _ = credo.run(other, other.init(), xs, ys)
    numbers = {name: getattr(theirs, name) for name in ("noise_var", "signal_var", "offset_var")}
    moved = learner.condition(credo.replace(belief, **numbers))
    close(moved.dual, theirs.dual)
    close(learner.log_evidence(moved), other.log_evidence(theirs))

    @jax.jit
    def evidence(length: Any) -> Any:
        return learner.log_evidence(learner.condition(credo.replace(belief, length=length)))

    slope, step = jax.jit(jax.grad(evidence))(belief.length), 1e-6
    for j in range(3):
        move = step * jnp.eye(3)[j]
        ends = evidence(belief.length + move) - evidence(belief.length - move)
        # central differences: rounding of 1e-14 over the step
        np.testing.assert_allclose(slope[j], ends / (2 * step), rtol=1e-6, atol=1e-7)


@pytest.mark.table
@pytest.mark.parametrize(
    ("x", "y", "weight", "ok"),
    [
        ([0.1, 0.2, 0.3], np.nan, 1.0, False),
        ([0.1, np.nan, 0.3], 1.0, 1.0, False),
        ([0.1, 0.2, 0.3], np.inf, 1.0, False),
        ([0.1, 0.2, 0.3], 1.0, 0.0, True),
        ([1e300, 0.2, 0.3], 1.0, 1.0, False),
    ],
)
def test_bad_data_give_the_belief_back_bitwise(x: Any, y: float, weight: float, ok: bool) -> None:
    xs, ys = map(jnp.asarray, rows_of(5))
    learner = learner_of()
    belief, _ = credo.run(learner, learner.init(), xs, ys)
    new, info = learner.update(belief, jnp.asarray(x), y, weight=weight)
    assert bool(info.ok) == ok
    assert new == belief
    assert np.isfinite(float(learner.forecast(new, xs[0]).mean))


@pytest.mark.optimised
def test_a_loop_a_scan_and_chunks_give_the_same_bits_and_so_does_a_file(tmp_path: Path) -> None:
    xs, ys = map(jnp.asarray, rows_of(12))
    streams_alike(learner_of(size=8), xs, ys, 5, tmp_path)


def test_single_precision_agrees_with_double() -> None:
    xs, ys = rows_of(16)
    learner = learner_of()
    one, _ = credo.run(learner, learner.init(), jnp.asarray(xs), jnp.asarray(ys))
    single = jax.tree.map(
        lambda leaf: leaf.astype(jnp.float32) if leaf.dtype == float else leaf, learner.init()
    )
    two, trace = credo.run(learner, single, jnp.asarray(xs, jnp.float32), jnp.asarray(ys, jnp.float32))
    assert bool(jnp.all(trace.ok)) and two.dual.dtype == jnp.float32
    at = jnp.zeros(3)
    forecast = learner.forecast(two, at.astype(jnp.float32))
    assert forecast.mean.dtype == jnp.float32
    # the condition number is near 1.7 * 16 / 0.05 = 500, times rounding of 6e-8
    np.testing.assert_allclose(forecast.mean, learner.forecast(one, at).mean, atol=1e-4)
    np.testing.assert_allclose(forecast.var, learner.forecast(one, at).var, atol=1e-4)


@pytest.mark.slow
@pytest.mark.table
@KERNEL
def test_functions_and_draws_have_the_moments_of_the_belief(kernel: Any) -> None:
    xs, ys = map(jnp.asarray, rows_of(10))
    learner, count = learner_of(kernel, size=12), 1000
    belief, _ = credo.run(learner, learner.init(), xs, ys)
    at = jnp.asarray(rows_of(3, seed=4)[0])
    mean, cov = learner.joint(belief, at)

    def values(key: Any) -> Any:
        return jax.vmap(learner.sample_function(belief, key))(at)

    drawn = jax.jit(jax.vmap(values))(jax.random.split(jax.random.key(0), count))
    # five standard errors of a mean, and of a covariance; waves are independent from draw to draw
    sd = np.sqrt(np.diag(cov))
    assert np.all(np.abs(drawn.mean(0) - mean) < 5 * sd / np.sqrt(count))
    assert np.all(np.abs(np.cov(drawn.T) - cov) < 5 * np.outer(sd, sd) * np.sqrt(2 / count))
    there = learner.sample(belief, 1, (count,))
    mean, cov = learner.joint(belief, belief.rows)
    sd = np.sqrt(np.diag(cov))
    assert there.shape == (count, 12)
    assert np.all(np.abs(there.mean(0) - mean) < 5 * sd / np.sqrt(count))


def test_a_widened_process_is_the_one_of_a_learner_that_began_with_all_columns() -> None:
    xs, ys = map(jnp.asarray, rows_of(6))
    xs = xs.at[:, 2].set(0.0)
    small = credo.GaussianProcess(2, jnp.asarray(LENGTH[:2]), size=9, **NUMBERS)
    half, _ = credo.run(small, small.init(), xs[:, :2], ys)
    large = learner_of(size=9)
    wide, start = large.widen(half), credo.run(large, large.init(), xs, ys)[0]
    for mine, theirs in zip(jax.tree.leaves(wide), jax.tree.leaves(start), strict=True):
        close(mine, theirs)
    with pytest.raises(credo.CredoError, match="in its columns only; it remembers 9"):
        learner_of(size=10).widen(half)


def test_in_company_it_is_weighed_by_its_evidence() -> None:
    xs, ys = map(jnp.asarray, rows_of(12))
    members = [learner_of(), learner_of(noise_var=2.0)]
    bank: Any = credo.Experts(members, switching=0.0)
    belief, _ = credo.run(bank, bank.init(), xs, ys)
    each = [member.log_evidence(credo.run(member, member.init(), xs, ys)[0]) for member in members]
    weights = np.exp(np.array(each) - max(each))
    close(jnp.exp(belief.log_weights), weights / weights.sum())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"columns": 0}, "columns must be"),
        ({"size": 0}, "size must be"),
        ({"kernel": "matern32"}, "kernel must be one of"),
        ({"noise_var": 0.0}, "noise_var must be"),
        ({"length": jnp.asarray([1.0, -1.0])}, "length must be"),
        ({"offset_var": -1.0}, "offset_var must be"),
    ],
)
def test_impossible_arguments_are_refused(options: Any, words: str) -> None:
    with pytest.raises(credo.CredoError, match=words):
        credo.GaussianProcess(**{"columns": 2, **options})


def test_rows_of_another_width_are_refused() -> None:
    learner = learner_of()
    with pytest.raises(credo.CredoError, match=r"one row of 3 inputs, or several; got shape \(2,\)"):
        learner.forecast(learner.init(), jnp.zeros(2))
    with pytest.raises(credo.CredoError, match="y must be one number"):
        learner.update(learner.init(), jnp.zeros(3), jnp.zeros(2))
    with pytest.raises(credo.CredoError, match=r"length must be a number or \(3,\)"):
        credo.GaussianProcess(3, jnp.ones(2)).init()
