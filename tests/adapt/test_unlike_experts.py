"""Experts that are built in several ways."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.adapt.setups import INNER, MODEL, WALKS, XS, YS, P, begin
from tests.streams.setups import bitwise

import credo
from credo.adapt import Each, Experts, Groups, RunLength
from credo.bandits.best import probability_best
from credo.core.groups import pick
from credo.likelihoods import IndependentExpectation

LEARNERS: list[Any] = [WALKS[1], RunLength(INNER, 0.1, 2), WALKS[0]]
UNLIKE = Experts(LEARNERS, 0.1)


@pytest.mark.slow
def test_unlike_experts_follow_the_recursion_of_magill_in_the_order_of_the_learners() -> None:
    count = len(LEARNERS)
    switch = np.full((count, count), 0.1 / (count - 1))
    np.fill_diagonal(switch, 0.9)
    weights, beliefs, logs = np.full(count, 1 / count), [begin(one) for one in LEARNERS], []
    verbs = [jax.jit(one.step) for one in LEARNERS]
    for x, y in zip(XS, YS, strict=True):
        weights = switch.T @ weights
        steps = [step(belief, x, y) for step, belief in zip(verbs, beliefs, strict=True)]
        beliefs = [belief for belief, _ in steps]
        joint = weights * np.exp([float(info.log_evidence) for _, info in steps])
        logs.append(np.log(joint.sum()))
        weights = joint / joint.sum()
    belief, trace = credo.run(UNLIKE, begin(UNLIKE), XS, YS)
    np.testing.assert_allclose(trace.log_evidence, logs, atol=1e-10)
    np.testing.assert_allclose(belief.weights, weights, atol=1e-10)
    means = np.array([inner.mean for inner in beliefs])
    np.testing.assert_allclose(belief.mean, weights @ means, atol=1e-10)
    mixture = UNLIKE.forecast(belief, XS[0])
    forecasts = [one.forecast(inner, XS[0]) for one, inner in zip(LEARNERS, beliefs, strict=True)]
    parts = np.array([float(part.mean) for part in forecasts])
    spread = np.array([float(part.var) for part in forecasts]) + (parts - weights @ parts) ** 2
    np.testing.assert_allclose([mixture.mean, mixture.var], [weights @ parts, weights @ spread], atol=1e-10)
    draws = np.asarray(jax.jit(lambda one: one.sample(jax.random.key(0), (4000,)))(mixture))
    assert abs(draws.mean() - float(mixture.mean)) < 4 * float(mixture.sd) / np.sqrt(4000)
    best = int(np.argmax(weights))
    np.testing.assert_allclose(belief.best.mean, beliefs[best].mean, atol=1e-10)


def test_networks_of_unlike_sizes_start_from_parameters_of_their_own_and_are_saved(tmp_path: Path) -> None:
    nets: list[Any] = [credo.Linear(1), credo.MLP(1, (2,))]
    learner = Experts([credo.vd_ekf(credo.Model(net, credo.Normal(0.1))) for net in nets])
    start = learner.init(Each([net.init(0, (P,)) for net in nets]), var=Each([1.0, 0.1]))
    belief, trace = credo.run(learner, start, XS, YS)
    assert bool(trace.ok.all()) and isinstance(belief.beliefs, Groups)
    assert [part.size for part in belief.beliefs.parts] == [3, 9]
    bitwise((learner, belief), credo.load(credo.save(tmp_path / "unlike.credo", learner, belief)))
    for make in (lambda: belief.mean, lambda: learner.sample(belief, 0), lambda: belief.collapse()):
        with pytest.raises(credo.CredoError, match=r"different (parameters|structures)|several kinds"):
            make()


def test_answers_of_unlike_shapes_are_refused() -> None:
    def two(w: Any, x: Any) -> Any:
        return jnp.stack([x @ w, -(x @ w)])

    learner = Experts([INNER, credo.vd_ekf(credo.Model(two, credo.Normal(0.2)))])
    with pytest.raises(credo.CredoError, match="must have one shape; number 0 answers"):
        _ = learner.forecast(begin(learner), XS[0]).mean


@pytest.mark.thorough
def test_unlike_experts_expect_what_each_expects_and_draw_one_function() -> None:
    def linear(w: Any, x: Any) -> Any:
        return x @ w

    logistic = credo.vd_ekf(credo.Model(linear, credo.Bernoulli()))
    parts: list[Any] = [logistic, credo.BetaBernoulli(a=3.0)]
    learner = Experts(parts, 0.0)
    belief, _ = credo.run(learner, learner.init(jnp.zeros(P)), XS, (YS > 0).astype(jnp.int32))
    distribution = learner.expect(belief, XS[0])
    distributions = [one.expect(pick(belief.beliefs, i), XS[0]) for i, one in enumerate(parts)]
    means, spread = (
        np.array([float(getattr(one, name)[0]) for one in distributions]) for name in ("mean", "var")
    )
    weights = np.asarray(belief.weights)
    centre = weights @ means
    np.testing.assert_allclose(distribution.mean, [centre], atol=1e-12)
    np.testing.assert_allclose(distribution.var, [weights @ (spread + (means - centre) ** 2)], atol=1e-12)
    # the mixture's scale is that of y, although the logistic part is normal on the logit's
    below = (np.log(1.5), 0.6)
    chance = [float(one.latent_cdf(jnp.asarray([u]))[0]) for one, u in zip(distributions, below, strict=True)]
    np.testing.assert_allclose(distribution.latent_cdf(jnp.asarray([0.6])), [weights @ chance], atol=1e-9)
    np.testing.assert_allclose(distribution.latent_cdf(distribution.quantile(0.2)), [0.2], atol=1e-9)
    draws = distribution.sample(jax.random.key(0), (2000,))[:, 0]
    keys = jax.random.split(jax.random.key(1), 2000)
    values = jax.jit(jax.vmap(lambda key: learner.function_draw(belief, key)(XS[0])))(keys)
    for sample in (draws, values):
        assert abs(float(sample.mean()) - centre) < 4 * float(distribution.sd[0]) / np.sqrt(2000)
        assert abs(float(sample.std()) / float(distribution.sd[0]) - 1) < 0.1


@pytest.mark.slow
def test_the_best_of_arms_with_unlike_experts_is_exact_where_all_are_normal() -> None:
    learner = Experts([WALKS[0], credo.vd_ekf(MODEL)], 0.0)

    def arm(sign: jax.Array) -> Any:
        belief, _ = learner.step(begin(learner), XS[0], sign * YS[0])
        return learner.expectation(belief, XS[1])

    @jax.jit
    def told() -> tuple[Any, Any]:
        distribution = IndependentExpectation(jax.vmap(arm)(jnp.asarray([1.0, -1.0])))
        shares = probability_best(distribution, key=jax.random.key(0))
        return shares, distribution.sample(jax.random.key(1), (20000,))

    shares, values = told()
    draws = np.asarray(values).argmax(axis=1)
    assert abs(float(shares.sum()) - 1) < 1e-6
    assert abs(float(shares[0]) - (draws == 0).mean()) < 4 * 0.5 / np.sqrt(20000)
