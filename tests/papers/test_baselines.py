"""Baselines: what a bootstrap, dropout, a subspace and likelihood matching promise."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo import bandits
from credo.core.trees import ravel
from credo_papers import baselines

D, ARMS = 3, 2
RNG = np.random.default_rng(0)
XS, YS = jnp.asarray(RNG.normal(size=(12, D))), jnp.asarray(RNG.normal(size=12))
MODEL = credo.Model(lambda w, x: x @ w, credo.Normal(0.25))


@pytest.mark.parametrize("count", [4, 9])
def test_matching_keeps_the_distribution_of_the_outputs_and_else_the_prior(count: int) -> None:
    size = 6
    rows, root = RNG.normal(size=(count, size)), RNG.normal(size=(count, 3))
    rows[1] = 0.0  # an empty place in the memory
    outputs, prior, mean = RNG.normal(size=count), RNG.normal(size=(size, size)), RNG.normal(size=size)
    m, triangle = baselines.match_predictions(
        *map(jnp.asarray, (outputs, root, rows, mean, prior, rows @ mean))
    )
    cov = np.asarray(triangle @ triangle.T)
    there = np.delete(np.arange(count), 1)
    J, S0 = rows[there], prior @ prior.T
    if count <= size:
        np.testing.assert_allclose(J @ m, outputs[there], atol=1e-8)
        np.testing.assert_allclose(J @ cov @ J.T, root[there] @ root[there].T, atol=1e-8)
    # given the outputs, the weights have the distribution that the prior gives them
    gain = S0 @ J.T @ np.linalg.pinv(J @ S0 @ J.T, rcond=1e-10)
    rest = np.eye(size) - gain @ J
    C = root[there] @ root[there].T
    np.testing.assert_allclose(m, mean + gain @ (outputs[there] - J @ mean), atol=1e-8)
    np.testing.assert_allclose(cov, rest @ S0 @ rest.T + gain @ C @ gain.T, atol=1e-8)


@pytest.mark.slow
def test_new_features_predict_on_the_memory_what_the_old_ones_did() -> None:
    net = credo.MLP(ARMS, (10,), "tanh")
    params = jax.tree.map(lambda leaf: leaf.astype(jnp.float64), net.init(0, (D,)))
    network = credo.replay(credo.Model(net, credo.Normal(0.25)), 0.05, optimizer="adam", capacity=8)
    agent = bandits.Agent(baselines.NeuralLinear(network, every=1000), ARMS)
    example = ((XS[0], jnp.zeros((), jnp.int32)), 0.0)
    belief = agent.init(params, var=0.5, example=example)
    for row in range(6):
        belief, info = agent.update(belief, XS[row], row % ARMS, float(YS[row]))
        assert bool(info.ok)
    old: Any = [agent.expect(belief, x) for x in XS[:7]]
    learner: Any = agent.rewards.design
    renewed = credo.replace(belief, belief=learner.observing.renew(belief.belief))
    assert float(jnp.max(jnp.abs(renewed.belief.features - belief.belief.features))) > 0.05
    for row in range(7):
        distribution: Any = agent.expect(renewed, XS[row])
        arm = row % ARMS
        same = np.isclose(
            [distribution.mean[arm], distribution.var[arm]],
            [old[row].mean[arm], old[row].var[arm]],
            atol=1e-8,
        )
        assert same.all() if row < 6 else not same.any()  # the last row is not in the memory


@pytest.mark.slow
@pytest.mark.table
@pytest.mark.parametrize("resampling", ["poisson", "double"])
def test_members_learn_as_often_as_they_drew_and_are_asked_alike(resampling: Any) -> None:
    inner = credo.extended_kalman(MODEL)
    learner = baselines.Bootstrap(inner, 5, resampling)
    counts = np.asarray(
        jax.vmap(learner.multiplicities)(jax.random.split(jax.random.key(1), 20_000)).reshape(-1)
    )
    # 10^5 draws: the standard error of the mean is .003, and that of the variance .007
    assert abs(counts.mean() - 1) < 0.015 and abs(counts.var() - 1) < 0.03
    if resampling == "double":
        assert set(counts.tolist()) == {0, 2}
    belief, info = credo.run(learner, learner.init(jnp.zeros(D)), XS, YS, key=3)
    assert bool(info.ok.all())
    means = np.asarray(belief.beliefs.mean)
    assert len({tuple(row) for row in means.tolist()}) == 5
    draws = []
    for t in range(1, len(XS) + 1):
        first, _ = jax.random.split(jax.random.fold_in(jax.random.key(3), t))
        draws.append(learner.multiplicities(first))
    weights = jnp.stack(draws).astype(jnp.float64)
    alone, _ = credo.run(inner, inner.init(jnp.zeros(D)), XS, YS, weights=weights[:, 2])
    np.testing.assert_allclose(means[2], alone.mean, rtol=1e-10)
    # an agent's propensities are the shares of members
    agent = bandits.Agent(learner, ARMS, "actions")
    start = agent.init(jnp.zeros(D))
    rows = XS[:2]
    choice = agent.decide(credo.replace(start, belief=belief), rows, key=0)
    shares = np.bincount(np.argmax(means @ np.asarray(rows).T, axis=1), minlength=ARMS) / 5
    np.testing.assert_allclose(choice.pmf, shares, atol=1e-12)


def test_dropout_thins_hidden_units_and_without_a_rate_is_the_network() -> None:
    net = credo.MLP(1, (400,), "tanh")
    params: Any = jax.tree.map(lambda leaf: leaf.astype(jnp.float64), net.init(0, (D,)))
    answers = {}
    for rate in (0.0, 0.3):
        model = credo.Model(baselines.DropoutNetwork(net, rate), credo.Normal(0.25))
        learner: Any = baselines.Dropout(credo.sgd(model), masks=500)
        answers[rate] = learner.expect(learner.init(params), XS[0])
    np.testing.assert_allclose(answers[0.0].values, net(params, XS[0])[0], atol=1e-12)
    # the output is a sum over hidden units, of which each is there with its own chance of .7
    terms = np.tanh(XS[0] @ params[0]["w"] + params[0]["b"]) * params[1]["w"][:, 0]
    var = float(np.sum(terms**2) * 0.3 / 0.7)
    distribution = answers[0.3]
    assert abs(float(distribution.mean[0]) - float(net(params, XS[0])[0])) < 4 * np.sqrt(var / 500)
    assert abs(float(distribution.var[0]) / var - 1) < 4 * np.sqrt(2 / 500)


def test_a_subspace_has_the_directions_of_a_run_of_gradient_descent() -> None:
    log = (XS.astype(jnp.float32), jnp.arange(12) % ARMS, YS.astype(jnp.float32))
    recipe = baselines.subspace_agent(ARMS, D, dimension=4, basis="svd", log=log, hidden=(3,))
    belief = recipe.init()
    assert belief.belief.mean.shape == (4,)
    learner: Any = recipe.agent.learner
    rows = jax.vmap(lambda tree: ravel(tree)[0])(learner.model.apply.directions)
    np.testing.assert_allclose(rows @ rows.T, np.eye(4), atol=1e-5)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: baselines.Bootstrap(credo.BetaBernoulli(), 0), "members"),
        (lambda: baselines.Bootstrap(credo.BetaBernoulli()).step(
            baselines.Bootstrap(credo.BetaBernoulli()).init(), None, 1.0), "draws random numbers"),
        (lambda: baselines.Dropout(credo.sgd(MODEL)), "DropoutNetwork"),
        (lambda: baselines.DropoutNetwork(credo.MLP(1), 1.0), "rate"),
        (lambda: baselines.NeuralLinear(credo.sgd(MODEL)), "memory"),
        (lambda: baselines.subspace_agent(2, 3, basis="svd"), "log is missing"),
        (lambda: baselines.neural_linear_agent(2, 3, memory=1), "memory"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_in_a_sentence(make: Any, words: str) -> None:
    with pytest.raises(credo.CredoError, match=words):
        make()


def test_a_widened_network_keeps_the_features_that_its_last_layer_is_about() -> None:
    net = credo.MLP(1, (3,))
    learner = baselines.NeuralLinear(credo.replay(credo.Model(net, credo.Normal(0.1)), capacity=2))
    narrow, wide = net.init(0, (2,)), net.init(1, (4,))
    belief = learner.init(narrow, example=(jnp.ones(2), jnp.ones(())))
    belief = credo.replace(belief, features=belief.features + 1.0)
    wider = learner.widen(belief, wide, example=(jnp.ones(4), jnp.ones(())))
    mine, old = wider.network.unravel(wider.features), belief.network.unravel(belief.features)
    np.testing.assert_array_equal(mine[0]["w"][:2], old[0]["w"])
    np.testing.assert_array_equal(mine[0]["w"][2:], wide[0]["w"][2:])
    np.testing.assert_array_equal(mine[1]["w"], old[1]["w"])
    assert wider.last == belief.last and wider.prior == belief.prior
