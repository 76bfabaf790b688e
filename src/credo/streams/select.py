"""The choice of hyper-parameters by the log evidence of the stream itself, without held-out data."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, Literal, NamedTuple, TypeAlias, TypeVar, get_args

import jax
import jax.numpy as jnp
import numpy as np
import optax

from credo.core.errors import CredoError, require_choice, require_integer
from credo.core.keys import as_key
from credo.core.types import Array, Key, PyTree
from credo.learners import Learner
from credo.streams.run import run

__all__ = ["Selection", "select"]

L = TypeVar("L", bound=Learner[Any])
"""The kind of learner."""

B = TypeVar("B")
"""The kind of belief that the learner keeps."""

Search: TypeAlias = Literal["grid", "gradient"]
"""How hyper-parameters are searched."""

Score: TypeAlias = Callable[[tuple[Array, ...], PyTree, PyTree], tuple[Array, Array]]
"""From hyper-parameters and a stream to the log evidence and the number of observations taken in."""


class Selection(NamedTuple, Generic[L, B]):
    """The hyper-parameters that `select` chose.

    Attributes:
        best: the hyper-parameters with the greatest log evidence.
        log_evidence: that evidence, in nats.
        learner, belief: the learner and belief built from them, before any data.
        table: every setting that was tried, with its log evidence: a list of dicts.

    Example:
        >>> import credo
        >>> def build(var):
        ...     learner = credo.extended_kalman(credo.Model(lambda w, x: x @ w, credo.Normal(var)))
        ...     return learner, learner.init(jnp.zeros(1))
        >>> selection = credo.select(build, {"var": [0.1, 10.0]}, jnp.ones((9, 1)), jnp.ones(9))
        >>> len(selection.table), round(selection.best["var"], 3)
        (2, 0.1)
    """

    best: dict[str, float]
    log_evidence: float
    learner: L
    belief: B
    table: list[dict[str, float]]


def select(
    build: Callable[..., tuple[L, B]],
    choices: Mapping[str, Sequence[float] | float],
    xs: PyTree,
    ys: PyTree,
    *,
    method: Search = "grid",
    steps: int = 50,
    rate: float = 0.1,
    key: Key | None = None,
) -> Selection[L, B]:
    """Maximise the total log evidence over hyper-parameters.

    Cost: the grid runs every combination at once, so its memory is the belief's times their number. The
    gradient method runs the stream once a step, and keeps what its derivative needs of every observation.

    Arguments:
        build: `build(**hyper) -> (learner, belief)`; traced, so hyper-parameters come as arrays.
        choices: for "grid": the values of each hyper-parameter, all combinations of which are run side by
            side (one vmapped scan). For "gradient": the positive starting value of each.
        xs, ys: the stream, with a leading axis T.
        method: "grid", or "gradient" (Adam on their logarithms, through the whole scan).
        steps, rate: the number and size of the steps of the gradient method.
        key: a key, for learners that draw.

    Returns:
        A `Selection`. The log evidence is -inf where it is not finite, and where fewer observations were
        taken in than by others, since updates that fail are rejected with evidence 0.

    Raises:
        CredoError: no log evidence is finite, or a choice is not of the kind that the method needs.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> def build(q):
        ...     learner = credo.extended_kalman(model, dynamics=credo.RandomWalk(q))
        ...     return learner, learner.init(jnp.zeros(1))
        >>> sorted(credo.select(build, {"q": [1e-3, 1e-1]}, jnp.ones((9, 1)), jnp.ones(9)).best)
        ['q']
    """
    require_choice("method", method, get_args(Search))
    if not choices:
        raise CredoError("choices must name at least one hyper-parameter.")
    names = list(choices)
    one_key = None if key is None else as_key(key)

    @jax.jit
    def score(values: tuple[Array, ...], xs: PyTree, ys: PyTree) -> tuple[Array, Array]:
        learner, belief = build(**dict(zip(names, values, strict=True)))
        trace = run(learner, belief, xs, ys, key=one_key)[1]
        return jnp.sum(trace.log_evidence), jnp.sum(trace.ok)

    table = _grid(score, choices, xs, ys) if method == "grid" else _climb(score, choices, xs, ys, steps, rate)
    most = max(1.0, *(row["accepted"] for row in table))
    for row in table:
        if row.pop("accepted") < most:
            row["log_evidence"] = -np.inf
    finite = [row for row in table if np.isfinite(row["log_evidence"])]
    if not finite:
        raise CredoError(f"no setting of {', '.join(names)} gives a finite log evidence on this stream.")
    winner = max(finite, key=lambda row: row["log_evidence"])
    best = {name: winner[name] for name in names}
    learner, belief = build(**best)
    return Selection(best, winner["log_evidence"], learner, belief, table)


def _grid(
    score: Score, choices: Mapping[str, Sequence[float] | float], xs: PyTree, ys: PyTree
) -> list[dict[str, float]]:
    names = list(choices)
    columns_by_name: list[np.ndarray] = []
    for name, values in choices.items():
        column = np.asarray(values)
        if column.ndim != 1 or column.size == 0:
            raise CredoError(f"choices[{name!r}] must be a list of values for method='grid'; got {values!r}.")
        columns_by_name.append(column)
    rows = list(itertools.product(*columns_by_name))
    columns = tuple(jnp.asarray(column, float) for column in zip(*rows, strict=True))
    scores, accepted = map(np.asarray, jax.vmap(score, (0, None, None))(columns, xs, ys))
    settings = [dict(zip(names, map(float, row), strict=True)) for row in rows]
    return [
        setting | {"log_evidence": float(value), "accepted": float(count)}
        for setting, value, count in zip(settings, scores, accepted, strict=True)
    ]


def _climb(
    score: Score,
    choices: Mapping[str, Sequence[float] | float],
    xs: PyTree,
    ys: PyTree,
    steps: int,
    rate: float,
) -> list[dict[str, float]]:
    require_integer("steps", steps, 1)
    names = list(choices)
    for name, value in choices.items():
        if np.ndim(value) != 0 or not float(np.asarray(value)) > 0:
            raise CredoError(
                f"choices[{name!r}] must be one positive number for method='gradient'; got {value!r}."
            )
    logs = tuple(jnp.log(jnp.asarray(choices[name], float)) for name in names)
    climb = jax.jit(
        jax.value_and_grad(lambda logs: score(tuple(jnp.exp(v) for v in logs), xs, ys), has_aux=True)
    )
    optimizer = optax.adam(rate)
    state = optimizer.init(logs)
    table = []
    for _ in range(steps):
        (value, accepted), slope = climb(logs)
        values = {name: float(jnp.exp(v)) for name, v in zip(names, logs, strict=True)}
        table.append(values | {"log_evidence": float(value), "accepted": float(accepted)})
        if not all(np.isfinite(float(s)) for s in slope):
            break
        downhill = tuple(-s for s in slope)
        with jax.numpy_dtype_promotion("standard"):  # optax mixes Python numbers with its step count
            updates, state = optimizer.update(downhill, state, logs)
            logs = tuple(jax.tree.leaves(optax.apply_updates(logs, updates)))
    return table
