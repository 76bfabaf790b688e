"""The base of wrappers, which turn one learner into another.

This module holds what all wrappers share: the first belief of the learner inside, the clock, forecasts and
draws that are passed on, and the rule by which an update is accepted or refused.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from types import NoneType
from typing import Any, Generic, TypeVar

import jax
import jax.numpy as jnp

from credo.adapt.nested import Around, B
from credo.adapt.questions import Answer, Question, forecast_of
from credo.core.keys import as_key
from credo.core.names import ForecastName
from credo.core.records import record, replace
from credo.core.trees import select
from credo.core.types import Array, ArrayLike, Key, PyTree
from credo.learners import Info, Learner
from credo.learners.base import Belief, require_learner
from credo.likelihoods import Expectation, Predictive

__all__ = ["Proposal", "Proposing", "Wrapper", "first_inside"]

W = TypeVar("W", bound=Belief)
"""The kind of belief that a wrapper keeps."""


@record
class Proposal(Generic[W]):
    """The result of an update, before it is accepted or refused.

    Attributes:
        belief: the new belief.
        log_evidence: log p(y | x, past) before the update, in nats.
        ok: whether the observation can be taken in: a boolean.
        extras: what `Info` reports beside these.

    Example:
        >>> import credo
        >>> belief, info = credo.BetaBernoulli().update(credo.BetaBernoulli().init(), None, 1.0)
        >>> bool(Proposal(belief, info.log_evidence, info.ok).ok)
        True
    """

    belief: W
    log_evidence: Array
    ok: Array
    extras: PyTree = None


def first_inside(learner: Learner[B], params: PyTree, var: PyTree, others: Mapping[str, PyTree]) -> B:
    """The first belief of the learner inside, which has prior variances of its own if none are given."""
    return learner.init(params, **({} if var is None else {"var": var}), **others)


class Proposing(Learner[W]):
    """A learner whose updates are first proposed, and then accepted or refused in one place."""

    @abstractmethod
    def advance(self, belief: W, dt: ArrayLike | None) -> W:
        """Advance the belief by a step of time; its own clock `t` is set afterwards, for all alike."""

    @abstractmethod
    def propose(self, belief: W, x: PyTree, y: PyTree, weight: ArrayLike, key: Key | None) -> Proposal[W]:
        """Say what the belief would be after an observation. The arguments are those of `update`."""

    def report(self, belief: W, proposal: Proposal[W], used: Array) -> PyTree:
        """The `extras` of the `Info`, once a proposal is accepted or refused: by default its own."""
        return proposal.extras

    def settle(self, used: Array, new: W, old: W) -> W:
        """The belief after a proposal was accepted or refused.

        By default all of it is chosen again; a wrapper may leave out what the learner inside has chosen.
        """
        return select(used, new, old)

    @abstractmethod
    def ask(self, belief: W, x: PyTree, question: Question) -> Answer:
        """Put `question(learner, belief, x)`, a forecast or an expectation, to the learners inside."""

    @abstractmethod
    def pick(self, belief: W, key: Array) -> tuple[Learner[Any], Any]:
        """Draw one of the hypotheses by their weights: a learner inside, and its belief."""

    def predictive(
        self, belief: W, x: PyTree, method: ForecastName | None, samples: int | None, key: Key | None
    ) -> Predictive:
        def forecast(learner: Learner[Any], inner: Any, x: PyTree) -> Predictive:
            return forecast_of(learner, inner, x, method, samples, key)

        answer = self.ask(belief, x, forecast)
        assert isinstance(answer, Predictive)
        return answer

    def scaled_predictive(self, belief: W, x: PyTree, scale: ArrayLike | None) -> Predictive:
        def forecast(learner: Learner[Any], inner: Any, x: PyTree) -> Predictive:
            return learner.scaled_predictive(inner, x, scale)

        answer = self.ask(belief, x, forecast)
        assert isinstance(answer, Predictive)
        return answer

    def expectation(self, belief: W, x: PyTree) -> Expectation:
        def expect(learner: Learner[Any], inner: Any, x: PyTree) -> Expectation:
            return learner.expectation(inner, x)

        answer = self.ask(belief, x, expect)
        assert isinstance(answer, Expectation)
        return answer

    def function_draw(self, belief: W, key: Key) -> Callable[[PyTree], Array]:
        first, second = jax.random.split(as_key(key))
        learner, inner = self.pick(belief, first)
        return learner.function_draw(inner, second)

    def time_update(self, belief: W, dt: ArrayLike | None) -> W:
        return replace(self.advance(belief, dt), t=belief.t + 1)

    def measurement_update(
        self, belief: W, x: PyTree, y: PyTree, weight: ArrayLike, key: Key | None
    ) -> tuple[W, Info]:
        proposal = self.propose(belief, x, y, weight, key)
        used = proposal.ok & jnp.any(jnp.asarray(weight) != 0)
        new = self.settle(used, proposal.belief, belief)
        log_evidence = jnp.where(used, proposal.log_evidence, 0.0)
        return new, Info(log_evidence, proposal.ok, self.report(new, proposal, used))


@record
class Wrapper(Proposing[W], Generic[W, B]):
    """The base of a learner around another learner, `Wrapper[its own belief, the belief inside]`.

    A subclass is a record, whose first field `learner` is declared here, and writes

    - `wrap(prior)`: its first belief, from that of the learner inside;
    - `propose(belief, x, y, weight, key)`: what the belief would be after an observation, as a `Proposal`.

    It may write `advance` (how time passes), `ask` (what the learner inside is asked, and about what),
    `pick` (which hypothesis a draw is from), `draws` and `report`; by default
    they pass on to the learner inside. For this, a belief derives from `Around` and holds the inner one as
    `belief`. If beliefs are built in another way, write `inner` and `outer`. The base class provides:

    - the clock: `t` grows by one with every `predict`;
    - a proposal is accepted if it is `ok` and the weight is not 0; otherwise the belief comes back bit
      by bit, and the evidence of the step is 0;
    - `init` hands further arguments to the learner inside.

    On the learner inside a wrapper calls `init`, `time_update`, `predictive`, `measurement_update` and
    `draws`, which are not compiled on their own; see `Learner`. `jax.vmap` over them runs several beliefs
    at once.

    Example:
        A learner that goes back to its prior when an observation is a surprise:

        >>> import credo, jax
        >>> from credo.adapt import Around, Proposal, Wrapper
        >>> @credo.record
        ... class Calm(Around):
        ...     belief: credo.Gaussian
        ...     prior: credo.Gaussian
        ...     t: jax.Array
        >>> @credo.record
        ... class Startled(Wrapper[Calm, credo.Gaussian]):
        ...     threshold: float = -5.0  # nats
        ...
        ...     def wrap(self, prior):
        ...         return Calm(prior, prior, prior.t)
        ...
        ...     def propose(self, belief, x, y, weight, key):
        ...         learn = self.learner.measurement_update
        ...         later, info = learn(belief.belief, x, y, weight, key)
        ...         fresh, _ = learn(credo.replace(belief.prior, t=later.t), x, y, weight, key)
        ...         surprise = info.log_evidence < self.threshold
        ...         new = jax.tree.map(lambda a, b: jnp.where(surprise, a, b), fresh, later)
        ...         return Proposal(credo.replace(belief, belief=new), info.log_evidence, info.ok, surprise)
        >>> inner = credo.extended_kalman(credo.Model(lambda w, x: x @ w, credo.Normal(0.1)))
        >>> learner = Startled(inner)
        >>> ys = jnp.array([1.0, 1.1, 0.9, jnp.nan, 9.0, 9.1])
        >>> belief, trace = credo.run(learner, learner.init(jnp.zeros(1), var=100.0), jnp.ones((6, 1)), ys)
        >>> trace.extras.tolist(), belief.mean.round(1).tolist(), int(belief.t)
        ([False, False, False, False, True, False], [9.0], 6)
    """

    learner: Learner[B]

    def __post_init__(self) -> None:
        if type(self.learner) not in (int, NoneType, object):  # what JAX puts in the place of a tree
            require_learner("learner", self.learner)

    def init(self, params: PyTree = None, *, var: PyTree = None, **others: PyTree) -> W:
        """The belief before any data.

        Arguments:
            params, var: as for the learner inside; where no `var` is given, its own.
            others: further arguments of the `init` of the learner inside.

        Returns:
            What `wrap` makes of the inner learner's first belief.
        """
        return self.wrap(first_inside(self.learner, params, var, others))

    @property
    def takes_missing(self) -> bool:
        return self.learner.takes_missing

    @abstractmethod
    def wrap(self, prior: B) -> W:
        """The first belief of the wrapper, given that of the learner inside."""

    def inner(self, belief: W) -> B:
        """The belief that the learner inside keeps, by default the field `belief` of an `Around`."""
        assert isinstance(belief, Around)
        return belief.belief

    def outer(self, belief: W, inner: B) -> W:
        """The wrapper's belief with another one inside."""
        return replace(belief, belief=inner)

    def advance(self, belief: W, dt: ArrayLike | None) -> W:
        """Advance the learner inside by a step of time."""
        return self.outer(belief, self.learner.time_update(self.inner(belief), dt))

    def ask(self, belief: W, x: PyTree, question: Question) -> Answer:
        return question(self.learner, self.inner(belief), x)

    def pick(self, belief: W, key: Array) -> tuple[Learner[B], B]:
        return self.learner, self.inner(belief)

    def draws(self, belief: W, key: Key, shape: tuple[int, ...]) -> PyTree:
        return self.learner.draws(self.inner(belief), as_key(key), shape)
