"""A task has two homes, and a likelihood reaches `credo learn` by what is declared there."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints
from unittest.mock import patch

import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo.cli.flags import DataFlags
from credo.core.errors import CredoError, DataError
from credo.core.names import TASKS
from credo.core.types import Array, PyTree
from credo.likelihoods import LikelihoodBase
from credo.recipes.options import Options
from credo.recipes.resolution import resolve
from credo.recipes.tasks import RECIPES, TaskRecipe
from credo.sessions import Session
from credo.tables.schema import TARGET_KINDS, TargetKind

SOURCES = Path(credo.__file__).parent
HOMES = {"tables/schema.py", "recipes/tasks.py"}
COUNTING = {
    "bandits/rewards.py",
    "bandits/service/storage.py",
    "cli/bandit_run.py",
    "metrics/summary.py",
    "tables/moments.py",
}
"""The modules in which "count" is the key of a number of things."""


def branches(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The lines in which the name of a task is compared with something, or is a key."""
    for node in ast.walk(tree):
        parts: list[ast.expr | None] = []
        if isinstance(node, ast.Compare):
            parts = [node.left, *node.comparators]
        elif isinstance(node, ast.Dict):
            parts = node.keys
        elif isinstance(node, ast.MatchValue):
            parts = [node.value]
        elif isinstance(node, ast.Subscript) and getattr(node.value, "id", "") != "Literal":
            parts = [node.slice]
        for part in filter(None, parts):
            for one in ast.walk(part):
                if isinstance(one, ast.Constant) and one.value in TARGET_KINDS:
                    yield one.lineno, str(one.value)


@pytest.mark.parametrize(
    "text",
    [
        'a = 1 if task == "count" else 2',
        'if task in (None, "classification"): pass',
        'a = {"regression": 1}[task]',
        'match task:\n    case "count": pass',
    ],
)
def test_a_branch_on_a_task_is_found(text: str) -> None:
    assert list(branches(ast.parse(text)))


@pytest.mark.slow
def test_no_module_but_the_homes_of_the_tasks_branches_on_one() -> None:
    found = [
        f"{name}:{line} names {task!r}"
        for path in sorted(SOURCES.rglob("*.py"))
        if (name := path.relative_to(SOURCES).as_posix()) not in HOMES
        for line, task in branches(ast.parse(path.read_text(encoding="utf-8")))
        if task != "count" or name not in COUNTING
    ]
    assert found == [] and all((SOURCES / name).is_file() for name in COUNTING)


def test_every_task_is_declared_in_both_homes_and_named_by_the_help() -> None:
    assert list(TARGET_KINDS) == list(RECIPES) == list(TASKS)
    flag = get_type_hints(DataFlags, include_extras=True)["task"]
    assert [task for task in TARGET_KINDS if task not in get_args(flag)[-1].help] == []


@credo.record
class Exponential(LikelihoodBase):
    """Durations y > 0 whose log-mean is eta."""

    def log_prob(self, eta: Array, y: PyTree) -> Array:
        return -eta[0] - jnp.asarray(y, eta.dtype) * jnp.exp(-eta[0])

    def fisher_root(self, eta: Array, y: PyTree) -> Array:
        return jnp.ones((1, 1), eta.dtype)

    def mean(self, eta: Array) -> Array:
        return jnp.exp(eta)

    def variance(self, eta: Array) -> Array:
        return jnp.exp(2 * eta)

    def cdf(self, eta: Array, y: Array) -> Array:
        return jnp.where(y > 0, -jnp.expm1(-y * jnp.exp(-eta[0])), 0.0)


DURATIONS = TargetKind("own", lambda values: values > 0, "duration", "numbers above 0")
RECIPE = TaskRecipe(
    lambda *_: Exponential(),
    scales=(0.0, 0.3, 1.0),
    noiseless="a duration",
    prior_var=0.5,
    start=lambda mean: float(np.log(mean)),
    effect="the log of the mean of {}",
)


def test_a_task_is_learned_by_what_its_homes_declare() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=400)
    y = 3.0 * np.exp(0.8 * x) * rng.exponential(size=400)
    rows = [{"a": a, "y": value} for a, value in zip(x.tolist(), y.tolist(), strict=True)]
    task: Any = "duration"
    with patch.dict(TARGET_KINDS, {task: DURATIONS}), patch.dict(RECIPES, {task: RECIPE}):
        session = Session.from_rows(rows, "y", task=task, model="linear")
        session.learn(rows)
        ours, base = session.metrics(), session.tally.baseline()
        assert ours["nlpd"] < base["nlpd"] - 0.2 and session.tally.scored == 390
        assert ours["coverage_90"] == pytest.approx(0.9, abs=0.06)  # 4 standard errors of 390 rows
        mean = session.predict([{"a": 1.0}]).mean
        assert mean is not None and mean[0] == pytest.approx(3 * np.exp(0.8), rel=0.25)
        assert session.test(rows[:60]).metrics()["nlpd"] < base["nlpd"]
        with pytest.raises(CredoError, match="this target is a duration"):
            resolve(Options(noise_var=0.3), task, (1,), 0)
        with pytest.raises(DataError, match=r"which are no durations \(numbers above 0\)"):
            Session.from_rows([{"a": 1.0, "y": -1.0}, {"a": 2.0, "y": 1.0}], "y", task=task)
