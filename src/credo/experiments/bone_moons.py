"""Two moons that are turned: a network of 51 parameters must give up what it knew, 3 x 100 labels.

The angles are 0, 180 and 360 degrees, so the third regime is the first again; `bone_moons_long` has five
regimes of 200 labels. Prior variance and the scale of the initial weights are tuned with every method.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

import credo
from credo.experiments.bone_common import Method, Plan, grid
from credo.experiments.bone_methods import BANK, online
from credo.experiments.bone_peers import NEIGHBOURS, river_classifiers
from credo.experiments.bone_streams import Streams, rotating_moons
from credo.experiments.bone_table import run_plan
from credo.experiments.cells import Cells
from credo.experiments.records import Outcome, Progress, Size
from credo.experiments.sweep import One

__all__ = ["PLAN", "build", "make_plan", "run"]

NET = credo.MLP(outputs=1, hidden=(5, 5), activation="sin")
MODEL = credo.Model(NET, credo.Bernoulli())
VARS, SCALES = (0.3, 1.0), (1.0, 2.0)


def _inner(program: Mapping[str, Any], values: Mapping[str, Any]) -> Any:
    return credo.RecursiveLearner(MODEL, credo.Full("dense"))


def build(program: Mapping[str, Any]) -> One:
    """The function of one stream."""
    return online(_inner, program)


def make_plan(
    name: str,
    title: str,
    angles: Sequence[float],
    count: int,
    published: Mapping[str, float],
    before: Mapping[str, str],
    target: str,
) -> Plan:
    """The plan for some angles and labels a regime.

    Args:
        name, title: Of the experiment.
        angles: One a regime, in degrees.
        count: Labels a regime.
        published: The published accuracies, by label; of a single stream that was tuned on.
        before: What was measured before, by label.
        target: The best that was measured before.
    """

    def draw(rng: np.random.Generator) -> Streams:
        streams = rotating_moons(rng, tuple(angles), count)
        return streams._replace(start=NET.init(jax.random.key(int(rng.integers(2**31))), (2,)))

    settings: dict[str, Any] = {"var": VARS, "scale": SCALES}
    one: dict[str, Any] = {"var": 1.0, "scale": (*SCALES, 3.0)}
    programs: dict[str, tuple[dict[str, Any], list[dict[str, float]]]] = {
        "C-Static": ({"method": "static"}, grid(**settings)),
        "C-ACI": ({"method": "aci"}, grid(q=(1e-4, 3e-4, 1e-3, 3e-3), **settings)),
        "C-OU": ({"method": "ou"}, grid(gamma=(0.98, 0.99, 0.995, 0.998, 0.9995), **settings)),
        "forgetting RLS": ({"method": "forgetting"}, grid(forgetting=(0.98, 0.99, 0.995), **settings)),
        "RL[1]-PR": ({"method": "rl-pr", "capacity": 1}, grid(hazard=(0.01, 0.1, 0.3), **one)),
        "RL[5]-PR": ({"method": "rl-pr", "capacity": 5}, grid(hazard=(0.003, 0.01, 0.03), **one)),
        "RL[10]-PR": ({"method": "rl-pr", "capacity": 10}, grid(hazard=(0.003, 0.01), **one)),
        "RL[10]-PR + walk": (
            {"method": "rl-pr", "capacity": 10},
            grid(hazard=0.01, q=(3e-4, 1e-3, 3e-3), var=1.0, scale=(2.0, 3.0)),
        ),
        "RL[1]-OUPR*": ({"method": "rl-oupr"}, grid(hazard=(0.003, 0.01, 0.03, 0.1), **one)),
        "CPP-OU": ({"method": "cpp-ou"}, grid(strength=(10.0, 30.0, 100.0), **one)),
        f"ME-OU({len(BANK)})": ({"method": "experts"}, grid(switching=(0.003, 0.01, 0.03, 0.1), **one)),
    }
    methods = [
        Method(
            label,
            program,
            values,
            published.get(label),
            f"measured before: {before[label]}" if label in before else "",
            quick=label == "C-OU",
            adaptive=label != "C-Static",
        )
        for label, (program, values) in programs.items()
    ]
    return Plan(
        name=name,
        title=title,
        draw=draw,
        build=build,
        methods=methods,
        world={
            "regimes": len(angles),
            "labels a regime": count,
            "angles in degrees": list(angles),
            "noise": 0.2,
            "network": "2-5-5-1, sin, 51 parameters; Bernoulli likelihood, LIN-HESS",
            "published": "one stream, tuned on itself",
        },
        binary=True,
        peers=[NEIGHBOURS, *river_classifiers()[:2]],
        target=target,
        seeds={"quick": (5, 10), "full": (20, 40)},
    )


PLAN = make_plan(
    "bone-moons",
    "Two moons turned by half a circle, twice: 3 x 100 labels",
    (0.0, 180.0, 360.0),
    100,
    {"C-Static": 0.6767, "RL[1]-PR": 0.7967, "CPP-OU": 0.7733, "C-ACI": 0.7667, "RL[1]-OUPR*": 0.7867},
    {
        "C-Static": ".829",
        "C-ACI": ".830",
        "C-OU": ".805",
        "RL[1]-PR": ".825",
        "RL[5]-PR": ".831",
        "RL[10]-PR": ".832 (K = 20)",
        "RL[1]-OUPR*": ".815",
        "ME-OU(8)": ".839 (another bank)",
    },
    "target: accuracy .839, NLL .414",
)


def run(size: Size, seed: int, progress: Progress, cells: Cells) -> Outcome:
    """Tune on some streams, score on others."""
    return run_plan(PLAN, size, seed, progress, cells)
