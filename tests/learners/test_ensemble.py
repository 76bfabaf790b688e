"""The ensemble Kalman filter is Kalman's for the members' sample covariance: exactly, or in expectation."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.learners.reference import arrays, classes, close, kalman_filter, linear, regression, stream

import credo
from credo.core.errors import CredoError
from credo.covariances import DiagonalCovariance, EnsembleCovariance, inverse_of

UNTYPED: Any = credo
"""For calls that a type checker would refuse, too."""

P, T = 4, 12


def bitwise(left: Any, right: Any) -> None:
    for a, b in zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


@pytest.mark.table
@pytest.mark.parametrize(("members", "outputs"), [(9, 0), (3, 2)])
def test_the_transform_filter_is_kalmans_for_the_members_sample_covariance(
    members: int, outputs: int
) -> None:
    xs, ys = stream(P, T, outputs)
    rng = np.random.default_rng(3)
    transition = rng.normal(size=(P, P)) / 2
    learner = credo.etkf(regression(), members, dynamics=credo.LinearGaussian(jnp.asarray(transition), 0.3))
    start = learner.init(jnp.ones(P), var=jnp.linspace(0.5, 2.0, P))
    close(start.mean, np.ones(P))
    close(np.cov(start.members.T), start.cov.dense())
    belief, trace = credo.run(learner, start, *arrays(xs, ys))
    noise = 0.09 * np.eye(max(outputs, 1))
    mean, cov, evidence = kalman_filter(
        np.ones(P), np.asarray(start.cov.dense()), xs, ys, noise, transition, 0.3 * np.ones(P)
    )
    close(belief.mean, mean)
    close(belief.cov.dense(), cov)
    close(belief.var, np.diag(cov))
    close(trace.log_evidence, evidence)
    close(belief.deviations.sum(axis=0), np.zeros(P))
    assert bool(trace.ok.all()) and int(belief.t) == T


def test_perturbed_observations_move_the_mean_by_kalmans_gain_and_the_covariance_in_expectation() -> None:
    xs, ys = stream(P, 1, 2)
    learner = credo.enkf(regression(), 8)
    start, (x, y) = learner.init(jnp.zeros(P)), arrays(xs[0], ys[0])
    mean, cov, _ = kalman_filter(np.zeros(P), np.asarray(start.cov.dense()), xs, ys, 0.09 * np.eye(2))

    def after(key: jax.Array) -> tuple[jax.Array, jax.Array]:
        belief, _ = learner.update(start, x, y, key=key)
        return belief.mean, belief.cov.dense()

    means, covs = jax.vmap(after)(jax.random.split(jax.random.key(0), 2000))
    close(means, np.broadcast_to(mean, means.shape))
    error = np.std(covs, axis=0) / np.sqrt(len(covs))
    assert np.all(np.abs(np.mean(covs, axis=0) - cov) < 4.5 * error)


@pytest.mark.slow
@pytest.mark.table
@pytest.mark.parametrize("analysis", ["perturbed", "etkf"])
def test_with_many_members_and_noisy_dynamics_it_is_the_kalman_filter(analysis: Any) -> None:
    xs, ys = stream(P, T)
    learner = credo.EnsembleLearner(regression(), 500, analysis, credo.RandomWalk(0.01))

    def last(key: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        belief, trace = credo.run(learner, learner.init(jnp.zeros(P), key=key), *arrays(xs, ys))
        return belief.mean, belief.cov.dense(), trace.log_evidence.sum()

    got = jax.vmap(last)(jax.random.split(jax.random.key(1), 20))
    mean, cov, evidence = kalman_filter(np.zeros(P), np.eye(P), xs, ys, 0.09 * np.eye(1), drift=0.01)
    for values, want in zip(got, (mean, cov, evidence.sum()), strict=True):
        error = np.std(values, axis=0, ddof=1) / np.sqrt(20)
        assert np.all(np.abs(np.mean(values, axis=0) - want) < 4.5 * error)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["classes", "counts"])
def test_other_likelihoods_act_through_score_and_fisher_information(kind: str) -> None:
    if kind == "classes":
        model = credo.Model(lambda w, x: w.reshape(P, 3).T @ x, credo.Categorical(3))
        (xs, ys), size = classes(P, T, 3), 3 * P
    else:
        model, size = credo.Model(linear, credo.Poisson()), P
        xs, ys = stream(P, T)
        ys = np.random.default_rng(0).poisson(2.0, size=T).astype(float)
    learner, ekf = credo.etkf(model, 40), credo.extended_kalman(model)
    start = learner.init(jnp.zeros(size), var=0.3)
    got, trace = credo.run(learner, start, *arrays(xs, ys))
    prior = ekf.init(jnp.zeros(size), cov=start.cov.dense())
    want, told = credo.run(ekf, prior, *arrays(xs, ys))
    close(got.mean, want.mean, 1e-9)
    close(got.cov.dense(), want.cov.dense(), 1e-9)
    close(trace.log_evidence, told.log_evidence, 1e-9)


@pytest.mark.slow
def test_a_joint_mini_batch_equals_its_rows_and_leaves_out_missing_ones() -> None:
    xs, ys = arrays(*stream(P, 5, 2))
    single, joint = credo.etkf(regression(), 7), credo.etkf(credo.joint(regression()), 7)
    start = joint.init(jnp.zeros(P))
    keep = np.array([0, 2, 3])
    one, _ = credo.run(single, single.init(jnp.zeros(P)), xs[keep], ys[keep])
    drop = jnp.asarray([False, True, False, False, True])
    many, info = joint.update(start, xs, jnp.where(drop[:, None], jnp.nan, ys))
    some, told = joint.update(start, xs, ys, weight=jnp.where(drop, 0.0, 1.0))
    for got in (many, some):
        close(got.mean, one.mean)
        close(got.cov.dense(), one.cov.dense())
    close(info.log_evidence, told.log_evidence)
    twice, _ = single.update(single.init(jnp.zeros(P)), xs[0], ys[0], weight=2.0)
    again, _ = credo.run(single, single.init(jnp.zeros(P)), xs[np.array([0, 0])], ys[np.array([0, 0])])
    close(twice.mean, again.mean)
    close(twice.cov.dense(), again.cov.dense())


@pytest.mark.optimised
@pytest.mark.parametrize("analysis", ["perturbed", "etkf"])
def test_missing_observations_leave_every_bit_and_runs_resume(analysis: Any, tmp_path: Path) -> None:
    xs, ys = arrays(*stream(P, T))
    learner = credo.EnsembleLearner(regression(), 5, analysis, credo.OrnsteinUhlenbeck(0.9))
    start = learner.init(jnp.zeros(P), key=3)
    for y, weight in ((jnp.nan, 1.0), (1.0, 0.0), (jnp.inf, 1.0)):
        belief, info = learner.update(start, xs[0], jnp.asarray(y), weight=weight)
        bitwise(belief, start)
        assert bool(info.ok) == (weight == 0.0)
    whole, _ = credo.run(learner, start, xs, ys)
    half, _ = credo.run(learner, start, xs[:6], ys[:6])
    saved = credo.save(tmp_path / "ensemble.credo", learner, half)
    found, belief = credo.load(saved, learner)
    rest, _ = credo.run(found, belief, xs[6:], ys[6:])
    bitwise(rest, whole)


def test_forecasts_are_those_of_the_members() -> None:
    net = credo.MLP(2, (3,), "tanh")
    learner = credo.enkf(credo.Model(net, credo.Normal(0.1)), 6)
    params = jax.tree.map(lambda v: v.astype(jnp.float64), net.init(0, (P,)))
    belief, x = learner.init(params, var=0.5), jnp.ones(P)
    etas = np.stack([net(belief.unravel(member), x) for member in belief.members])
    said = learner.forecast(belief, x)
    close(said.mean, etas.mean(axis=0))
    close(cast(Any, said).cov, np.cov(etas.T) + 0.1 * np.eye(2))
    mixed = learner.forecast(belief, x, method="mc")
    close(mixed.mean, etas.mean(axis=0))
    close(mixed.var, etas.var(axis=0) + 0.1)
    close(learner.forecast(belief, x, method="plugin").mean, net(belief.params, x))
    assert learner.sample(belief, 0, (5,))[0]["b"].shape == (5, 3)


def test_draws_have_the_members_mean_and_covariance() -> None:
    belief = credo.etkf(regression(), 4).init(jnp.arange(1.0, P + 1))
    draws = np.asarray(credo.etkf(regression(), 4).sample(belief, 0, (4000,)))
    spread = draws - np.asarray(belief.mean)
    outer = spread[:, :, None] * spread[:, None, :]
    for values, want in ((draws, belief.mean), (outer, belief.cov.dense())):
        assert np.all(np.abs(values.mean(axis=0) - want) < 4.5 * values.std(axis=0) / np.sqrt(4000))


def test_an_ensembles_covariance_answers_as_its_dense_form() -> None:
    rng = np.random.default_rng(0)
    drawn = rng.normal(size=(4, P))
    cov = EnsembleCovariance(jnp.asarray(drawn - drawn.mean(axis=0)), jax.random.key_data(jax.random.key(0)))
    matrix, rows = np.asarray(cov.dense()), jnp.asarray(rng.normal(size=(6, P)))
    close(cov.couple(rows)[0].dense(), rows @ matrix)
    close(cov.push(rows), rows @ matrix @ rows.T)
    close(cov.diag(), np.diag(matrix))

    def conditioned(precision: np.ndarray) -> np.ndarray:  # inv(inv(S) + L) for a singular S
        return matrix @ np.linalg.inv(np.eye(P) + precision @ matrix)

    for count in (2, 6):
        close(cov.condition(rows[:count]).dense(), conditioned(np.asarray(rows[:count].T @ rows[:count])))
    close(cov.add_precision(jnp.arange(1.0, 5.0)).dense(), conditioned(np.diag(np.arange(1.0, 5.0))))
    close(cov.scale(jnp.asarray(2.5)).dense(), 2.5 * matrix)
    moved = cov.linear(rows[:P], jnp.zeros((P, P)))
    close(moved.dense(), rows[:P] @ matrix @ rows[:P].T)
    assert cov.logdet() == -jnp.inf and cov.size == P
    wide = EnsembleCovariance(jnp.asarray(np.vstack([drawn, -drawn])), cov.key)
    close(wide.logdet(), np.linalg.slogdet(wide.dense())[1])
    with pytest.raises(CredoError, match="precision, and EnsembleCovariance has none"):
        inverse_of(cov)


def test_noise_of_the_dynamics_is_added_in_expectation_and_leaves_the_mean() -> None:
    rng = np.random.default_rng(0)
    drawn = jnp.asarray(rng.normal(size=(5, P)))
    half = rng.normal(size=(P, P))
    noise, other = half @ half.T, DiagonalCovariance(jnp.linspace(0.2, 1.0, P))

    def moved(key: jax.Array) -> dict[str, EnsembleCovariance]:
        cov = EnsembleCovariance(drawn - drawn.mean(axis=0)[None, :], jax.random.key_data(key))
        return {
            "affine": cov.affine(jnp.asarray(0.8), jnp.linspace(0.1, 0.4, P)),
            "mix": cov.mix(jnp.asarray(0.8), other, jnp.asarray(0.36)),
            "linear": cov.linear(jnp.asarray(half), jnp.asarray(noise)),
        }

    made = jax.vmap(moved)(jax.random.split(jax.random.key(0), 4000))
    matrix = np.cov(np.asarray(drawn).T)
    wanted = {
        "affine": 0.64 * matrix + np.diag(np.linspace(0.1, 0.4, P)),
        "mix": 0.64 * matrix + 0.36 * np.diag(np.linspace(0.2, 1.0, P)),
        "linear": half @ matrix @ half.T + noise,
    }
    for name, covs in made.items():
        values = jax.vmap(lambda cov: cov.dense())(covs)
        error = np.std(values, axis=0) / np.sqrt(len(values))
        assert np.all(np.abs(np.mean(values, axis=0) - wanted[name]) < 4.5 * error), name
        close(covs.deviations.sum(axis=1), np.zeros((4000, P)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: credo.enkf(regression(), 1), "members must be a whole number at least 2; got 1"),
        (
            lambda: UNTYPED.EnsembleLearner(regression(), analysis="etfk"),
            "analysis must be one of perturbed, etkf; got 'etfk' .did you mean 'etkf'",
        ),
        (lambda: credo.enkf(regression()).init(), "params is missing"),
        (lambda: credo.enkf(regression()).init(jnp.zeros(2), var=-1.0), "var must be finite and above 0"),
        (lambda: credo.enkf(regression()).init(jnp.zeros(2), cov=jnp.eye(3)), r"cov must be \(P, P\)"),
        (
            lambda: credo.enkf(regression(credo.InverseGamma())).init(jnp.zeros(2)),
            "an ensemble does not learn a noise variance",
        ),
        (
            lambda: credo.enkf(regression(), 5).forecast(
                credo.enkf(regression(), 5).init(jnp.zeros(2)), jnp.ones(2), samples=7
            ),
            "samples must be None: an ensemble forecasts by its 5 members; got 7",
        ),
    ],
)
def test_impossible_ensembles_are_refused(make: Any, message: str) -> None:
    with pytest.raises(CredoError, match=message):
        make()
