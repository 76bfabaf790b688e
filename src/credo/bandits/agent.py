"""An agent: a learner of rewards, how arms share it, and the policy that chooses; and what it decided."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from credo.bandits.designs import DesignName, design_of
from credo.bandits.policies import Policy, Thompson
from credo.bandits.rewards import AgentBelief, Rewards, UnitsName, own_expectation
from credo.core.errors import CredoError, require_choice, require_integer, require_positive, shown
from credo.core.inputs import require_numbers
from credo.core.keys import as_key, split_in_two
from credo.core.platforms import in_branch
from credo.core.records import record, static_field
from credo.core.types import Array, ArrayLike, Key, PyTree
from credo.core.verbs import verb
from credo.learners import Info, Learner
from credo.learners.acceptance import call_fenced
from credo.learners.base import require_learner
from credo.likelihoods import Expectation

__all__ = ["Agent", "AgentBelief", "Choice", "UnitsName"]


@record
class Choice:
    """A decision, with all that must be kept on record of it.

    Attributes:
        arm: the number of the chosen arm, from 0.
        propensity: the probability with which it was chosen, which is exact: the arm is drawn from `pmf`.
        pmf: the probability of every arm (K,), which sums to 1.
        mean: the expected reward of every arm (K,), in units of the reward.
        sd: the standard deviation of the expected reward of every arm (K,), without the noise.

    Example:
        >>> import credo
        >>> from credo import bandits
        >>> agent = bandits.Agent(credo.BetaBernoulli(), arms=3, design="arms")
        >>> choice = agent.decide(agent.init(), None, key=0)
        >>> round(float(choice.propensity), 4), choice.mean.tolist()
        (0.3333, [0.5, 0.5, 0.5])
    """

    arm: Array
    propensity: Array
    pmf: Array
    mean: Array
    sd: Array


ScaleName: TypeAlias = Literal["online"]
"""The scaling of inputs."""


@record
class Agent:
    """A learner of rewards that chooses arms: it sees the reward of the chosen arm alone, and learns from it.

    Arguments:
        learner: any learner or wrapper, a model of one reward.
        arms: the number K of arms.
        design: how arms share the learner: "arms" (each arm has a learner of its own), "outputs" (the model
            has K outputs, one an arm), "actions" (the context is a row of features for each arm), or "pairs"
            (the learner is a design itself, or a wrapper around designs, such as `Experts` of unlike ones).
        policy: how the arm is chosen, given what is believed about the expected rewards; by default
            `Thompson()`.
        scale: "online" standardises contexts by the running moments of those that were learned from; None
            takes them as they are.
        clip: where standardised contexts are cut off, in standard deviations.
        units: "online" learns rewards in units that the first ten rewards say, which wait until then, so that
            rewards in cents and in euros, or with something added, lead to the same choices. If those are all
            alike, the first that differs and the nine after it say the units. None learns rewards as they
            come, for priors that are in the units of rewards.

    Raises:
        CredoError: a value is not allowed; the sentence names it.

    The *policy* is exact: the arm is drawn from the pmf on record, so its propensity is the true one. What
    the learner approximates, it approximates here too.

    Example:
        >>> import credo
        >>> from credo import bandits
        >>> model = credo.Model(credo.Linear(), credo.Normal(0.1))
        >>> agent = bandits.Agent(credo.extended_kalman(model), arms=2, design="arms")
        >>> belief = agent.init(credo.Linear().init(0, (3,)))
        >>> choice = agent.decide(belief, jnp.ones(3), key=0)
        >>> belief, info = agent.update(belief, jnp.ones(3), choice.arm, 1.0)
        >>> bool(agent.decide(belief, jnp.ones(3), key=1).pmf[choice.arm] > 0.5)
        True
    """

    learner: Learner[Any]
    arms: int = static_field()
    design: DesignName = static_field(default="outputs")
    policy: Policy = Thompson()
    scale: ScaleName | None = static_field(default=None)
    clip: ArrayLike = 8.0
    units: UnitsName | None = static_field(default=None)

    def __post_init__(self) -> None:
        if type(self.learner) is object or type(self.policy) is object:  # what JAX puts in place of a tree
            return
        require_learner("learner", self.learner)
        require_integer("arms", self.arms, 2)
        require_choice("design", self.design, ("arms", "outputs", "actions", "pairs"))
        if self.scale is not None:
            require_choice("scale", self.scale, ("online",))
        require_positive("clip", self.clip)
        if self.units is not None:
            require_choice("units", self.units, ("online",))
        if not isinstance(self.policy, Policy):
            raise CredoError(
                f"policy must be a policy of credo.bandits, such as Thompson(); got {self.policy!r}.",
                field="policy",
            )

    @property
    def takes_example(self) -> bool:
        """Whether `init` takes an example of a context."""
        return self.scale is not None or self.units is not None

    @property
    def rewards(self) -> Rewards[Any]:
        """The learner of rewards. Its inputs are pairs (context, arm), and all verbs of learners work on it.

        `credo.run(agent.rewards, belief, (contexts, arms), rewards)` learns a log, and `credo.evaluate` says
        how well the rewards of the chosen arms were forecast.
        """
        return Rewards(
            design_of(self.design, self.learner, self.arms),
            self.arms,
            None if self.scale is None else self.clip,
            self.units,
        )

    def init(self, params: PyTree = None, *, var: PyTree = 1.0, **others: PyTree) -> AgentBelief[Any]:
        """The belief before any reward.

        Arguments:
            params, var: the prior mean and variance, as for the learner.
            others: further arguments of the learner's `init`; and with `scale="online"` or `units="online"`,
                `context`: an example of a context, whose shape alone counts.

        Returns:
            The belief.
        """
        return self.rewards.init(params, var=var, **others)

    def expect(self, belief: AgentBelief[Any], x: PyTree) -> Expectation:
        """The belief about the expected rewards of all arms at the next step.

        Arguments:
            belief: the belief.
            x: the context.

        Returns:
            The joint distribution of K numbers.
        """
        return _expect(self, belief, x)

    def decide(
        self, belief: AgentBelief[Any], x: PyTree, key: Key, allowed: ArrayLike | None = None
    ) -> Choice:
        """Choose an arm. Nothing is learned.

        Arguments:
            belief: the belief.
            x: the context: whatever the learner takes; or with design "actions" a row for each arm.
            key: the key of this decision, which must be another one for every decision.
            allowed: which arms may be chosen, booleans (K,); None for all.

        Returns:
            The choice, with the probability of every arm. A context that is not finite gives NaN in `mean`
            and the pmf of a uniform choice among allowed arms.

        Raises:
            CredoError: no arm is allowed, or x holds no numbers.
        """
        require_numbers("x", x)
        if allowed is not None and not isinstance(allowed, Tracer):
            mask = np.asarray(allowed)
            if mask.shape != (self.arms,) or not mask.any():
                raise CredoError(
                    f"allowed must be {self.arms} booleans of which at least one is True; got {allowed!r}.",
                    field="allowed",
                )
        return _decide(self, belief, x, as_key(key), allowed)

    def update(
        self,
        belief: AgentBelief[Any],
        x: PyTree,
        arm: ArrayLike,
        reward: ArrayLike,
        *,
        weight: ArrayLike = 1.0,
        dt: ArrayLike | None = None,
        key: Key | None = None,
    ) -> tuple[AgentBelief[Any], Info]:
        """Apply the time update, and learn the reward of the chosen arm.

        Arguments:
            belief: the belief.
            x: the context of the decision.
            arm: the arm that was chosen.
            reward: its reward; NaN if it never came.
            weight: a number, at least 0, by which the reward counts.
            dt: the length of the step; None means 1.
            key: the key of this update, for learners that draw; another one than that of the decision.

        Returns:
            The belief, and an `Info`. With a NaN reward, or a context that is not finite, time passes and
            nothing else changes.

        Raises:
            CredoError: there is no such arm.
        """
        if not isinstance(arm, Tracer) and not (
            np.ndim(arm) == 0 and np.asarray(arm).dtype.kind in "iu" and 0 <= int(np.asarray(arm)) < self.arms
        ):
            raise CredoError(
                f"arm must be a whole number from 0 to {self.arms - 1}; got {shown(arm)}.", field="arm"
            )
        pair = (x, jnp.asarray(arm, jnp.int32))
        return self.rewards.step(belief, pair, reward, weight=weight, dt=dt, key=key)


@verb
def _expect(agent: Agent, belief: AgentBelief[Any], x: PyTree) -> Expectation:
    return own_expectation(belief, agent.rewards.expect_arms(belief, x))


@verb
def _decide(
    agent: Agent, belief: AgentBelief[Any], x: PyTree, key: Array, allowed: ArrayLike | None
) -> Choice:
    return call_fenced(_choose, (agent, belief, x, key, allowed))


def _choose(
    agent: Agent, belief: AgentBelief[Any], x: PyTree, key: Array, allowed: ArrayLike | None
) -> Choice:
    distribution, mean, sd = in_branch(_expected, agent, belief, x)
    mask = jnp.ones(agent.arms, bool) if allowed is None else jnp.asarray(allowed, bool)
    first, second = split_in_two(key)
    pmf = agent.policy.pmf(distribution, mask, belief.t, first)
    share = mask.astype(pmf.dtype)
    pmf = jnp.where(jnp.all(jnp.isfinite(pmf)), pmf, share / jnp.sum(share))
    arm = draw(pmf, second)
    return Choice(arm, pmf[arm], pmf, mean, sd)


def _expected(agent: Agent, belief: AgentBelief[Any], x: PyTree) -> tuple[Expectation, Array, Array]:
    """The distribution of expected rewards, with its means and standard deviations in the rewards' own units.

    `_choose` asks for it in a branch, which leaves fewer operations ready at once in either part. If there
    are more than eight, XLA wakes another thread, which can take longer than the decision.
    """
    distribution = agent.rewards.expect_arms(belief, x)
    mean = distribution.mean
    sd = distribution.sd
    if belief.units is not None:
        mean = belief.units.location + belief.units.scale * mean
        sd = belief.units.scale * sd
    return distribution, mean, sd


def draw(pmf: Array, key: Array) -> Array:
    """An arm drawn from its pmf (K,), by one uniform number; an arm of probability 0 never comes."""
    steps = jnp.cumsum(pmf)
    point = jax.random.uniform(key, (), pmf.dtype) * steps[-1]
    arm = jnp.sum(steps <= point)
    last = pmf.shape[0] - 1 - jnp.argmax(pmf[::-1] > 0)
    return jnp.minimum(arm, last.astype(arm.dtype)).astype(jnp.int32)
