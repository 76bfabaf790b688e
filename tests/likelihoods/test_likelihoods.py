"""Likelihoods: scores, expected Hessians and moments against autodiff, summation and SciPy."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats as st
from scipy import integrate

import credo
from credo.beliefs import InverseGamma
from credo.core.errors import CredoError
from credo.likelihoods import Bernoulli, Categorical, Likelihood, Normal, Poisson, StudentT
from credo.likelihoods.joint import Rows

NOISE = np.array([[0.5, 0.2], [0.2, 0.4]])
CASES: dict[str, tuple[Any, np.ndarray, Any]] = {
    "normal": (Normal(0.3), np.array([0.4]), 1.1),
    "normal-vector": (Normal(jnp.asarray([0.3, 0.6])), np.array([0.4, -1.0]), np.array([1.1, 0.2])),
    "normal-list": (Normal([0.3, 0.6]), np.array([0.4, -1.0]), np.array([1.1, 0.2])),
    "normal-matrix": (Normal(jnp.asarray(NOISE)), np.array([0.4, -1.0]), np.array([1.1, 0.2])),
    "bernoulli": (Bernoulli(), np.array([0.7]), 1.0),
    "categorical": (Categorical(3), np.array([0.7, -0.2, 1.5]), 0),
    "poisson": (Poisson(), np.array([0.9]), 4.0),
    "student": (StudentT(3.5, 0.6), np.array([0.9]), 2.0),
}


def support(name: str) -> np.ndarray:
    """Every value of y that matters, for likelihoods of whole numbers."""
    return np.arange({"bernoulli": 2, "categorical": 3, "poisson": 60}[name])


@pytest.fixture(params=list(CASES))
def case(request: pytest.FixtureRequest) -> tuple[str, Any, jax.Array, Any]:
    likelihood, eta, y = CASES[request.param]
    return request.param, likelihood, jnp.asarray(eta), jnp.asarray(y)


@pytest.mark.table
def test_the_score_is_the_gradient_of_log_prob(case: tuple[Any, ...]) -> None:
    _, likelihood, eta, y = case
    gradient = jax.jit(jax.grad(likelihood.log_prob))(eta, y)
    np.testing.assert_allclose(likelihood.score(eta, y), gradient, atol=1e-12)


def test_the_fisher_factor_squares_to_the_expected_hessian(case: tuple[Any, ...]) -> None:
    name, likelihood, eta, y = case
    root = np.asarray(likelihood.fisher_root(eta, y))
    hessian = jax.jit(jax.hessian(likelihood.log_prob))
    if name.startswith("normal"):
        expected = -hessian(eta, y)
    elif name == "student":  # E of the outer product of scores, by quadrature

        def outer(value: float) -> float:
            gap = value - eta[0]
            score = 4.5 * gap / (3.5 * 0.36 + gap**2)
            return float(score**2 * st.t.pdf(value, 3.5, eta[0], 0.6))

        expected = np.array([[integrate.quad(outer, -np.inf, np.inf, epsabs=1e-12)[0]]])
    else:
        values = support(name)
        log_probs = np.array([likelihood.log_prob(eta, v) for v in jnp.asarray(values)])
        hessians = np.array([hessian(eta, v) for v in jnp.asarray(values)])
        expected = -np.tensordot(np.exp(log_probs), hessians, axes=1)
        np.testing.assert_allclose(np.exp(log_probs).sum(), 1.0, atol=1e-12)
    np.testing.assert_allclose(root @ root.T, expected, atol=1e-10)


def test_log_prob_mean_variance_and_cdf_are_scipys(case: tuple[Any, ...]) -> None:
    name, likelihood, eta, y = case
    value = np.asarray(y)
    frozen: Any
    if name.startswith("normal"):
        cov = {"normal": 0.3 * np.eye(1), "normal-matrix": NOISE}.get(name, np.diag([0.3, 0.6]))
        frozen = st.multivariate_normal(eta, cov)
        mean, var, log_prob = eta, np.diag(cov), frozen.logpdf(value)
        cdf = st.norm.cdf(value, eta[0], np.sqrt(0.3)) if name == "normal" else None
    elif name == "categorical":
        probs = np.exp(eta) / np.exp(eta).sum()
        mean, var, log_prob, cdf = probs, probs * (1 - probs), np.log(probs[int(y)]), None
    else:
        frozen = {
            "bernoulli": st.bernoulli(1 / (1 + np.exp(-eta[0]))),
            "poisson": st.poisson(np.exp(eta[0])),
            "student": st.t(3.5, eta[0], 0.6),
        }[name]
        mean, var = np.array([frozen.mean()]), np.array([frozen.var()])
        cdf = frozen.cdf(value)
        log_prob = frozen.logpdf(value) if name == "student" else frozen.logpmf(value)
    np.testing.assert_allclose(likelihood.log_prob(eta, y), log_prob, atol=1e-10)
    np.testing.assert_allclose(likelihood.mean(eta), mean, atol=1e-10)
    np.testing.assert_allclose(likelihood.variance(eta), var, atol=1e-10)
    if cdf is not None:
        np.testing.assert_allclose(likelihood.cdf(eta, y), cdf, atol=1e-10)


@pytest.mark.table
def test_samples_have_the_mean_and_variance(case: tuple[Any, ...]) -> None:
    name, likelihood, eta, _ = case
    n = 20_000
    draws = np.asarray(
        jax.jit(jax.vmap(lambda k: likelihood.sample(eta, k)))(jax.random.split(jax.random.key(0), n))
    )
    draws = np.eye(3)[draws] if name == "categorical" else draws.reshape(n, -1)
    mean, var = np.asarray(likelihood.mean(eta)), np.asarray(likelihood.variance(eta))
    assert np.all(np.abs(draws.mean(0) - mean) < 4.5 * np.sqrt(var / n))
    if name != "student":  # whose sample variance has no finite standard error
        kurtosis = ((draws - mean) ** 4).mean(0)
        assert np.all(np.abs(draws.var(0) - var) < 4.5 * np.sqrt(kurtosis / n))


def test_a_users_log_prob_needs_nothing_else() -> None:
    user = Likelihood(lambda eta, y: y * eta - jnp.exp(eta))
    eta, y = jnp.asarray([0.9]), jnp.asarray(4.0)
    np.testing.assert_allclose(user.score(eta, y), Poisson().score(eta, y), atol=1e-12)
    np.testing.assert_allclose(user.fisher_root(eta, y) ** 2, Poisson().fisher_root(eta, y) ** 2, atol=1e-12)
    wanted = {"mean": (eta,), "variance": (eta,), "sample": (eta, jax.random.key(0)), "cdf": (eta, y)}
    for name, args in wanted.items():
        with pytest.raises(CredoError, match=rf"has no {name}\(eta.*give one with Likelihood\(log_prob"):
            getattr(user, name)(*args)
    with pytest.raises(CredoError, match="log_prob must return a scalar"):
        Likelihood(lambda eta, y: jnp.ones(2)).log_prob(eta, y)


def test_a_user_hessian_is_projected_to_be_positive() -> None:
    cauchy = Likelihood(lambda eta, y: -jnp.log1p((y - eta) ** 2))
    root = cauchy.fisher_root(jnp.asarray([0.0]), jnp.asarray(5.0))  # the observed Hessian is negative there
    np.testing.assert_array_equal(root @ root.T, np.zeros((1, 1)))


@pytest.mark.slow
def test_rows_sum_and_stack_the_likelihoods_of_one_row() -> None:
    rows, etas, ys = (
        Rows(Categorical(3)),
        jnp.asarray(np.random.default_rng(0).normal(size=(4, 3))),
        jnp.arange(4) % 3,
    )
    each = [Categorical(3).score(e, y) for e, y in zip(etas, ys, strict=True)]
    np.testing.assert_allclose(rows.score(etas.reshape(-1), ys), np.concatenate(each), atol=1e-12)
    total = sum(Categorical(3).log_prob(e, y) for e, y in zip(etas, ys, strict=True))
    np.testing.assert_allclose(rows.log_prob(etas.reshape(-1), ys), total, atol=1e-12)
    factor = rows.fisher_root(etas.reshape(-1), ys)
    hessian = jax.hessian(rows.log_prob)(etas.reshape(-1), ys)
    np.testing.assert_allclose(factor @ factor.T, -hessian, atol=1e-12)
    with pytest.raises(CredoError, match="y of a joint model must have a leading axis"):
        rows.rows(jnp.asarray(1.0))


def test_rows_that_are_missing_are_taken_out_of_the_evidence() -> None:
    rows, eta = Rows(Bernoulli()), jnp.asarray([0.3, -1.2, 2.0])
    ys, observed = jnp.asarray([1.0, 0.0, 0.0]), jnp.asarray([True, False, True])
    certain = rows.linearized(eta, jnp.zeros((3, 3)))
    each = [Bernoulli().log_prob(e[None], y) for e, y in zip(eta, ys, strict=True)]
    evidence = rows.log_evidence(certain, eta, ys, observed)
    np.testing.assert_allclose(evidence, each[0] + each[2], atol=1e-12)


@pytest.mark.parametrize("noise", [None, InverseGamma(3.0, 1.5)])
def test_a_mixture_of_normals_is_the_mean_of_their_densities(noise: InverseGamma | None) -> None:
    etas, y = np.array([[0.5], [-1.0], [2.0]]), 0.7
    var = 0.4 if noise is None else 1.5 / (3.0 - 1)
    mixture = Normal(0.4 if noise is None else noise).mixture(jnp.asarray(etas), noise)
    densities = st.norm.pdf(y, etas[:, 0], np.sqrt(var))
    np.testing.assert_allclose(mixture.log_prob(y), np.log(densities.mean()), atol=1e-12)
    np.testing.assert_allclose(mixture.mean, etas.mean(axis=0)[0], atol=1e-12)
    np.testing.assert_allclose(mixture.var, var + etas.var(), atol=1e-12)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Normal(-1.0), "var must be finite and above 0"),
        (lambda: Normal(jnp.asarray([1.0, 0.0])), "var must be finite and above 0"),
        (
            lambda: Normal(jnp.diag(jnp.asarray([1.0, -1.0]))),
            "var must be positive definite; its least eigenvalue is -1",
        ),
        (lambda: Categorical(1), "classes must be a whole number at least 2; got 1"),
        (lambda: StudentT(0.0), "df must be finite and above 0"),
        (lambda: StudentT(4.0, -1.0), "scale must be finite and above 0"),
        (lambda: StudentT(4.0, 1.0, "robust"), "curvature must be"),  # type: ignore[arg-type]
        (
            lambda: Normal(jnp.ones(3)).check(2),
            r"var must be a number, \(2,\) or \(2, 2\) to fit; got shape \(3,\)",
        ),
        (lambda: Bernoulli().check(2), "Bernoulli needs a model with 1 output; this one has 2"),
        (lambda: Categorical(3).check(2), r"Categorical\(3\) needs a model with 3 outputs; this one has 2"),
        (lambda: Categorical(3).log_prob(jnp.zeros(3), jnp.eye(3)[0]), "y must be one class label"),
        (lambda: Bernoulli().log_prob(jnp.zeros(1), jnp.ones(2)), "y must be one number"),
        (lambda: Normal(1.0).log_prob(jnp.zeros(2), jnp.ones(3)), "y must have 2 entries, one an output"),
    ],
)
def test_impossible_likelihoods_and_observations_are_refused(make: Any, message: str) -> None:
    with pytest.raises(CredoError, match=message):
        make()


@pytest.mark.parametrize("gap", [0.0, 0.4, -30.0])
def test_the_weighted_curvature_of_a_student_is_that_of_the_scale_mixture(gap: float) -> None:
    likelihood, eta = StudentT(3.5, 0.6, "weighted"), jnp.asarray([0.9])
    y = eta[0] + gap
    (curvature,) = likelihood.fisher_root(eta, y)[0] ** 2
    # the mean of a Gamma((df + 1) / 2, (df + z^2) / 2) weight, over the squared scale
    weight = (3.5 + 1) / (3.5 + (gap / 0.6) ** 2)
    np.testing.assert_allclose(curvature, weight / 0.6**2, rtol=1e-12)
    np.testing.assert_allclose(likelihood.score(eta, y)[0], curvature * gap, rtol=1e-12)


def test_a_filter_that_lost_the_state_finds_it_again_with_the_weighted_curvature() -> None:
    ys = jnp.full(60, 30.0)
    gaps = {}
    for curvature in ("expected", "weighted"):
        model = credo.Model(lambda z, x: z, StudentT(3.0, 0.3, curvature))
        learner = credo.extended_kalman(model, dynamics=credo.RandomWalk(0.1))
        belief, _ = credo.run(learner, learner.init(jnp.zeros(()), var=1.0), None, ys)
        gaps[curvature] = abs(float(belief.mean[0]) - 30.0)
    assert gaps["weighted"] < 0.1 < 1.0 < gaps["expected"]
