"""The one table of what must be fast, on tiny sizes."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import pytest
from tests.tiers import few

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def speed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path for path in sys.path if path))
    asynchronous = jax.config.read("jax_cpu_enable_async_dispatch")
    yield importlib.import_module("speed")
    jax.config.update("jax_cpu_enable_async_dispatch", asynchronous)


def test_a_number_stands_beside_what_is_asked_of_it(speed: Any) -> None:
    rows = [
        speed.Reading("the bank of two classes, a scan", "the learners inside alone", 1.5),
        speed.Reading("credo learn, 100 rows, warm", "", 2.9),
        speed.Reading("low rank 10, P = 1,510: credo", "BONG, transcribed (published.py)", 3.2),
        speed.Reading("Thompson, unknown noise, 7 arms, a scan", "VW", None, "vowpalwabbit is not installed"),
    ]
    lines = speed.table(rows)
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines[2:]]
    assert [row[3:] for row in cells] == [
        ["at most 1.4", "1.4", "no"],
        ["at most 3", "3", "aim"],
        ["at least 3", "3.5", "must"],
        ["at least 12", "12", ""],
    ]
    assert cells[3][2] == "vowpalwabbit is not installed"
    assert {line.count("|") for line in lines} == {lines[0].count("|")}


def test_every_row_that_is_asked_for_is_measured(speed: Any) -> None:
    """By the words of the sources, where what changes within a row stands in braces."""
    aims, text = importlib.import_module("aims"), (BENCHMARKS / "speed.py").read_text("utf-8")
    written = re.findall(r"f?(?:\"([^\"\n]+)\"|'([^'\n]+)')", text)
    patterns = [
        re.sub(r"\\\{\w+\\\}", ".+", re.escape(one or other))
        for one, other in written
        if len(one + other) > 9
    ]
    for row in aims._ROWS:
        assert any(re.fullmatch(pattern, row) for pattern in patterns), row


def test_a_group_without_its_package_says_so(speed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "estimators", None)
    (reading,) = speed.measure("river", speed.Plan(0.01, 1))
    assert reading.value is None
    assert reading.why == "estimators is not installed"


def test_an_official_code_without_its_package_says_so_when_it_runs(speed: Any) -> None:
    def make(size: int) -> Any:
        raise ModuleNotFoundError("no einops", name="einops")

    call = importlib.import_module("official_codes").or_absent(make)(3)
    with pytest.raises(RuntimeError, match="einops is not installed"):
        call()
    assert importlib.import_module("official_codes").or_absent(lambda size: size)(3) == 3


@pytest.mark.slow
@pytest.mark.parametrize("name", few(["bandit", "bank", "default-agent"], "bandit"))
def test_a_group_gives_numbers_or_reasons(speed: Any, name: str) -> None:
    readings = speed.measure(name, speed.Plan(0.01, 1))
    assert readings
    for reading in readings:
        assert reading.why if reading.value is None else reading.value > 0
        assert speed.aims.asked(reading.row, reading.against) is not None


@pytest.mark.slow
def test_what_is_transcribed_stands_in_for_the_official_code(speed: Any) -> None:
    """In a process of its own: `official.py` chooses the core and the threads of its process."""
    code = """
import json, jax.numpy as jnp, official, speed, transcribed
xs, ys = jnp.ones((3, 2)), jnp.ones(3)
ours = {"credo, root": (3, lambda: xs)}
def kalman():
    call = official.codes.dynamax_kalman()
    official.race("Kalman scan, D = 2, one output", ours, {"dynamax lgssm_filter": (3, call)}, 10**6)
def full():
    call = official.codes.bong_full(lambda w, x: x @ w, 2, xs, ys, alone=True)
    official.race("full EKF, one output, P = 100", ours, {"BONG, update alone": (3, call)}, 10**6)
speed.OFFICIAL = ("kalman", "full")
official.CASES.update(kalman=kalman, full=full)
print(json.dumps(speed.measure("official", speed.Plan(1.0, 1))))
"""
    command = [sys.executable, "-c", code]
    made = subprocess.run(command, cwd=BENCHMARKS, capture_output=True, text=True, check=True)
    kalman, *full = json.loads(made.stdout)
    assert kalman[2] is None
    assert "needs the official code" in kalman[3]
    assert {row[1] for row in full} == {"BONG, transcribed (published.py)"}
    assert all(row[2] > 0 for row in full)


def test_the_transcription_is_the_update(speed: Any) -> None:
    """Against the extended Kalman filter and the low-rank update of credo, on a few rows."""
    import jax.numpy as jnp
    import numpy as np

    import credo

    transcribed = importlib.import_module("transcribed")
    rng = np.random.default_rng(0)
    xs, ys = jnp.asarray(rng.normal(size=(6, 3))), jnp.asarray(rng.normal(size=6))

    def linear(w: Any, x: Any) -> Any:
        return x @ w

    end = transcribed.bong_full(linear, 3, xs, ys, alone=True)()
    learner = credo.extended_kalman(credo.Model(linear, credo.Normal(1.0)))
    belief, _ = credo.run(learner, learner.init(jnp.zeros(3)), xs, ys)
    np.testing.assert_allclose(end.mean, belief.mean, rtol=1e-6)
    with pytest.raises(RuntimeError, match="needs the official code"):
        transcribed.rebayes_full()()
    with pytest.raises(AttributeError):
        _ = transcribed.something
