"""Expected observations: their distribution without the noise, against closed forms, quadrature and draws."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats as st

import credo
from credo.likelihoods import DrawnExpectation, IndependentExpectation, LatentExpectation
from credo.linalg.normals import scaled_root

KEY = jax.random.key(0)
XS = jnp.asarray(np.random.default_rng(0).normal(size=(6, 3)))
LINEAR = credo.Model(lambda w, x: x @ w, credo.Normal(0.5))


def _belief(learner: Any, ys: Any = (1.0, -0.5, 0.3)) -> Any:
    belief = learner.init(jnp.zeros(3), var=2.0)
    for x, y in zip(XS, ys, strict=False):
        belief, _ = learner.step(belief, x, y)
    return belief


def test_a_linear_model_expects_its_mean_with_the_parameters_variance_alone() -> None:
    learner = credo.extended_kalman(LINEAR)
    belief = _belief(learner)
    distribution = learner.expect(belief, XS[4])
    cov = belief.cov.dense()
    np.testing.assert_allclose(distribution.mean, [XS[4] @ belief.mean], rtol=1e-12)
    np.testing.assert_allclose(distribution.var, [XS[4] @ cov @ XS[4]], rtol=1e-10)
    np.testing.assert_allclose(learner.forecast(belief, XS[4]).var - distribution.var[0], 0.5, rtol=1e-9)
    np.testing.assert_allclose(
        distribution.quantile(0.9), st.norm.ppf(0.9, distribution.mean, distribution.sd), rtol=1e-9
    )


def test_rows_of_a_joint_model_come_with_their_joint_distribution() -> None:
    learner = credo.extended_kalman(LINEAR)
    belief = _belief(learner)
    distribution: Any = credo.replace(learner, model=credo.joint(LINEAR)).expect(belief, XS)
    np.testing.assert_allclose(distribution.mean, XS @ belief.mean, rtol=1e-12)
    np.testing.assert_allclose(distribution.cov, XS @ belief.cov.dense() @ XS.T, rtol=1e-9, atol=1e-12)
    draws = distribution.sample(KEY, (20000,))
    spread = np.asarray(jnp.cov(draws.T) - distribution.cov)
    error = np.sqrt(
        (np.outer(distribution.var, distribution.var) + np.asarray(distribution.cov) ** 2) / 20000
    )
    assert np.max(np.abs(spread) / error) < 5


@pytest.mark.slow
def test_a_learned_noise_variance_gives_a_student_distribution() -> None:
    learner = credo.normal_inverse_gamma(LINEAR)
    belief = _belief(learner)
    distribution = learner.expect(belief, XS[4])
    shape, scale = belief.noise.shape, belief.noise.scale
    unit = XS[4] @ belief.cov.dense() @ XS[4]
    reference = st.t(2 * shape, XS[4] @ belief.mean, np.sqrt(scale / shape * unit))
    np.testing.assert_allclose(distribution.quantile(jnp.asarray(0.8)), [reference.ppf(0.8)], rtol=1e-8)
    np.testing.assert_allclose(distribution.var, [reference.var()], rtol=1e-9)
    u = jnp.array([0.3])
    np.testing.assert_allclose(distribution.latent_cdf(u), reference.cdf(u), rtol=1e-9)
    draws = np.asarray(distribution.sample(KEY, (4000,)))[:, 0]
    assert st.kstest(draws, reference.cdf).pvalue > 1e-3


@pytest.mark.slow
def test_a_logistic_model_expects_probabilities() -> None:
    learner = credo.extended_kalman(credo.Model(lambda w, x: x @ w, credo.Bernoulli()))
    belief = _belief(learner, (1.0, 0.0, 1.0))
    distribution = learner.expect(belief, XS[4])
    eta, sd = XS[4] @ belief.mean, jnp.sqrt(XS[4] @ belief.cov.dense() @ XS[4])
    nodes = st.norm.ppf((np.arange(200000) + 0.5) / 200000)
    values = 1 / (1 + np.exp(-(eta + sd * nodes)))
    np.testing.assert_allclose(
        [distribution.mean[0], distribution.var[0]], [values.mean(), values.var()], rtol=1e-4
    )
    np.testing.assert_allclose(distribution.quantile(0.1), np.quantile(values, 0.1), rtol=1e-4)
    assert float(distribution.sd[0]) < float(learner.forecast(belief, XS[4]).sd)


def test_a_link_that_falls_turns_the_quantiles_round() -> None:
    waiting = credo.Likelihood(lambda eta, y: eta - y * jnp.exp(eta), mean=lambda eta: jnp.exp(-eta))
    distribution = LatentExpectation(waiting, jnp.zeros((1, 1)), jnp.eye(1))
    np.testing.assert_allclose(distribution.quantile(0.9), np.exp(st.norm.ppf(0.9)), rtol=1e-9)


@pytest.mark.slow
def test_conjugate_learners_expect_exactly() -> None:
    cases: Any = [
        (credo.BetaBernoulli(2.0, 3.0), 1.0, st.beta(3, 3)),
        (credo.GammaPoisson(2.0, 3.0), 4.0, st.gamma(6, scale=1 / 4)),
        (credo.DirichletCategorical(3), 1, None),
    ]
    for learner, y, reference in cases:
        belief, _ = learner.step(learner.init(), None, y)
        distribution = learner.expect(belief, None)
        if reference is None:
            np.testing.assert_allclose(
                distribution.quantile(0.3), st.beta([1, 2, 1], [3, 2, 3]).ppf(0.3), rtol=1e-8
            )
        else:
            np.testing.assert_allclose(
                [distribution.mean[0], distribution.var[0]], [reference.mean(), reference.var()]
            )
            np.testing.assert_allclose(distribution.quantile(0.3), reference.ppf(0.3), rtol=1e-8)
    learner = credo.GammaPoisson(2.0, 3.0)
    np.testing.assert_allclose(learner.expect(learner.init(), 5.0).mean, [10 / 3])
    assert learner.sample_function(learner.init(), 0)(2.0) > 0


@pytest.mark.slow
def test_functions_drawn_from_a_belief_have_the_moments_of_the_expectation() -> None:
    net = credo.MLP(outputs=1, hidden=(4,), activation="tanh")
    learner = credo.lofi(credo.Model(net, credo.Normal(0.1)), rank=3)
    belief = learner.init(net.init(0, (3,)), var=0.3)
    for x, y in zip(XS[:3], (1.0, -0.5, 0.3), strict=True):
        belief, _ = learner.step(belief, x, y)
    keys = jax.random.split(KEY, 4000)
    values = jax.vmap(lambda key: jax.vmap(learner.sample_function(belief, key))(XS[4:]))(keys)
    distribution: Any = credo.replace(learner, model=credo.joint(learner.model)).expect(belief, XS[4:])
    np.testing.assert_allclose(
        values.mean(0), distribution.mean, atol=5 * float(distribution.sd.max()) / np.sqrt(4000)
    )
    np.testing.assert_allclose(np.cov(values.T), distribution.cov, atol=0.1 * float(distribution.var.max()))


@pytest.mark.slow
@pytest.mark.table
@pytest.mark.parametrize("kind", ["run length", "experts", "soft reset", "change probability"])
def test_wrappers_expect_the_mixture_of_what_the_learners_inside_expect(kind: Any) -> None:
    inner = credo.extended_kalman(LINEAR)
    kinds: dict[str, Any] = {
        "run length": lambda: credo.RunLength(inner, 0.1, 3),
        "experts": lambda: credo.Experts(
            [credo.vd_ekf(LINEAR, dynamics=credo.RandomWalk(q)) for q in (0.1, 1.0)]
        ),
        "soft reset": lambda: credo.SoftReset(inner, 0.1),
        "change probability": lambda: credo.ChangeProbability(inner),
    }
    learner = kinds[kind]()
    belief = learner.predict(_belief(learner))
    distribution, forecast = learner.expect(belief, XS[4]), learner.forecast(belief, XS[4])
    np.testing.assert_allclose(distribution.mean[0], forecast.mean, rtol=1e-10)
    np.testing.assert_allclose(distribution.var[0] + 0.5, forecast.var, rtol=1e-10)
    draws = distribution.sample(KEY, (4000,))[:, 0]
    assert abs(float(draws.mean() - distribution.mean[0])) < 5 * float(distribution.sd[0]) / np.sqrt(4000)
    keys = jax.random.split(KEY, 4000)
    drawn = jax.jit(jax.vmap(lambda key: learner.sample_function(belief, key)(XS[4])))(keys)
    assert abs(float(drawn.mean() - distribution.mean[0])) < 5 * float(distribution.sd[0]) / np.sqrt(4000)
    test: Any = st.ks_2samp(np.asarray(draws), np.asarray(drawn))
    assert test.pvalue > 1e-3
    u = distribution.quantile(0.7)
    np.testing.assert_allclose(distribution.latent_cdf(u), 0.7, rtol=1e-8)


def test_learners_without_a_covariance_expect_by_their_members() -> None:
    ensemble = credo.enkf(LINEAR, members=50)
    belief = ensemble.init(jnp.zeros(3), var=2.0, key=KEY)
    distribution = ensemble.expect(belief, XS[4])
    np.testing.assert_allclose(distribution.mean[0], (belief.members @ XS[4]).mean(), atol=1e-12)
    np.testing.assert_allclose(distribution.var[0], (belief.members @ XS[4]).var(), rtol=1e-9)
    assert float(ensemble.sample_function(belief, 3)(XS[4])) in np.asarray(belief.members @ XS[4]).tolist()
    point = credo.sgd(LINEAR, 0.1)
    distribution = point.expect(_belief(point), XS[4])
    assert isinstance(distribution, DrawnExpectation) and float(distribution.sd[0]) == 0.0


@pytest.mark.slow
def test_independent_arms_are_drawn_independently() -> None:
    arm = credo.BetaBernoulli()
    beliefs = jax.vmap(lambda a: credo.replace(arm, a=a).init())(jnp.array([1.0, 3.0, 9.0]))
    distribution = IndependentExpectation(jax.vmap(lambda belief: arm.expectation(belief, None))(beliefs))
    draws = np.asarray(distribution.sample(KEY, (4000,)))
    np.testing.assert_allclose(distribution.quantile(0.4), st.beta([1, 3, 9], 1).ppf(0.4), rtol=1e-8)
    assert np.max(np.abs(np.corrcoef(draws.T) - np.eye(3))) < 5 / np.sqrt(4000)
    np.testing.assert_allclose(
        draws.mean(0), distribution.mean, atol=5 * float(distribution.sd.max()) / np.sqrt(4000)
    )


def test_roots_are_accurate_however_much_scales_differ() -> None:
    cov = jnp.asarray([[1e8, 0.5e4], [0.5e4, 1.0]], jnp.float32)
    root = scaled_root(cov)
    np.testing.assert_allclose(root @ root.T, cov, rtol=1e-5)
    assert np.all(scaled_root(jnp.diag(jnp.array([1.0, 0.0])))[1] == 0)


def test_a_learner_that_says_nothing_is_refused_in_a_sentence() -> None:
    silent: Any = credo.Learner
    with pytest.raises(credo.CredoError, match="write this method"):
        silent.expectation(credo.BetaBernoulli(), None, None)
