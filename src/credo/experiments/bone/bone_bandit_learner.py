"""The agents of `bone-bandit`: one learner for every arm, and a policy between them."""

from __future__ import annotations

import jax.numpy as jnp

import credo
from credo.bandits import UCB, Agent, Thompson
from credo.core.types import PyTree
from credo.covariances import Diagonal
from credo.experiments.bone.bone_bandit_world import ARMS
from credo.experiments.bone.bone_learner import TracedValues, make
from credo.experiments.bone.bone_plan import BoneProgram
from credo.learners import BetaBernoulli, RecursiveLearner

__all__ = ["agent_of", "prior_of"]

MODEL = credo.Model(lambda w, x: w, credo.Bernoulli())
"""A chance that is the logistic function of one parameter."""


def agent_of(program: BoneProgram, values: TracedValues) -> Agent:
    """The agent of a method.

    Arguments:
        program: see `bone_learner.make`; the method "beta" is a conjugate learner.
        values: the numbers of the method, and the `width` of UCB; without it, arms are drawn by Thompson
            sampling.
    """
    if program.get("method") == "beta":
        learner: credo.Learner[object] = BetaBernoulli(forgetting=values["forgetting"])  # type: ignore[assignment]
    else:
        learner = make(RecursiveLearner(MODEL, Diagonal()), program, values)
    policy = UCB(values["width"]) if "width" in values else Thompson()
    return Agent(learner, ARMS, "arms", policy)


def prior_of(program: BoneProgram, values: TracedValues) -> tuple[PyTree, PyTree]:
    """The prior mean and variance of each arm's learner; a Beta arm has a prior of its own."""
    if program.get("method") == "beta":
        return None, 1.0
    return jnp.zeros(1), values.get("var", 1.0)
