"""On linear-Gaussian models every spelling is Bayes' rule: Kalman = ridge = EKF = BONG = low rank."""

from __future__ import annotations

from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.learners.reference import (
    arrays,
    close,
    kalman_filter,
    linear,
    normal_inverse_gamma,
    regression,
    ridge,
    stream,
)

import credo

P, T, NOISE = 4, 12, 0.09
PRIOR = np.linspace(0.5, 2.0, P)
EXACT = {
    "ekf": credo.extended_kalman(regression()),
    "bong-root": credo.bong(regression(), credo.Full()),
    "bong-dense": credo.bong(regression(), credo.Full("dense")),
    "low-rank": credo.bong(regression(), credo.LowRank(P)),
    "lofi": credo.lofi(regression(), P),
    "iterated": credo.iterated_ekf(regression()),
    "kept-gain": credo.bong(regression(), credo.Full(), gain="kept"),
}


@pytest.mark.table
@pytest.mark.parametrize("name", list(EXACT))
@pytest.mark.parametrize("outputs", [0, 2])
def test_online_learning_is_the_batch_ridge_regression_with_its_evidence(name: str, outputs: int) -> None:
    xs, ys = stream(P, T, outputs)
    learner, start = EXACT[name], np.linspace(-1, 1, P)
    belief, trace = credo.run(learner, learner.init(jnp.asarray(start), var=PRIOR), *arrays(xs, ys))
    mean, cov, evidence = ridge(start, np.diag(PRIOR), xs, ys, NOISE)
    close(belief.mean, mean)
    close(belief.cov.dense(), cov)
    close(belief.var, np.diag(cov))
    close(trace.log_evidence.sum(), evidence)
    assert bool(trace.ok.all()) and int(belief.t) == T


@pytest.mark.slow
def test_low_rank_is_exact_while_its_rank_reaches_the_number_of_observations_times_outputs() -> None:
    xs, ys = stream(8, 3, 2)
    mean, cov, evidence = ridge(np.zeros(8), np.eye(8), xs, ys, NOISE)
    enough, short = credo.lofi(regression(), 6), credo.lofi(regression(), 5)
    belief, trace = credo.run(enough, enough.init(jnp.zeros(8)), *arrays(xs, ys))
    close(belief.mean, mean)
    close(belief.cov.dense(), cov)
    close(trace.log_evidence.sum(), evidence)
    fewer, _ = credo.run(short, short.init(jnp.zeros(8)), *arrays(xs, ys))
    close(np.diag(cast(Any, fewer.cov).precision()), np.diag(np.linalg.inv(cov)))
    assert np.abs(fewer.cov.dense() - cov).max() > 1e-4


@pytest.mark.parametrize("form", ["dense", "matrix", "vector"])
def test_the_kalman_filter_is_the_textbook_one(form: Any) -> None:
    rng = np.random.default_rng(1)
    transition, observation = rng.normal(size=(3, 3)) / 2, rng.normal(size=(2, 3))
    drift, noise = np.diag([0.1, 0.2, 0.3]), np.diag([0.5, 0.7])
    if form == "dense":
        half = rng.normal(size=(3, 3))
        drift, noise = half @ half.T, np.array([[0.5, 0.2], [0.2, 0.4]])
    spelled = (np.diag(drift), np.diag(noise)) if form == "vector" else (drift, noise)
    offset, ys, cov = np.array([0.1, -0.2, 0.3]), rng.normal(size=(T, 2)), np.diag([1.0, 2.0, 3.0])
    learner = credo.kalman(*arrays(transition, observation, *spelled, offset))
    belief, trace = credo.run(learner, learner.init(jnp.ones(3), cov=cov), None, jnp.asarray(ys))
    stacked = np.broadcast_to(observation, (T, 2, 3))
    mean, after, evidence = kalman_filter(np.ones(3), cov, stacked, ys, noise, transition, offset, drift)
    close(belief.mean, mean)
    close(belief.cov.dense(), after)
    close(trace.log_evidence, evidence)


def test_noise_matrices_and_vectors_are_variances() -> None:
    xs, ys = stream(P, T, 2)
    for noise in (np.array([0.3, 0.6]), np.array([[0.3, 0.1], [0.1, 0.6]])):
        learner = credo.extended_kalman(regression(jnp.asarray(noise)))
        belief, trace = credo.run(learner, learner.init(jnp.zeros(P)), *arrays(xs, ys))
        matrix = np.diag(noise) if noise.ndim == 1 else noise
        mean, cov, evidence = kalman_filter(np.zeros(P), np.eye(P), xs, ys, matrix)
        close(belief.mean, mean)
        close(belief.cov.dense(), cov)
        close(trace.log_evidence, evidence)


def test_a_diagonal_prior_covariance_and_a_dense_one_can_be_given() -> None:
    xs, ys = stream(P, T)
    half = np.random.default_rng(0).normal(size=(P, P))
    prior = half @ half.T + np.eye(P)
    mean, cov, _ = ridge(np.zeros(P), prior, xs, ys, NOISE)
    for family in (credo.Full(), credo.Full("dense"), credo.LowRank(P)):
        learner = credo.bong(regression(), family)
        belief, _ = credo.run(learner, learner.init(jnp.zeros(P), cov=prior), *arrays(xs, ys))
        close(belief.mean, mean, 1e-9)
        close(belief.cov.dense(), cov, 1e-9)


@pytest.mark.parametrize("family", [credo.Full(), credo.Full("dense"), credo.LowRank(P)])
def test_an_unknown_noise_variance_is_learned_exactly(family: Any) -> None:
    xs, ys = stream(P, T)
    learner = credo.normal_inverse_gamma(regression(), family, shape=1.5, scale=0.7)
    belief, trace = credo.run(learner, learner.init(jnp.zeros(P), var=PRIOR), *arrays(xs, ys))
    mean, cov, shape, scale, evidence = normal_inverse_gamma(np.zeros(P), np.diag(PRIOR), 1.5, 0.7, xs, ys)
    close(belief.mean, mean)
    close(belief.cov.dense(), cov)
    close([cast(Any, belief.noise).shape, cast(Any, belief.noise).scale], [shape, scale])
    close(trace.log_evidence.sum(), evidence)
    close(cast(Any, belief.noise).mean, scale / (shape - 1))


def test_forgotten_noise_loses_pseudo_observations_before_each_observation() -> None:
    xs, ys = stream(2, 5)
    learner = credo.extended_kalman(regression(credo.InverseGamma(2.0, 1.0, forgetting=0.9)))
    belief, _ = credo.run(learner, learner.init(jnp.zeros(2)), *arrays(xs, ys))
    shape = 2.0
    for _ in range(5):
        shape = 0.9 * shape + 0.5
    close(cast(Any, belief.noise).shape, shape)


@pytest.mark.table
@pytest.mark.parametrize("family", [credo.Full(), credo.LowRank(P)])
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("outputs", [0, 2])
def test_a_joint_mini_batch_equals_its_rows_one_by_one(family: Any, known: bool, outputs: int) -> None:
    xs, ys = arrays(*stream(P, T, outputs))
    model = regression(0.09 if known else credo.InverseGamma(1.5, 0.7))
    single, joint = credo.bong(model, family), credo.bong(credo.joint(model), family)
    one, trace = credo.run(single, single.init(jnp.zeros(P), var=PRIOR), xs, ys)
    batched = [v.reshape(3, 4, *v.shape[1:]) for v in (xs, ys)]
    many, joined = credo.run(joint, joint.init(jnp.zeros(P), var=PRIOR), *batched)
    close(many.mean, one.mean)
    close(many.cov.dense(), one.cov.dense())
    close(joined.log_evidence, trace.log_evidence.reshape(3, 4).sum(1))
    if not known:
        close(
            [cast(Any, many.noise).shape, cast(Any, many.noise).scale],
            [cast(Any, one.noise).shape, cast(Any, one.noise).scale],
        )


@pytest.mark.table
@pytest.mark.parametrize("family", [credo.Full(), credo.Diagonal(), credo.LowRank(P)])
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("how", ["missing", "weight", "negative"])
def test_missing_rows_and_rows_of_weight_zero_are_left_out(family: Any, known: bool, how: str) -> None:
    xs, ys = arrays(*stream(P, 5, 2))
    joint = credo.bong(credo.joint(regression(0.09 if known else credo.InverseGamma(1.5, 0.7))), family)
    start, keep = joint.init(jnp.zeros(P), var=PRIOR), np.array([0, 2, 3])
    drop = jnp.asarray([False, True, False, False, True])
    if how == "missing":
        got, info = joint.update(start, xs, jnp.where(drop[:, None], jnp.nan, ys))
    else:
        got, info = joint.update(start, xs, ys, weight=jnp.where(drop, 0.0 if how == "weight" else -1.0, 1.0))
    want, told = joint.update(start, xs[keep], ys[keep])
    close(got.mean, want.mean)
    close(got.cov.dense(), want.cov.dense())
    close(info.log_evidence, told.log_evidence)
    if not known:
        close(
            [cast(Any, got.noise).shape, cast(Any, got.noise).scale],
            [cast(Any, want.noise).shape, cast(Any, want.noise).scale],
        )
    assert bool(info.ok)


@pytest.mark.slow
@pytest.mark.table
@pytest.mark.parametrize("weight", [0.5, 2.0, 3.0])
def test_a_weight_counts_an_observation_so_many_times(weight: float) -> None:
    xs, ys = arrays(*stream(P, 1))
    for learner in EXACT.values():
        got, _ = learner.update(learner.init(jnp.zeros(P)), xs[0], ys[0], weight=weight)
        mean, cov, _ = ridge(np.zeros(P), np.eye(P), np.asarray(xs), np.asarray(ys), NOISE / weight)
        close(got.mean, mean)
        close(got.cov.dense(), cov)


def test_diagonal_moves_its_mean_by_the_kalman_gain_and_adds_the_diagonal_of_the_precision() -> None:
    xs, ys = stream(P, 1, 2)
    mean, cov, _ = ridge(np.zeros(P), np.diag(PRIOR), xs, ys, NOISE)
    for learner, var in [
        (credo.vd_ekf(regression()), 1 / np.diag(np.linalg.inv(cov))),
        (credo.fd_ekf(regression()), np.diag(cov)),
    ]:
        belief, _ = learner.update(learner.init(jnp.zeros(P), var=PRIOR), *arrays(xs[0], ys[0]))
        close(belief.mean, mean)
        close(belief.var, var)


def test_data_are_summed_not_averaged() -> None:
    joint = credo.extended_kalman(credo.joint(credo.Model(linear, credo.Normal(1.0))))
    belief, _ = joint.update(joint.init(jnp.zeros(1)), jnp.ones((9, 1)), jnp.ones(9))
    close(belief.var, [0.1])
    close(belief.mean, [0.9])
    step = jax.jit(lambda b: joint.step(b, jnp.ones((9, 1)), jnp.ones(9))[0].var)
    close(step(belief), [1 / 19])


@pytest.mark.parametrize("form", ["root", "dense"])
def test_a_diagonal_noise_matrix_is_its_diagonal_in_a_kalman_filter(form: Any) -> None:
    rng = np.random.default_rng(3)
    transition, observation, ys = (
        rng.normal(size=(3, 3)) / 2,
        rng.normal(size=(2, 3)),
        rng.normal(size=(T, 2)),
    )
    moves, noise = np.array([0.1, 0.0, 0.3]), np.array([0.5, 0.7])
    diagonal = credo.kalman(*arrays(transition, observation, moves, noise), form=form)
    matrix = credo.kalman(*arrays(transition, observation, np.diag(moves), np.diag(noise)), form=form)
    ends = [credo.run(each, each.init(jnp.ones(3)), None, jnp.asarray(ys)) for each in (diagonal, matrix)]
    for one, other in zip(*map(jax.tree.leaves, ends), strict=True):
        np.testing.assert_array_equal(one, other)
    stacked = np.broadcast_to(observation, (T, 2, 3))
    mean, cov, evidence = kalman_filter(
        np.ones(3), np.eye(3), stacked, ys, np.diag(noise), transition, np.zeros(3), np.diag(moves)
    )
    close(ends[0][0].mean, mean)
    close(ends[0][0].cov.dense(), cov)
    close(ends[0][1].log_evidence, evidence)


def test_a_step_of_a_kalman_filter_with_diagonal_noise_has_no_eigenvectors() -> None:
    noise = jnp.diag(jnp.asarray([0.1, 0.2]))
    learner = credo.kalman(jnp.eye(2), jnp.eye(1, 2), noise, 0.1)
    belief, y = learner.init(jnp.zeros(2)), jnp.zeros(1)
    text = str(jax.make_jaxpr(learner.step)(belief, None, y))
    assert "eigh" not in text and "qr" in text
    mixed = credo.kalman(jnp.eye(2), jnp.eye(1, 2), noise + 0.01, 0.1)
    assert "eigh" in str(jax.make_jaxpr(mixed.step)(belief, None, y))


@pytest.mark.slow
def test_a_kalman_filter_is_differentiable_in_its_noise() -> None:
    @jax.jit
    def evidence(scale: Any) -> Any:
        learner = credo.kalman(jnp.eye(2), jnp.eye(1, 2), scale * jnp.eye(2), 0.1)
        _, trace = credo.run(learner, learner.init(jnp.zeros(2)), None, jnp.ones((3, 1)))
        return trace.log_evidence.sum()

    step = 1e-6
    slope = (evidence(0.3 + step) - evidence(0.3 - step)) / (2 * step)
    np.testing.assert_allclose(jax.jit(jax.grad(evidence))(0.3), slope, rtol=1e-6)


def test_the_root_keeps_its_digits_where_the_matrix_loses_them() -> None:
    rng = np.random.default_rng(0)
    turn = 0.99 * np.linalg.qr(rng.normal(size=(4, 4)))[0]
    shape = (turn, rng.normal(size=(2, 4)), np.full(4, 1e-6), np.full(2, 1e-4))
    ys, exact = rng.normal(size=(200, 2)), {}
    for form in ("root", "dense"):
        for dtype in (np.float64, np.float32):
            learner = credo.kalman(*(jnp.asarray(part, dtype) for part in shape), form=cast(Any, form))
            start = learner.init(jnp.zeros(4, dtype), var=jnp.asarray(1e6, dtype))
            exact[form, dtype] = credo.run(learner, start, None, jnp.asarray(ys, dtype))[0].cov.dense()
    truth = np.asarray(exact["root", np.float64])
    errors = {form: np.abs(np.asarray(exact[form, np.float32]) - truth).max() for form in ("root", "dense")}
    assert errors["root"] < 1e-4 * truth.max() < truth.max() < errors["dense"]
