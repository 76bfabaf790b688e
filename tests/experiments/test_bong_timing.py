"""Costs that do not depend on the machine: what the compiled programs contain."""

from __future__ import annotations

import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo.experiments import bong_timing
from credo.experiments.bong_timing import Point, expected, network

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


@pytest.mark.parametrize("rule", ["bong", "blr", "bog"])
def test_no_full_cell_factorises_or_multiplies_p_by_p_matrices_where_p_squared_suffices(rule: str) -> None:
    small, large = program(rule, "lin-hess", "full"), program(rule, "lin-hess", "full", 2 * P)
    for compiled, size in ((small, P), (large, 2 * P)):
        calls = [line for line in compiled.as_text().splitlines() if "lapack" in line]
        assert not [line for line in calls if re.search(rf"\[{size},{size}\]", line)]
    flops = [compiled.cost_analysis()["flops"] for compiled in (small, large)]
    assert flops[1] / flops[0] < 4.6


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


def test_a_sweep_is_timed_kept_and_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    times = {100: 1.0, 1000: 10.0}
    asked = []

    def clock(point: Point, budget: float) -> float:
        asked.append(point)
        return times[point.P]

    points = [Point("bong", "lin-ef", "diagonal", P=p) for p in times]
    monkeypatch.setattr(bong_timing, "seconds", clock)
    monkeypatch.setattr(bong_timing, "_sweeps", lambda size: iter([("P", points)]))
    outcome = bong_timing.run("quick", 0, lambda share, text: None)
    assert asked == points
    np.testing.assert_allclose(outcome.rows[0].ours, 1.0)
    assert outcome.rows[0].published == "≤ 1"
    outcome.figure()


def test_seconds_are_of_one_compiled_update() -> None:
    assert 0 < bong_timing.seconds(Point("bog", "lin-ef", "diagonal", P=64), 0.0) < 60
