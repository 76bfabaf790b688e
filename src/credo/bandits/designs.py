"""Ways in which arms share a learner: one learner an arm, one output an arm, or one row of features an arm.

A design is a learner whose inputs are pairs (context, arm), so that rewards are learned by the verbs that all
learners have; and it says what is expected of every arm at one context.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Generic, Literal, TypeAlias, TypeVar

import jax
import jax.numpy as jnp

from credo.adapt.wrapper import Proposing
from credo.core.errors import CredoError
from credo.core.keys import as_key
from credo.core.names import ForecastName
from credo.core.records import record, replace, static_field
from credo.core.types import Array, ArrayLike, Key, PyTree
from credo.learners import Info, Learner
from credo.learners.base import Belief
from credo.likelihoods import Expectation, IndependentExpectation, Predictive, Rows
from credo.models.model import Model, Picked, joint

__all__ = ["ActionsDesign", "ArmsDesign", "Design", "DesignName", "OutputsDesign", "design_of", "expect_arms"]

DesignName: TypeAlias = Literal["arms", "outputs", "actions", "pairs"]
"""The names of the designs."""

B = TypeVar("B", bound=Belief)
"""The kind of belief that the learner inside keeps."""


def with_models(learner: Learner[Any], change: Callable[[Model], Model]) -> Learner[Any]:
    """The learner with another model in place of each of its own, however deep they lie; a CredoError where
    there is none.
    """

    def is_model(node: object) -> bool:
        return isinstance(node, Model)

    nodes = jax.tree.leaves(learner, is_leaf=is_model)
    if not any(is_model(node) for node in nodes):
        raise CredoError(f"a {type(learner).__name__} has no model of inputs: choose design='arms'.")
    changed: Learner[Any] = jax.tree.map(
        lambda node: change(node) if is_model(node) else node, learner, is_leaf=is_model
    )
    return changed


class Design(Learner[B], Generic[B]):
    """A learner over pairs (context, arm), which also says what is expected of every arm."""

    arms: int

    def inputs_of(self, row: PyTree) -> PyTree:
        """The row as a context, and the first arm."""
        return row, jnp.zeros((), jnp.int32)

    @abstractmethod
    def expect_arms(self, belief: B, context: PyTree) -> Expectation:
        """The joint distribution of the expected rewards of all K arms, by a predicted belief."""


@record
class _Shared(Design[B], Generic[B]):
    """One belief for all arms: all verbs are those of the learner inside, with another model."""

    learner: Learner[B]
    arms: int = static_field()

    @property
    @abstractmethod
    def observing(self) -> Learner[B]:
        """The learner that observes one arm."""

    @property
    @abstractmethod
    def asking(self) -> Learner[B]:
        """The learner that is asked about all arms."""

    def arm_inputs(self, x: tuple[PyTree, Array]) -> PyTree:
        """The inputs of the observing learner for a pair (context, arm)."""
        return x

    def init(self, params: PyTree = None, *, var: PyTree = 1.0, **others: PyTree) -> B:
        """The first belief of the learner inside; the arguments are its own."""
        return self.observing.init(params, var=var, **others)

    def time_update(self, belief: B, dt: ArrayLike | None) -> B:
        return self.observing.time_update(belief, dt)

    def predictive(
        self, belief: B, x: PyTree, method: ForecastName | None, samples: int | None, key: Key | None
    ) -> Predictive:
        return self.observing.predictive(belief, self.arm_inputs(x), method, samples, key)

    def scaled_predictive(self, belief: B, x: PyTree, scale: ArrayLike | None) -> Predictive:
        return self.observing.scaled_predictive(belief, self.arm_inputs(x), scale)

    def measurement_update(
        self, belief: B, x: PyTree, y: PyTree, weight: ArrayLike, key: Key | None
    ) -> tuple[B, Info]:
        return self.observing.measurement_update(belief, self.arm_inputs(x), y, weight, key)

    def draws(self, belief: B, key: Key, shape: tuple[int, ...]) -> PyTree:
        return self.observing.draws(belief, key, shape)

    def expectation(self, belief: B, x: PyTree) -> Expectation:
        return self.observing.expectation(belief, self.arm_inputs(x))

    def expect_arms(self, belief: B, context: PyTree) -> Expectation:
        distribution = self.asking.expectation(belief, context)
        if distribution.size != self.arms:
            raise CredoError(
                "arms must be the number of outputs of the model, or of rows of x; got "
                f"{self.arms} arms, and {distribution.size} expected rewards.",
                field="arms",
            )
        return distribution


@record
class OutputsDesign(_Shared[B], Generic[B]):
    """A learner whose model has K outputs, one an arm; a reward is an observation of one output.

    Arguments:
        learner: any learner whose model has K outputs, with the likelihood of one reward.
        arms: K.
    """

    @property
    def observing(self) -> Learner[B]:
        return with_models(self.learner, lambda model: replace(model, apply=Picked(model.apply)))

    @property
    def asking(self) -> Learner[B]:
        def join(model: Model) -> Model:
            return replace(model, likelihood=Rows(model.likelihood))

        return with_models(self.learner, join)


@record
class ActionsDesign(_Shared[B], Generic[B]):
    """A learner of the features of (context, action): the context is a row of inputs for each arm.

    Arguments:
        learner: any learner whose model has one output.
        arms: the number K of rows.
    """

    @property
    def observing(self) -> Learner[B]:
        return self.learner

    @property
    def asking(self) -> Learner[B]:
        return with_models(self.learner, joint)

    def inputs_of(self, row: PyTree) -> PyTree:
        """The row as that of every arm, and the first arm."""
        context = jax.tree.map(lambda leaf: jnp.zeros((self.arms, *leaf.shape), leaf.dtype), row)
        return context, jnp.zeros((), jnp.int32)

    def arm_inputs(self, x: tuple[PyTree, Array]) -> PyTree:
        """The row of the arm."""
        context, arm = x
        return jax.tree.map(lambda leaf: jnp.asarray(leaf)[arm], context)


@record
class ArmBeliefs(Generic[B]):
    """The beliefs of the arms' learners, whose arrays have a leading axis K, and how many times `predict` has
    been called.
    """

    beliefs: B
    t: Array


@record
class ArmsDesign(Design[ArmBeliefs[B]], Generic[B]):
    """A learner for each arm, all alike and independent of each other ("disjoint").

    Arguments:
        learner: any learner of one reward. If its hyper-parameters have a leading axis K, as a bank's,
            every arm has its own.
        arms: the number K of arms.
    """

    learner: Learner[B]
    arms: int = static_field()

    def init(self, params: PyTree = None, *, var: PyTree = 1.0, **others: PyTree) -> ArmBeliefs[B]:
        """The first belief of the learner inside, once an arm; the arguments are its own."""
        first = self.learner.init(params, var=var, **others)

        def repeat(leaf: ArrayLike) -> Array:
            array = jnp.asarray(leaf)
            return jnp.broadcast_to(array[None], (self.arms, *array.shape))

        return ArmBeliefs(jax.tree.map(repeat, first), jnp.zeros((), jnp.int32))

    def time_update(self, belief: ArmBeliefs[B], dt: ArrayLike | None) -> ArmBeliefs[B]:
        later = jax.vmap(lambda one: self.learner.time_update(one, dt))(belief.beliefs)
        return ArmBeliefs(later, belief.t + 1)

    def predictive(
        self,
        belief: ArmBeliefs[B],
        x: PyTree,
        method: ForecastName | None,
        samples: int | None,
        key: Key | None,
    ) -> Predictive:
        context, arm = x
        return self.learner.predictive(_of_arm(belief, arm), context, method, samples, key)

    def scaled_predictive(self, belief: ArmBeliefs[B], x: PyTree, scale: ArrayLike | None) -> Predictive:
        context, arm = x
        return self.learner.scaled_predictive(_of_arm(belief, arm), context, scale)

    def measurement_update(
        self, belief: ArmBeliefs[B], x: PyTree, y: PyTree, weight: ArrayLike, key: Key | None
    ) -> tuple[ArmBeliefs[B], Info]:
        context, arm = x
        own = None if key is None else jax.random.fold_in(as_key(key), arm)
        new, info = self.learner.measurement_update(_of_arm(belief, arm), context, y, weight, own)

        def put(leaves: Array, leaf: Array) -> Array:
            written: Array = jax.lax.dynamic_update_index_in_dim(leaves, leaf.astype(leaves.dtype), arm, 0)
            return written

        return replace(belief, beliefs=jax.tree.map(put, belief.beliefs, new)), info

    def draws(self, belief: ArmBeliefs[B], key: Key, shape: tuple[int, ...]) -> PyTree:
        """Parameters of every arm, with a leading axis K after `shape`."""
        keys = jax.random.split(as_key(key), self.arms)
        draws = jax.vmap(lambda one, own: self.learner.draws(one, own, shape))(belief.beliefs, keys)
        return jax.tree.map(lambda leaf: jnp.moveaxis(leaf, 0, len(shape)), draws)

    def expectation(self, belief: ArmBeliefs[B], x: PyTree) -> Expectation:
        context, arm = x
        return self.learner.expectation(_of_arm(belief, arm), context)

    def expect_arms(self, belief: ArmBeliefs[B], context: PyTree) -> Expectation:
        distribution = IndependentExpectation(
            jax.vmap(lambda one: self.learner.expectation(one, context))(belief.beliefs)
        )
        if distribution.size != self.arms:
            raise CredoError(
                "learner must be a learner of one reward with design='arms'; this one expects "
                f"{distribution.size // self.arms} numbers of each arm.",
                field="learner",
            )
        return distribution


def _of_arm(belief: ArmBeliefs[B], arm: Array) -> B:
    def take(leaf: Array) -> Array:
        taken: Array = jax.lax.dynamic_index_in_dim(leaf, arm, 0, keepdims=False)
        return taken

    one: B = jax.tree.map(take, belief.beliefs)
    return one


def expect_arms(learner: Learner[Any], belief: Any, context: PyTree) -> Expectation:
    """The joint distribution of all expected rewards, from a design or from a wrapper around designs; a
    CredoError if the learner is neither.
    """
    if isinstance(learner, Design):
        return learner.expect_arms(belief, context)
    if isinstance(learner, Proposing):
        answer = learner.ask(belief, context, expect_arms)
        assert isinstance(answer, Expectation)
        return answer
    raise CredoError(
        "learner must be a design, such as bandits.designs.ArmsDesign(learner, arms), or a wrapper around "
        f"designs, with design='pairs'; got a {type(learner).__name__}.",
        field="learner",
    )


def design_of(name: DesignName, learner: Learner[Any], arms: int) -> Learner[Any]:
    """The learner over pairs (context, arm) that a name stands for; with "pairs" it is one already."""
    if name == "pairs":
        return learner
    if name == "arms":
        return ArmsDesign(learner, arms)
    if name == "outputs":
        return OutputsDesign(learner, arms)
    return ActionsDesign(learner, arms)
