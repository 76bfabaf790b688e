"""The table of methods. Another method is another entry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import credo
from credo import particles as room
from credo.experiments.engine.any_learner import AnyLearner
from credo.experiments.pfbr.pfbr_problem import Build, Method, Problem
from credo.flows import Operator, pfbr

__all__ = ["METHODS", "NONLINEAR", "NONLINEAR_STATIC", "STATE_SPACE", "STATIC", "plain", "select", "trained"]


def plain(constructor: Callable[..., AnyLearner], **settings: Any) -> Build:
    """Build with a constructor that takes (model, particles, dynamics), and settings."""

    def build(problem: Problem, particles: int) -> AnyLearner:
        return constructor(problem.model, particles, dynamics=problem.dynamics, **settings)

    return build


def _kalman(problem: Problem, particles: int) -> AnyLearner:
    return credo.extended_kalman(problem.model, dynamics=problem.dynamics)


def _variational(problem: Problem, particles: int) -> AnyLearner:
    return room.svi(problem.model, dynamics=problem.dynamics)


def trained(name: str) -> Build:
    """Build what the experiment trained under this name."""

    def build(problem: Problem, particles: int) -> AnyLearner:
        return problem.trained[name](problem, particles)

    return build


def _guarded(problem: Problem, particles: int) -> AnyLearner:
    """Build the operator without training: its base, linearised three times, with weights that correct it."""
    operator = Operator(dim=problem.size, iterations=3).begin()
    return pfbr(problem.model, operator, particles, problem.dynamics, density="normal", guard=True)


_ALWAYS = {"resampling": "multinomial", "threshold": 1.0}

_TABLE = (
    Method("exact draws", _kalman, note="from the Kalman posterior"),
    Method("affine map", plain(room.gaussian_map), note="Kalman's map with the moments of the set"),
    Method("PFBR, ours", trained("PFBR, ours")),
    Method("PFBR, our base, guarded", _guarded, note="without training"),
    Method("PFBR, ours, no base", trained("PFBR, ours, no base")),
    Method("PFBR, published", trained("PFBR, published")),
    Method("EKF", _kalman),
    Method("stochastic EnKF", plain(credo.enkf)),
    Method("square-root EnKF", plain(credo.etkf)),
    Method("EDH", plain(room.daum_huang)),
    Method("LEDH, weighted", plain(room.daum_huang, local=True, weighted=True)),
    Method("fully adapted", plain(room.particle_filter, proposal="adapted")),
    Method("guided", plain(room.particle_filter, proposal="guided")),
    Method("bootstrap", plain(room.particle_filter, **_ALWAYS), note="resampled always, as published"),
    Method("bootstrap, 8192", plain(room.particle_filter, **_ALWAYS), 8192),
    Method("bootstrap, systematic", plain(room.particle_filter), note="resampled below N / 2"),
    Method("bootstrap with MALA", plain(room.particle_filter, move=room.Metropolis(3, "langevin"))),
    Method("AESMC, mlp", trained("AESMC, mlp")),
    Method("AESMC, gru", trained("AESMC, gru")),
    Method("Liu-West", plain(room.liu_west)),
    Method("one-pass SMC", plain(room.one_pass_smc)),
    Method("tempered SMC", plain(room.tempered_smc)),
    Method("SVGD", plain(room.svgd)),
    Method("Fokker-Planck flow", plain(room.fokker_planck)),
    Method("KBR", plain(room.KernelBayes)),
    Method("KMCF", plain(room.KernelFilter)),
    Method("PMD", plain(room.MirrorDescent)),
    Method("SGLD", plain(room.Langevin), note="for a stream of any length"),
    Method("NPV", plain(room.NonparametricVariational)),
    Method("SVI", _variational),
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
    "PFBR, ours",
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
    "PFBR, ours",
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
        names: of the methods.
    """
    return tuple(METHODS[name] for name in names)
