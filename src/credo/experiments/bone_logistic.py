"""What the two logistic worlds of BONE share: two weights, 720 labels, and the grids of the methods.

The inner learner is the Kalman filter with the curvature of the Bernoulli likelihood at the mean (LIN-HESS).
The published code takes the Jacobian of the logit where that of the probability is meant, so that each label
counts too much; that is a part of the distance to the published numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import credo
from credo.experiments.bone_common import Method, grid
from credo.experiments.bone_methods import online
from credo.experiments.sweep import One

__all__ = ["build", "methods"]

MODEL = credo.Model(lambda w, x: x @ w, credo.Bernoulli())
HAZARDS = (0.01, 0.03, 0.1, 0.2)


def _inner(program: Mapping[str, Any], values: Mapping[str, Any]) -> Any:
    return credo.RecursiveLearner(MODEL, credo.Full("dense"))


def build(program: Mapping[str, Any]) -> One:
    """The function of one stream."""
    return online(_inner, program)


def methods(
    variances: Sequence[float],
    published: Mapping[str, float],
    before: Mapping[str, str],
    quick: Sequence[str] = ("C-OU",),
) -> list[Method]:
    """The methods of both worlds, whose prior variance is tuned too.

    Args:
        variances: The prior variances to choose from.
        published: The published accuracies, by label.
        before: What was measured before, by label.
        quick: The labels of the quick size.
    """
    programs: dict[str, tuple[dict[str, Any], dict[str, Sequence[float]]]] = {
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
