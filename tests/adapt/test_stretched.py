"""Stretched forecasts: against a reference in NumPy, in their limits, and as learners of the library."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats as st
from tests.adapt.setups import INNER, WALKS, XS, YS, P, bad_rows_leave, begin, same_bits
from tests.tiers import few

import credo
from credo.adapt import Calibrated, Experts, RunLength, Stretched
from credo.streams.scoring import score_chunk

FACTORS = (0.5, 1.0, 1.6)
MIXED = Experts(WALKS)


def normals(forecast: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The weights, means and standard deviations of a mixture of normal forecasts."""
    parts = forecast.parts
    sds = np.sqrt(np.asarray(jax.vmap(lambda part: part.var)(parts)))
    return np.exp(forecast.log_weights), np.asarray(jax.vmap(lambda part: part.mean)(parts)), sds


def stretched(parts: tuple[np.ndarray, ...], y: float, s: float) -> tuple[float, float]:
    """The density and the distribution function at y of a mixture of normals, stretched about its mean."""
    shares, means, sds = parts
    z = shares @ means + (y - shares @ means) / s
    return float(shares @ st.norm.pdf(z, means, sds) / s), float(shares @ st.norm.cdf(z, means, sds))


@pytest.mark.slow
def test_forecasts_weights_and_evidence_are_those_of_the_formula() -> None:
    learner, share = Stretched(MIXED, FACTORS, 0.05), 0.05
    inner, weights = begin(MIXED), np.full(3, 1 / 3)
    ys = np.array(YS)
    ys[4] = np.nan
    rows = np.array([1.0, 1.0, 0.5, 1.0, 1.0, 0.0, 1.0, 1.0, 2.0, 1.0])
    logs, densities, cdfs = [], [], []
    for x, y, row in zip(XS, ys, rows, strict=True):
        weights = (1 - share) * weights + share * (1 - weights) / 2
        predicted = MIXED.predict(inner)
        shares, means, sds = normals(MIXED.predictive(predicted, x, None, None, None))

        parts = shares, means, sds
        density, below = stretched(parts, y, float(np.exp(weights @ np.log(FACTORS))))
        if np.isfinite(y):
            densities.append(np.log(density))
            cdfs.append(below)
        logs.append(np.log(density) if np.isfinite(y) and row else 0.0)
        if np.isfinite(y):
            weights = weights * np.array([stretched(parts, y, s)[0] for s in FACTORS]) ** row
            weights = weights / weights.sum()
        inner, _ = MIXED.update(predicted, x, y, weight=row)
    last, outcome, info = score_chunk(learner, begin(learner), XS, ys, weights=jnp.asarray(rows))
    seen = ~np.isnan(ys)
    np.testing.assert_allclose(last.weights, weights, atol=1e-10)
    np.testing.assert_allclose(info.log_evidence, logs, atol=1e-10)
    np.testing.assert_allclose(outcome.log_prob[seen], densities, atol=1e-10)
    np.testing.assert_allclose(np.asarray(outcome.pit)[seen], cdfs, atol=1e-10)
    np.testing.assert_allclose(last.belief.mean, inner.mean, atol=1e-12)


def test_one_factor_of_one_is_the_learner_and_two_is_twice_as_wide() -> None:
    belief, _ = credo.run(INNER, begin(INNER), XS, YS)
    own = INNER.forecast(belief, XS[0])
    for factor in (1.0, 2.0):
        learner = Stretched(INNER, (factor,))
        around = credo.adapt.Stretch(belief, jnp.zeros(1), belief.t)
        distribution = learner.forecast(around, XS[0])
        np.testing.assert_allclose(
            [distribution.mean, distribution.sd], [own.mean, factor * own.sd], atol=1e-12
        )
        low, high = distribution.interval(0.8)
        np.testing.assert_allclose(high - low, 2 * factor * own.sd * st.norm.ppf(0.9), rtol=1e-9)
        np.testing.assert_allclose(distribution.cdf(high), 0.9, atol=1e-9)
        expected, inside = learner.expect(around, XS[0]), INNER.expect(belief, XS[0])
        np.testing.assert_allclose([expected.mean, expected.sd], [inside.mean, inside.sd], atol=0)
        plain = learner.predictive(around, XS[0], "plugin", None, None)
        np.testing.assert_allclose(plain.sd, INNER.predictive(belief, XS[0], "plugin", None, None).sd)


@pytest.mark.slow
@pytest.mark.parametrize(("believed", "low", "high"), [(4.0, 0.45, 0.56), (0.4, 1.4, 1.51)])
def test_forecasts_that_are_too_wide_or_too_narrow_are_mended(
    believed: float, low: float, high: float
) -> None:
    model = credo.Model(lambda w, x: x @ w, credo.Normal(believed))
    learner = Stretched(credo.RecursiveLearner(model, credo.Full("dense")))
    rng = np.random.default_rng(1)
    xs, ys = jnp.asarray(rng.normal(size=(600, P))), jnp.asarray(rng.normal(size=600))
    belief, _ = credo.run(learner, learner.init(jnp.zeros(P), var=1e-6), xs, ys)
    assert low < float(learner.factor(belief)) < high  # 1 / sqrt(believed), as far as factors reach
    shown = credo.evaluate(learner, belief, (xs, ys)).scores
    inside = credo.evaluate(learner.learner, belief.belief, (xs, ys)).scores
    assert shown.log_prob.mean() > inside.log_prob.mean() + 0.05


LEARNERS: dict[str, Any] = {
    "around a bank": Stretched(MIXED, FACTORS, 0.05),
    "in run length": RunLength(Stretched(INNER, FACTORS), 0.1, 3, overflow="merge"),
    "around run length": Stretched(RunLength(INNER, 0.1, 3)),
    "around calibrated": Stretched(Calibrated(INNER, (0.0, 1.0), tails=(4.0,))),
}


@pytest.mark.optimised
@pytest.mark.parametrize("name", few(LEARNERS, "around a bank", "around calibrated"))
def test_a_loop_a_scan_and_chunks_give_the_same_bits(name: str, tmp_path: Path) -> None:
    same_bits(LEARNERS[name], tmp_path)


@pytest.mark.slow
def test_a_bad_row_leaves_the_belief_and_an_absurd_one_costs_a_bounded_score() -> None:
    learner = LEARNERS["around calibrated"]
    belief, _ = credo.run(learner, begin(learner), XS, YS)
    predicted = learner.predict(belief)
    bad_rows_leave(learner, predicted)
    after, _ = learner.update(predicted, XS[0], 1e30)
    np.testing.assert_allclose(np.exp(after.log_weights).sum(), 1.0, atol=1e-12)


def test_quantiles_and_draws_follow_the_stretched_distribution() -> None:
    learner = Stretched(INNER, (2.0,))
    belief, _ = credo.run(learner, begin(learner), XS, YS)
    distribution = learner.forecast(belief, XS[0])
    normal: Any = st.norm(float(distribution.mean), float(distribution.sd))
    for level in (0.05, 0.5, 0.9):
        np.testing.assert_allclose(distribution.quantile(level), normal.ppf(level), atol=1e-9)
    np.testing.assert_allclose(distribution.log_prob(jnp.asarray(0.3)), normal.logpdf(0.3), atol=1e-10)
    draws = np.asarray(distribution.sample(jax.random.key(0), (4000,)))
    np.testing.assert_allclose(draws.std(), normal.std(), rtol=5 / np.sqrt(2 * 4000))


def test_what_is_no_number_is_refused_in_a_sentence() -> None:
    classes = credo.RecursiveLearner(credo.Model(lambda w, x: x @ w, credo.Bernoulli()), credo.Full("dense"))
    both = credo.Model(lambda w, x: jnp.stack([x @ w, x @ w]), credo.Normal(jnp.eye(2)))
    for inner in (classes, credo.RecursiveLearner(both, credo.Full("dense"))):
        learner = Stretched(inner)
        with pytest.raises(credo.CredoError, match="Stretched is for forecasts of one number"):
            learner.forecast(begin(learner), XS[0])
    for name, value in (("factors", (0.0, 1.0)), ("factors", ()), ("factors", 1.0), ("switching", 0.6)):
        with pytest.raises(credo.CredoError, match=name):
            Stretched(INNER, **{name: value})  # type: ignore[arg-type]
