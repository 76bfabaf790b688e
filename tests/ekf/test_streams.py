"""At every step of eight streams: the transforms, a recursion written out in NumPy, and the learners."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.ekf import reference
from tests.ekf.reference import STREAMS, Stream, flat

import credo
from credo.ekf import dense_fisher, diag_fisher

TOLERANCE = 1e-12


def close(ours: Any, wanted: Any) -> None:
    np.testing.assert_allclose(np.asarray(ours), wanted, rtol=TOLERANCE, atol=TOLERANCE)


def transform(stream: Stream, room: Any) -> credo.ekf.Transform[Any]:
    function = reference.log_likelihood(stream, jnp)
    if room is diag_fisher:
        return diag_fisher.build(function, stream.lr, stream.drift, stream.per_sample, stream.sds)
    cov = np.diag(flat(stream.sd_tree()) ** 2) if isinstance(stream.sds, dict) else stream.sds**2
    return dense_fisher.build(function, stream.lr, stream.drift**2, stream.per_sample, cov)


def params(stream: Stream) -> dict[str, jax.Array]:
    return {name: jnp.asarray(leaf) for name, leaf in stream.params().items()}


@pytest.mark.table
@pytest.mark.parametrize("name", STREAMS)
def test_the_diagonal_filter_is_its_recursion(name: str) -> None:
    stream = STREAMS[name]
    made = transform(stream, diag_fisher)
    state = made.init(params(stream))
    close(flat(state.sd_diag), flat(stream.sd_tree()))
    for x, y, (mean, sd, value) in zip(*stream.data(), reference.diagonal(stream), strict=True):
        state = made.update(state, (x, y))
        close(flat(state.params), mean)
        close(flat(state.sd_diag), sd)
        close(state.log_likelihood, value)
    assert state.ok and int(state.step) == stream.steps


@pytest.mark.table
@pytest.mark.parametrize("name", STREAMS)
def test_the_dense_filter_is_its_recursion(name: str) -> None:
    stream = STREAMS[name]
    made = transform(stream, dense_fisher)
    state = made.init(params(stream))
    for x, y, (mean, cov, value) in zip(*stream.data(), reference.dense(stream), strict=True):
        state = made.update(state, (x, y))
        close(flat(state.params), mean)
        close(state.cov, cov)
        close(state.log_likelihood, value)
    assert state.ok and int(state.step) == stream.steps


def model(stream: Stream) -> credo.Model:
    def apply(params: Any, x: jax.Array) -> jax.Array:
        if stream.hidden:
            hidden = jnp.tanh(x @ params["w1"] + params["b1"])
            outputs: jax.Array = hidden @ params["w2"] + params["b2"]
            return outputs
        eta: jax.Array = x @ params["w"] + params["b"]
        return eta

    kinds = {
        "bernoulli": credo.Bernoulli(),
        "categorical": credo.Categorical(3),
        "normal": credo.Normal(reference.VAR),
    }
    return credo.Model(apply, kinds[stream.kind])


# one stream a kind of observation; with drift, a schedule, and sds by leaf among them
AS_LEARNERS = ["bernoulli-mlp-4-sds", "categorical-mlp-8-schedule-drift", "normal-linear-1-sds"]


@pytest.mark.table
@pytest.mark.parametrize("name", AS_LEARNERS)
@pytest.mark.parametrize("room", [diag_fisher, dense_fisher], ids=["diag", "dense"])
def test_the_learner_is_the_transform(name: str, room: Any) -> None:
    stream = STREAMS[name]
    drift = stream.drift if room is diag_fisher else stream.drift**2
    single = stream.batch == 1
    learner = room.learner(model(stream) if single else credo.joint(model(stream)), stream.lr, drift)
    variances = {key: leaf**2 for key, leaf in stream.sd_tree().items()}
    belief = learner.init(params(stream), var=variances)
    made = transform(stream, room)
    state = made.init(params(stream))
    for x, y in zip(*stream.data(), strict=True):
        state = made.update(state, (x, y))
        belief, info = learner.step(belief, x[0] if single else x, jnp.asarray(y[0] if single else y))
        assert info.ok
        close(belief.mean, flat(state.params))
        if room is diag_fisher:
            close(jnp.sqrt(belief.cov.diag()), flat(state.sd_diag))
        else:
            close(belief.cov.dense(), state.cov)


def test_the_learner_is_built_of_parts_that_can_be_named() -> None:
    stream = STREAMS["bernoulli-linear-4-drift"]
    joint = credo.joint(model(stream))
    made = diag_fisher.learner(joint, 0.8, stream.drift)
    parts = credo.RecursiveLearner(
        joint,
        credo.Diagonal(),
        credo.LinearizedEmpiricalFisher(),
        credo.BONGRule(gain="kept"),
        credo.RandomWalk(stream.drift**2),
    )
    belief = other = made.init(params(stream), var=0.25)
    for x, y in zip(*stream.data(), strict=True):
        belief, _ = made.step(belief, x, jnp.asarray(y))
        other, _ = parts.step(other, x, jnp.asarray(y), weight=0.8 / stream.batch)
    close(belief.mean, other.mean)
    close(belief.cov.diag(), other.cov.diag())


def test_a_matrix_of_drift() -> None:
    stream = STREAMS["categorical-linear-4-schedule"]
    root = np.random.default_rng(5).normal(size=(12, 12)) * 0.1
    noise = root @ root.T
    assert isinstance(stream.sds, float)
    made = dense_fisher.build(
        reference.log_likelihood(stream, jnp), stream.lr, noise, stream.per_sample, stream.sds**2
    )
    learner = dense_fisher.learner(credo.joint(model(stream)), stream.lr, noise)
    state, belief = made.init(params(stream)), learner.init(params(stream), var=stream.sds**2)
    for x, y, (mean, cov, _) in zip(*stream.data(), reference.dense(stream, noise), strict=True):
        state = made.update(state, (x, y))
        belief, _ = learner.step(belief, x, jnp.asarray(y))
        close(flat(state.params), mean)
        close(state.cov, cov)
        close(belief.cov.dense(), cov)


def test_many_rows_are_folded_by_chunks_to_the_same_result() -> None:
    # 4,101 rows of 4 numbers: more rows than parameters (dense), several at once and a remainder (diag)
    stream = Stream("normal", 0, 4101, drift=0.1, steps=2)
    for room, recursion in ((diag_fisher, reference.diagonal), (dense_fisher, reference.dense)):
        made = transform(stream, room)
        state = made.init(params(stream))
        for x, y, (mean, spread, value) in zip(*stream.data(), recursion(stream), strict=True):
            state = made.update(state, (x, y))
            close(flat(state.params), mean)
            close(flat(state.sd_diag) if room is diag_fisher else state.cov, spread)
            close(state.log_likelihood, value)
            assert state.aux.shape == (4101, 1, 1)


def test_rows_of_a_wide_model_are_scanned_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diag_fisher, "_AT_ONCE", 0)
    stream = Stream("bernoulli", 3, 7, drift=0.1, steps=3, reduce="sum")
    made = transform(stream, diag_fisher)
    state = made.init(params(stream))
    for x, y, (mean, sd, value) in zip(*stream.data(), reference.diagonal(stream), strict=True):
        state = made.update(state, (x, y))
        close(flat(state.params), mean)
        close(flat(state.sd_diag), sd)
        close(state.log_likelihood, value)


def test_the_memory_of_an_update_is_that_of_the_parameters() -> None:
    def likelihood(w: jax.Array, batch: Any) -> tuple[jax.Array, None]:
        return -jnp.mean((batch[1] - jnp.tanh(batch[0] @ w).sum(axis=-1)) ** 2), None

    made = diag_fisher.build(likelihood, 1.0)
    state = jax.eval_shape(made.init, jax.ShapeDtypeStruct((200, 100), jnp.float64))
    used = []
    for count in (8, 64):
        rows = tuple(jax.ShapeDtypeStruct((count, *tail), jnp.float64) for tail in ((200,), ()))
        program = jax.jit(lambda state, batch: made.update(state, batch)).lower(state, rows).compile()
        analysis: Any = program.memory_analysis()
        used.append(analysis.temp_size_in_bytes)
    assert used[1] - used[0] < 8 * 20_000, used  # 56 more gradients would take 56 times that
    assert used[1] < 6 * 8 * 20_000, used
