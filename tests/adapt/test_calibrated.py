"""Forecasts whose width is learned are Bayes' rule over the widths."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from tests.adapt.setups import INNER, MODEL, WALKS, XS, YS, P, begin, linear
from tests.streams.setups import bitwise

import credo
from credo.adapt import Calibrated, Experts, RunLength, SoftReset
from credo.beliefs import InverseGamma
from credo.streams.scoring import score_chunk

SCALES, DF = (0.0, 0.3, 2.0), 4.0
LEARNED = credo.RecursiveLearner(
    credo.Model(linear, credo.Normal(InverseGamma(3.0, 1.0))), credo.Full("dense")
)


def candidates(learner: Any, belief: Any, x: Any) -> list[Any]:
    """The densities of all candidates in closed form, by SciPy."""
    mean, cov = np.asarray(belief.mean), np.asarray(belief.cov.dense())
    noise, laws = belief.noise, []
    for df in (None, DF):
        for scale in SCALES:
            spread = scale * x @ cov @ x
            if noise is None:
                own, var = np.inf, spread + 0.2
            else:
                own, var = 2 * float(noise.shape), float(noise.scale / noise.shape) * (spread + 1)
            tail = own if df is None or own <= df else df
            ratio = 1.0 if tail == own else (1.0 if own == np.inf else own / (own - 2)) * (tail - 2) / tail
            laws.append(stats.t(tail, x @ mean, np.sqrt(ratio * var)))
    return laws


@pytest.mark.parametrize("inner", [INNER, LEARNED], ids=["known noise", "learned noise"])
def test_the_weights_are_bayes_rule_over_scales_and_tails(inner: Any) -> None:
    learner = Calibrated(inner, SCALES, tails=(DF,), switching=0.05)
    ys = YS.at[2].set(jnp.nan).at[6].add(5.0)
    rows = np.where(np.arange(len(YS)) == 4, 0.5, 1.0)
    weights, belief, logs, cdfs = np.full(6, 1 / 6), begin(inner), [], []
    for x, y, row in zip(XS, ys, rows, strict=True):
        weights = 0.95 * weights + 0.05 * (1 - weights) / 5
        belief = inner.predict(belief)
        laws = candidates(inner, belief, np.asarray(x))
        cdfs.append(weights @ [law.cdf(y) for law in laws])
        if not np.isnan(y):
            likely = np.array([law.pdf(y) for law in laws])
            logs.append(np.log(weights @ likely))
            weights = weights * likely**row / (weights @ likely**row)
        else:
            logs.append(0.0)
        belief, _ = inner.update(belief, x, y, weight=row)
    last, outcome, info = score_chunk(learner, begin(learner), XS, ys, weights=jnp.asarray(rows))
    seen = ~np.isnan(ys)
    np.testing.assert_allclose(last.weights, weights, atol=1e-10)
    np.testing.assert_allclose(info.log_evidence, logs, atol=1e-10)
    np.testing.assert_allclose(outcome.log_prob[seen], np.array(logs)[seen], atol=1e-10)
    np.testing.assert_allclose(outcome.pit[seen], np.array(cdfs)[seen], atol=1e-10)
    np.testing.assert_allclose(last.belief.mean, belief.mean, atol=1e-12)


def test_a_scale_of_one_is_the_learner_and_of_zero_its_mean() -> None:
    net = credo.MLP(3, (4,))
    deep = credo.RecursiveLearner(credo.Model(net, credo.Categorical(3)), credo.Full("dense"))
    start = deep.init(jax.tree.map(lambda leaf: leaf.astype(float), net.init(0, (P,))), var=0.5)
    for inner, belief, y in (
        (INNER, begin(INNER), YS[0]),
        (LEARNED, begin(LEARNED), YS[0]),
        (deep, start, 2),
    ):
        for scale, method in ((1.0, None), (0.0, "plugin")):
            learner = Calibrated(inner, (scale,))
            whole = learner.forecast(learner.wrap(belief), XS[0])
            part = inner.forecast(belief, XS[0], method=method)
            np.testing.assert_allclose(whole.log_prob(y), part.log_prob(y), rtol=0, atol=1e-14)
            np.testing.assert_allclose(whole.mean, part.mean, rtol=0, atol=1e-14)


LEARNERS: dict[str, Any] = {
    "alone": Calibrated(LEARNED, SCALES, tails=(DF,)),
    "two": Experts([Calibrated(walk, SCALES, tails=(DF,), switching=0.1) for walk in WALKS]),
    "in run length": RunLength(Calibrated(INNER, SCALES), 0.1, 2),
    "around run length": Calibrated(RunLength(INNER, 0.1, 2), SCALES, tails=(DF,)),
    "around experts": Calibrated(Experts(WALKS), SCALES),
    "merged": RunLength(Calibrated(INNER, SCALES), 0.1, 3, overflow="merge"),
    "in soft reset": SoftReset(Calibrated(INNER, SCALES), 0.1),
}


@pytest.mark.optimised
@pytest.mark.parametrize("name", LEARNERS)
def test_a_loop_a_scan_and_chunks_give_the_same_bits(name: str, tmp_path: Path) -> None:
    learner, half = LEARNERS[name], 5
    whole, trace = credo.run(learner, begin(learner), XS, YS)
    first, _ = credo.run(learner, begin(learner), XS[:half], YS[:half])
    again, belief = credo.load(credo.save(tmp_path / "half.credo", learner, first), learner)
    bitwise((learner, first), (again, belief))
    bitwise(whole, credo.run(again, belief, XS[half:], YS[half:])[0])
    belief, logs = begin(learner), []
    for x, y in zip(XS, YS, strict=True):
        belief, info = learner.step(belief, x, y)
        logs.append(info.log_evidence)
    bitwise((whole, trace.log_evidence), (belief, jnp.stack(logs)))


def test_several_rates_of_switching_are_weighed_by_bayes_rule(tmp_path: Path) -> None:
    rates, count = (0.0, 0.02, 0.6), len(WALKS)
    learner = Experts(WALKS, switching=rates)
    beliefs, joint, logs = [begin(one) for one in WALKS], np.full((3, count), 1 / (3 * count)), []
    for x, y in zip(XS, YS, strict=True):
        for r, rate in enumerate(rates):
            switch = np.full((count, count), rate / (count - 1))
            np.fill_diagonal(switch, 1 - rate)
            joint[r] = switch.T @ joint[r]
        steps = [one.step(inner, x, y) for one, inner in zip(WALKS, beliefs, strict=True)]
        beliefs = [inner for inner, _ in steps]
        joint = joint * np.exp([float(info.log_evidence) for _, info in steps])
        logs.append(np.log(joint.sum()))
        joint /= joint.sum()
    belief, trace = credo.run(learner, begin(learner), XS, YS)
    np.testing.assert_allclose(trace.log_evidence, logs, atol=1e-10)
    np.testing.assert_allclose(jnp.exp(belief.log_joint), joint, atol=1e-10)
    np.testing.assert_allclose(belief.weights, joint.sum(axis=0), atol=1e-10)
    np.testing.assert_allclose(belief.rate_weights, joint.sum(axis=1), atol=1e-10)
    again = credo.load(credo.save(tmp_path / "rates.credo", learner, belief), learner)
    bitwise((learner, belief), again)
    one, single = Experts(WALKS, switching=(0.02,)), Experts(WALKS, switching=0.02)
    bitwise(credo.run(one, begin(one), XS, YS), credo.run(single, begin(single), XS, YS))
