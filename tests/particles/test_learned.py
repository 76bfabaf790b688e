"""Learned proposals: what training buys, and that it goes on bit by bit."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.streams.setups import bitwise

import credo
from credo.core.errors import CredoError
from credo.particles import ProposalTraining, learned_filter, train_proposal
from credo.particles.learned import LIMIT, LearnedProposal, _Plan, _sequence

MODEL = credo.Model(lambda z, x: z, credo.Normal(0.05))
WALK = credo.Decay(0.9, 1.0)


@pytest.mark.slow
def test_a_trained_proposal_estimates_a_higher_evidence_and_training_resumes_bitwise() -> None:
    """With 4 particles and noise of 0.05 the bootstrap filter loses nats in every step."""
    learner = learned_filter(
        MODEL, WALK, example=(None, jnp.zeros(1)), size=1, particles=4, network="gru", hidden=(8,), memory=4
    )
    prior = learner.init(jnp.zeros(1))
    numbers: list[int] = []
    first = train_proposal(
        learner,
        prior,
        steps=30,
        length=5,
        learning_rate=0.03,
        progress=lambda number, loss: numbers.append(number),
    )
    training = train_proposal(learner, prior, steps=60, length=5, learning_rate=0.03, resume=first)
    assert numbers == list(range(30)) and training.losses.shape == (60,)
    whole = train_proposal(learner, prior, steps=60, length=5, learning_rate=0.03)
    bitwise(training, whole)
    rng, state, rows = np.random.default_rng(0), 0.0, []
    for _ in range(100):
        state = 0.9 * state + rng.normal()
        rows.append([state + np.sqrt(0.05) * rng.normal()])
    ys = jnp.asarray(rows)
    scores = []
    for filtering in (training.learner, learner, credo.particle_filter(MODEL, 4, WALK)):
        _, trace = credo.run(filtering, filtering.init(jnp.zeros(1)), None, ys)
        assert bool(jnp.all(trace.ok))
        scores.append(float(jnp.mean(trace.log_evidence)))
    # exact -1.5; the bootstrap loses about 3 nats a step here, and so does what is not trained
    assert scores[0] > max(scores[1:]) + 1.0
    # normalised weights are an unbiased estimate: on average no higher than the exact evidence
    exact = credo.extended_kalman(MODEL, dynamics=WALK)
    _, trace = credo.run(exact, exact.init(jnp.zeros(1)), None, ys)
    assert scores[0] < float(jnp.mean(trace.log_evidence)) + 0.05


@pytest.mark.slow
def test_with_the_best_proposal_a_particle_weighs_what_its_parent_says_of_the_observation() -> None:
    """p(z | parent, y) is a network without hidden layers here; then the draw itself does not matter."""
    learner = learned_filter(MODEL, WALK, example=(None, jnp.zeros(1)), size=1, particles=6)
    proposal = learner.proposal
    assert isinstance(proposal, LearnedProposal)
    gain = 1.0 / 1.05
    params = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape), proposal.params)
    *layers, last = params["layers"]
    log_sd = LIMIT * np.arctanh(0.5 * np.log(1.0 - gain) / LIMIT)
    params["layers"] = [*layers, last | {"b": jnp.array([-gain * 2.0, log_sd])}]
    # features are (y - shift) / scale, and the mean is told in units of the dynamics from their own mean
    params["linear"] = jnp.array([[-0.9 * gain, 0.0], [3.0 * gain, 0.0]])
    better = credo.replace(proposal, params=params, shift=jnp.array([-2.0]), scale=jnp.array([3.0]))
    learner = credo.replace(learner, proposal=better)
    belief = learner.predict(learner.init(jnp.zeros(1), key=5))
    y = jnp.array([1.7])
    after, info = learner.update(belief, None, y)
    assert belief.parents is not None
    logs = belief.log_weights + jax.vmap(lambda mean: credo.Normal(1.05).plugin(mean).log_prob(y))(
        0.9 * belief.parents
    )
    np.testing.assert_allclose(info.log_evidence, jax.nn.logsumexp(logs), atol=1e-10)
    np.testing.assert_allclose(after.log_weights, jax.nn.log_softmax(logs), atol=1e-10)


@pytest.mark.slow
def test_a_learning_rate_is_that_of_the_number_of_the_step_from_zero_on() -> None:
    learner = learned_filter(MODEL, WALK, example=(None, jnp.zeros(1)), size=1, particles=4, hidden=(3,))
    prior = learner.init(jnp.zeros(1))

    def trained(steps: int, rate: Any) -> Any:
        training = train_proposal(learner, prior, steps=steps, length=2, learning_rate=rate)
        assert isinstance(training.learner.proposal, LearnedProposal)
        return training.learner.proposal.params

    one, two = trained(1, 0.03), trained(2, lambda number: jnp.where(number == 0, 0.03, 0.0))
    assert any(jnp.any(leaf != 0) for leaf in jax.tree.leaves(one["linear"]))
    for mine, other in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-6)


def test_training_returns_the_loss_of_each_of_its_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    def step(state: ProposalTraining, plan: Any) -> tuple[ProposalTraining, Any]:
        return credo.replace(state, step=state.step + 1), 0.5 + 2.0 * state.step

    monkeypatch.setattr("credo.particles.learned._step", step)
    learner = learned_filter(MODEL, WALK, example=(None, jnp.zeros(1)), size=1, particles=2, hidden=(2,))
    key = jnp.zeros(2, jnp.uint32)
    begun = ProposalTraining(learner, None, jnp.asarray(1), key, jnp.array([0.5]))
    told: list[tuple[int, float]] = []

    def note(number: int, loss: float) -> None:
        told.append((number, loss))

    training = train_proposal(learner, learner.init(jnp.zeros(1)), steps=4, resume=begun, progress=note)
    assert int(training.step) == 4 and told == [(1, 2.5), (2, 4.5), (3, 6.5)]
    np.testing.assert_array_equal(training.losses, [0.5, 2.5, 4.5, 6.5])


def test_every_sequence_of_the_data_is_drawn_and_whole() -> None:
    xs = np.arange(6.0).reshape(3, 2)
    prior: Any = None
    plan = _Plan(prior, (xs, xs[..., None]), None, 0.1, 1.0, 2, 1)
    learner: Any = None
    drawn = [_sequence(learner, plan, key) for key in jax.random.split(jax.random.key(0), 40)]
    assert {float(x[0]) for x, _ in drawn} == {0.0, 2.0, 4.0}
    assert all(np.array_equal(y[:, 0], x) and np.array_equal(x, x[0] + np.arange(2)) for x, y in drawn)


def test_what_cannot_be_trained_is_refused_in_a_sentence() -> None:
    bootstrap = credo.particle_filter(MODEL, 4, WALK)
    with pytest.raises(CredoError, match="learner must have a LearnedProposal"):
        train_proposal(bootstrap, bootstrap.init(jnp.zeros(1)))
    learner = learned_filter(MODEL, WALK, example=(None, jnp.zeros(1)), size=1, particles=4)
    with pytest.raises(CredoError, match="proposal must be for the 2 parameters"):
        learner.init(jnp.zeros(2))
