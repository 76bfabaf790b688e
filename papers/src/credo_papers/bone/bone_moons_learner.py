"""The learner of one regime in `bone-moons` and `bone-moons-long`: a small network."""

from __future__ import annotations

import functools

import credo
from credo.covariances import Full
from credo.learners import RecursiveLearner
from credo_papers.bone.bone_learner import TracedValues, online
from credo_papers.bone.bone_moons_world import NET
from credo_papers.bone.bone_plan import BoneProgram
from credo_papers.engine.any_learner import AnyLearner

__all__ = ["build", "inner"]

MODEL = credo.Model(NET, credo.Bernoulli())


def inner(program: BoneProgram, values: TracedValues) -> AnyLearner:
    """Return the learner of one regime."""
    return RecursiveLearner(MODEL, Full("dense"))


build = functools.partial(online, inner)
"""`build(program)` makes the function of one stream; see `online`."""
