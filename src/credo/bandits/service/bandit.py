"""A bandit in service: decisions with ids, rewards that come late or never, and arms that come and go."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from credo.bandits.agent import Agent, AgentBelief
from credo.bandits.default import DefaultAgent
from credo.bandits.logs import Log
from credo.bandits.service import batching, explaining, storage, warm
from credo.bandits.service.arms import Share
from credo.bandits.service.casting import Names
from credo.bandits.service.clock import Clock
from credo.bandits.service.content import RewardRange
from credo.bandits.service.decision import ArmDecision, Counts, Explanation
from credo.bandits.service.engine import OnMissing, Service
from credo.bandits.service.features import Features
from credo.bandits.service.named_arms import NamedArms
from credo.bandits.service.replay import Start, attach
from credo.bandits.service.schema import ContextSchema, schema_of
from credo.bandits.service.slates import Slates
from credo.bandits.service.starting import start
from credo.core.errors import CredoError, require_integer
from credo.core.types import Array, PyTree

__all__ = ["Bandit"]


class Bandit(Slates):
    """An agent in service: arms and decisions have names, and a reward finds its decision by the id.

    A bandit changes, unlike an `Agent`. Decision n draws by a key of its own, and so does every update, so a
    bandit that is saved and loaded goes on bit by bit. Threads may share a bandit: decisions are taken by a
    belief that is replaced as a whole, and rewards take turns.

    The latest `window` decisions are remembered, with the inputs that the agent saw; so memory is bounded,
    and a late reward is learned with what was known at its decision, by the belief of the day.

    Arguments:
        agent: the agent, or what `default_agent` gives. Its number K of arms is how many there can be at
            once.
        arms: the names of the arms, None for "0" to "K-1"; or with design "actions" features by name, {} if
            each call of `decide` brings its arms.
        belief: the belief to start from; None starts from `params` and `var`.
        params, var: the prior mean and variance, as for `Agent.init`. Without params a network of credo
            starts by itself, and `default_agent` with its own. They also are the prior of arms that are added
            later.
        options: further arguments of the agent's `init`.
        features: how contexts by name become vectors: a `Features`, or the number of its places, which is the
            number of inputs of the model; None for 32, or those of `default_agent`. Contexts that are arrays
            need none.
        arm_features: the same for the features of arms, which are not standardised; None for 16 places.
        products: whether rows of design "actions" also have the products of context and features of the arm.
            Without them a linear model prefers the same arm at all contexts.
        shares: the least and the largest probability of arms, by name; see `set_share`.
        window: how many of the latest decisions are remembered.
        timeout: for how many seconds after its decision a reward counts; None for as long as the window.
        on_missing: what becomes of a decision without a reward: "drop", or the reward to learn instead.
        reward_range: the least and the greatest reward that there may be; others are refused, and expected
            rewards are answered within it. None allows all.
        seed: the seed of all keys, with which ids begin.
        log: a file to which a JSON line is appended for every decision and reward (see `Log.read`), before it
            counts: what a call returned from is on the disk, even if the process is killed then.
        replay: whether what the log holds was done by a bandit with these arguments, and is done again, as
            after a crash before the first `save`. If not, and the log holds anything, ids have a random part,
            so that they are unlike those in the log.
        clock: a function that tells the time in seconds; None for the system's clock at the start, and from
            then on for the time that passes, whatever becomes of the system's clock. Time never goes back,
            and goes on where a clock does.

    Raises:
        CredoError: a value is not allowed, or the agent cannot start; the sentence names it.
        DataError: the log cannot be written, or is of another bandit.

    Cost: a decision or a reward is one call of a compiled program. The first of each compiles it. Where each
    arm has a learner of its own, a reward costs what the arm costs, and large arrays are kept twice for it.

    Example:
        >>> import credo
        >>> from credo import bandits
        >>> agent = bandits.Agent(credo.BetaBernoulli(), arms=3, design="arms")
        >>> bandit = bandits.Bandit(agent, arms=["red", "blue"])
        >>> first = bandit.decide()
        >>> bool(bandit.reward(first.id, 1.0)), bandit.reward(first.id, 1.0).value
        (True, 'duplicate')
        >>> bandit.decide().mean[first.arm] > 0.6
        True
    """

    def __init__(
        self,
        agent: Agent | DefaultAgent,
        arms: Iterable[str] | Mapping[str, Mapping[str, object]] | None = None,
        *,
        belief: AgentBelief[Any] | None = None,
        params: PyTree = None,
        var: PyTree = 1.0,
        options: Mapping[str, PyTree] | None = None,
        features: int | Features | None = None,
        arm_features: int | Features | None = None,
        products: bool = False,
        shares: Mapping[str, Share] | None = None,
        window: int = 10_000,
        timeout: float | None = None,
        on_missing: OnMissing = "drop",
        reward_range: RewardRange | None = None,
        seed: int = 0,
        log: str | os.PathLike[str] | None = None,
        replay: bool = False,
        clock: Clock | None = None,
    ) -> None:
        first, encoders = (belief, params, var, options), (features, arm_features, products)
        kept = window, timeout, on_missing, reward_range
        service = start(agent, arms, first, encoders, shares, kept, seed, clock)
        super().__init__(service)
        attach(service, log, Start(new=True), replay=replay)

    @classmethod
    def _of(cls, service: Service, log: str | os.PathLike[str] | None, start: Start) -> Bandit:
        bandit = cls.__new__(cls)
        NamedArms.__init__(bandit, service)
        attach(service, log, start, replay=log is not None and start.of is not None)
        return bandit

    @property
    def agent(self) -> Agent:
        """The agent."""
        return self._engine.agent

    @property
    def belief(self) -> AgentBelief[Any]:
        """What the agent believes now."""
        return self._engine.programs.unpack(self._engine.state.words)

    @property
    def version(self) -> int:
        """How often the belief has changed."""
        return self._engine.state.version

    @property
    def counts(self) -> Counts:
        """What the bandit has met so far."""
        with self._engine.books:
            return Counts(**{**self._engine.tally, "pending": self._engine.window.pending})

    @property
    def features(self) -> tuple[str, ...]:
        """What stands in the places of vectors of contexts by name."""
        return self._engine.inputs.contexts.names

    @property
    def schema(self) -> ContextSchema:
        """What contexts by name, and the features of arms, have become; `print` shows a table."""
        with self._engine.books:
            return schema_of(self._engine.inputs, self._engine.reward_range)

    def decide(self, context: Any = None, arms: Names = None, *, id: str | None = None) -> ArmDecision:
        """Choose an arm. Nothing is learned but the moments of a context by name.

        Arguments:
            context: numbers, truth values, texts, lists of texts (tags) or of numbers, and objects of them,
                by name; or a number, an array or None, of one shape.
            arms: the names of the arms among which to choose; None for all. Forbidden arms stay out. With
                design "actions" also arms of this call, by name with their features: by name, too, or as
                arrays of as many numbers as features of arms have places. They may be other ones each time,
                up to the agent's number of arms, and nothing is compiled for it.
            id: an id of your own; None for a new one. A repeated id gives the same decision again, if the
                context and the names of the arms are the same.

        Returns:
            The decision.

        Raises:
            CredoError: an arm is unknown, none is allowed, the context cannot be used, the window of the id
                is over, or it was used for another context or other arms. Nothing changes.
            DataError: the log cannot be written.
        """
        return self._engine.decide(context, arms, id)

    def decide_batch(
        self,
        contexts: Sequence[Any] | np.ndarray | Array,
        arms: Names = None,
        *,
        ids: Sequence[str | None] | None = None,
    ) -> list[ArmDecision]:
        """Choose an arm for each of several contexts, in one compiled program.

        The decisions are those of a loop of `decide`, bit by bit, but default rewards are learned before
        them.

        Arguments:
            contexts: the contexts, at most as many as the window has places; an array has one a row.
            arms: as for `decide`.
            ids: an id for each, or None.

        Returns:
            The decisions.

        Raises:
            CredoError: as for `decide`; nothing changes.
        """
        rows = list(np.asarray(contexts) if hasattr(contexts, "dtype") else contexts)
        names = [None] * len(rows) if ids is None else list(ids)
        if len(names) != len(rows):
            raise CredoError(f"ids must be as many as contexts, {len(rows)}; got {len(names)}.", field="ids")
        return batching.decide_many(self._engine, rows, arms, names)

    def explain(self, id: str) -> Explanation:
        """Why a decision was taken, and what is believed about it now.

        Arguments:
            id: the id of a decision in the window.

        Returns:
            The explanation.

        Raises:
            CredoError: there is no such decision in the window.
        """
        entry = self._engine.window.get(id)
        if entry is None:
            raise CredoError(f"id must be that of a decision in the window; got {id!r}.", field="id")
        return explaining.explain(self._engine, entry, self._prior)

    def warm_start(self, log: Log, weights: warm.LogWeights = "none") -> int:
        """Learn from a log of decisions that were taken elsewhere.

        Arguments:
            log: the log; rows without a reward are left out. Features of arms in it are learned where the
                bandit has features of arms, and its arms need not be the bandit's then; elsewhere they are
                left out.
            weights: "none" learns all rows alike. "propensity" weighs each by 1 / propensity, made 1 on
                average, so that rare choices count as if all arms were chosen alike: for models too simple to
                be right.

        Returns:
            How many rows were learned.

        Raises:
            CredoError: the log chose an unknown arm, or holds no reward; nothing changes.
        """
        return warm.warm_start(self._engine, log, weights)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the bandit to one file: agent, belief, window, arms, encoders and counts, without pickle.

        An older file is replaced completely or not at all.

        Raises:
            DataError: the file cannot be written.
            CredoError: something in the agent cannot be saved; the sentence names it.
        """
        return storage.write(path, self._engine, self._prior)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        agent: Agent | DefaultAgent | None = None,
        *,
        seed: int | None = None,
        log: str | os.PathLike[str] | None = None,
        clock: Clock | None = None,
    ) -> Bandit:
        """Read a bandit back. Its next decision is the one that it would have taken, bit by bit.

        Everything that the log has since the bandit was saved is done again: a bandit whose process was
        killed goes on with all that it had answered. Without the log that it wrote, nobody knows what was
        decided since: then new ids are unlike all that may have been given, and a reward of a decision that
        was lost is "unknown".

        Arguments:
            path: a file written by `save`.
            agent: an agent of the same structure, which lends functions of your own, if it has any.
            seed: another seed, so that copies do not all explore in the same way; None goes on as before.
            log: the log to go on with.
            clock: as for a new bandit. What the clock says now tells how long the bandit has rested.

        Raises:
            DataError: there is no such file, the log cannot be one of this bandit, or another one went on
                with it.
            FormatError: it is damaged, or does not hold a bandit.
        """
        if seed is not None:
            require_integer("seed", seed, 0)
        service, start = storage.read(path, agent, seed, clock)
        return cls._of(service, log, start)

    def fork(self, seed: int, *, log: str | os.PathLike[str] | None = None) -> Bandit:
        """A copy that explores in ways of its own, with ids of its own.

        Arguments:
            seed: the seed of the copy, another one than that of the bandit.
            log: the log of the copy.

        Raises:
            CredoError: the seed is the bandit's own.
        """
        require_integer("seed", seed, 0)
        if seed == self._engine.seed:
            raise CredoError(f"seed must be another one than the bandit's own, {seed}.", field="seed")
        return self._of(Service(self._engine.copy(seed), self._prior), log, Start(new=False))

    def close(self) -> None:
        """Close the log."""
        if self._engine.ledger is not None:
            self._engine.ledger.close()
            self._engine.ledger = None

    def __repr__(self) -> str:
        counts = self.counts
        return f"Bandit(arms={self.arms!r}, decisions={counts.decisions}, pending={counts.pending})"
