"""Learned scales are as certain as they say: noises, dispersions, rates and hazards, over 200 streams each.

The truth of each stream is drawn from the prior that the learner has, so its place in an exact belief is
uniform (simulation-based calibration; Talts et al. 2018). It is given here as a normal score, whose root mean
square is 1, with a standard error of 0.05 for 200 streams of one scale. The page on correctness has the
table.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.special as jss
import jax.scipy.stats as jst
import numpy as np
import pytest
from scipy.stats import norm
from tests.tiers import few

import credo
from credo.adapt.noise_scaled import NoiseScaled

PAGE = Path(__file__).parents[2] / "docs/explanation/correctness.md"
STREAMS, ROWS = 200, 400
FAR = 5.0
"""The size of a score at which it is cut: one stream that is lost must not hide the others."""


@dataclass(frozen=True)
class Case:
    """A learner of scales, and worlds in which they are drawn from its prior.

    Attributes:
        worlds: gives (truths, x, y), each with the axis of streams first.
        learner: the learner.
        prior: its first belief.
        scores: the normal scores of the true scales under the belief after all rows.
        honest: whether its belief should be calibrated, and not only as wrong as the page says.
    """

    worlds: Callable[[np.random.Generator], tuple[np.ndarray, Any, np.ndarray]]
    learner: Any
    prior: Any
    scores: Callable[[Any, Any], Any]
    honest: bool = True


def normal_score(truth: Any, belief: Any) -> Any:
    """The distance of the parameters from their means, in standard deviations."""
    return (truth - belief.mean) / jnp.sqrt(belief.cov.diag())


def score_of(below: Any) -> Any:
    """The normal score of a probability, that is finite."""
    least = 1e-9
    return jst.norm.ppf(jnp.clip(below, least, 1.0 - least))


def noise_score(truth: Any, noise: Any) -> Any:
    """The score of a variance v ~ InverseGamma: P(v' < v) = Q(shape, scale / v)."""
    return score_of(jss.gammaincc(noise.shape, noise.scale / truth))


# Numbers with noise that is learned


def regression(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A line of three weights in units of the noise, with inputs that are correlated."""
    noise = 1.0 / rng.gamma(2.0, 1.0, size=STREAMS)
    mixed = rng.normal(size=(STREAMS, ROWS, 3)) @ np.linalg.cholesky(0.5 * np.eye(3) + 0.5).T
    weights = rng.normal(size=(STREAMS, 3)) * np.sqrt(noise)[:, None]
    errors = rng.normal(size=(STREAMS, ROWS)) * np.sqrt(noise)[:, None]
    return noise, mixed, np.einsum("srp,sp->sr", mixed, weights) + errors


def unknown_noise(family: Any, forgetting: float = 1.0, honest: bool = True) -> Case:
    """The normal-inverse-gamma learner."""
    likelihood = credo.Normal(credo.InverseGamma(2.0, 1.0, forgetting))
    learner = credo.bong(credo.Model(lambda w, x: x @ w, likelihood), family)
    return Case(
        regression,
        learner,
        learner.init(np.zeros(3)),
        lambda truth, belief: noise_score(truth, belief.noise),
        honest,
    )


def by_inputs(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A mean and a log variance that are lines: a, b of the one and c, d of the other."""
    truth = np.sqrt(WIDTH) * rng.normal(size=(STREAMS, 4))
    x = rng.uniform(-1.0, 1.0, size=(STREAMS, ROWS))
    mean, log_var = truth[:, :1] + truth[:, 1:2] * x, truth[:, 2:3] + truth[:, 3:] * x
    return truth, x, mean + np.exp(0.5 * log_var) * rng.normal(size=x.shape)


WIDTH = 0.5
"""The prior variance of each weight of a logarithm: rates and variances within a factor of 4 or so."""


def two_lines(w: Any, x: Any) -> Any:
    """Two outputs, each a line of x."""
    return jnp.stack([w[0] + w[1] * x, w[2] + w[3] * x])


def spread_by_inputs(make: Callable[[credo.Model], Any], honest: bool = True) -> Case:
    """A learner of the log variance, of whose two weights the scores are."""
    learner = make(credo.Model(two_lines, credo.HeteroscedasticNormal()))
    prior = learner.init(np.zeros(4), var=WIDTH)
    return Case(by_inputs, learner, prior, lambda truth, belief: normal_score(truth, belief)[2:], honest)


def classes(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two classes of two columns, each with a mean and a variance of its own."""
    var = 1.0 / rng.gamma(2.0, 1.0, size=(STREAMS, 2, 2))
    mean = rng.normal(size=var.shape) * np.sqrt(var)
    label = rng.integers(0, 2, size=(STREAMS, ROWS))
    every = np.arange(STREAMS)[:, None]
    x = mean[every, label] + np.sqrt(var[every, label]) * rng.normal(size=(STREAMS, ROWS, 2))
    return var, x, label


def class_columns() -> Case:
    learner = credo.GaussianClasses(2, credo.Bernoulli(), confidence=1.0, shape=2.0, scale=1.0)
    return Case(classes, learner, learner.init(), noise_score)


# Counts


def counts(rng: np.random.Generator, level: float) -> tuple[np.ndarray, None, np.ndarray]:
    """Counts with a mean and a dispersion, whose logarithms are drawn around `level` and -1."""
    truth = np.asarray([level, -1.0]) + np.sqrt(WIDTH) * rng.normal(size=(STREAMS, 2))
    mean, shape = np.exp(truth[:, :1]), np.exp(-truth[:, 1:])
    rates = mean * rng.gamma(shape, 1.0 / shape, size=(STREAMS, ROWS))
    return truth, None, rng.poisson(rates).astype(float)


def dispersion(level: float, make: Callable[[credo.Model], Any] = credo.extended_kalman) -> Case:
    """The log dispersion of counts of about exp(level)."""
    learner = make(credo.Model(lambda w, x: w, credo.NegativeBinomial()))
    prior = learner.init(np.asarray([level, -1.0]), var=WIDTH)
    return Case(
        functools.partial(counts, level=level),
        learner,
        prior,
        lambda truth, belief: normal_score(truth, belief)[1:],
    )


def events(rng: np.random.Generator) -> tuple[np.ndarray, None, np.ndarray]:
    """Counts with a rate whose logarithm is drawn around 0."""
    truth = np.sqrt(WIDTH) * rng.normal(size=(STREAMS, 1))
    return truth, None, rng.poisson(np.exp(truth), size=(STREAMS, ROWS)).astype(float)


def rate(make: Callable[[credo.Model], Any], honest: bool = True) -> Case:
    """The log rate of counts, with chords."""
    learner = make(credo.Model(lambda w, x: w, credo.Poisson("secant")))
    return Case(events, learner, learner.init(np.zeros(1), var=WIDTH), normal_score, honest)


# Hazards


def changes(rng: np.random.Generator) -> tuple[np.ndarray, None, np.ndarray]:
    """Levels that change with a hazard from Beta(2, 38)."""
    hazard = rng.beta(2.0, 38.0, size=STREAMS)
    new = rng.random((STREAMS, ROWS)) < hazard[:, None]
    fresh = rng.normal(size=(STREAMS, ROWS))
    latest = np.maximum.accumulate(np.where(new, np.arange(ROWS), 0), axis=1)
    levels = np.take_along_axis(fresh, latest, axis=1)
    return hazard, None, levels + 0.3 * rng.normal(size=(STREAMS, ROWS))


def hazard_score(truth: Any, belief: Any) -> Any:
    """The score of a hazard: a Beta for each number of changes, by the weights of the hypotheses."""
    count = belief.segments.count.astype(truth.dtype)
    below = jss.betainc(2.0 + count, 38.0 + ROWS - 1 - count, truth)
    weights = jnp.exp(belief.log_weights)
    return score_of(jnp.sum(jnp.where(weights > 0, weights * below, 0.0)) / jnp.sum(weights))


def hazard(wrapper: Any, overflow: str) -> Case:
    """A wrapper around the filter of one level, with 20 hypotheses."""
    inner = credo.extended_kalman(credo.Model(lambda w, x: w, credo.Normal(0.09)))
    learner = wrapper(inner, credo.LearnedHazard(2.0, 38.0), 20, overflow=overflow)
    prior = learner.init(np.zeros(1))
    return Case(changes, learner, prior, hazard_score, overflow == "resample")


def blr(model: credo.Model) -> Any:
    """A rule that counts the chord."""
    return credo.blr(model, credo.Full())


CASES: dict[str, Callable[[], Case]] = {
    "noise, `Full()`": lambda: unknown_noise(credo.Full()),
    "noise, `LowRank(2)`": lambda: unknown_noise(credo.LowRank(2)),
    "noise, `Diagonal()`": lambda: unknown_noise(credo.Diagonal(), honest=False),
    "noise, `Full()`, forgetting 0.98": lambda: unknown_noise(credo.Full(), 0.98, honest=False),
    "noise by the inputs, `extended_kalman`": lambda: spread_by_inputs(credo.extended_kalman),
    "noise by the inputs, `iterated_ekf`": lambda: spread_by_inputs(credo.iterated_ekf),
    "noise by the inputs, `lofi`": lambda: spread_by_inputs(lambda model: credo.lofi(model, 2)),
    "noise by the inputs, `vd_ekf`": lambda: spread_by_inputs(credo.vd_ekf),
    "noise by the inputs, `etkf`": lambda: spread_by_inputs(lambda model: credo.etkf(model, 30)),
    "noise by the inputs, `blr`": lambda: spread_by_inputs(blr, honest=False),
    "variances, `GaussianClasses`": class_columns,
    "dispersion, means near 7": lambda: dispersion(2.0),
    "dispersion, means near 7, `iterated_ekf`": lambda: dispersion(2.0, credo.iterated_ekf),
    "dispersion, means near 1": lambda: dispersion(0.0),
    'rate, `Poisson("secant")`': lambda: rate(credo.extended_kalman),
    'rate, `Poisson("secant")`, `iterated_ekf`': lambda: rate(credo.iterated_ekf),
    'rate, `Poisson("secant")`, `blr`': lambda: rate(blr, honest=False),
    'hazard, `RunLength`, `overflow="drop"`': lambda: hazard(credo.RunLength, "drop"),
    'hazard, `RunLength`, `overflow="resample"`': lambda: hazard(credo.RunLength, "resample"),
    'hazard, `ChangeTimes`, `overflow="drop"`': lambda: hazard(credo.ChangeTimes, "drop"),
    'hazard, `ChangeTimes`, `overflow="resample"`': lambda: hazard(credo.ChangeTimes, "resample"),
}
"""Each learned scale, as the page calls it."""


def measured(case: Case) -> tuple[float, float]:
    """The root mean square of the scores, and the share of the 90% intervals that hold the truth."""
    truths, x, y = case.worlds(np.random.default_rng(7))

    def scores(truth: Any, x: Any, y: Any, key: Any) -> tuple[Any, Any]:
        belief, trace = credo.run(case.learner, case.prior, x, y, key=key)
        return case.scores(truth, belief), jnp.all(trace.ok)

    axes = (0, None if x is None else 0, 0, 0)
    keys = jax.random.split(jax.random.key(0), STREAMS)
    values, ok = jax.jit(jax.vmap(scores, axes))(truths, x, y, keys)
    assert bool(np.all(ok))
    size = np.abs(np.asarray(values))
    return float(np.sqrt(np.mean(np.minimum(size, FAR) ** 2))), float(np.mean(size < norm.ppf(0.95)))


def claimed(name: str) -> tuple[float, float]:
    """What the page says."""
    (row,) = [one for one in PAGE.read_text(encoding="utf-8").splitlines() if one.startswith(f"| {name} |")]
    rms, share = row.strip("|").split("|")[1:]
    return float(rms), float(share)


KEPT = (
    "noise, `Full()`",
    "noise by the inputs, `extended_kalman`",
    "variances, `GaussianClasses`",
    "dispersion, means near 1",
    'rate, `Poisson("secant")`',
)
"""One learner of each scale; the others and hazards are in the thorough tier."""


@pytest.mark.slow
@pytest.mark.parametrize("name", few(CASES, *KEPT))
def test_the_page_says_how_honest_a_learned_scale_is(name: str) -> None:
    case = CASES[name]()
    rms, share = measured(case)
    said = claimed(name)
    # draws and processors differ in the last digits; one stream in a hundred may fall on the other side
    assert rms == pytest.approx(said[0], abs=0.02) and share == pytest.approx(said[1], abs=0.011)
    if case.honest:
        # three standard errors of 200 streams, 0.05 and 0.021, and 0.05 for one linearisation a row
        assert rms < 1.2 and share > 0.836


# Scales that are numbers, with no belief


def plain(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A level of variance 1, seen through noise."""
    noise = 1.0 / rng.gamma(2.0, 1.0, size=STREAMS)
    errors = rng.normal(size=(STREAMS, ROWS)) * np.sqrt(noise)[:, None]
    return noise, np.ones((STREAMS, ROWS, 1)), rng.normal(size=(STREAMS, 1)) + errors


LEVEL = credo.extended_kalman(credo.Model(lambda w, x: x @ w, credo.Normal(1.0)))
SCALED = NoiseScaled(LEVEL, 1.0)
STANDARDIZED = credo.Standardized(LEVEL, inputs=False, targets=True)
UNKNOWN = credo.Normal(credo.InverseGamma(2.0, 1.0))
NEIGHBOURS = credo.NearestNeighbours(1, UNKNOWN, size=400, neighbours=(20,))
NUMBERS: dict[str, tuple[Any, Any, Callable[[Any], Any]]] = {
    "`NoiseScaled`": (SCALED, SCALED.init(np.zeros(1)), lambda belief: belief.errors.mean),
    "`Standardized`": (
        STANDARDIZED,
        STANDARDIZED.init(np.zeros(1), size=1),
        lambda belief: belief.target.scale**2,
    ),
    "`NearestNeighbours`": (NEIGHBOURS, NEIGHBOURS.init(), lambda belief: belief.base.noise[0]),
}
"""Learners of a variance that is one number: the learner, its first belief, and the number."""


def ratios(name: str) -> tuple[float, float]:
    """The learned variance over the true one: the mean and the standard deviation of 200 streams."""
    learner, prior, number = NUMBERS[name]
    noise, x, y = plain(np.random.default_rng(7))

    def learned(x: Any, y: Any) -> Any:
        belief, _ = credo.run(learner, prior, x, y)
        return number(belief)

    values = np.asarray(jax.jit(jax.vmap(learned))(x, y)) / noise
    return float(np.mean(values)), float(np.std(values))


@pytest.mark.parametrize("name", few(NUMBERS, "`NoiseScaled`", "`Standardized`"))
def test_the_page_says_how_far_off_a_scale_without_a_belief_is(name: str) -> None:
    np.testing.assert_allclose(ratios(name), claimed(name), atol=0.011)
