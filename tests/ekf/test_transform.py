"""The transforms as programs: aux, in place, refusals, draws, and what JAX does to them."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.ekf.regression import PARAMS, X, Y, mean, rows, silent

import credo
from credo.ekf import dense_fisher, diag_fisher

ROOMS = {"diag": diag_fisher, "dense": dense_fisher}
both = pytest.mark.parametrize("room", ROOMS.values(), ids=ROOMS.keys())


def same(one: Any, other: Any) -> bool:
    """Bit by bit."""
    structure: object = jax.tree.structure(one)
    assert structure == jax.tree.structure(other)
    return all(
        bool(jnp.all(a == b)) for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    )


def near(one: Any, other: Any) -> None:
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-12, atol=1e-12)


def belief(state: Any) -> Any:
    return state.params, state.sd_diag if isinstance(state, diag_fisher.DiagFisherState) else state.cov


@both
def test_aux_is_handed_on_and_a_value_a_row_gives_the_same_belief(room: Any) -> None:
    each = room.build(rows, 1.0, per_sample=True)
    one = room.build(mean, 1.0)
    start = one.init(PARAMS)
    assert start.aux is None and start.ok and int(start.step) == 0
    by_rows, by_mean = each.update(start, (X[0], Y[0])), one.update(start, (X[0], Y[0]))
    eta = X[0] @ PARAMS["w"] + PARAMS["b"]
    near(by_rows.aux, {"eta": eta})
    near(by_mean.aux, {"eta": eta[:, None]})  # each row by itself, a batch of one
    near(belief(by_rows), belief(by_mean))
    near(by_rows.log_likelihood, jnp.mean(-0.5 * (Y[0] - eta) ** 2))
    nothing = room.build(lambda p, b: (mean(p, b)[0], jnp.zeros(0)), 1.0)
    assert nothing.update(start, (X[0], Y[0])).aux is None


@both
def test_a_batch_is_one_observation_however_often_its_rows_are_repeated(room: Any) -> None:
    made = room.build(silent, 0.7)
    once = made.update(made.init(PARAMS), (X[0], Y[0]))
    thrice = made.update(made.init(PARAMS), (jnp.tile(X[0], (3, 1)), jnp.tile(Y[0], 3)))
    near(belief(once), belief(thrice))


@both
def test_where_the_squared_gradient_is_the_hessian_it_is_bayes_rule(room: Any) -> None:
    # y ~ N(w, 1), w ~ N(0, 1) and y = 1: the residual is 1, so the squared gradient is 1, the Hessian's size,
    # and the posterior N(1/2, 1/2)
    state = room.init(jnp.zeros(1))
    state = room.update(state, jnp.ones((1, 1)), lambda w, y: (jnp.sum(-0.5 * (y[0] - w) ** 2), None), 1.0)
    near(belief(state), (jnp.full(1, 0.5), jnp.sqrt(jnp.full(1, 0.5)) if room is diag_fisher else 0.5))


@both
def test_in_place_gives_the_buffers_away(room: Any) -> None:
    made = room.build(mean, 1.0)
    mine = jax.tree.map(jnp.array, PARAMS)
    first, other = made.init(mine), made.init(mine)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of buffers that could not be used
        second = made.update(first, (X[0], Y[0]), inplace=True)
        third = made.update(second, (X[1], Y[1]), inplace=True)
    assert all(leaf.is_deleted() for leaf in jax.tree.leaves(belief(first)))
    assert all(leaf.is_deleted() for leaf in jax.tree.leaves(belief(second)))
    with pytest.raises(credo.CredoError, match="state was given away by an update in place"):
        made.update(first, (X[0], Y[0]))
    assert np.isfinite(float(second.log_likelihood)) and second.aux["eta"].shape == (4, 1)
    assert not any(leaf.is_deleted() for leaf in jax.tree.leaves(mine))
    kept = made.update(made.update(other, (X[0], Y[0])), (X[1], Y[1]))
    assert same(third, kept) and not any(leaf.is_deleted() for leaf in jax.tree.leaves(other))


@pytest.mark.optimised
@both
def test_a_loop_and_a_scan_give_the_same_bits_and_one_trace(room: Any) -> None:
    calls = []

    def counted(params: Any, batch: Any) -> tuple[jax.Array, None]:
        calls.append(1)
        return silent(params, batch)

    made = room.build(counted, lambda step: 1.0 / (1.0 + step.astype(float)))
    loop = made.update(made.init(PARAMS), (X[0], Y[0]))
    traced = len(calls)
    for x, y in zip(X[1:], Y[1:], strict=True):
        loop = made.update(loop, (x, y))
    assert len(calls) == traced

    def body(state: Any, batch: Any) -> tuple[Any, jax.Array]:
        state = made.update(state, batch)
        return state, state.log_likelihood

    scanned, values = jax.jit(lambda state: jax.lax.scan(body, state, (X, Y)))(made.init(PARAMS))
    assert same(loop, scanned) and values.shape == (6,) and int(loop.step) == 6
    # after one update the state has its aux, and can be carried too
    spoken = room.build(mean, 1.0)
    start = spoken.update(spoken.init(PARAMS), (X[0], Y[0]))
    ended, _ = jax.lax.scan(lambda s, b: (spoken.update(s, b), None), start, (X[1:], Y[1:]))
    assert ended.aux["eta"].shape == (4, 1) and int(ended.step) == 6


@pytest.mark.table
@both
def test_it_maps_over_settings_and_states_and_differentiates(room: Any) -> None:
    def final(lr: Any) -> Any:
        made = room.build(silent, lr)
        return made.update(made.init(PARAMS), (X[0], Y[0]))

    rates = jnp.array([0.0, 0.5, 2.0])
    mapped = jax.vmap(final)(rates)
    for lr, *one in zip(rates, *jax.tree.leaves(mapped), strict=True):
        near(one, final(float(lr)))
    made = room.build(silent, 1.0)
    again = jax.vmap(lambda state: made.update(state, (X[1], Y[1])))(mapped)
    near(jax.tree.map(lambda leaf: leaf[2], again), made.update(final(2.0), (X[1], Y[1])))
    starts = jax.vmap(lambda w: made.init({**PARAMS, "w": w}))(jnp.ones((5, 2)))
    assert starts.params["w"].shape == (5, 2)

    def score(lr: Any) -> jax.Array:
        return silent(final(lr).params, (X[1], Y[1]))[0]

    slope = (score(0.5 + 1e-5) - score(0.5 - 1e-5)) / 2e-5
    assert float(jax.grad(score)(0.5)) == pytest.approx(float(slope), rel=1e-7)


@both
def test_what_is_not_finite_leaves_the_belief_as_it_was(room: Any) -> None:
    drift = {diag_fisher: {"transition_sd": 0.3}, dense_fisher: {"transition_cov": 0.09}}[room]
    made = room.build(mean, 1.0, **drift)
    before = made.update(made.init(PARAMS), (X[0], Y[0]))
    for bad in (
        (X[1].at[2, 0].set(jnp.nan), Y[1]),
        (X[1], Y[1].at[0].set(jnp.inf)),
        (1e200 * X[1], Y[1]),  # finite, but its squares are not
    ):
        after = made.update(before, bad)
        assert not after.ok and after.aux["eta"].shape == (4, 1)
        for field in ("params", "step", "log_likelihood", "sd_diag" if room is diag_fisher else "cov"):
            assert same(getattr(after, field), getattr(before, field)), field
    onward = made.update(after, (X[1], Y[1]))
    assert onward.ok and same(onward, made.update(before, (X[1], Y[1])))
    hidden = room.build(lambda p, b: (mean(p, b)[0] + 0.0 * jnp.sum(jnp.log(b[0])), None), 1.0, **drift)
    assert not hidden.update(before, (X[1], Y[1])).ok
    for rate in (-1.0, float("nan")):
        wrong = room.build(silent, lambda step, rate=rate: jnp.asarray(rate), **drift)
        assert not wrong.update(before, (X[1], Y[1])).ok


@both
def test_a_refused_batch_in_place_keeps_the_belief(room: Any) -> None:
    made = room.build(silent, 1.0)
    state = made.update(made.init(PARAMS), (X[0], Y[0]))
    wanted = jax.tree.map(np.asarray, belief(state))
    state = made.update(state, (X[1], Y[1].at[0].set(jnp.nan)), inplace=True)
    assert not state.ok and same(belief(state), wanted)


def test_a_dense_covariance_that_lost_its_sign_is_refused() -> None:
    made = dense_fisher.build(silent, 1.0)
    state = credo.replace(made.init(PARAMS), cov=jnp.diag(jnp.array([1.0, -1e-3, 1.0])))
    assert not made.update(state, (X[0], Y[0])).ok


def test_draws_have_the_moments_of_the_belief() -> None:
    count = 40_000
    diag = diag_fisher.init(PARAMS, {"b": 2.0, "w": jnp.array([0.1, 3.0])})
    draws = diag_fisher.sample(diag, (count,), key=jax.random.key(0))
    flat = np.column_stack([draws["b"], draws["w"]])
    check(flat, [0.0, 0.5, -0.5], np.diag([4.0, 0.01, 9.0]))
    root = np.array([[1.0, 0.0, 0.0], [0.8, 0.6, 0.0], [-0.5, 0.3, 0.4]])
    dense = dense_fisher.init(PARAMS, root @ root.T)
    draws = dense_fisher.sample(dense, (count // 2, 2), key=1)
    assert draws["w"].shape == (count // 2, 2, 2) and draws["b"].shape == (count // 2, 2)
    flat = np.column_stack([draws["b"].reshape(-1), draws["w"].reshape(-1, 2)])
    check(flat, [0.0, 0.5, -0.5], root @ root.T)


def check(draws: np.ndarray, mean: Any, cov: np.ndarray) -> None:
    """Within 5 standard errors of the mean and of every covariance: var(S_ij) = (S_ii S_jj + S_ij^2) / n."""
    n, var = len(draws), np.diag(cov)
    assert np.all(np.abs(draws.mean(axis=0) - mean) < 5 * np.sqrt(var / n))
    slack = 5 * np.sqrt((np.outer(var, var) + cov**2) / n)
    assert np.all(np.abs(np.cov(draws.T) - cov) < slack)


@both
def test_one_draw_is_like_the_parameters_and_needs_a_key(room: Any) -> None:
    state = room.init(PARAMS)
    draw = room.sample(state, key=jax.random.key(0))
    assert jax.tree.map(jnp.shape, draw) == jax.tree.map(jnp.shape, PARAMS)
    assert not same(draw, room.sample(state, key=jax.random.key(1)))
    with pytest.raises(credo.CredoError, match="pass key="):
        room.sample(state)


@both
def test_the_functions_of_the_module_are_those_of_the_transform(room: Any) -> None:
    made = room.build(mean, 0.5)
    state = made.update(made.init(PARAMS), (X[0], Y[0]))
    assert same(state, room.update(room.init(PARAMS), (X[0], Y[0]), mean, 0.5))
    init, update = made  # a pair
    assert update.keywords["lr"] == 0.5 and same(init(PARAMS), room.init(PARAMS))
    assert same(pickle.loads(pickle.dumps(state)), state)


def test_standard_deviations_by_number_leaf_and_entry() -> None:
    by_leaf = diag_fisher.init(PARAMS, {"b": 2.0, "w": 0.5}).sd_diag
    near(by_leaf, {"b": jnp.asarray(2.0), "w": jnp.full(2, 0.5)})
    by_entry = diag_fisher.init(PARAMS, {"b": 2.0, "w": jnp.array([0.5, 0.0])})
    near(by_entry.sd_diag["w"], jnp.array([0.5, 0.0]))
    deep = {"first": PARAMS, "second": PARAMS}
    near(diag_fisher.init(deep, {"first": 1.0, "second": 3.0}).sd_diag["second"]["w"], jnp.full(2, 3.0))
    # a parameter without doubt stays where it is
    after = diag_fisher.update(by_entry, (X[0], Y[0]), silent, 1.0)
    assert float(after.params["w"][1]) == -0.5 and float(after.params["w"][0]) != 0.5
    drifting = diag_fisher.build(silent, 0.0, transition_sd={"b": 0.0, "w": 3.0}, init_sds=4.0)
    near(drifting.update(drifting.init(PARAMS), (X[0], Y[0])).sd_diag, {"b": 4.0, "w": jnp.full(2, 5.0)})


@both
def test_every_leaf_keeps_its_dtype(room: Any) -> None:
    def likelihood(params: Any, batch: Any) -> tuple[jax.Array, None]:
        eta = batch[0].astype(jnp.float32) @ params["w"] + params["b"].astype(jnp.float32)
        return -jnp.mean((batch[1].astype(jnp.float32) - eta) ** 2), None

    params = {"b": jnp.zeros((), jnp.float64), "w": jnp.zeros(2, jnp.float32)}
    state = room.update(room.init(params), (X[0], Y[0]), likelihood, 1.0)
    assert state.params["b"].dtype == jnp.float64 and state.params["w"].dtype == jnp.float32
    assert state.ok and state.log_likelihood.dtype == jnp.float64


def test_the_learner_runs_over_a_stream_and_forecasts() -> None:
    model = credo.joint(credo.Model(lambda p, x: x @ p["w"] + p["b"], credo.Normal(1.0)))
    learner = diag_fisher.learner(model, 4.0)
    end, trace = credo.run(learner, learner.init(PARAMS), X, Y)
    assert bool(jnp.all(trace.ok)) and bool(jnp.all(end.cov.diag() < 1.0))
    assert learner.forecast(end, X[0]).mean.shape == (4,)
    skipped, info = learner.step(end, X[0], jnp.full(4, jnp.nan))
    assert not info.ok and same(skipped.mean, end.mean)


def test_a_learner_leaves_out_a_missing_row_and_refuses_a_negative_rate() -> None:
    model = credo.joint(credo.Model(lambda p, x: x @ p["w"] + p["b"], credo.Normal(1.0)))
    learner = diag_fisher.learner(model, 4.0)
    prior = learner.init(PARAMS)
    left, _ = learner.step(prior, X[0], Y[0].at[1].set(jnp.nan))
    rest = jnp.array([0, 2, 3])
    near(left.mean, diag_fisher.learner(model, 3.0).step(prior, X[0][rest], Y[0][rest])[0].mean)
    with pytest.raises(credo.CredoError, match=r"lr must be finite and at least 0; got -1.0"):
        diag_fisher.learner(model, -1.0)
