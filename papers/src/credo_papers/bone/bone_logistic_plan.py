"""The plan that the two logistic experiments of BONE share: the grids of the methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from credo_papers.bone.bone_plan import BoneProgram, Method, grid

__all__ = ["methods"]

HAZARDS = (0.01, 0.03, 0.1, 0.2)


def methods(
    variances: Sequence[float],
    published: Mapping[str, float],
    before: Mapping[str, str],
    quick: Sequence[str] = ("C-OU",),
) -> list[Method]:
    """Return the methods of both experiments, whose prior variance is tuned too.

    Arguments:
        variances: the prior variances to choose from.
        published: the published accuracies, by label.
        before: what was measured before, by label.
        quick: the labels of the quick size.
    """
    programs: dict[str, tuple[BoneProgram, dict[str, Sequence[float]]]] = {
        "C-Static": ({"method": "static"}, {}),
        "C-ACI": ({"method": "aci"}, {"q": (0.001, 0.01, 0.1, 0.3, 1.0, 3.0, 10.0)}),
        "C-OU": ({"method": "ou"}, {"gamma": (0.8, 0.85, 0.9, 0.95, 0.97, 0.98, 0.99)}),
        "forgetting RLS": ({"method": "forgetting"}, {"forgetting": (0.6, 0.7, 0.8, 0.9, 0.95, 0.98)}),
        "RL[1]-PR": ({"method": "rl-pr", "capacity": 1}, {"hazard": HAZARDS}),
        "RL[5]-PR": ({"method": "rl-pr", "capacity": 5}, {"hazard": HAZARDS}),
        "RL[20]-PR": ({"method": "rl-pr", "capacity": 20}, {"hazard": HAZARDS}),
        "RL[20]-PR + walk": (
            {"method": "rl-pr", "capacity": 20},
            {"hazard": (0.01, 0.03), "q": (0.001, 0.01, 0.1)},
        ),
        "RL[1]-OUPR*": ({"method": "rl-oupr"}, {"hazard": (*HAZARDS, 0.3, 0.4)}),
        "CPP-OU": ({"method": "cpp-ou"}, {"strength": (1.0, 3.0, 10.0, 30.0)}),
        "ME-OU(8)": ({"method": "experts"}, {"switching": (0.003, 0.01, 0.03, 0.1)}),
    }
    return [
        Method(
            label,
            program,
            grid(**values, var=variances),
            published.get(label),
            f"measured before: {before[label]}" if label in before else "",
            quick=label in quick,
            adaptive=label != "C-Static",
        )
        for label, (program, values) in programs.items()
    ]
