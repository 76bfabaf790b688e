"""The settings of a training as plain data, as in a TOML file, and the records that they stand for."""

from __future__ import annotations

import dataclasses
import runpy
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.errors import CredoError, DataError, require_choice, require_integer
from credo.core.extensions import extensions, missing
from credo.core.integers import LARGEST_SEED
from credo.flows.operator import FlowOperator, Operator
from credo.flows.tasks import LinearGaussianTasks, LinearSystemTasks, Tasks
from credo.flows.train import Plan

__all__ = ["Settings", "read_settings"]

_TASKS: dict[str, type] = {"linear-gaussian": LinearGaussianTasks, "linear-systems": LinearSystemTasks}
_OPERATORS: dict[str, type] = {"affine": Operator}
# The entry points of kinds that other distributions bring.
_MORE_TASKS = "credo.flows.tasks"
_MORE_OPERATORS = "credo.flows.operators"

_ARRAYS = ("transition", "transition_cov", "observation", "observation_cov", "initial_cov")


class Settings(NamedTuple):
    """The operator to train, the tasks to train it on, and the plan of training.

    Attributes:
        tasks: the tasks.
        operator: the operator before training.
        plan: the settings of training.
        seed: the seed of all draws.
        plain: the same as JSON, complete: with the numbers of matrices that came from files.
    """

    tasks: Tasks[Any]
    operator: FlowOperator
    plan: Plan
    seed: int
    plain: dict[str, Any]


def read_settings(raw: Mapping[str, Any], folder: str | Path = ".") -> Settings:
    """The records that plain settings stand for.

    There are three tables. `tasks` has a `kind`: "linear-gaussian" (`LinearGaussianTasks`), "linear-systems"
    (`LinearSystemTasks`), or "python", with `file` and `function`, which makes tasks of any kind. `operator`
    has the `kind` "affine" (`Operator`). Other distributions bring more kinds by the entry points
    `credo.flows.tasks` and `credo.flows.operators`; credo-papers has the tasks "sequences" and the operator
    "published". `training` has the fields of `Plan`, and `seed`. Everything else is a field of the record. A
    matrix is a list of rows, or the text "FILE.npz:NAME".

    Arguments:
        raw: the tables.
        folder: where files are looked for.

    Returns:
        The settings.

    Raises:
        CredoError: a name is unknown, or a value is not allowed.
        DataError: a file cannot be read.

    Example:
        >>> settings = read_settings(
        ...     {
        ...         "tasks": {
        ...             "kind": "linear-gaussian",
        ...             "transition": [[0.9]],
        ...             "transition_cov": 0.2,
        ...             "observation": [[1.0]],
        ...             "observation_cov": 1.0,
        ...         },
        ...         "training": {"steps": 100},
        ...     }
        ... )
        >>> settings.operator.dim, settings.plan.steps, settings.tasks.particles
        (1, 100, 256)
    """
    known = ("tasks", "operator", "training")
    for name, table in raw.items():
        if name not in known or not isinstance(table, Mapping):
            raise CredoError(
                f"{name} is no table of the settings; the tables are {', '.join(known)}.", field=name
            )
    if "tasks" not in raw:
        raise CredoError("tasks must be a table of the settings; there is none.", field="tasks")
    home = Path(folder)
    tasks, plain_tasks = _read_tasks(dict(raw["tasks"]), home)
    operator = _read_operator(dict(raw.get("operator", {})), tasks)
    training = dict(raw.get("training", {}))
    seed = training.pop("seed", 0)
    require_integer("seed", seed, 0, LARGEST_SEED)
    plan = _build("training", Plan, training)
    plain = {
        "tasks": plain_tasks,
        "operator": dict(raw.get("operator", {})),
        "training": {**training, "seed": seed},
    }
    return Settings(tasks, operator, plan, seed, plain)


def _read_tasks(table: dict[str, Any], home: Path) -> tuple[Tasks[Any], dict[str, Any]]:
    kind = table.pop("kind", "linear-gaussian")
    if kind == "python":
        return _from_python(table, home), {"kind": kind, **table, "file": str(home / str(table.get("file")))}
    cls = _class_of(kind, _TASKS, _MORE_TASKS, "python")
    for name in _ARRAYS:
        if name in table:
            table[name] = _matrix(name, table[name], home).tolist()
    plain = {"kind": kind, **table}
    values: dict[str, Any] = dict(table)
    values |= {name: jnp.asarray(table[name], jnp.float32) for name in _ARRAYS if name in table}
    size = int(jnp.shape(values["observation"])[-1]) if "observation" in values else 1
    for name, part in getattr(cls, "tables", {}).items():
        if isinstance(table.get(name), dict):
            values[name] = _build(name, part, {"dim": size, **table[name]})
    # The cross-entropies of a validation are means over samples of the posterior.
    values.setdefault("targets", 64)
    return cast("Tasks[Any]", _build("tasks", cls, values)), plain


def _class_of(kind: object, own: Mapping[str, type], group: str, *others: str) -> type:
    """The record of a kind, of credo's own or of another distribution."""
    brought = extensions(group)
    if kind in brought:
        return cast(type, brought[str(kind)].load())
    if kind not in own and missing(group):
        allowed = ", ".join([*own, *others])
        raise CredoError(f"kind must be one of {allowed}; got {kind!r}{missing(group)}.", field="kind")
    require_choice("kind", kind, [*own, *brought, *others])
    return own[str(kind)]


def _from_python(table: dict[str, Any], home: Path) -> Tasks[Any]:
    file = home / str(table.pop("file", "tasks.py"))
    function = str(table.pop("function", "tasks"))
    if not file.is_file():
        raise DataError(f"no file of tasks at {file}.")
    made = runpy.run_path(str(file)).get(function)
    if not callable(made):
        raise CredoError(f"function must be one of those in {file}; got {function!r}.", field="function")
    tasks = made(**table)
    if not isinstance(tasks, Tasks):
        raise CredoError(
            f"function {function} of {file} must return credo.flows.Tasks; got {tasks!r}.", field="function"
        )
    return tasks


def _read_operator(table: dict[str, Any], tasks: Tasks[Any]) -> FlowOperator:
    kind = table.pop("kind", "affine")
    cls = _class_of(kind, _OPERATORS, _MORE_OPERATORS)
    table.setdefault("dim", tasks.dim)
    if table.get("base") == "none":
        table["base"] = None
    if "observation" in _fields(cls) and "observation" not in table:
        stage = jax.eval_shape(lambda key: tasks.observe(tasks.begin(key), key)[1], jax.random.key(0))
        leaves = jax.tree.leaves((stage.x, stage.y))
        # the first axis of a chain's observations counts them
        chain = hasattr(tasks, "segment_loss")
        table["observation"] = sum(int(np.prod(leaf.shape[1 if chain else 0 :])) for leaf in leaves)
    return cast(FlowOperator, _build("operator", cls, table))


def _matrix(name: str, value: Any, home: Path) -> np.ndarray:
    if isinstance(value, str):
        file, _, place = value.rpartition(":")
        try:
            with np.load(home / file) as arrays:
                return np.asarray(arrays[place], np.float32)
        except (OSError, ValueError, KeyError, IndexError):
            raise DataError(
                f"{name} must be numbers, or FILE.npz:NAME with an array of this name; got {value!r}."
            ) from None
    try:
        array = np.asarray(value, np.float32)
    except (TypeError, ValueError):
        array = np.full(1, np.nan, np.float32)
    if array.ndim > 2 or not np.isfinite(array).all():
        raise CredoError(f"{name} must be a number, or rows of numbers; got {value!r}.", field=name)
    return array


def _fields(cls: type) -> dict[str, dataclasses.Field[Any]]:
    return {f.name: f for f in dataclasses.fields(cast(Any, cls)) if f.name != "params"}


def _build(table: str, cls: type, values: Mapping[str, Any]) -> Any:
    fields = _fields(cls)
    for name in values:
        if name not in fields:
            raise CredoError(f"{name} is no setting of {table}; these are: {', '.join(fields)}.", field=name)
    missing = [name for name, f in fields.items() if name not in values and f.default is dataclasses.MISSING]
    if missing:
        raise CredoError(f"{missing[0]} of {table} must be given.", field=missing[0])
    try:
        return cls(**values)
    except (TypeError, ValueError) as error:
        if isinstance(error, CredoError):
            raise
        raise CredoError(f"{table} cannot be used: {str(error).rstrip('.')}.", field=table) from None
