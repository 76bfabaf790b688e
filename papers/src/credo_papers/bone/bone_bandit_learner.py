"""The agents of `bone-bandit`: one learner for every arm, and a policy between them."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

import credo
from credo.bandits import UCB, Agent, Thompson
from credo.bandits.policies import Policy
from credo.core.trees import as_like
from credo.core.types import Array, ArrayLike, PyTree
from credo.covariances import Diagonal
from credo.learners import BetaBernoulli, RecursiveLearner
from credo.likelihoods import Expectation, LatentExpectation
from credo_papers.bone.bone_bandit_world import ARMS
from credo_papers.bone.bone_learner import TracedValues, make
from credo_papers.bone.bone_plan import BoneProgram

__all__ = ["agent_of", "prior_of"]

MODEL = credo.Model(lambda w, x: w, credo.Bernoulli())
"""A chance that is the logistic function of one parameter."""


@credo.record
class NarrowThompson(Policy):
    """Thompson sampling with `explore` times the standard deviations, as in Agrawal & Goyal 2013.

    Arguments:
        explore: the factor, above 0; only normal distributions on the latent scale are made narrower.
    """

    explore: ArrayLike = 1.0

    def probabilities(self, expectation: Expectation, allowed: Array, t: Array, key: Array) -> Array:
        """The probability that each arm is best under the narrower distributions."""

        def narrow(node: Any) -> Any:
            if not isinstance(node, LatentExpectation):
                return node
            return credo.replace(node, cov=node.cov * as_like(self.explore, node.cov) ** 2)

        distribution: Expectation = jax.tree.map(
            narrow, expectation, is_leaf=lambda node: isinstance(node, LatentExpectation)
        )
        return Thompson().probabilities(distribution, allowed, t, key)


def agent_of(program: BoneProgram, values: TracedValues) -> Agent:
    """The agent of a method.

    Arguments:
        program: see `bone_learner.make`; the method "beta" is a conjugate learner.
        values: the numbers of the method, and the `width` of UCB; without it, arms are drawn by Thompson
            sampling. `explore` multiplies the standard deviations that Thompson sampling draws with.
    """
    if program.get("method") == "beta":
        learner: credo.Learner[object] = BetaBernoulli(forgetting=values["forgetting"])  # type: ignore[assignment]
    else:
        learner = make(RecursiveLearner(MODEL, Diagonal()), program, values)
    policy: Policy = NarrowThompson(values.get("explore", 1.0))
    if "width" in values:
        policy = UCB(values["width"])
    return Agent(learner, ARMS, "arms", policy)


def prior_of(program: BoneProgram, values: TracedValues) -> tuple[PyTree, PyTree]:
    """The prior mean and variance of each arm's learner; a Beta arm has a prior of its own."""
    if program.get("method") == "beta":
        return None, 1.0
    return jnp.zeros(1), values.get("var", 1.0)
