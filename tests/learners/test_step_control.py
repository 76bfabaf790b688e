"""Steps that overshoot are shortened, and no others."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize as so

import credo

RNG = np.random.default_rng(3)
LEARNER = credo.bong(credo.Model(lambda w, x: x @ w, credo.Bernoulli()), credo.Full())
PLAIN = credo.replace(LEARNER, curvature=credo.learners.LinearizedGaussNewton(step_control=False))


def test_a_classifier_that_is_sure_and_wrong_goes_no_further_than_the_posterior_allows() -> None:
    start = LEARNER.init(jnp.array([10.0]), var=100.0)
    x = jnp.ones(1)
    whole, damped = (float(one.update(start, x, 0)[0].mean[0]) for one in (PLAIN, LEARNER))

    def height(w: float) -> float:
        return float(-np.logaddexp(0.0, w) - 0.5 * (w - 10.0) ** 2 / 100.0)

    top = so.minimize_scalar(lambda w: -height(float(w)))
    assert whole < -80 and height(whole) < height(10.0)
    assert height(damped) > height(10.0) and height(damped) > -top.fun - 3.0


def test_a_step_that_does_not_overshoot_keeps_its_bits() -> None:
    xs = jnp.asarray(RNG.normal(size=(40, 3)))
    ys = jnp.asarray(RNG.integers(0, 2, 40))
    (one, _), (other, _) = (credo.run(each, each.init(jnp.zeros(3)), xs, ys) for each in (PLAIN, LEARNER))
    np.testing.assert_array_equal(one.mean, other.mean)
    np.testing.assert_array_equal(one.cov.dense(), other.cov.dense())


def test_a_mean_and_a_spread_are_learned_from_the_default_prior() -> None:
    net = credo.MLP(2, (20,))
    xs = jnp.asarray(RNG.normal(size=(600, 4)), jnp.float32)
    noise = RNG.normal(size=600) * np.exp(0.5 * np.asarray(xs[:, 1]) - 0.5)
    ys = jnp.asarray(np.asarray(xs[:, 0]) + noise, jnp.float32)
    noise_follows = credo.HeteroscedasticNormal()

    def log_prob(eta: jnp.ndarray, y: jnp.ndarray) -> jnp.ndarray:
        return noise_follows.log_prob(eta, y)

    def information(eta: jnp.ndarray) -> jnp.ndarray:
        return jnp.diag(jnp.stack([jnp.exp(-eta[1]), jnp.full((), 0.5, eta.dtype)]))

    params = net.init(jax.random.key(0), (4,))
    for likelihood in (noise_follows, credo.Likelihood(log_prob, fisher=information)):
        learner = credo.bong(credo.Model(net, likelihood), credo.Diagonal())
        _, trace = credo.run(learner, learner.init(params), xs, ys)
        assert bool(trace.ok.all()) and float(trace.log_evidence[300:].mean()) > -1.6
