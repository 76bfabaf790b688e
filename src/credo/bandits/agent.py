"""An agent: a learner of rewards, how arms share it, and the policy that chooses."""

from __future__ import annotations

from typing import Any, Generic, Literal, TypeAlias, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from credo.adapt.nested import floating
from credo.bandits.choice import Choice
from credo.bandits.designs import Design, DesignName, design_of, expect_arms
from credo.bandits.policies import Policy, Thompson
from credo.bandits.scaling import Scaler
from credo.bandits.units import LearnedUnits, Row, learn_in_units
from credo.core.errors import CredoError, require_choice, require_integer
from credo.core.inputs import require_numbers
from credo.core.keys import as_key
from credo.core.names import ForecastName
from credo.core.records import record, replace, static_field
from credo.core.trees import all_finite, select
from credo.core.types import Array, ArrayLike, Key, PyTree
from credo.core.verbs import verb
from credo.learners import Info, Learner
from credo.learners.acceptance import call_fenced
from credo.learners.base import Belief, require_learner
from credo.likelihoods import Expectation, Predictive, Rescaled, RescaledExpectation

__all__ = ["Agent", "AgentBelief", "UnitsName"]

B = TypeVar("B", bound=Belief)
"""The kind of belief that the learner keeps."""

ScaleName: TypeAlias = Literal["online"]
"""How inputs are scaled."""

UnitsName: TypeAlias = Literal["online"]
"""How the units of rewards are found."""


@record
class AgentBelief(Generic[B]):
    """What an agent believes.

    Attributes:
        belief: the belief of the learner, or the beliefs of the arms' learners.
        scaler: the running moments of the contexts, where they are standardised.
        t: how many steps have passed: the rewards that came, late or not.
        units: what is known of the units of rewards, where they are learned in units of their own.

    Example:
        >>> import credo
        >>> from credo import bandits
        >>> agent = bandits.Agent(credo.BetaBernoulli(), arms=3, design="arms")
        >>> int(agent.init().t)
        0
    """

    belief: B
    scaler: Scaler | None
    t: Array
    units: LearnedUnits | None = None


@record
class Rewards(Learner[AgentBelief[B]], Generic[B]):
    """The agent's learner of rewards: its inputs are pairs (context, arm)."""

    design: Learner[B]
    arms: int = static_field()
    clip: ArrayLike | None = None
    units: UnitsName | None = static_field(default=None)

    def init(
        self, params: PyTree = None, *, var: PyTree = 1.0, context: PyTree = None, **others: PyTree
    ) -> AgentBelief[B]:
        scales, shape = self.clip is not None, getattr(context, "shape", None)
        if (scales and not shape) or (self.units is not None and shape is None):
            what = "contexts are scaled" if scales else "rewards have units"
            raise CredoError(
                f"context must be an example of a context, an array, where {what} online; got {context!r}.",
                field="context",
            )
        inner = self.design.init(params, var=var, **others)
        scaler = None if self.clip is None else replace(Scaler.start(context), clip=self.clip)
        units = None if self.units is None else LearnedUnits.start(context, floating(inner))
        return AgentBelief(inner, scaler, jnp.zeros((), jnp.int32), units)

    def scaled(self, belief: AgentBelief[B], context: PyTree) -> PyTree:
        """The context in units of those before it; NaN where it is not finite, so that it is not learned."""
        if belief.scaler is None:
            return context
        return jnp.where(all_finite(context), belief.scaler.apply(context), jnp.nan)

    def inputs_of(self, row: PyTree) -> PyTree:
        parts = jax.tree.leaves(self.design, is_leaf=lambda node: isinstance(node, Design))
        inside = next((part for part in parts if isinstance(part, Design)), self.design)
        return inside.inputs_of(row)  # a wrapper around designs has none of its own

    def time_update(self, belief: AgentBelief[B], dt: ArrayLike | None) -> AgentBelief[B]:
        return replace(belief, belief=self.design.time_update(belief.belief, dt), t=belief.t + 1)

    def predictive(
        self,
        belief: AgentBelief[B],
        x: PyTree,
        method: ForecastName | None,
        samples: int | None,
        key: Key | None,
    ) -> Predictive:
        inputs = (self.scaled(belief, x[0]), x[1])
        return _own_units(belief, self.design.predictive(belief.belief, inputs, method, samples, key))

    def scaled_predictive(self, belief: AgentBelief[B], x: PyTree, scale: ArrayLike) -> Predictive:
        inputs = (self.scaled(belief, x[0]), x[1])
        return _own_units(belief, self.design.scaled_predictive(belief.belief, inputs, scale))

    def measurement_update(
        self, belief: AgentBelief[B], x: PyTree, y: PyTree, weight: ArrayLike, key: Key | None
    ) -> tuple[AgentBelief[B], Info]:
        context, arm = x
        scaler = None if belief.scaler is None else belief.scaler.observe(context)
        inputs = self.scaled(belief, context)
        exists = (arm >= 0) & (arm < self.arms)
        reward = jnp.where(exists, jnp.asarray(y, jnp.result_type(float)), jnp.nan)
        place = jnp.clip(arm, 0, self.arms - 1)
        inner, units, info = self._learn(belief, inputs, place, reward, weight, key)
        # A context that is not finite must not spoil the moments.
        sound = info.ok & all_finite(scaler)
        kept = None if belief.scaler is None else select(sound, scaler, belief.scaler)
        return AgentBelief(inner, kept, belief.t, units), info

    def _learn(
        self,
        belief: AgentBelief[B],
        inputs: PyTree,
        arm: Array,
        reward: Array,
        weight: ArrayLike,
        key: Key | None,
    ) -> tuple[B, LearnedUnits | None, Info]:
        """The belief inside after a reward, the units, and what the update reported."""
        if belief.units is None:
            inner, info = self.design.measurement_update(belief.belief, (inputs, arm), reward, weight, key)
            return inner, None, info
        kind = belief.units.known.dtype
        here = jnp.isfinite(reward) & all_finite(inputs)

        def learn(inner: B, row: Row) -> tuple[B, Info]:
            return self.design.measurement_update(inner, (row.inputs, row.arm), row.reward, row.weight, key)

        share = jnp.where(here, weight, 0.0).astype(kind)
        row = Row(inputs, arm, jnp.where(here, reward, jnp.nan).astype(kind), share)
        inner, units, info = learn_in_units(learn, belief.belief, belief.units, row)
        fresh = units.known[1] != belief.units.known[1]  # by which rewards that waited were learned
        return inner, select(info.ok | fresh, units, belief.units), replace(info, ok=info.ok & here)

    def draws(self, belief: AgentBelief[B], key: Key, shape: tuple[int, ...]) -> PyTree:
        return self.design.draws(belief.belief, key, shape)

    def expectation(self, belief: AgentBelief[B], x: PyTree) -> Expectation:
        law = self.design.expectation(belief.belief, (self.scaled(belief, x[0]), x[1]))
        return (
            law
            if belief.units is None
            else RescaledExpectation(law, belief.units.location, belief.units.scale)
        )

    def expect_arms(self, belief: AgentBelief[B], context: PyTree) -> Expectation:
        """The joint law of the expected rewards of all arms at the next step, in units in which they are
        learned."""
        later = self.time_update(belief, None)
        return expect_arms(self.design, later.belief, self.scaled(belief, context))


def _own_units(belief: AgentBelief[Any], predictive: Predictive) -> Predictive:
    """A forecast of a reward in the reward's own units."""
    units = belief.units
    return predictive if units is None else Rescaled(predictive, units.location, units.scale)


def _own_expectation(belief: AgentBelief[Any], law: Expectation) -> Expectation:
    """The law of expected rewards in the reward's own units."""
    units = belief.units
    return law if units is None else RescaledExpectation(law, units.location, units.scale)


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
            rewards in cents and in euros, or with something added, lead to the same choices. None learns
            rewards as they come, for priors that are in the units of rewards.

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
        """What is believed about the expected rewards of all arms at the next step.

        Arguments:
            belief: the belief.
            x: the context.

        Returns:
            The joint law of K numbers.
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
        """Let time pass, and learn the reward of the chosen arm.

        Arguments:
            belief: the belief.
            x: the context of the decision.
            arm: the arm that was chosen.
            reward: its reward; NaN where it never came.
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
                f"arm must be a whole number from 0 to {self.arms - 1}; got {arm!r}.", field="arm"
            )
        pair = (x, jnp.asarray(arm, jnp.int32))
        return self.rewards.step(belief, pair, reward, weight=weight, dt=dt, key=key)


@verb
def _expect(agent: Agent, belief: AgentBelief[Any], x: PyTree) -> Expectation:
    law = agent.rewards.expect_arms(belief, x)
    return (
        law if belief.units is None else RescaledExpectation(law, belief.units.location, belief.units.scale)
    )


@verb
def _decide(
    agent: Agent, belief: AgentBelief[Any], x: PyTree, key: Array, allowed: ArrayLike | None
) -> Choice:
    return call_fenced(_choose, (agent, belief, x, key, allowed))


def _choose(
    agent: Agent, belief: AgentBelief[Any], x: PyTree, key: Array, allowed: ArrayLike | None
) -> Choice:
    law = agent.rewards.expect_arms(belief, x)
    mean, sd = law.mean, law.sd
    mask = jnp.ones(agent.arms, bool) if allowed is None else jnp.asarray(allowed, bool)
    first, second = jax.random.split(key)
    pmf = agent.policy.pmf(law, mask, belief.t, first)
    share = mask.astype(pmf.dtype)
    pmf = jnp.where(jnp.all(jnp.isfinite(pmf)), pmf, share / jnp.sum(share))
    arm = draw(pmf, second)
    if belief.units is not None:
        mean, sd = belief.units.location + belief.units.scale * mean, belief.units.scale * sd
    return Choice(arm, pmf[arm], pmf, mean, sd)


def draw(pmf: Array, key: Array) -> Array:
    """An arm drawn from its pmf (K,), by one uniform number; an arm of probability 0 never comes."""
    steps = jnp.cumsum(pmf)
    point = jax.random.uniform(key, (), pmf.dtype) * steps[-1]
    arm = jnp.sum(steps <= point)
    last = pmf.shape[0] - 1 - jnp.argmax(pmf[::-1] > 0)
    return jnp.minimum(arm, last.astype(arm.dtype)).astype(jnp.int32)
