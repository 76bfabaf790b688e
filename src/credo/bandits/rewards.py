"""The learner of an agent's rewards: contexts and rewards in units of those before, and what is believed."""

from __future__ import annotations

from typing import Any, Generic, Literal, TypeAlias, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from credo.adapt import RunningMoments
from credo.adapt.nested import floating
from credo.bandits.designs import Design, expect_arms
from credo.bandits.units import LearnedUnits, Row, learn_in_units, numbers_of
from credo.core.errors import CredoError
from credo.core.names import ForecastName
from credo.core.platforms import in_branch
from credo.core.records import record, replace, static_field
from credo.core.trees import all_finite, select
from credo.core.types import Array, ArrayLike, Key, PyTree
from credo.learners import Info, Learner
from credo.learners.base import Belief
from credo.likelihoods import Expectation, Predictive, Rescaled, RescaledExpectation

__all__ = ["AgentBelief", "Rewards", "Scaler", "UnitsName", "own_expectation"]


@record
class Scaler:
    """The running moments of contexts, by which later contexts are standardised.

    They are `credo.adapt.RunningMoments`, which no single value can ruin.

    Attributes:
        moments: the moments of each input (d,).
        clip: standardised inputs are cut off at plus and minus this many standard deviations.

    Example:
        >>> scaler = Scaler.start(jnp.zeros(1))
        >>> for value in (10.0, 20.0, 30.0):
        ...     scaler = scaler.observe(jnp.array([value]))
        >>> scaler.apply(jnp.array([35.0])).tolist()
        [1.5]
    """

    moments: RunningMoments
    clip: ArrayLike = 8.0

    @staticmethod
    def start(like: Array, clip: ArrayLike = 8.0) -> Scaler:
        """A scaler that has seen nothing.

        Arguments:
            like: one row of inputs (d,), or several (K, d); its values do not count.
            clip: see above.
        """
        kind = jnp.asarray(like).dtype
        kind = kind if jnp.issubdtype(kind, jnp.floating) else jnp.result_type(float)
        return Scaler(RunningMoments.empty(jnp.shape(like)[-1:], kind), clip)

    def init_arguments(self) -> dict[str, PyTree]:
        """The arguments of `init` that a belief with this part began from: a context, by its shapes."""
        return {"context": np.zeros(np.shape(self.mean), self.mean.dtype)}

    @property
    def mean(self) -> Array:
        """The mean of each input (d,)."""
        return self.moments.mean

    def observe(self, x: PyTree) -> Scaler:
        """The scaler after one row (d,), or after several (K, d), one after the other."""
        rows = jnp.atleast_2d(jnp.asarray(x, self.moments.values.dtype))
        if rows.shape[0] == 1:
            return Scaler(self.moments.observe(rows[0]), self.clip)
        last, _ = jax.lax.scan(lambda moments, row: (moments.observe(row), None), self.moments, rows)
        return Scaler(last, self.clip)

    def apply(self, x: PyTree) -> Array:
        """Standardised inputs, of the shape of x; 0 if no spread is known."""
        rows = jnp.asarray(x, self.moments.values.dtype)
        if rows.ndim == 1:
            return self.moments.z(rows, self.clip)
        z: Array = jax.vmap(lambda row: self.moments.z(row, self.clip))(rows)
        return z


B = TypeVar("B", bound=Belief)
"""The kind of belief that the learner keeps."""

UnitsName: TypeAlias = Literal["online"]
"""The way in which the units of rewards are found."""


@record
class AgentBelief(Generic[B]):
    """The belief of an agent.

    Attributes:
        belief: the belief of the learner, or the beliefs of the arms' learners.
        scaler: the running moments of the contexts, if they are standardised.
        t: how many steps have passed: the rewards that came, late or not.
        units: what is known of the units of rewards, if they are learned in units of their own.

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
        scales = self.clip is not None
        shape = getattr(context, "shape", None)
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
        """The context in units of those before it; NaN if it is not finite, so that it is not learned."""
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

    def scaled_predictive(self, belief: AgentBelief[B], x: PyTree, scale: ArrayLike | None) -> Predictive:
        inputs = (self.scaled(belief, x[0]), x[1])
        return _own_units(belief, self.design.scaled_predictive(belief.belief, inputs, scale))

    def measurement_update(
        self, belief: AgentBelief[B], x: PyTree, y: PyTree, weight: ArrayLike, key: Key | None
    ) -> tuple[AgentBelief[B], Info]:
        return self.observe(belief, x, y, weight, key)

    def observe(
        self,
        belief: AgentBelief[B],
        x: PyTree,
        y: PyTree,
        weight: ArrayLike,
        key: Key | None,
        *,
        alone: bool = False,
    ) -> tuple[AgentBelief[B], Info]:
        """`measurement_update`; with `alone` without the rewards that waited until their units are known."""
        context, arm = x
        scaler = None if belief.scaler is None else belief.scaler.observe(context)
        inputs = self.scaled(belief, context)
        exists = (arm >= 0) & (arm < self.arms)
        reward = jnp.where(exists, jnp.asarray(y, jnp.result_type(float)), jnp.nan)
        place = jnp.clip(arm, 0, self.arms - 1)
        inner, units, info = self._learn(belief, (inputs, place), reward, weight, key, alone)
        # A context that is not finite must not spoil the moments.
        sound = info.ok & all_finite(scaler)
        kept = None if belief.scaler is None else select(sound, scaler, belief.scaler)
        return AgentBelief(inner, kept, belief.t, units), info

    def _learn(
        self,
        belief: AgentBelief[B],
        pair: tuple[PyTree, Array],
        reward: Array,
        weight: ArrayLike,
        key: Key | None,
        alone: bool,
    ) -> tuple[B, LearnedUnits | None, Info]:
        """The belief inside after a reward, the units, and what the update reported."""
        inputs, arm = pair
        if belief.units is None:
            inner, info = self.design.measurement_update(belief.belief, pair, reward, weight, key)
            return inner, None, info
        kind = belief.units.known.dtype
        here = jnp.isfinite(reward) & all_finite(inputs)

        def learn(inner: B, row: Row) -> tuple[B, Info]:
            return self.design.measurement_update(inner, (row.inputs, row.arm), row.reward, row.weight, key)

        share = jnp.where(here, weight, 0.0).astype(kind)
        row = Row(numbers_of(inputs), arm, jnp.where(here, reward, jnp.nan).astype(kind), share)
        inner, units, info = learn_in_units(learn, belief.belief, belief.units, row, alone=alone)
        fresh = units.known[1] != belief.units.known[1]  # by which rewards that waited were learned
        return inner, select(info.ok | fresh, units, belief.units), replace(info, ok=info.ok & here)

    def draws(self, belief: AgentBelief[B], key: Key, shape: tuple[int, ...]) -> PyTree:
        return self.design.draws(belief.belief, key, shape)

    def expectation(self, belief: AgentBelief[B], x: PyTree) -> Expectation:
        distribution = self.design.expectation(belief.belief, (self.scaled(belief, x[0]), x[1]))
        return own_expectation(belief, distribution)

    def expect_arms(self, belief: AgentBelief[B], context: PyTree) -> Expectation:
        """The joint distribution of all expected rewards at the next step, in units in which they are
        learned."""
        later = self.time_update(belief, None)
        inputs = in_branch(self.scaled, belief, context)  # see `agent._expected`
        return expect_arms(self.design, later.belief, inputs)


def _own_units(belief: AgentBelief[Any], predictive: Predictive) -> Predictive:
    """A forecast of a reward in the reward's own units."""
    units = belief.units
    if units is None:
        return predictive
    return Rescaled(predictive, units.location, units.scale)


def own_expectation(belief: AgentBelief[Any], distribution: Expectation) -> Expectation:
    """The distribution of expected rewards in the reward's own units."""
    units = belief.units
    if units is None:
        return distribution
    return RescaledExpectation(distribution, units.location, units.scale)
