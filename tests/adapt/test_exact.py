"""Run lengths against the enumeration of every segmentation."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import betaln

import credo
import credo.adapt
from credo.adapt import ChangeTimes, HazardFunction, LearnedHazard, RunLength
from credo.adapt.changepoints.slots import thin

T, P, VAR, NOISE = 11, 2, 1.5, 0.3
RNG = np.random.default_rng(3)
XS = RNG.normal(size=(T, P))
YS = np.where(np.arange(T) < 6, XS @ [1.0, -1.0], XS @ [-1.5, 2.0]) + 0.5 * RNG.normal(size=T)


@functools.cache
def segment(first: int, last: int) -> tuple[np.ndarray, float]:
    """The textbook recursion over a segment: the mean, and the log evidence."""
    mean, cov, logs = np.zeros(P), VAR * np.eye(P), []
    for x, y in zip(XS[first:last], YS[first:last], strict=True):
        var, gap = x @ cov @ x + NOISE, y - x @ mean
        logs.append(-0.5 * (np.log(2 * np.pi * var) + gap**2 / var))
        gain = cov @ x / var
        mean, cov = mean + gain * gap, cov - np.outer(gain, gain) * var
    return mean, sum(logs)


def enumerate_all(log_change: Any) -> tuple[float, np.ndarray, np.ndarray, np.ndarray, list[int]]:
    """Evidence, pmf of the run length, posterior mean, weights of the segmentations, the best of them."""
    totals, lengths, means, pasts = [], [], [], []
    for bits in itertools.product([0, 1], repeat=T - 1):
        starts = [0, *(i + 1 for i, bit in enumerate(bits) if bit), T]
        total, mean = log_change(bits), np.zeros(P)
        for a, b in itertools.pairwise(starts):
            mean, each = segment(a, b)
            total += each
        totals.append(total)
        lengths.append(T - 1 - starts[-2])
        means.append(mean)
        pasts.append(starts[:-1])
    logs = np.array(totals)
    weights = np.exp(logs - np.logaddexp.reduce(logs))
    pmf = np.bincount(lengths, weights, minlength=T)
    return (
        float(np.logaddexp.reduce(logs)),
        pmf,
        weights @ np.array(means),
        weights,
        pasts[int(np.argmax(logs))],
    )


def constant(rate: float) -> Any:
    return lambda bits: sum(np.log(rate) if bit else np.log1p(-rate) for bit in bits)


def by_length(function: Any) -> Any:
    def total(bits: Any) -> float:
        r, out = 0, 0.0
        for bit in bits:
            chance = function(r)
            out += np.log(chance) if bit else np.log1p(-chance)
            r = 0 if bit else r + 1
        return out

    return total


def learned(a: float, b: float) -> Any:
    return lambda bits: betaln(a + sum(bits), b + len(bits) - sum(bits)) - betaln(a, b)


def growing(r: Any) -> Any:
    return 0.05 + 0.1 * r / (1 + r)


CASES: dict[str, tuple[Any, Any]] = {
    "constant": (0.15, constant(0.15)),
    "by length": (
        HazardFunction(lambda r: 0.05 + 0.1 * r / (1.0 + r)),
        by_length(lambda r: 0.05 + 0.1 * r / (1 + r)),
    ),
    "learned": (LearnedHazard(1.3, 4.0), learned(1.3, 4.0)),
}


def inner() -> credo.RecursiveLearner:
    return credo.extended_kalman(credo.Model(lambda w, x: x @ w, credo.Normal(NOISE)))


def run(learner: Any) -> Any:
    start = learner.init(jnp.zeros(P), var=VAR)
    return credo.run(learner, start, jnp.asarray(XS), jnp.asarray(YS))


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_run_lengths_are_exact(name: str) -> None:
    hazard, log_change = CASES[name]
    evidence, pmf, mean, _, best = enumerate_all(log_change)
    capacity = T if name != "learned" else T * (T + 1) // 2
    belief, trace = run(RunLength(inner(), hazard, capacity))
    np.testing.assert_allclose(trace.log_evidence.sum(), evidence, atol=1e-10)
    np.testing.assert_allclose(belief.run_length_probs(T), pmf, atol=1e-10)
    np.testing.assert_allclose(belief.mean, mean, atol=1e-10)
    np.testing.assert_allclose(trace.extras.pruned, 0, atol=1e-15)
    assert credo.adapt.segmentation(trace) == best


@pytest.mark.slow
def test_sets_of_changepoints_are_exact() -> None:
    evidence, pmf, mean, weights, best = enumerate_all(constant(0.15))
    belief, trace = run(ChangeTimes(inner(), 0.15, 2 ** (T - 1), depth=T))
    np.testing.assert_allclose(trace.log_evidence.sum(), evidence, atol=1e-10)
    np.testing.assert_allclose(belief.run_length_probs(T), pmf, atol=1e-10)
    np.testing.assert_allclose(belief.mean, mean, atol=1e-10)
    np.testing.assert_allclose(np.sort(belief.weights)[-len(weights) :], np.sort(weights), atol=1e-10)
    times = belief.segments.times[jnp.argmax(belief.log_weights)]
    assert sorted(int(time) - 1 for time in times if time > 0) == best[1:]


@pytest.mark.slow
def test_subsets_are_exact() -> None:
    steps, logs, means = 6, [], []
    for bits in itertools.product([0, 1], repeat=steps - 1):
        rows = [0, *(i + 1 for i, bit in enumerate(bits) if not bit)]
        mean, cov, total = np.zeros(P), VAR * np.eye(P), constant(0.3)(bits)
        for t in range(steps):
            start = (mean, cov) if t in rows else (np.zeros(P), VAR * np.eye(P))
            x, gap = XS[t], YS[t] - XS[t] @ start[0]
            var = x @ start[1] @ x + NOISE
            total += -0.5 * (np.log(2 * np.pi * var) + gap**2 / var)
            if t in rows:
                gain = cov @ x / var
                mean, cov = mean + gain * gap, cov - np.outer(gain, gain) * var
        logs.append(total)
        means.append(mean)
    learner = ChangeTimes(inner(), 0.3, 2 ** (steps - 1), credo.adapt.Subset(), depth=steps)
    prior = learner.init(jnp.zeros(P), var=VAR)
    belief, trace = credo.run(learner, prior, jnp.asarray(XS[:steps]), jnp.asarray(YS[:steps]))
    np.testing.assert_allclose(trace.log_evidence.sum(), np.logaddexp.reduce(logs), atol=1e-10)
    np.testing.assert_allclose(
        belief.mean, np.exp(logs - np.logaddexp.reduce(logs)) @ np.array(means), atol=1e-10
    )
    predicted = learner.predict(belief)
    _, info = learner.update(predicted, jnp.asarray(XS[6]), YS[6])
    forecast = learner.forecast(predicted, jnp.asarray(XS[6]))
    np.testing.assert_allclose(forecast.log_prob(YS[6]), info.log_evidence, atol=1e-10)


@pytest.mark.slow
def test_fewer_hypotheses_never_raise_the_evidence_and_say_what_they_drop() -> None:
    exact = run(RunLength(inner(), 0.15, T))[1].log_evidence.sum()
    for capacity in (1, 4):
        _, trace = run(RunLength(inner(), 0.15, capacity))
        assert float(trace.extras.pruned.max()) > 0
        # What is kept and what was pruned make up the whole: no evidence is invented.
        lower = trace.log_evidence + jnp.log1p(-trace.extras.pruned)
        assert float(lower.sum()) <= float(exact) + 1e-12


@pytest.mark.slow
def test_resampled_weights_are_right_on_average() -> None:
    keys = jax.random.split(jax.random.key(0), 4000)
    logs = jnp.log(jnp.array([0.5, 0.2, 0.13, 0.1, 0.05, 0.02]))
    none = jnp.zeros(6, bool)

    def draw(key: jax.Array) -> jax.Array:
        survivors, _, _ = thin("resample", logs, None, jnp.arange(6), none, 3, key)
        return jnp.exp(survivors)

    draws = jax.vmap(draw)(keys)
    assert int((draws > 0).sum(axis=1).max()) <= 3
    error = draws.std(axis=0) / np.sqrt(len(keys))
    np.testing.assert_array_less(jnp.abs(draws.mean(axis=0) - jnp.exp(logs)), 4 * error + 1e-12)
