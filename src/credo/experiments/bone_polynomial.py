"""A curve in pieces: quadratics in the distance from where the piece began, each joined to the last.

Features depend on the segment, so each hypothesis carries its own origin (`LocalPolynomial`). RL-PR lets a
new piece begin anywhere; RL-MMPR lets it begin where the mixture of all hypotheses says the curve is
(`Continuous`), which is how these curves were made; CPT-MMPR where each hypothesis says it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import credo
from credo.adapt import ChangeTimes, Continuous, LocalPolynomial, RunLength
from credo.experiments.bone_common import Method, Plan, grid
from credo.experiments.bone_methods import online
from credo.experiments.bone_peers import NEIGHBOURS, river_regressors
from credo.experiments.bone_streams import piecewise_polynomial
from credo.experiments.bone_table import run_plan
from credo.experiments.cells import Cells
from credo.experiments.records import Outcome, Progress, Size
from credo.experiments.sweep import One

__all__ = ["PLAN", "build", "run"]

VAR, NOISE, HAZARDS = 3.0, 0.04, (0.003, 0.01, 0.03)


def _inner(program: Mapping[str, Any], values: Mapping[str, Any]) -> Any:
    features = program.get("features", "local")
    apply = (
        (lambda w, x: x @ w)
        if features == "local"
        else (lambda w, x: w[0] + x[0] * w[1] + x[0] * x[0] * w[2])
    )
    model = credo.Model(apply, credo.Normal(NOISE))
    learner = credo.RecursiveLearner(model, credo.Full("dense"))
    if features == "global":
        return learner
    piece = LocalPolynomial(learner, 2)
    if program["pieces"] == "one":
        return piece
    if program["pieces"] == "reset":
        return RunLength(piece, values["hazard"], program["capacity"])
    wrapper = ChangeTimes if program["pieces"] == "each" else RunLength
    return wrapper(piece, values["hazard"], program["capacity"], Continuous(values["jump"]))


def build(program: Mapping[str, Any]) -> One:
    """The function of one stream."""
    return online(_inner, program)


def _reset(capacity: int, published: float, note: str = "") -> Method:
    program = {"pieces": "reset", "capacity": capacity}
    return Method(f"RL[{capacity}]-PR", program, grid(hazard=HAZARDS, var=VAR), published, note)


def _joined(capacity: int, published: float | None, note: str = "") -> Method:
    program = {"pieces": "joined", "capacity": capacity}
    values = grid(hazard=HAZARDS, jump=(0.0, 1e-3), var=VAR)
    return Method(f"RL[{capacity}]-MMPR", program, values, published, note, quick=capacity == 5)


PLAN = Plan(
    name="bone-polynomial",
    title="A curve in pieces: the value carries over a change, the shape does not",
    draw=piecewise_polynomial,
    build=build,
    methods=[
        Method("one polynomial", {"pieces": "one"}, grid(var=VAR), "median ~6 (C-F)", adaptive=False),
        Method(
            "forgetting RLS on (1, x, x^2)",
            {"method": "forgetting", "features": "global"},
            grid(forgetting=(0.5, 0.6, 0.7, 0.8, 0.9), var=(3.0, 10.0)),
            note="the peer: Kalman with simple inflation",
        ),
        _reset(1, 6.09, "measured before: .555"),
        _reset(5, 3.93, "measured before: .363"),
        _reset(10, 3.51),
        _joined(1, 2.87, "measured before: 1.07"),
        _joined(5, 2.22, "measured before: .237"),
        _joined(10, 2.19),
        _joined(20, None, "measured before: .231"),
        Method(
            "CPT[20]-MMPR",
            {"pieces": "each", "capacity": 20},
            grid(hazard=HAZARDS, jump=0.0, var=VAR),
            note="a successor for every hypothesis",
        ),
    ],
    world={
        "steps": 300,
        "model": "y = a + b u + c u^2 + N(0, .2^2), u = x - the first x of the segment",
        "x": "500 sorted draws of U(-5, 5), of which the first 300",
        "hazard": 0.01,
        "a": "where the segment before ends (the first: U(-3, 3))",
        "b, c": "U(-3, 3)",
        "published": "means of the RMSE to y over 100 streams of about 500 points; coefficients not known",
    },
    to_observation=True,
    peers=[NEIGHBOURS, *river_regressors()],
    target="target: RMSE to y .24; the noise alone is .2",
)


def run(size: Size, seed: int, progress: Progress, cells: Cells) -> Outcome:
    """Tune on some streams, score on others."""
    return run_plan(PLAN, size, seed, progress, cells)
