"""Right programs pass mypy and pyright and run; every wrong one is an error of both."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import jax
import pytest
from tests.typing.programs import PROGRAMS

ROOT = Path(__file__).resolve().parent.parent.parent
RIGHT = Path(__file__).with_name("programs.py")

PREAMBLE = """\
import jax.numpy as jnp
import credo
model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
learner = credo.extended_kalman(model)
belief = learner.init(jnp.zeros(2))
xs, ys = jnp.ones((5, 2)), jnp.ones(5)
report = credo.evaluate(learner, belief, (xs, ys))
"""

WRONG = {
    "nonsense in place of everything": 'credo.bong(1, 2, "nonsense", foo=3)',
    "a model that is a function": "credo.bong(lambda w, x: x @ w, credo.Full())",
    "a family that is a name": 'credo.bong(model, "full")',
    "a curvature that is misspelt": 'credo.bong(model, credo.Full(), "lin-hes")',
    "an argument that is not there": "credo.lofi(model, ranks=10)",
    "an argument that is missing": "credo.bong(model)",
    "a name that credo does not have": "credo.Nope",
    "a name that is misspelt": "credo.extended_kalmann(model)",
    "a form that is misspelt": 'credo.Full(form="rooot")',
    "an inflation of no such kind": 'credo.Inflation(0.1, "complete")',
    "dynamics that are a number": "credo.extended_kalman(model, dynamics=0.1)",
    "a run without data": "credo.run(learner)",
    "a belief where a learner is due": "credo.run(belief, learner, xs, ys)",
    "a belief of another learner": "credo.run(learner, credo.BetaBernoulli().init(), xs, ys)",
    "a field of a belief that is assigned": "belief.mean = jnp.zeros(2)",
    "a field of a hyper-parameter that is assigned": "credo.RandomWalk(0.1).var = 0.2",
    "a field that a report does not have": "report.nope",
    "a forecast method that is misspelt": 'credo.evaluate(learner, belief, (xs, ys), method="plug-in")',
    "a search that does not exist": 'credo.select(lambda: (learner, belief), {}, xs, ys, method="random")',
    "data that are not a pair": "credo.evaluate(learner, belief, xs, ys)",
    "a likelihood's classes as text": 'credo.Categorical("three")',
    "text where a number is due": 'credo.Normal("0.1")',
}


class Checks(NamedTuple):
    """The lines with an error, by checker and file name."""

    mypy: dict[str, set[int]]
    pyright: dict[str, set[int]]


def _run(*command: str) -> str:
    """What a checker prints; it sees this checkout, and what mypy remembers of it."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    result = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert result.returncode in (0, 1), result.stdout + result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def checks(tmp_path_factory: pytest.TempPathFactory) -> Checks:
    """Both checkers' errors in the right programs and in the wrong ones."""
    folder = tmp_path_factory.mktemp("typing")
    right, wrong = folder / RIGHT.name, folder / "wrong.py"
    right.write_text(RIGHT.read_text(encoding="utf-8"), encoding="utf-8")
    wrong.write_text(PREAMBLE + "\n".join(WRONG.values()) + "\n")
    by_mypy: dict[str, set[int]] = {RIGHT.name: set(), wrong.name: set()}
    printed = _run(
        *("mypy", "--strict", "--config-file", str(ROOT / "pyproject.toml"), str(right), str(wrong))
    )
    for name, line in re.findall(r"^(?:.*/)?(\w+\.py):(\d+): error:", printed, re.MULTILINE):
        by_mypy.setdefault(name, set()).add(int(line))
    settings = {
        "include": [right.name, wrong.name],
        "extraPaths": [str(ROOT / "src")],
        "pythonVersion": "3.11",
        "reportMissingModuleSource": False,
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    output = json.loads(
        _run(*("pyright", "--project", str(folder), "--pythonpath", sys.executable, "--outputjson"))
    )
    by_pyright: dict[str, set[int]] = {RIGHT.name: set(), wrong.name: set()}
    assert output["summary"]["filesAnalyzed"] == 2, output["summary"]
    for report in output["generalDiagnostics"]:
        if report["severity"] == "error":
            by_pyright[Path(report["file"]).name].add(report["range"]["start"]["line"] + 1)
    return Checks(by_mypy, by_pyright)


@pytest.mark.slow
@pytest.mark.parametrize("checker", Checks._fields)
def test_right_programs_have_no_error(checks: Checks, checker: str) -> None:
    assert not getattr(checks, checker)[RIGHT.name]


@pytest.mark.slow
@pytest.mark.parametrize("checker", Checks._fields)
@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_program_is_an_error(checks: Checks, checker: str, what: str) -> None:
    line = PREAMBLE.count("\n") + 1 + list(WRONG).index(what)
    assert line in getattr(checks, checker)["wrong.py"], f"{checker} accepts {WRONG[what]}"


@pytest.mark.slow
@pytest.mark.parametrize("checker", Checks._fields)
def test_what_leads_up_to_the_wrong_programs_is_right(checks: Checks, checker: str) -> None:
    assert not {line for line in getattr(checks, checker)["wrong.py"] if line <= PREAMBLE.count("\n")}


@pytest.mark.slow
@pytest.mark.table
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_right_programs_run(program: Callable[[], object]) -> None:
    with jax.enable_x64(False), jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        program()
