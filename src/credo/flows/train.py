"""Training of an operator: per update, from a pool of tasks at different stages."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, cast

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.errors import (
    CredoError,
    require_choice,
    require_integer,
    require_interval,
    require_nonnegative,
    require_positive,
)
from credo.core.keys import as_key
from credo.core.platforms import over_rows
from credo.core.records import record, replace, static_field
from credo.core.trees import all_finite, select
from credo.core.types import Array, Key, PyTree
from credo.flows.objective import Loss, stage_loss, validate
from credo.flows.operator import FlowOperator
from credo.flows.storage import History, description, digest, read_training, save_operator, write_training
from credo.flows.tasks import Stage, Tasks

if TYPE_CHECKING:
    import optax

__all__ = ["Plan", "Progress", "Training", "train"]

O = TypeVar("O", bound=FlowOperator)
"""The kind of operator."""

Progress: TypeAlias = Callable[[History], None]
"""The function that is called after every chunk of training."""

RETREATS = 8
"""The number of times in a row that training may go back before it gives up."""


@record
class Plan:
    """The settings of a training.

    Arguments:
        steps: the number of gradient steps.
        batch: how many tasks a step takes.
        pool: how many tasks wait at different stages, of which a step takes a random part.
        loss: "elbo" or "likelihood"; see `credo.flows.objective`.
        matching: what multiplies the squared distance of the moved particles from the particles that the
            likelihood reweighs, which is added to the loss; 0 adds nothing. For posteriors with modes.
        learning_rate: the largest learning rate; it rises over the first `warmup` share of the steps and then
            falls to 0 as a cosine.
        warmup: that share.
        schedule: "cosine", or "constant" for one learning rate throughout, as published.
        weight_decay: what multiplies the parameters that are added to their gradient, as published 1e-5.
        clip: the largest norm of a gradient.
        decay: how much of the averaged parameters stays in a step.
        every: how many steps make a chunk, after which progress is reported, validated and saved.
        sequences, stages: how many fresh sequences validate, and how many updates of each; 0 for none.
        patience: after how many chunks without a better validation loss training stops; None for never.
        leap: training goes back to the chunk before where the mean loss rises by more than this many nats.

    Raises:
        CredoError: a setting is out of its range.
    """

    steps: int = static_field(default=3000)
    batch: int = static_field(default=16)
    pool: int = static_field(default=64)
    loss: Loss = static_field(default="elbo")
    matching: float = static_field(default=0.0)
    learning_rate: float = static_field(default=2e-3)
    warmup: float = static_field(default=0.05)
    schedule: Literal["cosine", "constant"] = static_field(default="cosine")
    weight_decay: float = static_field(default=0.0)
    clip: float = static_field(default=1.0)
    decay: float = static_field(default=0.995)
    every: int = static_field(default=100)
    sequences: int = static_field(default=16)
    stages: int = static_field(default=25)
    patience: int | None = static_field(default=None)
    leap: float = static_field(default=50.0)

    def __post_init__(self) -> None:
        for name in ("steps", "batch", "every", "stages"):
            require_integer(name, getattr(self, name), 1)
        require_integer("pool", self.pool, self.batch)
        require_integer("sequences", self.sequences, 0)
        if self.patience is not None:
            require_integer("patience", self.patience, 1)
        require_choice("loss", self.loss, ["elbo", "likelihood"])
        require_choice("schedule", self.schedule, ["cosine", "constant"])
        for name in ("weight_decay", "matching"):
            require_nonnegative(name, getattr(self, name))
        for name in ("learning_rate", "clip", "leap"):
            require_positive(name, getattr(self, name))
        require_interval("warmup", self.warmup, 0.0, 1.0)
        require_interval("decay", self.decay, 0.0, 1.0)

    @property
    def optimizer(self) -> optax.GradientTransformation:
        """Adam with clipped gradients and the schedule of the learning rate."""
        import optax

        rise = max(1, round(self.warmup * self.steps))
        schedule = optax.warmup_cosine_decay_schedule(
            0.0, self.learning_rate, rise, max(rise + 1, self.steps)
        )
        rates = schedule if self.schedule == "cosine" else self.learning_rate
        parts = [optax.clip_by_global_norm(self.clip), optax.adam(rates)]
        if self.weight_decay > 0:
            parts.insert(1, optax.add_decayed_weights(self.weight_decay))
        return optax.chain(*parts)


NO_LOSS = 1e18
"""The loss of the best validation before there is one: a file holds no number that is larger."""


@record
class Training:
    """The state of a training.

    Attributes:
        params, average: the parameters, and their exponential average.
        optimizer: the state of the optimiser.
        tasks: the pool of tasks.
        key: key data; step s folds in s.
        step: the number of steps so far.
        rate: what multiplies the learning rate, 1 until training has gone back.
        best, best_loss: the averaged parameters of the best validation, and its loss.
        stale: the chunks since then.
    """

    params: PyTree
    average: PyTree
    optimizer: PyTree
    tasks: PyTree
    key: Array
    step: Array
    rate: Array
    best: PyTree
    best_loss: Array
    stale: Array


def train(
    tasks: Tasks[Any],
    operator: O,
    *,
    steps: int | None = None,
    plan: Plan | None = None,
    key: Key = 0,
    out: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> O:
    """Train an operator on tasks.

    Every step takes a batch of tasks from the pool, lets each observe, and follows the gradient of the mean
    loss of their updates. If a gradient is not finite, the step is skipped. Where a chunk of steps ends
    with parameters that are not finite or a loss that has leapt, training goes back to its beginning, with
    other draws and half the learning rate.

    Arguments:
        tasks: where updates come from.
        operator: an `Operator`, or another one; parameters that it has are where training begins.
        steps: the number of steps, in place of the plan's.
        plan: the settings of training.
        key: the key of all draws.
        out: a folder for the training and the operator; a training that stands there is taken up again, and
            gives the same bits as one that was never interrupted.
        progress: a function that is called with the `History` after every chunk.

    Returns:
        The operator with the averaged parameters of the best validation, or the last ones without one.

    Raises:
        CredoError: the tasks have another dimension, training in `out` had other settings, or the loss
            diverges whatever the learning rate.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> tasks = credo.flows.LinearGaussianTasks(0.9 * jnp.eye(2), 1.0, jnp.eye(2), 1.0, particles=16)
        >>> plan = credo.flows.Plan(steps=20, every=10, batch=2, pool=4, sequences=2, stages=2)
        >>> operator = credo.flows.train(tasks, credo.flows.Operator(dim=2, width=2, hidden=4), plan=plan)
        >>> operator.params is None
        False
    """
    plan = Plan() if plan is None else plan
    plan = plan if steps is None else replace(plan, steps=steps)
    if tasks.dim != operator.dim:
        raise CredoError(
            f"dim must be that of the tasks, {tasks.dim}; the operator has {operator.dim}.", field="dim"
        )
    blank: Any = replace(cast(Any, operator), params=None)
    chunk, check = _compiled(tasks, blank, plan)
    state = _begin(tasks, operator, plan, as_key(key))
    history = History()
    file = None if out is None else Path(out) / "training.safetensors"
    header = {
        "operator": description(operator),
        "plan": _settings(plan),
        "tasks": f"{tasks!r}, numbers {digest(tasks)}",
        "key": np.asarray(jax.random.key_data(as_key(key))).tolist(),
    }
    if file is not None and file.exists():
        state, history = read_training(file, header, state)
    retreats = 0
    while int(state.step) < plan.steps and not _weary(plan, state):
        after, losses, floors = chunk(state)
        loss = float(np.mean(losses))
        before = history.last_loss
        sound = bool(all_finite(after.params)) and np.isfinite(loss)
        if not sound or (before is not None and loss > before + plan.leap):
            retreats += 1
            if retreats > RETREATS:
                raise CredoError(
                    f"training diverges at step {int(state.step)}, with a loss of {loss:g}: try a smaller "
                    f"`learning_rate` than {plan.learning_rate:g}.",
                    field="learning_rate",
                )
            key_data = jax.random.key_data(jax.random.fold_in(as_key(state.key), retreats))
            state = replace(state, rate=state.rate / 2, key=key_data)
            history = history.retreat(int(state.step), loss)
            continue
        retreats = 0
        state = after
        history = history.add(int(after.step), losses, floors)
        if plan.sequences:
            scores = {name: np.asarray(column) for name, column in check(state.average).items()}
            state = _judge(state, float(np.mean(scores["loss"])))
            history = history.validate(int(state.step), scores)
        if file is not None:
            write_training(file, header, state, history)
        if progress is not None:
            progress(history)
    params = state.best if plan.sequences and bool(state.best_loss < NO_LOSS) else state.average
    result: O = replace(cast(Any, operator), params=params)
    if out is not None:
        notes = {"plan": _settings(plan), "tasks": repr(tasks), "steps": int(state.step)}
        save_operator(Path(out) / "operator.flow", result, notes=notes)
    return result


def _begin(tasks: Tasks[Any], operator: FlowOperator, plan: Plan, key: Array) -> Training:
    keys = jax.random.split(key, 3)
    params = operator.start(keys[0]) if operator.params is None else operator.params
    pool = over_rows(tasks.begin, jax.random.split(keys[1], plan.pool))
    return Training(
        params=params,
        average=params,
        optimizer=plan.optimizer.init(params),
        tasks=pool,
        key=jax.random.key_data(keys[2]),
        step=jnp.zeros((), jnp.int32),
        rate=jnp.ones((), jnp.float32),
        best=params,
        best_loss=jnp.asarray(NO_LOSS, jnp.float32),
        stale=jnp.zeros((), jnp.int32),
    )


def _compiled(
    tasks: Tasks[Any], operator: FlowOperator, plan: Plan
) -> tuple[
    Callable[[Training], tuple[Training, np.ndarray, np.ndarray]], Callable[[PyTree], dict[str, Array]]
]:
    """The functions that train for a chunk, and that validate."""
    optimizer = plan.optimizer

    def batch_loss(params: PyTree, stages: Any) -> tuple[Array, Array]:
        def one(stage: Stage) -> tuple[Array, Array]:
            return stage_loss(operator, params, tasks, stage, plan.loss, plan.matching)

        if plan.batch == 1:  # a long chain takes half the time without an axis for the batch
            value, last = one(jax.tree.map(lambda leaf: leaf[0], stages))
            return value, last[None]
        losses, new = over_rows(one, stages)
        return jnp.mean(losses), new

    def step(state: Training, _: None) -> tuple[Training, tuple[Array, Array]]:
        keys = jax.random.split(jax.random.fold_in(as_key(state.key), state.step), 3)
        places = jax.random.permutation(keys[0], plan.pool)[: plan.batch]
        chosen = jax.tree.map(lambda leaf: leaf[places], state.tasks)
        seen, stages = over_rows(tasks.observe, chosen, jax.random.split(keys[1], plan.batch))
        (loss, new), slopes = jax.value_and_grad(batch_loss, has_aux=True)(state.params, stages)
        sound = all_finite(slopes) & jnp.isfinite(loss)
        with jax.numpy_dtype_promotion("standard"):  # what optax needs
            moves, optimizer_state = optimizer.update(slopes, state.optimizer, state.params)
        params = jax.tree.map(lambda p, move: p + state.rate.astype(p.dtype) * move, state.params, moves)
        params, optimizer_state = select(sound, (params, optimizer_state), (state.params, state.optimizer))
        count = state.step.astype(jnp.float32)
        share = jnp.minimum(plan.decay, (1.0 + count) / (10.0 + count))
        average = jax.tree.map(
            lambda old, now: share.astype(now.dtype) * old + (1 - share).astype(now.dtype) * now,
            state.average,
            params,
        )
        after = over_rows(tasks.advance, seen, stages, new, jax.random.split(keys[2], plan.batch))
        pool = jax.tree.map(lambda leaf, rows: leaf.at[places].set(rows), state.tasks, after)
        pool = select(sound, pool, state.tasks)
        new_state = replace(
            state, params=params, average=average, optimizer=optimizer_state, tasks=pool, step=state.step + 1
        )
        return new_state, (loss, jnp.mean(stages.floor))

    def several(state: Training, count: int) -> tuple[Training, tuple[Array, Array]]:
        return jax.lax.scan(step, state, None, length=count)

    run = jax.jit(several, static_argnums=1)

    def chunk(state: Training) -> tuple[Training, np.ndarray, np.ndarray]:
        after, (losses, floors) = run(state, min(plan.every, plan.steps - int(state.step)))
        return after, np.asarray(losses), np.asarray(floors)

    @jax.jit
    def check(params: PyTree) -> dict[str, Array]:
        return validate(
            operator,
            params,
            tasks,
            jax.random.key(20190817),
            sequences=plan.sequences,
            stages=plan.stages,
            loss=plan.loss,
        )

    return chunk, check


def _judge(state: Training, loss: float) -> Training:
    """The state after a validation: with the averaged parameters as the best if they are."""
    better = loss < float(state.best_loss)
    if not better:
        return replace(state, stale=state.stale + 1)
    best_loss = jnp.asarray(loss, jnp.float32)
    return replace(state, best=state.average, best_loss=best_loss, stale=jnp.zeros((), jnp.int32))


def _weary(plan: Plan, state: Training) -> bool:
    return plan.patience is not None and int(state.stale) >= plan.patience


def _settings(plan: Plan) -> dict[str, object]:
    return {f.name: getattr(plan, f.name) for f in dataclasses.fields(cast(Any, plan))}
