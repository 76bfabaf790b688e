"""Forecasts whose width is learned are Bayes' rule over the widths."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from tests.adapt.setups import INNER, MODEL, WALKS, XS, YS, P, begin, linear, same_bits
from tests.streams.setups import bitwise
from tests.tiers import few

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
    noise, distributions = belief.noise, []
    for df in (None, DF):
        for scale in SCALES:
            spread = scale * x @ cov @ x
            if noise is None:
                own, var = np.inf, spread + 0.2
            else:
                own, var = 2 * float(noise.shape), float(noise.scale / noise.shape) * (spread + 1)
            tail = own if df is None or own <= df else df
            ratio = 1.0 if tail == own else (1.0 if own == np.inf else own / (own - 2)) * (tail - 2) / tail
            distributions.append(stats.t(tail, x @ mean, np.sqrt(ratio * var)))
    return distributions


@pytest.mark.slow
@pytest.mark.parametrize("inner", [INNER, LEARNED], ids=["known noise", "learned noise"])
def test_the_weights_are_bayes_rule_over_scales_and_tails(inner: Any) -> None:
    learner = Calibrated(inner, SCALES, tails=(DF,), switching=0.05)
    ys = YS.at[2].set(jnp.nan).at[6].add(5.0)
    rows = np.where(np.arange(len(YS)) == 4, 0.5, 1.0)
    weights, belief, logs, cdfs = np.full(6, 1 / 6), begin(inner), [], []
    for x, y, row in zip(XS, ys, rows, strict=True):
        weights = 0.95 * weights + 0.05 * (1 - weights) / 5
        belief = inner.predict(belief)
        distributions = candidates(inner, belief, np.asarray(x))
        cdfs.append(weights @ [distribution.cdf(y) for distribution in distributions])
        if not np.isnan(y):
            likely = np.array([distribution.pdf(y) for distribution in distributions])
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
    np.testing.assert_allclose(np.asarray(outcome.pit)[seen], np.array(cdfs)[seen], atol=1e-10)
    np.testing.assert_allclose(last.belief.mean, belief.mean, atol=1e-12)


@pytest.mark.slow
def test_a_scale_of_one_is_the_learner_and_of_zero_its_mean() -> None:
    logits = credo.Linear(3)
    classes = credo.RecursiveLearner(credo.Model(logits, credo.Categorical(3)), credo.Full("dense"))
    start = jax.tree.map(lambda leaf: leaf.astype(float), logits.init(0, (P,)))
    flat = credo.particle_filter(MODEL, 4)
    cases: list[Any] = [
        (LEARNED, begin(LEARNED), YS[0]),
        (classes, classes.init(start, var=0.5), 2),
        (flat, flat.init(jnp.zeros(P)), YS[0]),
    ]
    for inner, belief, y in cases:

        def densities(belief: Any, inner: Any = inner, y: Any = y) -> Any:
            distributions = [
                Calibrated(inner, (scale,)).predictive(inner_belief(belief), XS[0], None, None, None)
                for scale in (1.0, 0.0)
            ]
            distributions += [
                inner.predictive(belief, XS[0], method, None, None) for method in (None, "plugin")
            ]
            return jnp.stack([distribution.log_prob(y) for distribution in distributions])

        own, mean, same, plugin = jax.jit(densities)(belief)
        np.testing.assert_allclose([own, mean], [same, plugin], rtol=0, atol=1e-14)


def inner_belief(belief: Any) -> Any:
    """The belief of a calibrated learner with one scale around this belief."""
    return credo.adapt.Calibration(belief, jnp.zeros(1), belief.t)


@pytest.mark.slow
def test_sharper_forecasts_of_classes_are_those_of_larger_outputs() -> None:
    inner = credo.RecursiveLearner(credo.Model(credo.Linear(3), credo.Categorical(3)), credo.Full("dense"))
    params = jax.tree.map(lambda leaf: leaf.astype(float), credo.Linear(3).init(0, (P,)))
    belief, _ = inner.update(inner.init(params), XS[0], 2)
    learner = Calibrated(inner, (0.0, 1.0), sharpness=(0.5, 3.0))
    start = learner.wrap(belief)
    eta, cov = inner.output_moments(belief, XS[1])
    classes = inner.model.likelihood
    likely = np.array(
        [
            classes.linearized(factor * eta, factor**2 * share * cov).probs[1]
            for factor in (1.0, 0.5, 3.0)
            for share in (0.0, 1.0)
        ]
    )
    np.testing.assert_allclose(learner.forecast(start, XS[1]).probs[1], likely.mean(), atol=1e-12)
    after, info = learner.update(start, XS[1], 1)
    np.testing.assert_allclose(after.weights, likely / likely.sum(), atol=1e-10)
    np.testing.assert_allclose(info.log_evidence, np.log(likely.mean()), atol=1e-10)
    with pytest.raises(credo.CredoError, match="sharpness is for classes"):
        Calibrated(inner, tails=(4.0,), sharpness=(1.3,))
    with pytest.raises(credo.CredoError, match="has no sharper"):
        Calibrated(INNER, SCALES, sharpness=(1.3,)).forecast(Calibrated(INNER).wrap(begin(INNER)), XS[0])


LEARNERS: dict[str, Any] = {
    "bank": Experts([Calibrated(walk, SCALES, tails=(DF,), switching=0.1) for walk in WALKS], (1e-3, 0.1)),
    "in run length": RunLength(Calibrated(INNER, SCALES), 0.1, 3, overflow="merge"),
}


@pytest.mark.optimised
@pytest.mark.parametrize("name", few(LEARNERS, "bank"))
def test_a_loop_a_scan_and_chunks_give_the_same_bits(name: str, tmp_path: Path) -> None:
    same_bits(LEARNERS[name], tmp_path)


@pytest.mark.slow
def test_around_other_wrappers_their_reports_go_through() -> None:
    inner = RunLength(INNER, 0.1, 2)
    learner = Calibrated(inner, (1.0,))
    belief, trace = credo.run(learner, begin(learner), XS, YS)
    alone, reports = credo.run(inner, begin(inner), XS, YS)
    assert type(trace.extras) is type(reports.extras)
    for left, right in zip(jax.tree.leaves(trace.extras), jax.tree.leaves(reports.extras), strict=True):
        np.testing.assert_allclose(left, right, atol=1e-12)
    np.testing.assert_allclose(trace.log_evidence, reports.log_evidence, atol=1e-12)
    np.testing.assert_allclose(belief.mean, alone.mean, atol=1e-12)
    soft = SoftReset(Calibrated(INNER, SCALES), 0.1)
    assert bool(soft.step(begin(soft), XS[0], YS[0])[1].ok)


@pytest.mark.slow
def test_one_calibrated_expert_is_that_learner_and_a_broken_one_has_no_part() -> None:
    one = Calibrated(WALKS[1], SCALES)
    belief, trace = credo.run(one, begin(one), XS, YS)
    for members, start in (([one], 0.0), ([one, Calibrated(WALKS[0], SCALES)], np.log(2))):
        bank = Experts(members, switching=0.0)
        first = begin(bank)
        broken = first.beliefs.belief.mean.at[1:].set(jnp.nan)
        inside = credo.replace(first.beliefs, belief=credo.replace(first.beliefs.belief, mean=broken))
        last, outcome, info = score_chunk(bank, credo.replace(first, beliefs=inside), XS, YS)
        np.testing.assert_allclose(info.log_evidence[1:], trace.log_evidence[1:], atol=1e-12)
        np.testing.assert_allclose(info.log_evidence[0], trace.log_evidence[0] - start, atol=1e-12)
        np.testing.assert_allclose(last.beliefs.mean[0], belief.mean, atol=1e-12)
        assert np.isfinite(np.asarray([outcome.mean, outcome.pit])).all()
        np.testing.assert_allclose(last.weights, np.arange(len(members)) == 0, atol=1e-12)


def test_the_scale_that_simulated_the_data_is_found_and_forecasts_improve() -> None:
    # labels are drawn with logits N(m, scale v) around a belief N(m, v) that never learns
    rng, count, true = np.random.default_rng(1), 400, 0.1
    xs = rng.normal(size=(count, P))
    model = credo.Model(linear, credo.Bernoulli())
    inner = credo.RecursiveLearner(model, credo.Full("dense"))
    start = inner.init(jnp.asarray([1.0, -1.0]), var=9.0)
    learner = Calibrated(inner, (0.01, true, 1.0, 10.0), switching=0.0)
    logits = xs @ [1.0, -1.0] + np.sqrt(true * 9.0) * np.linalg.norm(xs, axis=1) * rng.normal(size=count)
    ys = jnp.asarray(rng.uniform(size=count) < 1 / (1 + np.exp(-logits))).astype(jnp.int32)

    def still(weights: Any, row: Any) -> Any:
        belief = credo.replace(learner.wrap(start), log_weights=weights)
        new, info = learner.update(belief, *row)
        return new.log_weights, (info.log_evidence, inner.forecast(start, row[0]).log_prob(row[1]))

    weights, (mixed, alone) = jax.lax.scan(still, learner.wrap(start).log_weights, (jnp.asarray(xs), ys))
    assert int(jnp.argmax(weights)) == 1 and float(jnp.exp(weights[1])) > 0.7
    assert float(mixed.mean()) > float(alone.mean()) + 0.01


def test_the_covariance_is_pushed_once_for_all_scales() -> None:
    belief = begin(INNER)
    jaxpr = jax.make_jaxpr(lambda s: jax.vmap(lambda one: INNER.scaled_predictive(belief, XS[0], one))(s))
    assert str(jaxpr(jnp.ones(7))).count("7,2]") == 0  # nothing of the size of the parameters is repeated


def test_settings_out_of_range_are_refused() -> None:
    wrong: list[dict[str, Any]] = [
        {"scales": ()},
        {"scales": (-1.0,)},
        {"scales": 1.0},
        {"tails": (2.0,)},
        {"switching": 0.7},
    ]
    for setting in wrong:
        with pytest.raises(credo.CredoError, match=f"{next(iter(setting))} must"):
            Calibrated(INNER, **setting)
    with pytest.raises(credo.CredoError, match="switching must"):
        Experts(WALKS, switching=())
    particles = Calibrated(credo.particle_filter(MODEL, 4), tails=(4.0,))
    with pytest.raises(credo.CredoError, match="heavier"):
        particles.forecast(particles.init(jnp.zeros(P)), XS[0])
    joint = Calibrated(credo.RecursiveLearner(credo.joint(MODEL)))
    with pytest.raises(credo.CredoError, match="joint"):
        joint.step(joint.init(jnp.zeros(P)), XS[:2], YS[:2])


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
    assert belief.log_joint is not None
    np.testing.assert_allclose(jnp.exp(belief.log_joint), joint, atol=1e-10)
    np.testing.assert_allclose(belief.weights, joint.sum(axis=0), atol=1e-10)
    np.testing.assert_allclose(belief.rate_weights, joint.sum(axis=1), atol=1e-10)
    again = credo.load(credo.save(tmp_path / "rates.credo", learner, belief), learner)
    bitwise((learner, belief), again)
    one, single = Experts(WALKS, switching=(0.02,)), Experts(WALKS, switching=0.02)
    bitwise(credo.run(one, begin(one), XS, YS), credo.run(single, begin(single), XS, YS))


@pytest.mark.parametrize("caution", few([0.0, 0.6, 1.0], 0.6))
def test_outliers_are_a_share_of_the_observations_and_are_passed_by(caution: float) -> None:
    learner = Calibrated(INNER, SCALES, tails=(DF,), switching=0.05, outliers=0.01, caution=caution)
    ys = YS.at[2].set(jnp.nan).at[5:9].add(jnp.array([30.0, -1e3, 1e3, 8.0]))
    weights, belief, logs, doubt = np.full(6, 1 / 6), begin(INNER), [], 0.0
    for x, y in zip(XS, ys, strict=True):
        weights = 0.95 * weights + 0.05 * (1 - weights) / 5
        belief, weight = INNER.predict(belief), 1.0
        if not np.isnan(y):
            likely = np.array(
                [distribution.pdf(y) for distribution in candidates(INNER, belief, np.asarray(x))]
            )
            far = 0.01 * stats.cauchy.pdf(y, 0, 10)
            total = 0.99 * weights @ likely + far
            weight = 1 - caution * far / total * (1 - min(doubt / 0.02, 1) ** 4)
            doubt += 0.0025 * (far / total - doubt)
            logs.append(np.log(total))
            weights = weights * (0.99 * likely + far) ** weight
            weights /= weights.sum()
        else:
            logs.append(0.0)
        belief, _ = INNER.update(belief, x, y, weight=weight)
    last, outcome, info = score_chunk(learner, begin(learner), XS, ys)
    np.testing.assert_allclose(info.log_evidence, logs, atol=1e-9)
    np.testing.assert_allclose(outcome.log_prob[~np.isnan(ys)], np.array(logs)[~np.isnan(ys)], atol=1e-9)
    np.testing.assert_allclose(last.weights, weights, atol=1e-9)
    np.testing.assert_allclose(last.belief.mean, belief.mean, atol=1e-9)
    np.testing.assert_allclose(np.asarray(last.doubt), doubt, atol=1e-10)


def test_one_absurd_target_leaves_a_cautious_learner_and_many_teach_it() -> None:
    inner = credo.RecursiveLearner(credo.Model(linear, credo.Normal(0.2)), credo.Full("dense"))
    learner = Calibrated(inner, (1.0,), outliers=1e-3)
    x = jnp.ones((60, P))
    belief, _ = credo.run(learner, begin(learner), x[:20], jnp.full(20, 0.5))
    after, info = learner.step(belief, x[0], 30.0)
    assert bool(info.ok) and float(jnp.abs(after.belief.mean - belief.belief.mean).max()) < 1e-6
    assert float(learner.forecast(belief, x[0]).mean) == pytest.approx(0.5, abs=0.1)
    moved, _ = credo.run(learner, belief, x, jnp.full(60, 9.0))
    assert float(learner.forecast(moved, x[0]).mean) > 4.0


def test_what_outliers_may_be_is_said_in_a_sentence() -> None:
    for name, value in [("outliers", 0.0), ("outliers", 0.7), ("caution", 1.5)]:
        with pytest.raises(credo.CredoError, match=f"{name} must"):
            Calibrated(INNER, **{name: value})  # type: ignore[arg-type]


def classes(plugin: bool) -> Calibrated[Any]:
    inner = credo.extended_kalman(credo.Model(lambda w, x: w @ x, credo.Categorical(3)))
    scales = (0.3,) if plugin else (0.0, 0.3)
    return Calibrated(inner, scales, sharpness=(1.4, 2.0), plugin=plugin)


@pytest.mark.slow
def test_the_mean_alone_is_the_scale_0_without_an_integral() -> None:
    xs, ys = jnp.asarray(np.random.default_rng(0).normal(size=(40, 2))), jnp.arange(40) % 3
    beliefs, traces = [], []
    for learner in (classes(True), classes(False)):
        assert learner.size == 6
        assert learner.variance_factors.tolist() == pytest.approx([0.0, 0.3])
        belief, trace = credo.run(learner, learner.init(jnp.zeros((3, 2))), xs, ys)
        beliefs.append(belief)
        traces.append(trace)
    # The integral over a variance of 0 is right to 1e-4, and the plug-in forecast is exact.
    np.testing.assert_allclose(traces[0].log_evidence, traces[1].log_evidence, atol=2e-4)
    np.testing.assert_allclose(beliefs[0].log_weights, beliefs[1].log_weights, atol=5e-3)
    np.testing.assert_array_equal(beliefs[0].belief.mean, beliefs[1].belief.mean)
    alone = Calibrated(classes(True).learner, (), plugin=True)
    belief = alone.init(jnp.ones((3, 2)))
    inner = alone.learner.forecast(belief.belief, xs[0], method="plugin")
    np.testing.assert_allclose(alone.forecast(belief, xs[0]).probs, inner.probs, rtol=1e-6)


def test_what_nobody_asks_for_is_not_integrated() -> None:
    """The evidence of the learner inside is not part of the answer, and so its integral is not run."""
    learner = classes(True)
    belief = learner.init(jnp.zeros((3, 2)))
    compiled = jax.jit(learner.measurement_update).lower(belief, jnp.ones(2), 1, 1.0, None).compile()
    text = compiled.as_text() or ""
    arrays = re.findall(r"= f\d+\[([\d,]*)\]\S* exponential", text)
    assert [shape for shape in arrays if shape.endswith("9,14")] == ["3,3,9,14"]


def test_the_mean_alone_beside_an_integral_over_nodes() -> None:
    """Both forecasts are mixtures over nodes, of one and of many."""
    net = credo.Model(lambda w, x: w @ x, credo.HeteroscedasticNormal())
    inner = credo.extended_kalman(net)
    traces = []
    for plugin, scales in ((True, (1.0,)), (False, (0.0, 1.0))):
        learner = Calibrated(inner, scales, plugin=plugin)
        start = learner.init(jnp.zeros((2, 2)), var=0.1)
        traces.append(credo.run(learner, start, jnp.ones((5, 2)), jnp.arange(5.0))[1])
    np.testing.assert_allclose(traces[0].log_evidence, traces[1].log_evidence, rtol=1e-5)
