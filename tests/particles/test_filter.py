"""The bootstrap filter against Kalman's, and what it refuses."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.tiers import few

import credo
from credo.core.errors import CredoError

N, T = 4000, 15
WALK = credo.LinearGaussian(jnp.array([[0.9, 0.2], [0.0, 0.8]]), 0.1, jnp.array([[0.3, 0.1], [0.1, 0.2]]))
MODEL = credo.Model(lambda z, x: x @ z, credo.Normal(0.5))
XS = jnp.asarray(np.random.default_rng(0).normal(size=(T, 2)))
YS = jnp.asarray(np.random.default_rng(1).normal(size=T))


def test_the_filter_agrees_with_kalman_within_its_noise() -> None:
    kalman = credo.extended_kalman(MODEL, dynamics=WALK)
    exact, exact_trace = credo.run(kalman, kalman.init(jnp.zeros(2)), XS, YS)
    learner = credo.particle_filter(MODEL, N, WALK)
    runs = [credo.run(learner, learner.init(jnp.zeros(2), key=seed), XS, YS) for seed in range(6)]
    means = np.array([belief.mean for belief, _ in runs])
    evidence = np.array([trace.log_evidence.sum() for _, trace in runs])
    # Standard errors from the six runs, which are independent.
    gap = np.abs(means.mean(axis=0) - exact.mean) / (means.std(axis=0, ddof=1) / np.sqrt(6))
    assert np.all(gap < 5) and np.all(means.std(axis=0) < 4 / np.sqrt(N))
    assert (
        abs(evidence.mean() - exact_trace.log_evidence.sum()) < 5 * evidence.std(ddof=1) / np.sqrt(6) + 0.01
    )
    var = np.array([belief.var for belief, _ in runs]).mean(axis=0)
    assert np.allclose(var, exact.var, rtol=0.1)


@pytest.mark.parametrize("prior", ["values", "function", "pair", "cov"])
def test_the_prior_may_be_anything(prior: str) -> None:
    learner = credo.particle_filter(MODEL, 50)

    def draw(key: jax.Array) -> jax.Array:
        return jax.random.uniform(key, (2,)) + 5.0

    ways: dict[str, dict[str, Any]] = {
        "values": {"values": jnp.full((50, 2), 5.5)},
        "function": {"prior": draw},
        "pair": {"prior": (draw, lambda z: jnp.zeros(()))},
        "cov": {"cov": 1e-4 * jnp.eye(2)},
    }
    belief = learner.init(jnp.full(2, 5.5), **ways[prior])
    assert belief.values.shape == (50, 2) and jnp.allclose(belief.mean, 5.5, atol=0.3)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"particles": 1}, "particles must be .*at least 2.*got 1"),
        ({"proposal": "magic"}, "proposal must be .*got 'magic'"),
        ({"resampling": "none"}, "resampling must be .*got 'none'"),
        ({"threshold": 2.0}, "threshold must be .*got 2"),
    ],
)
def test_bad_settings_get_a_sentence(arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(CredoError, match=sentence):
        credo.particle_filter(MODEL, **arguments)


def test_bad_priors_get_a_sentence() -> None:
    learner = credo.particle_filter(MODEL, 5)
    with pytest.raises(CredoError, match="values must be a tree like params with a leading axis of 5"):
        learner.init(jnp.zeros(2), values=jnp.zeros((4, 2)))
    with pytest.raises(CredoError, match="var must be"):
        learner.init(jnp.zeros(2), var=-1.0)
    with pytest.raises(CredoError, match="prior must be a function"):
        learner.init(jnp.zeros(2), prior=3)  # type: ignore[arg-type]
    noisy = credo.particle_filter(credo.Model(lambda z, x: x @ z, credo.Normal(credo.InverseGamma())), 5)
    with pytest.raises(CredoError, match="particles do not learn a noise variance"):
        noisy.init(jnp.zeros(2))


def test_impossible_observations_change_nothing() -> None:
    impossible = credo.Likelihood(
        lambda eta, y: jnp.where(y > 0, -0.5 * (jnp.asarray(y) - eta) ** 2, -jnp.inf)
    )
    learner = credo.particle_filter(credo.Model(lambda z, x: x @ z, impossible), 20)
    belief = learner.predict(learner.init(jnp.zeros(2)))
    for y in (-1.0, jnp.nan, jnp.inf):
        after, info = learner.update(belief, jnp.ones(2), y)
        assert not info.ok and after == belief
    after, info = learner.update(belief, jnp.ones(2), 1.0, weight=0.0)
    assert after == belief


def test_a_particle_that_cannot_be_weighed_has_no_weight() -> None:
    half = credo.Likelihood(lambda eta, y: jnp.where(eta > 0, -0.5 * (jnp.asarray(y) - eta) ** 2, jnp.nan))
    learner = credo.particle_filter(credo.Model(lambda z, x: z[0], half), 40, threshold=0.0)
    belief, info = learner.update(learner.init(jnp.zeros(1)), None, 0.3)
    assert info.ok and jnp.all((belief.weights > 0) == (belief.values[:, 0] > 0))
    again, info = learner.update(belief, None, 0.3)
    assert info.ok and jnp.isfinite(learner.forecast(again, None, method="plugin").log_prob(0.3))


@pytest.mark.slow
@pytest.mark.parametrize("additive", few([False, True], True))
def test_particles_that_run_to_infinity_stay_and_nothing_else_is_lost(additive: bool) -> None:
    def leap(z: jax.Array, *_: object) -> jax.Array:
        return jnp.where(z > 1.0, jnp.inf, 0.5 * z)

    walk = credo.Transition.additive(leap, 0.01) if additive else credo.Transition(leap)
    model = credo.Model(lambda z, x: z, credo.Normal(1.0))
    flow = credo.pfbr(model, credo.flows.Operator(dim=1, width=2, hidden=4).begin(), 40, walk)
    for learner in (credo.particle_filter(model, 40, dynamics=walk), flow):
        belief = learner.init(jnp.zeros(1), var=4.0, key=0)
        moved = jax.jit(learner.predict)(belief).values
        apart = jnp.abs(moved - jnp.where(belief.values > 1.0, belief.values, 0.5 * belief.values))
        assert jnp.max(apart) < (0.4 if additive else 1e-12) and jnp.any(moved > 1.0)
        belief, info = learner.step(belief, None, jnp.array([0.3]))
        assert info.ok and jnp.all(jnp.isfinite(belief.values))
    nowhere = credo.particle_filter(model, 40, dynamics=credo.Transition(lambda z, key, dt: z * jnp.nan))
    assert not nowhere.step(nowhere.init(jnp.zeros(1)), None, jnp.array([0.3]))[1].ok


@pytest.mark.parametrize("values", [jnp.ones((2, 2)), jnp.array([[0.0, 1.0], [0.0, 1.0]])])
def test_a_set_that_is_all_equal_stays_usable(values: jax.Array) -> None:
    learner = credo.particle_filter(MODEL, 2)
    belief, info = learner.step(learner.init(jnp.zeros(2), values=values), jnp.ones(2), 1.0)
    assert info.ok and jnp.allclose(belief.mean, values[0])


@pytest.mark.slow
def test_joint_models_weigh_rows_and_leave_out_missing_ones() -> None:
    learner = credo.particle_filter(credo.models.joint(MODEL), 30, threshold=0.0)
    single = credo.particle_filter(MODEL, 30, threshold=0.0)
    prior = learner.init(jnp.zeros(2))
    ys = YS[:3].at[1].set(jnp.nan)
    belief, info = learner.update(prior, XS[:3], ys, weight=jnp.array([1.0, 1.0, 0.5]))
    one, first = single.update(prior, XS[0], YS[0])
    two, _ = single.update(one, XS[2], YS[2], weight=0.5)
    assert info.ok and jnp.allclose(belief.log_weights, two.log_weights, atol=1e-12)
    _, info = learner.update(prior, XS[:1], YS[:1])
    assert jnp.allclose(info.log_evidence, first.log_evidence, atol=1e-12)


@pytest.mark.optimised
def test_settings_that_change_by_step_equal_a_loop() -> None:
    def at(learner: Any, setting: Any) -> Any:
        transition, var = setting
        return credo.replace(
            learner,
            dynamics=credo.LinearGaussian(transition, 0.0, 0.1),
            model=credo.Model(learner.model.apply, credo.Normal(var)),
        )

    settings = (jnp.linspace(0.5, 1.0, T)[:, None, None] * jnp.eye(2)[None], jnp.linspace(0.1, 1.0, T))
    both: list[Any] = [credo.extended_kalman(MODEL, dynamics=WALK), credo.particle_filter(MODEL, 20, WALK)]
    for learner in both:
        belief: Any = learner.init(jnp.zeros(2))
        whole, trace = credo.run(learner, belief, XS, YS, at=at, settings=settings)
        report = credo.evaluate(learner, belief, (XS, YS), at=at, settings=settings, chunk=4)
        for t in range(T):
            now = at(learner, jax.tree.map(lambda leaf, t=t: leaf[t], settings))
            belief, info = now.step(belief, XS[t], YS[t])
            assert info.log_evidence == trace.log_evidence[t]
        assert belief == whole
        assert np.array_equal(report.belief.mean, whole.mean)


def test_settings_need_a_function_and_the_reverse() -> None:
    learner = credo.extended_kalman(MODEL)
    belief = learner.init(jnp.zeros(2))
    with pytest.raises(CredoError, match="settings needs at"):
        credo.run(learner, belief, XS, YS, settings=YS)
    with pytest.raises(CredoError, match="at needs settings"):
        credo.evaluate(learner, belief, (XS, YS), at=lambda learner, setting: learner)
    with pytest.raises(CredoError, match="same length"):
        credo.run(learner, belief, XS, YS, at=lambda learner, setting: learner, settings=jnp.zeros(3))
