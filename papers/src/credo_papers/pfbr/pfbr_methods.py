"""The table of methods. Another method is another entry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import credo
from credo import particles as room
from credo.flows import Guard, Operator, load_operator, pfbr
from credo_papers.engine.any_learner import AnyLearner
from credo_papers.pfbr.pfbr_problem import Build, Method, Problem

__all__ = [
    "METHODS",
    "NONLINEAR",
    "NONLINEAR_STATIC",
    "STATE_SPACE",
    "STATIC",
    "build_plain",
    "build_trained",
    "select",
]


def build_plain(constructor: Callable[..., AnyLearner], **settings: Any) -> Build:
    """Build with a constructor that takes (model, particles, dynamics), and settings."""

    def build(problem: Problem, particles: int) -> AnyLearner:
        return constructor(problem.model, particles, dynamics=problem.dynamics, **settings)

    return build


def _kalman(problem: Problem, particles: int) -> AnyLearner:
    return credo.extended_kalman(problem.model, dynamics=problem.dynamics)


def _variational(problem: Problem, particles: int) -> AnyLearner:
    return room.svi(problem.model, dynamics=problem.dynamics)


def build_trained(name: str) -> Build:
    """Build what the experiment trained under this name."""

    def build(problem: Problem, particles: int) -> AnyLearner:
        return problem.trained[name](problem, particles)

    return build


def _guarded(problem: Problem, particles: int) -> AnyLearner:
    """Build the operator without training: its base, linearised three times, with weights that correct it."""
    operator = Operator(dim=problem.size, iterations=3).begin()
    guard = Guard()
    return pfbr(
        problem.model,
        operator,
        particles,
        problem.dynamics,
        density="normal",
        guard=guard,
        noise="matched",
        fallback=False,
    )


def _untrained(problem: Problem, particles: int) -> AnyLearner:
    """Build the operator without training: its base."""
    operator = Operator(dim=problem.size).begin()
    return pfbr(problem.model, operator, particles, problem.dynamics, fallback=False)


def _shipped(problem: Problem, particles: int) -> AnyLearner:
    """Build the operator that credo ships for the problem, as a user gets it, but without another map."""
    assert problem.shipped is not None
    operator = load_operator(problem.shipped, dim=problem.size)
    return pfbr(problem.model, operator, particles, problem.dynamics, fallback=False)


_ALWAYS = {"resampling": "multinomial", "threshold": 1.0}

_TABLE = (
    Method("exact draws", _kalman, note="from the Kalman posterior"),
    Method("affine map", build_plain(room.gaussian_map), note="Kalman's map with the moments of the set"),
    Method("PFBR, ours", build_trained("PFBR, ours")),
    Method("PFBR, our base", _untrained, note="without training"),
    Method("PFBR, our base, guarded", _guarded, note="without training"),
    Method("PFBR, ours, no base", build_trained("PFBR, ours, no base")),
    Method("PFBR, published", build_trained("PFBR, published")),
    Method("EKF", _kalman),
    Method("stochastic EnKF", build_plain(credo.enkf)),
    Method("square-root EnKF", build_plain(credo.etkf)),
    Method("EDH", build_plain(room.daum_huang)),
    Method("LEDH, weighted", build_plain(room.daum_huang, local=True, weighted=True)),
    Method("fully adapted", build_plain(room.particle_filter, proposal="adapted")),
    Method("guided", build_plain(room.particle_filter, proposal="guided")),
    Method("bootstrap", build_plain(room.particle_filter, **_ALWAYS), note="resampled always, as published"),
    Method("bootstrap, 8192", build_plain(room.particle_filter, **_ALWAYS), 8192),
    Method("bootstrap, systematic", build_plain(room.particle_filter), note="resampled below N / 2"),
    Method("bootstrap with MALA", build_plain(room.particle_filter, move=room.Metropolis(3, "langevin"))),
    Method("AESMC, mlp", build_trained("AESMC, mlp")),
    Method("AESMC, gru", build_trained("AESMC, gru")),
    Method("Liu-West", build_plain(room.liu_west)),
    Method("one-pass SMC", build_plain(room.one_pass_smc)),
    Method("tempered SMC", build_plain(room.tempered_smc)),
    Method("SVGD", build_plain(room.svgd)),
    Method("Fokker-Planck flow", build_plain(room.fokker_planck)),
    Method("KBR", build_plain(room.KernelBayes)),
    Method("KMCF", build_plain(room.KernelFilter)),
    Method("PMD", build_plain(room.MirrorDescent)),
    Method("SGLD", build_plain(room.Langevin), note="for a stream of any length"),
    Method("NPV", build_plain(room.NonparametricVariational)),
    Method("SVI", _variational),
    Method("PFBR, shipped", _shipped, note="the operator that credo ships"),
)

STATE_SPACE = (
    "exact draws",
    "affine map",
    "PFBR, ours",
    "PFBR, ours, no base",
    "PFBR, published",
    "stochastic EnKF",
    "square-root EnKF",
    "EDH",
    "LEDH, weighted",
    "fully adapted",
    "guided",
    "bootstrap",
    "bootstrap, systematic",
    "AESMC, mlp",
    "AESMC, gru",
    "Liu-West",
    "one-pass SMC",
    "SVGD",
    "KBR",
    "KMCF",
)
"""Methods for linear dynamics and normal noise."""

STATIC = (
    "exact draws",
    "affine map",
    "PFBR, our base",
    "PFBR, ours",
    "PFBR, ours, no base",
    "stochastic EnKF",
    "EDH",
    "bootstrap",
    "bootstrap with MALA",
    "one-pass SMC",
    "Liu-West",
    "tempered SMC",
    "SVGD",
    "Fokker-Planck flow",
    "KBR",
    "PMD",
    "SGLD",
    "NPV",
    "SVI",
)
"""Methods for unknowns that stand still, with normal noise."""

NONLINEAR_STATIC = (
    "PFBR, ours, no base",
    "one-pass SMC",
    "bootstrap, systematic",
    "bootstrap with MALA",
    "tempered SMC",
    "SVGD",
    "Fokker-Planck flow",
    "Liu-West",
    "PMD",
    "SGLD",
    "NPV",
)
"""Methods for unknowns that stand still, with any likelihood."""

NONLINEAR = (
    "PFBR, ours",
    "PFBR, our base, guarded",
    "affine map",
    "stochastic EnKF",
    "square-root EnKF",
    "EDH",
    "LEDH, weighted",
    "guided",
    "fully adapted",
    "bootstrap, systematic",
    "Liu-West",
)
"""Methods for nonlinear dynamics."""

METHODS: dict[str, Method] = {method.name: method for method in _TABLE}
"""Every method by its name."""


def select(*names: str) -> tuple[Method, ...]:
    """Return some methods of the table.

    Arguments:
        names: the names of the methods.
    """
    return tuple(METHODS[name] for name in names)
