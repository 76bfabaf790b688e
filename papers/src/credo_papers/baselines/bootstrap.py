"""Bootstrap ensembles: copies of a learner, each of which sees every reward a random number of times."""

from __future__ import annotations

from typing import Any, Generic, Literal, TypeAlias

import jax
import jax.numpy as jnp

from credo.adapt.banks import first_beliefs
from credo.adapt.nested import B, Mixture, floating
from credo.adapt.questions import Answer, Question, weighted
from credo.adapt.wrapper import Proposal, Proposing
from credo.core.errors import require_choice, require_integer
from credo.core.fields import field
from credo.core.keys import require_key, step_key
from credo.core.records import record, replace, static_field
from credo.core.types import Array, ArrayLike, Key, PyTree
from credo.learners import Learner
from credo.learners.base import require_learner
from credo.likelihoods import DrawnExpectation, Expectation

__all__ = ["Bootstrap", "Members", "ResamplingName"]

ResamplingName: TypeAlias = Literal["poisson", "double"]
"""The number of times that a member sees a reward: Poisson with mean 1; or two or none, by a coin."""


@record
class Members(Mixture[B], Generic[B]):
    """The beliefs of the members of an ensemble, which all count alike.

    Attributes:
        beliefs: one belief, whose arrays have a leading axis M.
        t: how many times `predict` has been called.
        log_weights: -log M for every member (M,).

    Example:
        >>> import credo
        >>> from credo_papers import baselines
        >>> baselines.Bootstrap(credo.BetaBernoulli(), members=4).init().weights.tolist()
        [0.25, 0.25, 0.25, 0.25]
    """

    beliefs: B
    t: Array
    log_weights: Array = field("log weights", weighs="beliefs")


@record
class Bootstrap(Proposing[Members[B]], Generic[B]):
    """An online bootstrap: M copies of a learner, of which each weighs every observation at random.

    Member m learns an observation with the weight c_m of its own: Poisson(1) (Oza & Russell 2001), or 2 or 0
    with equal chances ("double or nothing", Owen & Eckles 2012; Osband et al. 2016 for networks). What the
    members disagree about is the uncertainty. An agent that asks one member at random for its best arm
    (Eckles & Kaptein 2014) is Thompson sampling from the distribution of the M answers, so its propensities
    are the shares of members, exactly.

    Arguments:
        learner: any learner of one reward. Learners that keep no uncertainty, such as `replay`, give the
            ensemble of point estimates of the publications.
        members: their number M.
        resampling: "poisson" or "double".
        whole: whether a member is asked for its whole belief instead of the expected reward alone. The
            distribution is then the mixture of their beliefs.

    Raises:
        CredoError: a value is not allowed.

    Updates draw the weights, so they need a key. Cost: M times that of the learner.

    Example:
        >>> import credo
        >>> from credo_papers import baselines
        >>> learner = baselines.Bootstrap(credo.BetaBernoulli(), members=3, resampling="double")
        >>> belief, info = learner.step(learner.init(), None, 1.0, key=0)
        >>> sorted(set((belief.beliefs.a - 1).tolist()) | {0.0, 2.0})
        [0.0, 2.0]
    """

    learner: Learner[B]
    members: int = static_field(default=10)
    resampling: ResamplingName = static_field(default="poisson")
    whole: bool = static_field(default=False)

    def __post_init__(self) -> None:
        if type(self.learner) is object:  # what JAX puts in place of a tree
            return
        require_learner("learner", self.learner)
        require_integer("members", self.members, 1)
        require_choice("resampling", self.resampling, ("poisson", "double"))

    @property
    def _bank(self) -> Any:
        def repeat(leaf: ArrayLike) -> Array:
            return jnp.broadcast_to(jnp.asarray(leaf)[None], (self.members, *jnp.shape(leaf)))

        return jax.tree.map(repeat, self.learner)

    def init(self, params: PyTree = None, *, var: PyTree = 1.0, **others: PyTree) -> Members[B]:
        """The first belief of each member.

        Arguments:
            params, var, others: as for the learner: one value for all members, or a `credo.adapt.Each` with a
                value for each, such as networks that start from draws of their own.
        """
        beliefs: B = first_beliefs(self._bank, self.members, params, var, others)
        logs = jnp.full(self.members, -jnp.log(float(self.members)), floating(beliefs))
        return Members(beliefs, jnp.zeros((), jnp.int32), logs)

    def advance(self, belief: Members[B], dt: ArrayLike | None) -> Members[B]:
        """Apply the time update of each member."""
        return replace(
            belief, beliefs=jax.vmap(lambda one: self.learner.time_update(one, dt))(belief.beliefs)
        )

    def multiplicities(self, key: Array) -> Array:
        """The number of times that each member sees an observation (M,).

        Arguments:
            key: the key of the step.
        """
        shape = (self.members,)
        if self.resampling == "double":
            return 2 * jax.random.bernoulli(key, 0.5, shape).astype(jnp.int32)
        return jax.random.poisson(key, 1.0, shape)

    def propose(
        self, belief: Members[B], x: PyTree, y: PyTree, weight: ArrayLike, key: Key | None
    ) -> Proposal[Members[B]]:
        """Update each member as often as it drew."""
        own = step_key(require_key(key, "Bootstrap"), belief.t)
        assert own is not None
        first, second = jax.random.split(own)
        weights = jnp.asarray(weight).astype(belief.log_weights.dtype)
        counts = self.multiplicities(first).astype(weights.dtype) * weights

        def learn(one: B, count: Array, one_key: Array) -> tuple[B, Array]:
            new, info = self.learner.measurement_update(one, x, y, count, one_key)
            return new, info.ok

        keys = jax.random.split(second, self.members)
        beliefs, good = jax.vmap(learn)(belief.beliefs, counts, keys)
        log_evidence = self.predictive(belief, x, None, None, None).log_prob(y)
        ok = jnp.all(good) & jnp.isfinite(log_evidence)
        return Proposal(replace(belief, beliefs=beliefs), log_evidence, ok)

    def ask(self, belief: Members[B], x: PyTree, question: Question) -> Answer:
        answers = jax.vmap(lambda one: question(self.learner, one, x))(belief.beliefs)
        return weighted(answers, belief.log_weights)

    def expectation(self, belief: Members[B], x: PyTree) -> Expectation:
        """The distribution of what a random member expects; with `whole`, of what it believes."""
        if self.whole:
            return super().expectation(belief, x)
        values = jax.vmap(lambda one: self.learner.expectation(one, x).mean)(belief.beliefs)
        return DrawnExpectation(values, belief.log_weights.astype(values.dtype))

    def pick(self, belief: Members[B], key: Array) -> tuple[Learner[B], B]:
        """One member, drawn at random."""
        which = jax.random.randint(key, (), 0, self.members)
        return self.learner, jax.tree.map(lambda leaf: leaf[which], belief.beliefs)

    def draws(self, belief: Members[B], key: Key, shape: tuple[int, ...]) -> PyTree:
        def draw(index: Array, one_key: Array) -> PyTree:
            one: B = jax.tree.map(lambda leaf: leaf[index], belief.beliefs)
            return self.learner.draws(one, one_key, ())

        return belief.draws(key, shape, draw)
