"""Training of operators: what it reaches, its floor, and taking it up again."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.streams.setups import bitwise

import credo
from credo.core.errors import CredoError, FormatError
from credo.core.types import Array
from credo.flows import (
    History,
    LinearGaussianTasks,
    LinearSystemTasks,
    Operator,
    Plan,
    StaticTasks,
    train,
    validate,
)
from credo.flows.objective import mismatch
from credo.flows.simulated import Simulation
from credo.flows.storage import read_training, write_training
from credo.flows.train import _begin

TASKS = LinearGaussianTasks(
    jnp.array([[0.9, 0.2], [0.0, 0.7]]), 0.5, jnp.array([[1.0, 0.5]]), 0.3, length=5, particles=32
)
OPERATOR = Operator(dim=2, base=None, width=2, hidden=16, embedding=0)
PLAN = Plan(steps=90, batch=4, pool=8, every=30, sequences=8, stages=4, learning_rate=1e-2)


@pytest.mark.optimised
def test_training_reaches_the_floor_from_above_and_goes_on_bit_by_bit(tmp_path: Path) -> None:
    seen: list[History] = []
    whole = train(TASKS, OPERATOR, plan=PLAN, key=3, out=tmp_path / "whole", progress=seen.append)
    course = seen[-1]
    checks = [np.mean(np.subtract(check["loss"], check["floor"])) for check in course.checks]
    # the filter's own evidence is the least that the loss can be, and the identity is far from it
    assert course.steps == 90 and len(checks) == 3
    assert np.mean(course.loss[:10]) - np.mean(course.floor[:10]) > 0.1
    assert 0 < checks[-1] < 0.1
    assert credo.flows.load_operator(tmp_path / "whole" / "operator.flow", dim=2) == whole

    def stop(history: History) -> None:
        if history.steps == 60:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(TASKS, OPERATOR, plan=PLAN, key=3, out=tmp_path / "parts", progress=stop)
    parts = train(TASKS, OPERATOR, plan=PLAN, key=3, out=tmp_path / "parts")
    assert parts == whole
    with pytest.raises(FormatError, match="another plan"):
        train(TASKS, OPERATOR, plan=PLAN, steps=91, key=3, out=tmp_path / "parts")
    with pytest.raises(FormatError, match="another key"):
        train(TASKS, OPERATOR, plan=PLAN, key=4, out=tmp_path / "parts")
    with pytest.raises(FormatError, match="another tasks"):
        other = credo.replace(TASKS, transition=2.0 * TASKS.transition)
        train(other, OPERATOR, plan=PLAN, key=3, out=tmp_path / "parts")


def test_a_training_without_validation_comes_back_from_its_file(tmp_path: Path) -> None:
    state = _begin(TASKS, OPERATOR, PLAN, jax.random.key(0))
    path, header, history = tmp_path / "training.safetensors", {"plan": "a plan"}, History((1.5,), (1.0,))
    write_training(path, header, state, history)
    bitwise(read_training(path, header, state), (state, history))


@pytest.mark.slow
def test_a_training_that_diverges_goes_back_with_half_the_rate_and_then_gives_up() -> None:
    plan = credo.replace(PLAN, learning_rate=1e4, steps=20, every=10, leap=0.5, warmup=0.0, sequences=0)
    with pytest.raises(CredoError, match="training diverges at step"):
        train(TASKS, OPERATOR, plan=plan, key=0)


@pytest.mark.slow
def test_samples_of_the_posterior_teach_as_well() -> None:
    plan = credo.replace(PLAN, loss="likelihood", steps=60, every=60, sequences=0)
    seen: list[History] = []
    train(credo.replace(TASKS, targets=16), OPERATOR, plan=plan, key=1, progress=seen.append)
    assert np.mean(seen[0].loss[40:]) < np.mean(seen[0].loss[:10]) - 0.1


def test_settings_of_training_that_do_not_fit_are_refused() -> None:
    with pytest.raises(CredoError, match="pool must be a whole number at least 16"):
        Plan(pool=8)
    with pytest.raises(CredoError, match="loss must be one of"):
        Plan(loss="kl")  # type: ignore[arg-type]
    with pytest.raises(CredoError, match="dim must be that of the tasks, 2; the operator has 3"):
        train(TASKS, Operator(dim=3))
    with pytest.raises(CredoError, match="observation must have a column"):
        LinearGaussianTasks(jnp.eye(2), 1.0, jnp.eye(3), 1.0)
    assert LinearGaussianTasks(jnp.eye(2), 1.0, jnp.eye(2), 1.0, length=1, particles=4).dim == 2
    for least in ({"length": 0}, {"particles": 3}, {"targets": 0}):
        with pytest.raises(CredoError, match=f"{next(iter(least))} must be a whole number at least"):
            LinearGaussianTasks(jnp.eye(2), 1.0, jnp.eye(2), 1.0, **least)


@pytest.mark.slow
def test_every_sequence_has_a_linear_system_of_its_own_and_kalmans_map_is_at_the_floor_of_all() -> None:
    tasks = LinearSystemTasks(2, outputs=3, length=4, particles=16)
    first, second = (tasks.begin(key) for key in jax.random.split(jax.random.key(0)))
    assert not jnp.any(first.system.move == second.system.move)
    assert jnp.linalg.svd(first.system.move, compute_uv=False)[0] < 1
    after, stage = tasks.observe(first, jax.random.key(1))
    assert stage.y.shape == (3,) and jnp.all(stage.x[0] == first.system.look)
    assert tasks.advance(after, stage, stage.values, jax.random.key(2)).system == first.system
    flow = Operator(dim=2, width=1, hidden=1, embedding=0).begin()
    scores = validate(flow, flow.params, tasks, jax.random.key(3), sequences=6, stages=4)
    # sets have their moments exactly, so the map is Kalman's, and variances differ by 900
    np.testing.assert_allclose(scores["loss"], scores["floor"], rtol=0, atol=1e-8)
    with pytest.raises(CredoError, match="spread must be above 1 and finite; got 1"):
        LinearSystemTasks(2, spread=1.0)


@pytest.mark.slow
def test_a_static_task_knows_its_posterior() -> None:
    model = credo.Model(lambda z, x: z, credo.Normal(0.5))
    learner = credo.flows.pfbr(model, Operator(dim=1, width=2, hidden=4).begin(), particles=64)
    tasks = credo.flows.StaticTasks(
        learner, learner.init(jnp.zeros(1)), length=3, reservoir=2000, targets=400
    )

    def first(key: jax.Array) -> tuple[jax.Array, ...]:
        one, two = jax.random.split(key)
        _, stage = tasks.observe(tasks.begin(one), two)
        exact = credo.Normal(1.5).plugin(jnp.zeros(1)).log_prob(stage.y.reshape(1))
        return stage.targets.mean() - stage.y.sum() / 1.5, stage.targets.var(), stage.floor + exact

    gap, var, floor = jax.jit(jax.vmap(first))(jax.random.split(jax.random.key(0), 8))
    # posterior variance 1/3, with 400 draws a task; the evidence has the error of 2000 weighted draws
    assert jnp.max(jnp.abs(gap)) < 0.15
    assert jnp.max(jnp.abs(var - 1 / 3)) < 0.12
    assert jnp.max(jnp.abs(floor)) < 0.25


def test_the_mismatch_of_a_set_is_zero_where_the_mass_moves_as_the_likelihood_says() -> None:
    # two clumps: a likelihood ratio of 3 moves a quarter of all particles from one to the other
    values = jnp.repeat(jnp.array([[-1.0], [1.0]]), 20, axis=0)
    moved, equal = values.at[10:20].set(1.0), jnp.full(40, -jnp.log(40.0))
    logs = jnp.where(values[:, 0] > 0, jnp.log(3.0), 0.0)
    assert float(mismatch(values, moved, equal, logs)) < 1e-12
    assert float(mismatch(values, values, equal, logs)) > 0.01
    with pytest.raises(CredoError, match="matching"):
        Plan(matching=-1.0)


@pytest.mark.slow
def test_a_static_task_goes_on_until_its_end_unless_it_is_lost_or_few_draws_count() -> None:
    model = credo.Model(lambda z, x: z, credo.Normal(0.5))
    learner = credo.flows.pfbr(model, Operator(dim=1, width=2, hidden=4).begin(), particles=8)
    tasks = StaticTasks(learner, learner.init(jnp.zeros(1)), length=3, reservoir=200, targets=2)
    task, stage = tasks.observe(tasks.begin(jax.random.key(1)), jax.random.key(2))
    moved, key, even = jnp.arange(8.0)[:, None], jax.random.key(3), jnp.full(200, -jnp.log(200.0))

    def after(values: Array, log_weights: Array, t: int) -> Simulation:
        belief, state = credo.replace(task.belief, t=jnp.int32(t)), task.state
        shown = credo.replace(task, belief=belief, state=credo.replace(state, log_weights=log_weights))
        following = tasks.advance(shown, stage, values, key)
        assert isinstance(following, Simulation)
        return following

    few = jnp.where(jnp.arange(200) < 3, -jnp.log(3.0), -1000.0)  # just above one draw in a hundred
    for log_weights in (even, few):
        same = after(moved, log_weights, 2)
        assert jnp.array_equal(same.belief.values, moved) and int(same.belief.t) == 2
        assert jnp.array_equal(same.truth, task.truth)
        assert jnp.array_equal(same.state.log_weights, log_weights)
    fewer = jnp.where(jnp.arange(200) < 1, 0.0, -1000.0)
    for values, log_weights, t in (
        (moved, even, 3),
        (moved.at[2].set(jnp.nan), even, 1),
        (moved, even.at[5].set(jnp.nan), 1),
        (moved, fewer, 1),
    ):
        new, begun = after(values, log_weights, t), tasks.begin(key)
        assert jnp.array_equal(new.truth, begun.truth) and int(new.belief.t) == 0
        assert jnp.array_equal(new.state.values, begun.state.values)
        assert jnp.array_equal(new.state.log_weights, begun.state.log_weights)
