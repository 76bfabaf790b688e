"""Some observed outputs of several: exactly the observation of these outputs alone."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.streams.setups import bitwise

import credo

P, C = 4, 3
RNG = np.random.default_rng(0)
XS, YS = jnp.asarray(RNG.normal(size=(3, C, P))), jnp.asarray(RNG.normal(size=(3, C)))
HOLES = YS.at[0, 1].set(jnp.nan).at[1, 0].set(jnp.nan).at[1, 2].set(jnp.nan).at[2, :].set(jnp.nan)
ROOT = jnp.asarray(RNG.normal(size=(C, C)))
NOISES: dict[str, Any] = {
    "number": 0.3,
    "vector": jnp.asarray([0.2, 0.5, 1.0]),
    "matrix": ROOT @ ROOT.T + jnp.eye(C),
    "learned": credo.InverseGamma(2.0, 1.0, 0.9),
}


def linear(w: Any, x: Any) -> Any:
    return x @ w


def _only(noise: Any, keep: Any) -> Any:
    """The noise of some outputs."""
    if isinstance(noise, credo.InverseGamma) or jnp.ndim(noise) == 0:
        return noise
    return noise[keep] if noise.ndim == 1 else noise[jnp.ix_(keep, keep)]


def _learner(noise: Any, family: Any) -> Any:
    return credo.bong(credo.Model(linear, credo.Normal(noise)), family)


CASES: list[tuple[str, Any]] = [(name, credo.Full()) for name in NOISES]
CASES += [("matrix", credo.Diagonal()), ("vector", credo.LowRank(2)), ("learned", credo.LowRank(2))]


@pytest.mark.table
@pytest.mark.parametrize(("name", "family"), CASES)
def test_outputs_that_are_missing_leave_the_update_of_the_others(name: str, family: Any) -> None:
    noise = NOISES[name]
    learner = _learner(noise, family)
    start = learner.step(learner.init(jnp.zeros(P)), XS[0], YS[0])[0]
    belief, trace = credo.run(learner, start, XS, HOLES)
    reference, logs = start, []
    for x, y in zip(XS[:2], HOLES[:2], strict=True):
        keep = np.flatnonzero(~np.isnan(np.asarray(y)))
        one = _learner(_only(noise, keep), family)
        forecast = learner.forecast(learner.predict(reference), x)
        reference, info = one.step(reference, x[keep], y[keep])
        logs.append(float(info.log_evidence))
        np.testing.assert_allclose(forecast.log_prob(y), info.log_evidence, atol=1e-10)
    np.testing.assert_allclose(trace.log_evidence[:2], logs, atol=1e-10)
    assert trace.ok.tolist() == [True, True, False] and float(trace.log_evidence[2]) == 0
    noises = zip(jax.tree.leaves(belief.noise), jax.tree.leaves(reference.noise), strict=True)
    assert all(np.allclose(left, right, atol=1e-10) for left, right in noises)
    np.testing.assert_allclose(belief.mean, reference.mean, atol=1e-10)
    np.testing.assert_allclose(belief.cov.dense(), reference.cov.dense(), atol=1e-10)


def test_rows_of_a_joint_model_may_be_observed_in_part() -> None:
    model = credo.Model(linear, credo.Normal(NOISES["matrix"]))
    alone, together = credo.extended_kalman(model), credo.extended_kalman(credo.joint(model))
    belief, trace = credo.run(alone, alone.init(jnp.zeros(P)), XS, HOLES)
    joint, info = together.step(together.init(jnp.zeros(P)), XS, HOLES)
    np.testing.assert_allclose(joint.mean, belief.mean, atol=1e-10)
    np.testing.assert_allclose(info.log_evidence, trace.log_evidence.sum(), atol=1e-10)


@pytest.mark.slow
def test_wrappers_ensembles_and_gradients_take_part_and_scores_count_what_was_observed() -> None:
    inner = _learner(0.3, credo.Full("dense"))
    learner = credo.RunLength(credo.Experts([inner, _learner(0.3, credo.Diagonal())], 0.0), 0.0, 1)
    belief = learner.init(jnp.zeros(P))
    report = credo.evaluate(learner, belief, (XS, HOLES), metrics=["rmse", "nlpd", "coverage_90"])
    assert (len(report.scores), report.skipped) == (2, 1)
    np.testing.assert_allclose(report.scores.log_prob, report.scores.log_evidence, atol=1e-10)
    assert report.scores.mean is not None
    gaps = (report.scores.y - report.scores.mean)[~np.isnan(report.scores.y)]
    assert len(gaps) == 3
    np.testing.assert_allclose(report.metrics["rmse"], np.sqrt(np.mean(gaps**2)))
    assert np.isfinite(report.metrics["coverage_90"])
    model = credo.Model(linear, credo.Normal(0.3))
    others: list[Any] = [credo.sgd(model, 0.01), credo.enkf(model, 6)]
    for other in others:
        start = other.init(jnp.zeros(P))
        taken, info = other.step(start, XS[0], HOLES[0])
        moved, _ = other.step(start, XS[0], HOLES[0].at[1].set(5.0))
        assert bool(info.ok) and not np.allclose(taken.mean, moved.mean)
        back, info = other.update(start, XS[2], HOLES[2])
        assert not bool(info.ok)
        bitwise(back, start)
