"""The plan of `bone-moons` and `bone-moons-long`: methods and grids for a small network."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

from credo_papers.bone.bone_learner import BANK
from credo_papers.bone.bone_moons_learner import build
from credo_papers.bone.bone_moons_world import rotating_moons
from credo_papers.bone.bone_peers import NEIGHBOURS, river_classifiers
from credo_papers.bone.bone_plan import BoneProgram, Method, Plan, grid
from credo_papers.engine.plain_data import Values

__all__ = ["make_plan"]

VARS = (0.3, 1.0)
SCALES = (1.0, 2.0)


def make_plan(
    name: str,
    title: str,
    angles: Sequence[float],
    count: int,
    published: Mapping[str, float],
    before: Mapping[str, str],
    target: str,
) -> Plan:
    """Return the plan for some angles and labels in each regime.

    Arguments:
        name, title: the name and the title of the experiment.
        angles: one for each regime, in degrees.
        count: labels in each regime.
        published: the published accuracies, by label; of a single stream that was tuned on.
        before: what was measured before, by label.
        target: the best that was measured before.
    """
    settings: dict[str, Sequence[float] | float] = {"var": VARS, "scale": SCALES}
    one: dict[str, Sequence[float] | float] = {"var": 1.0, "scale": (*SCALES, 3.0)}
    programs: dict[str, tuple[BoneProgram, list[Values]]] = {
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
            quick=label in ("C-Static", "C-OU"),
            adaptive=label != "C-Static",
        )
        for label, (program, values) in programs.items()
    ]
    return Plan(
        name=name,
        title=title,
        draw=functools.partial(rotating_moons, angles=tuple(angles), count=count),
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
