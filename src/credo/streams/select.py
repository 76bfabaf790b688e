"""The choice of hyper-parameters by the log evidence of the stream itself, without held-out data."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, Literal, NamedTuple, TypeAlias, TypeVar, get_args

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.errors import CredoError, require_choice, require_integer
from credo.core.keys import as_key
from credo.core.parallel import Crew, TaskFailed, sentence_of
from credo.core.types import Array, Key, PyTree
from credo.learners import Learner
from credo.streams.run import run

__all__ = ["Selection", "select"]

L = TypeVar("L", bound=Learner[Any])
"""The kind of learner."""

B = TypeVar("B")
"""The kind of belief that the learner keeps."""

Search: TypeAlias = Literal["grid", "gradient"]
"""The way in which hyper-parameters are searched."""

Score: TypeAlias = Callable[[tuple[Array, ...], PyTree, PyTree], tuple[Array, Array]]
"""From hyper-parameters and a stream to the log evidence and the number of observations taken in."""


class Selection(NamedTuple, Generic[L, B]):
    """The hyper-parameters that `select` chose.

    Attributes:
        best: the hyper-parameters with the greatest log evidence.
        log_evidence: that evidence, in nats.
        learner, belief: the learner and belief built from them, before any data.
        table: every setting that was tried, with its log evidence: a list of dicts.
        failed: a sentence about each setting that raised an exception in a worker process; its evidence in
            the table is -inf.

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
    failed: tuple[str, ...] = ()


def select(  # noqa: PLR0913 - settings, each by its name
    build: Callable[..., tuple[L, B]],
    choices: Mapping[str, Sequence[float] | float],
    xs: PyTree,
    ys: PyTree,
    *,
    method: Search = "grid",
    steps: int = 50,
    rate: float = 0.1,
    key: Key | None = None,
    jobs: int | None = None,
) -> Selection[L, B]:
    """Maximise the total log evidence over hyper-parameters.

    Cost: the grid runs every combination at once, so its memory is the belief's times their number; with
    `jobs`, a belief for each worker, and some seconds to begin them. The gradient method runs the stream once
    a step, and keeps what its derivative needs of every observation.

    Arguments:
        build: `build(**hyper) -> (learner, belief)`; traced, so hyper-parameters come as arrays.
        choices: for "grid": the values of each hyper-parameter, all combinations of which are run side by
            side (one vmapped scan). For "gradient": the positive starting value of each.
        xs, ys: the stream, with a leading axis T.
        method: "grid", or "gradient" (Adam on their logarithms, through the whole scan).
        steps, rate: the number and size of the steps of the gradient method.
        key: a key, for learners that draw.
        jobs: for "grid": in how many worker processes, of one thread of XLA each, the settings are run one
            by one; None runs them side by side in this process. `build` and the stream are sent to them by
            cloudpickle (the extra `parallel`). The numbers do not depend on how many there are,
            bit by bit; beside those of one vmapped scan they may differ in the last digits. A script must
            call this below `if __name__ == "__main__":`.

    Returns:
        A `Selection`. The log evidence is -inf if it is not finite, and where fewer observations were
        taken in than by others, since updates that fail are rejected with evidence 0.

    Raises:
        CredoError: no log evidence is finite, a choice is not of the kind that the method needs, or `jobs` is
            for "gradient", whose steps follow each other.
        DataError: cloudpickle is missing.

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

    score = _scorer(build, tuple(names), one_key)
    failed: tuple[str, ...] = ()
    if jobs is not None:
        if method != "grid":
            raise CredoError(f"jobs needs method='grid'; got method={method!r}.", field="jobs")
        table, failed = _apart(
            functools.partial(_scorer, build, tuple(names), one_key), choices, xs, ys, jobs
        )
    elif method == "grid":
        table = _grid(score, choices, xs, ys)
    else:
        table = _climb(score, choices, xs, ys, steps, rate)
    most = max(1.0, *(row["accepted"] for row in table))
    for row in table:
        if row.pop("accepted") < most:
            row["log_evidence"] = -np.inf
    finite = [row for row in table if np.isfinite(row["log_evidence"])]
    if not finite:
        why = f": {failed[0]}" if failed else "."
        raise CredoError(f"no setting of {', '.join(names)} gives a finite log evidence on this stream{why}")
    winner = max(finite, key=lambda row: row["log_evidence"])
    best = {name: winner[name] for name in names}
    learner, belief = build(**best)
    return Selection(best, winner["log_evidence"], learner, belief, table, failed)


def _scorer(build: Callable[..., tuple[Any, Any]], names: tuple[str, ...], key: Array | None) -> Score:
    """The compiled function that scores a setting."""

    @jax.jit
    def score(values: tuple[Array, ...], xs: PyTree, ys: PyTree) -> tuple[Array, Array]:
        learner, belief = build(**dict(zip(names, values, strict=True)))
        trace = run(learner, belief, xs, ys, key=key)[1]
        return jnp.sum(trace.log_evidence), jnp.sum(trace.ok)

    return score


def _apart(
    scorer: Callable[[], Score],
    choices: Mapping[str, Sequence[float] | float],
    xs: PyTree,
    ys: PyTree,
    jobs: int,
) -> tuple[list[dict[str, float]], tuple[str, ...]]:
    """Each setting alone, in worker processes, and sentences about those that failed."""
    settings = [dict(zip(choices, row, strict=True)) for row in _rows(choices)]
    shares = [settings[start::jobs] for start in range(min(jobs, len(settings)))]

    with Crew(jobs) as crew:

        def scored(share: list[dict[str, float]]) -> list[tuple[float, float] | str]:
            try:
                return crew.call(functools.partial(_share, scorer, share, xs, ys))
            except TaskFailed as error:
                return [str(error)] * len(share)

        found = crew.each(scored, shares)
    table = []
    failed = []
    for number, setting in enumerate(settings):
        one = found[number % jobs][number // jobs]
        if isinstance(one, str):
            failed.append(f"{', '.join(f'{name}={value:g}' for name, value in setting.items())}: {one}.")
            one = (-np.inf, 0.0)
        table.append(setting | {"log_evidence": one[0], "accepted": one[1]})
    return table, tuple(failed)


def _share(
    scorer: Callable[[], Score], settings: list[dict[str, float]], xs: PyTree, ys: PyTree
) -> list[tuple[float, float] | str]:
    """The score of each of some settings, or a sentence about what it raised."""
    score = scorer()
    told = list[tuple[float, float] | str]()
    for setting in settings:
        try:
            value, accepted = score(tuple(jnp.asarray(one, float) for one in setting.values()), xs, ys)
            told.append((float(value), float(accepted)))
        except Exception as error:  # of a function of the user's
            told.append(sentence_of(error))
    return told


def _rows(choices: Mapping[str, Sequence[float] | float]) -> list[tuple[float, ...]]:
    """All combinations of the values."""
    columns: list[np.ndarray] = []
    for name, values in choices.items():
        column = np.asarray(values)
        if column.ndim != 1 or column.size == 0:
            raise CredoError(f"choices[{name!r}] must be a list of values for method='grid'; got {values!r}.")
        columns.append(column)
    return [tuple(map(float, row)) for row in itertools.product(*columns)]


def _grid(
    score: Score, choices: Mapping[str, Sequence[float] | float], xs: PyTree, ys: PyTree
) -> list[dict[str, float]]:
    names = list(choices)
    rows = _rows(choices)
    columns = tuple(jnp.asarray(column, float) for column in zip(*rows, strict=True))
    scores, accepted = map(np.asarray, jax.vmap(score, (0, None, None))(columns, xs, ys))
    settings = [dict(zip(names, row, strict=True)) for row in rows]
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
    import optax  # which only those wait for who climb

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
