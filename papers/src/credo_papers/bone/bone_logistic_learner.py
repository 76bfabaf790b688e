"""The learner of one regime in the two logistic experiments of BONE.

It is the Kalman filter with the curvature of the Bernoulli likelihood at the mean (LIN-HESS). The published
code takes the Jacobian of the logit where that of the probability is meant, so that each label counts too
much; that is a part of the distance to the published numbers.
"""

from __future__ import annotations

import functools

import credo
from credo.covariances import Full
from credo.learners import RecursiveLearner
from credo_papers.bone.bone_learner import TracedValues, online
from credo_papers.bone.bone_plan import BoneProgram
from credo_papers.engine.any_learner import AnyLearner

__all__ = ["build"]

MODEL = credo.Model(lambda w, x: x @ w, credo.Bernoulli())


def _inner(program: BoneProgram, values: TracedValues) -> AnyLearner:
    return RecursiveLearner(MODEL, Full("dense"))


build = functools.partial(online, _inner)
"""`build(program)` makes the function of one stream; see `online`."""
