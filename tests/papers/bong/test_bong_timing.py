"""Costs that do not depend on the machine: what the compiled programs contain."""

from __future__ import annotations

import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo_papers.bong import bong_timing
from credo_papers.bong.bong_timing_learner import network
from credo_papers.bong.bong_timing_plan import Point, expected, sweeps
from credo_papers.engine.portions import silent

P, HIDDEN = 24 * 8, 8
FAMILIES = {"full": credo.Full(), "diagonal": credo.Diagonal(), "low-rank": credo.LowRank(3)}


def program(rule: str, curvature: Any, family: str, parameters: int = P) -> Any:
    """The compiled step of a cell; the number of parameters is 8 * inputs + 8 + 16."""
    inputs = parameters // HIDDEN - 3
    params = {
        "in": jnp.ones((HIDDEN, inputs), jnp.float32),
        "bias": jnp.zeros(HIDDEN, jnp.float32),
        "out": jnp.ones((2, HIDDEN), jnp.float32),
    }
    options = {"iterations": 2} if rule in ("blr", "bbb") else {}
    model = credo.Model(network, credo.Categorical(2))
    learner = getattr(credo, rule)(model, FAMILIES[family], curvature, **options)
    belief = learner.init(params, var=jnp.float32(0.1))
    assert belief.size == parameters

    def step(belief: Any, x: jax.Array) -> Any:
        return learner.update(belief, x, jnp.asarray(0), key=jax.random.key(1))

    return jax.jit(step).lower(belief, jnp.ones(inputs, jnp.float32)).compile()


@pytest.mark.table
@pytest.mark.parametrize("rule", ["bong", "blr", "bog"])
def test_no_full_cell_factorises_or_multiplies_p_by_p_matrices_where_p_squared_suffices(rule: str) -> None:
    small, large = program(rule, "lin-hess", "full"), program(rule, "lin-hess", "full", 2 * P)
    for compiled, size in ((small, P), (large, 2 * P)):
        calls = [line for line in compiled.as_text().splitlines() if "lapack" in line]
        assert not [line for line in calls if re.search(rf"\[{size},{size}\]", line)]
    flops = [compiled.cost_analysis()["flops"] for compiled in (small, large)]
    assert flops[1] / flops[0] < 4.6


@pytest.mark.table
@pytest.mark.parametrize("family", ["diagonal", "low-rank"])
@pytest.mark.parametrize("rule", ["bong", "blr", "bog", "bbb"])
def test_no_economical_cell_holds_a_p_by_p_matrix(rule: str, family: str) -> None:
    curvature = credo.MonteCarloHessian(2, rank=2) if rule == "blr" else "lin-hess"
    assert not re.search(rf"\[{P},{P}\]", program(rule, curvature, family).as_text())


def test_the_exponents_are_those_of_the_table() -> None:
    assert expected(Point("bong", "lin-hess", "full"), "P") == 2
    assert expected(Point("bbb", "lin-ef", "full"), "P") == 3
    assert expected(Point("bbb", "lin-hess", "low-rank"), "P") == 1
    assert expected(Point("blr", "mc-ef", "diagonal"), "M") == 2
    assert expected(Point("bog", "mc-ef", "diagonal"), "M") == 1
    assert expected(Point("bog", "lin-hess", "diagonal"), "C") == 2
    assert expected(Point("bog", "lin-hess", "full"), "C") == 1
    assert expected(Point("bong", "lin-ef", "low-rank"), "C") == 0
    assert expected(Point("blr", "mc-hess", "full"), "I") == 1


def test_the_full_size_measures_every_cell_against_what_it_depends_on() -> None:
    axes: dict[str, set[str]] = {}
    for axis, points in sweeps("full"):
        axes.setdefault(points[0].cell, set()).add(axis)
        changed = {name for p in points for name, size in vars(p).items() if size != getattr(points[0], name)}
        assert changed == {axis}
        assert all(p.P > 8 * p.C + 8 for p in points)
    assert len(axes) == 48
    assert axes["bong lin-ef full"] == {"P", "C"}
    assert axes["blr mc-ef low-rank"] == {"P", "R", "M", "I"}


def test_a_sweep_is_timed_kept_and_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    times = {100: 1.0, 1000: 10.0}
    calls = []

    def clock(points: list[Point], budget: float) -> dict[str, np.ndarray]:
        calls.extend(points)
        seconds = np.array([[times[point.P] * late for point in points] for late in (2.0, 1.0)])
        return {"seconds": seconds, "operations": np.array([1.0, 100.0])}

    points = [Point("bong", "lin-ef", "diagonal", P=p) for p in times]
    monkeypatch.setattr(bong_timing, "measure", clock)
    monkeypatch.setattr(bong_timing, "sweeps", lambda size: iter([("P", points)]))
    outcome = bong_timing.run("quick", 0, silent)
    assert calls == points
    np.testing.assert_allclose(outcome.rows[0].ours, 1.0)
    assert outcome.rows[0].se is not None and abs(outcome.rows[0].se) < 1e-12
    np.testing.assert_allclose(outcome.series["seconds"], [1.0, 10.0])
    assert outcome.rows[0].published == "≤ 1"
    assert outcome.rows[0].note == "1e+04 ms at P = 1,000; exponent of the operations 2.00"
    outcome.figure()


@pytest.mark.slow
def test_what_is_measured_is_one_compiled_update_and_its_operations() -> None:
    times = bong_timing.measure([Point("bog", "lin-ef", "diagonal", P=n) for n in (64, 640)], 0.0)
    assert times["seconds"].shape == (5, 2)
    assert times["seconds"].min() > 0
    assert times["seconds"].max() < 60
    assert 1 < times["operations"][1] / times["operations"][0] < 11
