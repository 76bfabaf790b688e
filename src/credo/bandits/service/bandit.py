"""A bandit in service: decisions with ids, rewards that come late or never, and arms that come and go.

Slates: several arms for one context, in an order, and what a reader of the list saw of them.

The knowledge of a bandit about its contexts, to be read by people and programs.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from credo.bandits.agent import Agent, AgentBelief
from credo.bandits.best import probability_best
from credo.bandits.default import DefaultAgent
from credo.bandits.logs import Log
from credo.bandits.logs.json_lines import MARK, place_id
from credo.bandits.service import arm_changes, rewarding, storage, warm
from credo.bandits.service.arms import Arms, Limits, Share
from credo.bandits.service.asked_arms import Asked, Names, as_names
from credo.bandits.service.content import (
    RewardRange,
    content_of,
    require_reward,
    require_same,
    require_within,
)
from credo.bandits.service.decision import ArmDecision, Counts, Explanation, Observed, RewardStatus
from credo.bandits.service.engine import Engine, OnMissing, Service
from credo.bandits.service.features import ContextFeature, Features
from credo.bandits.service.inputs import FeatureEncoder, Inputs
from credo.bandits.service.programs import Answer
from credo.bandits.service.replay import Start, attach
from credo.bandits.service.rewarding import reward as learn_reward
from credo.bandits.service.starting import start
from credo.bandits.service.window import Clock, Entry
from credo.core.errors import CredoError, Named, require_integer
from credo.core.records import replace
from credo.core.text import aligned
from credo.core.types import Array, PyTree
from credo.core.verbs import verb

__all__ = ["Bandit", "ContextSchema", "Reading", "Slate", "schema_of", "seen_shares", "shared_in"]


class ContextSchema(NamedTuple):
    """The form of contexts, as far as a `Bandit` has seen them.

    Attributes:
        shape: the shape of a context as an array; None before the first, and () for a number. That of no
            context is (-1,).
        features: the names of contexts by name, in the order in which they came.
        arm_features: the same for the features of arms.
        places: how many places the vector of a context by name has, the first of which says that something
            is missing.
        free: how many of them are left for new names.
        shared: the names and values that share a place, by place; of at most 1,000 that came without one.
        reward_range: the least and the greatest reward that there may be, or None.

    `str` of it is a table.

    Example:
        >>> import credo
        >>> from credo import bandits
        >>> learner = credo.extended_kalman(credo.Model(credo.Linear(), credo.Normal(0.1)))
        >>> bandit = bandits.Bandit(bandits.Agent(learner, 2, "arms"), features=8)
        >>> _ = bandit.decide({"user": {"age": 31.0}, "tags": ["new", "mobile"]})
        >>> print(bandit.schema)
        name      kind    places  values
        user.age  number  1       1 number, mean 31, sd 0
        tags      text    2-4     new, mobile
        3 of 8 places are free
    """

    shape: tuple[int, ...] | None
    features: tuple[ContextFeature, ...]
    arm_features: tuple[ContextFeature, ...]
    places: int
    free: int
    shared: dict[int, tuple[str, ...]]
    reward_range: RewardRange | None

    def __str__(self) -> str:
        if not self.features and self.shape is not None:
            if self.shape != (-1,):
                return f"contexts of the shape {self.shape}"
            return "no contexts"
        seen = [(one.name, one) for one in self.features]
        seen += [(f"arm: {one.name}", one) for one in self.arm_features]
        rows = [("name", "kind", "places", "values"), *((name, *_told(one)) for name, one in seen)]
        lines = aligned(rows, words=4)
        lines.append(f"{self.free:,} of {self.places:,} places are free")
        lines += [f"place {place} is shared by {', '.join(names)}" for place, names in self.shared.items()]
        return "\n".join(lines)


def schema_of(inputs: Inputs, reward_range: RewardRange | None) -> ContextSchema:
    """The schema of contexts that came so far."""
    contexts = inputs.contexts
    actions = inputs.actions
    arms = () if actions is None else actions.seen
    about = contexts.size, contexts.free, contexts.shared
    return ContextSchema(inputs.shape, contexts.seen, arms, *about, reward_range)


def shared_in(encoder: FeatureEncoder, vector: list[float]) -> tuple[tuple[str, ...], ...]:
    """The names that share a place at which a context has something."""
    return tuple(names for place, names in encoder.shared.items() if vector[place] != 0.0 and len(names) > 1)


def _told(one: ContextFeature) -> tuple[str, str, str]:
    first = one.places[0]
    last = one.places[-1]
    run = one.places == tuple(range(first, last + 1))
    places = f"{first}-{last}" if run and last > first else ", ".join(map(str, one.places))
    told = ", ".join(one.values)
    if one.numbers:
        several = "s" if one.numbers > 1 else ""
        told = f"{one.numbers:,} {one.kind}{several}, mean {one.mean:.4g}, sd {one.sd:.4g}"
        if one.kind == "time":
            mean = datetime.fromtimestamp(one.mean, UTC).strftime("%Y-%m-%d %H:%M")
            told = f"{one.numbers:,} time{several}, mean {mean}, sd {one.sd / 3600.0:.4g} hours"
    return one.kind, places, told


Reading: TypeAlias = Literal["all", "cascade"] | Sequence[float]
"""The part of a slate that was seen: all, all down to the first click, or each place with a probability."""


@dataclass(frozen=True)
class Slate:
    """Arms in order, the first at the top, and the decision behind each of them.

    Attributes:
        id: the id of the slate, which is that of its first decision.
        decisions: a decision for each place. Its propensity is the probability of its arm at this place,
            given those above it.

    Example:
        >>> pmf = {"red": 0.5, "blue": 0.5}
        >>> first = ArmDecision("0-1", "red", 0.5, pmf, {}, {}, 0)
        >>> second = ArmDecision("0-1#2", "blue", 1.0, {"red": 0.0, "blue": 1.0}, {}, {}, 0)
        >>> slate = Slate("0-1", (first, second))
        >>> slate.arms, slate.propensity
        (('red', 'blue'), 0.5)
    """

    id: str
    decisions: tuple[ArmDecision, ...]

    @property
    def arms(self) -> tuple[str, ...]:
        """The names of the arms, from the top."""
        return tuple(decision.arm for decision in self.decisions)

    @property
    def propensity(self) -> float:
        """The probability of the whole slate, in its order."""
        return math.prod(decision.propensity for decision in self.decisions)


def seen_shares(seen: object, count: int) -> list[float]:
    """The probabilities that places are seen; a CredoError if they are none."""
    try:
        shares = [float(share) for share in seen]  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        shares = []
    if len(shares) != count or not all(0 < share <= 1 for share in shares):
        raise CredoError(
            f"seen must be 'all', 'cascade', or a probability above 0 and at most 1 for each of the {count} "
            f"places; got {seen!r:.80}.",
            field="seen",
        )
    return shares


Propensity: TypeAlias = float | Mapping[str, float] | None
"""The probability of the chosen arm, or those of all arms by name; None where nobody knows."""


def observe(
    engine: Engine,
    context: Any,
    arm: str,
    reward: float | None,
    propensity: Propensity,
    names: Names,
    id: str | None,
) -> Observed:
    """Take in a choice and its reward, in one piece; or what is new about the one of this id."""
    if reward is not None:
        require_reward(reward)
        require_within(float(reward), engine.reward_range)
    given = dict(propensity) if isinstance(propensity, Mapping) else propensity
    if names is None and isinstance(given, dict):
        names = tuple(given)
    names = as_names(names)
    content = content_of(context, names, arm=arm, propensity=given)
    now = engine.arrive()
    with engine.writing, engine.books:
        known = engine.known(id, content)
        if known is None:
            standing = engine.state.arms
            arms = standing.brought(names) if isinstance(names, Mapping) else standing
            mask = arms.mask(None if isinstance(names, Mapping) else names, forbidden=True)
            slot = arms.slot(arm)
            if not mask[slot]:
                raise CredoError(
                    f"arm must be among the arms of the choice; got {arm!r}, which is not.", field="arm"
                )
            pmf = _pmf(arms, slot, mask, given)
            value = None if reward is None else float(reward)
            known = _take_in(engine, context, names, (slot, mask, pmf), value, id, now, content)
            status = known.status
        elif reward is None:
            status = known.status
        else:
            status = learn_reward(engine, [known.id], [reward], [None])[0]
    engine.sync()
    return Observed(known.id, status)


def _pmf(arms: Arms, slot: int, mask: np.ndarray, propensity: Any) -> np.ndarray:
    """The probabilities of the slots (K,), NaN if nobody knows; a CredoError if they are none."""
    pmf = np.where(mask, math.nan, 0.0)
    if propensity is None:
        return pmf
    if isinstance(propensity, dict):
        for name, p in propensity.items():
            pmf[arms.slot(name)] = _probability(p)
        total = math.fsum(pmf[mask])
        if not abs(total - 1.0) < 1e-4:  # NaN is none
            raise CredoError(
                f"propensity must be probabilities of all arms that sum to 1; they sum to {total:g}.",
                field="propensity",
            )
        propensity = pmf[slot]
    pmf[slot] = _probability(propensity)
    if pmf[slot] == 0.0:
        raise CredoError("propensity of the chosen arm must be above 0; got 0.", field="propensity")
    unknown = np.flatnonzero(np.isnan(pmf))
    if unknown.size == 1:
        pmf[unknown] = 1.0 - pmf[slot]
    return pmf


def _probability(value: Any) -> float:
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not number or not 0.0 <= value <= 1.0:
        raise CredoError(
            f"propensity must be a probability, above 0 and at most 1, or None where it is unknown; got "
            f"{value!r}.",
            field="propensity",
        )
    return float(value)


def _take_in(
    engine: Engine,
    context: Any,
    names: Names,
    choice: tuple[int, np.ndarray, np.ndarray],
    reward: float | None,
    id: str | None,
    now: float,
    content: str,
) -> Entry:
    """A new choice, from its context to its line in the log. Both locks are held."""
    slot, mask, pmf = choice
    engine.say()
    cast, vector, asked = engine.take_in(context, names, free=False)
    number = engine.count
    written = False
    engine.count += 1
    try:
        engine.expire(now, room=1)
        state = engine.state
        x = engine.inputs.of(vector, cast.arms, cast.rows)
        answer = engine.programs.decide(state.words, x, Limits(mask, cast.arms.bounds), number)
        numbers = answer.numbers.astype(np.float64)
        numbers[0] = pmf
        kept = x if cast.rows is None else vector
        entry = engine.entry(id, number, Answer(slot, numbers), kept, cast, state.version, now, content)
        entry.observed = True
        if reward is None:
            engine.record([(entry, asked)])
        else:
            engine.learn([(entry, reward)], now, imputed=False, new=[(entry, asked)])
        written = True
        return entry
    finally:
        if not written and engine.ledger is not None:
            engine.unsaid.append((number, asked))


NAMED = 20
"""The largest number of arms that a sentence names."""


def explain(engine: Engine, entry: Entry, prior: AgentBelief[Any] | None) -> Explanation:
    """The explanation of a remembered decision, beside the belief before any reward, if it is known."""
    decision = engine.answer(entry)
    state = engine.state
    allowed = entry.arms.by_name(entry.numbers[3])
    greedy = max((name for name in allowed if allowed[name]), key=entry.decision.mean.__getitem__)
    belief = engine.programs.unpack(state.words)
    mean, sd, best = _asked(engine, belief, entry)
    # what was believed at first, in the units of today
    first = None if prior is None else replace(prior, scaler=belief.scaler, units=belief.units)
    prior_mean, prior_sd, _ = ({}, {}, {}) if first is None else _asked(engine, first, entry)
    floor = float(np.asarray(engine.agent.policy.floor))
    least = max(floor, entry.arms.shares.get(entry.arm, (0.0, 1.0))[0])
    return Explanation(
        decision=decision,
        greedy=greedy,
        explored=decision.arm != greedy,
        floor=floor,
        reason=_elsewhere(decision)
        if entry.observed
        else _reason(decision, greedy, least, [name for name in allowed if allowed[name]]),
        version=state.version,
        mean=engine.within(mean),
        sd=sd,
        best=best,
        prior_mean=engine.within(prior_mean),
        prior_sd=prior_sd,
        data_share={name: _share(sd[name], begun) for name, begun in prior_sd.items()},
        status="pending" if entry.status is None else entry.status.value,
        shared=_shared(engine, entry),
    )


def _shared(engine: Engine, entry: Entry) -> tuple[tuple[str, ...], ...]:
    """The names that share a place in which the context of a decision has something."""
    encoder = engine.inputs.contexts
    if entry.x is None or engine.inputs.shape != (encoder.size,):
        return ()
    return shared_in(encoder, entry.x.tolist())


def _asked(engine: Engine, belief: AgentBelief[Any], entry: Entry) -> list[dict[str, float]]:
    """The view of a belief on the arms as they were, by name: mean, sd, and probability of being best."""
    key = jax.random.fold_in(jax.random.key(engine.seed), entry.number)
    agent = jax.tree.map(jnp.asarray, engine.agent)  # a program with numbers of Python's is not kept
    rows = _ask(agent, belief, engine.x_of(entry), jnp.asarray(entry.numbers[3] > 0), key)
    return [entry.arms.by_name(np.asarray(row)) for row in rows]


@verb(static=(), kept=True)
def _ask(
    agent: Agent, belief: AgentBelief[Any], x: PyTree, allowed: Array, key: Array
) -> tuple[Array, Array, Array]:
    distribution = agent.rewards.expect_arms(belief, x)
    mean = distribution.mean
    sd = distribution.sd
    if belief.units is not None:
        mean = belief.units.location + belief.units.scale * mean
        sd = belief.units.scale * sd
    return mean, sd, probability_best(distribution, allowed, key=key, draws=1000)


def _share(sd: float, first: float) -> float:
    """The share of the prior variance that is gone."""
    if first > 0:
        return min(max(1.0 - (sd / first) ** 2, 0.0), 1.0)
    return 0.0


def _elsewhere(decision: ArmDecision) -> str:
    p = decision.propensity
    chance = f"the probability {p:.3g}" if p == p else "a probability that nobody knows"
    return f"{decision.arm!r} was chosen elsewhere, with {chance}."


def _reason(decision: ArmDecision, greedy: str, floor: float, allowed: list[str]) -> str:
    arm = decision.arm
    p = decision.propensity
    if len(allowed) == 1:
        return f"{arm!r} was the only arm that was allowed."
    names = [repr(name) for name in allowed[:NAMED]]
    last = f"{len(allowed) - NAMED} more" if len(allowed) > NAMED else names.pop()
    among = f"among {len(allowed)} allowed arms ({', '.join(names)} and {last})"
    mine = f"{decision.mean[arm]:.3g} +- {decision.sd[arm]:.2g}"
    chance = f"with the probability {p:.3g}"
    if arm == greedy:
        return f"{arm!r} was chosen {among} {chance}: it has the largest expected reward, {mine}."
    best = f"{decision.mean[greedy]:.3g} +- {decision.sd[greedy]:.2g}"
    why = "by the floor alone" if p <= floor * (1 + 1e-6) else "as it may be the better one"
    return f"{arm!r} was explored {among} {chance}, {why}: it expects {mine} where {greedy!r} expects {best}."


def decide_many(
    engine: Engine, contexts: Sequence[Any], names: Names, ids: Sequence[str | None]
) -> list[ArmDecision]:
    """The decisions for several contexts, or those that were made under their ids; all of them or none."""
    now = engine.arrive()
    names = as_names(names)
    with engine.writing, engine.books:  # neither arms nor belief change meanwhile
        first = {id: place for place, id in reversed(list(enumerate(ids))) if id is not None}
        places = [first.get(id, place) if id is not None else place for place, id in enumerate(ids)]
        if len(contexts) > engine.window.size:
            raise CredoError(
                f"contexts must be at most {engine.window.size}, which is {Named('window')}; got "
                f"{len(contexts)}.",
                field="contexts",
            )
        asked = [content_of(context, names) for context in contexts]
        known = [engine.known(id, content) for id, content in zip(ids, asked, strict=True)]
        for place, earlier in enumerate(places):
            require_same(ids[place], asked[place], asked[earlier])
        fresh = [place for place in range(len(contexts)) if known[place] is None and places[place] == place]
        if not isinstance(names, Mapping):
            engine.state.arms.limits(names)  # which refuses them, even if all decisions are known
        engine.say()
        before = engine.inputs.mark(features=isinstance(names, Mapping))
        number = engine.count
        try:
            taken = [engine.take_in(contexts[place], names, len(contexts)) for place in fresh]
            engine.expire(now, room=len(fresh))
            state = engine.state
            xs = [engine.inputs.of(vector, cast.arms, cast.rows) for cast, vector, _ in taken]
            engine.count += len(fresh)
            answers = []
            if taken:
                limits = taken[0][0].arms.limits(None if isinstance(names, Mapping) else names)
                answers = engine.programs.decide_many(state.words, xs, limits, number)
            new: list[tuple[Entry, Asked]] = []
            for step, (place, answer) in enumerate(zip(fresh, answers, strict=True)):
                cast, vector, said = taken[step]
                about = answer, xs[step] if cast.rows is None else vector, cast, state.version, now
                known[place] = entry = engine.entry(ids[place], number + step, *about, asked[place])
                new.append((entry, said))
            engine.record(new)
        except BaseException:
            engine.inputs.back(before)
            engine.count = number
            raise
        entries = [known[place] or known[first] for place, first in enumerate(places)]
    engine.sync()
    return [engine.answer(entry) for entry in entries if entry is not None]


class Bandit:
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
        >>> bandit.observe(None, "red", 1.0, propensity=0.5).status.value
        'learned'
        >>> bandit.add_arm("green")
        >>> slate = bandit.decide_slate(size=2)
        >>> [str(status) for status in bandit.reward_slate(slate.id, [0, 1], seen="cascade") if status]
        ['learned', 'learned']
    """

    def __init__(  # noqa: PLR0913 - settings, each by its name
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
        first = (belief, params, var, options)
        encoders = (features, arm_features, products)
        kept = window, timeout, on_missing, reward_range
        service = start(agent, arms, first, encoders, shares, kept, seed, clock)
        self._engine, self._prior = service
        attach(service, log, Start(new=True), replay=replay)

    @classmethod
    def _of(cls, service: Service, log: str | os.PathLike[str] | None, start: Start) -> Bandit:
        bandit = cls.__new__(cls)
        bandit._engine, bandit._prior = service
        attach(service, log, start, replay=log is not None and start.of is not None)
        return bandit

    @property
    def agent(self) -> Agent:
        """The agent."""
        return self._engine.agent

    @property
    def belief(self) -> AgentBelief[Any]:
        """The current belief of the agent."""
        return self._engine.programs.unpack(self._engine.state.words)

    @property
    def version(self) -> int:
        """The number of changes of the belief so far."""
        return self._engine.state.version

    @property
    def counts(self) -> Counts:
        """The numbers of decisions and rewards so far."""
        with self._engine.books:
            return Counts(**{**self._engine.tally, "pending": self._engine.window.pending})

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the places in vectors of contexts by name."""
        return self._engine.inputs.contexts.names

    @property
    def schema(self) -> ContextSchema:
        """The encoding of contexts by name, and of the features of arms, so far; `print` shows a table."""
        with self._engine.books:
            return schema_of(self._engine.inputs, self._engine.reward_range)

    @property
    def arms(self) -> tuple[str, ...]:
        """The names of the arms, forbidden ones among them."""
        return self._engine.state.arms.names

    @property
    def forbidden(self) -> frozenset[str]:
        """The names of the arms that must not be chosen."""
        return self._engine.state.arms.forbidden

    @property
    def shares(self) -> dict[str, tuple[float, float]]:
        """The least and the largest probability of the arms that are bounded, by name."""
        return dict(self._engine.state.arms.shares)

    def set_share(self, name: str, share: tuple[float, float] | None) -> None:
        """Bound the probability with which an arm is chosen, from the next decision on.

        The probabilities of the policy are replaced by the nearest ones (least squares) between the bounds,
        so that the propensity on record stays exact (see `Guarded`). Bounds hold for every decision, and so
        for the expected share of any number of them. If an arm is forbidden or left out of `arms`, and the
        others cannot meet their bounds any more, least ones are lowered, or largest ones raised, in
        proportion, just enough.

        Arguments:
            name: the name of the arm.
            share: its least and its largest probability; None for any.

        Raises:
            CredoError: there is no such arm, the bounds are no probabilities, or the arms that are not
                forbidden cannot meet theirs; nothing changes.
        """
        arm_changes.apply(self._engine, self._prior, "share", name, share=share)

    def add_arm(
        self, name: str, features: Mapping[str, object] | None = None, *, inherit: str | None = None
    ) -> None:
        """Add an arm, in a free slot of the agent.

        With the design "arms" it starts at the prior. With "actions" its features say what is expected of
        it. With "outputs" and "pairs" it takes an output that no arm has had; once all have been used, a new
        arm must inherit, since what a network has learned about one output cannot be taken back.

        Arguments:
            name: its name.
            features: its features, with design "actions".
            inherit: the name of a removed arm, from whose belief the new one starts.

        Raises:
            CredoError: there is such an arm, no slot is free, or features are missing; nothing changes.
        """
        arm_changes.apply(self._engine, self._prior, "add", name, features, inherit)

    def remove_arm(self, name: str) -> None:
        """Remove an arm. Rewards of its decisions are still learned, and then its slot is free.

        Raises:
            CredoError: there is no such arm.
        """
        arm_changes.apply(self._engine, self._prior, "remove", name)

    def forbid(self, name: str) -> None:
        """Exclude an arm from future choices. It is remembered, and its rewards are learned.

        Raises:
            CredoError: there is no such arm.
        """
        arm_changes.apply(self._engine, self._prior, "forbid", name)

    def allow(self, name: str) -> None:
        """Allow an arm to be chosen again.

        Raises:
            CredoError: there is no such arm.
        """
        arm_changes.apply(self._engine, self._prior, "allow", name)

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
        return decide_many(self._engine, rows, arms, names)

    def decide_slate(
        self, context: Any = None, arms: Names = None, *, size: int, id: str | None = None
    ) -> Slate:
        """Choose several arms in an order: each place is a decision among the arms that are not above it.

        So everything that holds for decisions holds for a slate: it is on the disk before it is answered, and
        its propensities are exact.
        An agent scores arms one by one, so a slate has no sense of arms that go well together.

        Arguments:
            context: as for `decide`.
            arms: as for `decide`.
            size: how many arms, S, at most as many as may be chosen.
            id: an id of your own, without "#"; None for a new one. The places below the first have ids that
                end in "#2", "#3", ... A repeated id gives the same slate again, whatever has become of its
                arms; one that broke off, or is asked for with a larger size, gets the places that it lacks.

        Returns:
            The slate.

        Raises:
            CredoError: as for `decide`; or there are fewer arms than places, or arms have shares, which are
                of single decisions; or the slate of the id has more places. Nothing changes.
            DataError: the log cannot be written. The places that are there already are found by the id.

        Cost: S decisions.
        """
        require_integer("size", size, 1, self._engine.window.size)
        if id is not None and MARK in id:
            raise CredoError(f"id of a slate must be without '{MARK}'; got {id!r}.", field="id")
        there = 0 if id is None else self._places(id)
        if there > size:
            raise CredoError(
                f"size must be at least that of the slate {id!r}, {there}; got {size}.", field="size"
            )
        if 1 < size != there and self.shares:
            raise CredoError(
                f"size must be 1 where arms have shares, which are of single decisions; got {size}.",
                field="size",
            )
        names = as_names(arms)
        ids = [] if id is None else [place_id(id, place) for place in range(1, there + 1)]
        above = [entry.arm for entry in map(self._engine.window.get, ids) if entry is not None]
        left = list(self.arms if names is None else dict.fromkeys(names))
        possible = there + sum(name not in self.forbidden and name not in above for name in left)
        if possible < size:
            raise CredoError(
                f"size must be at most the number of arms that may be chosen, {possible}; got {size}.",
                field="size",
            )
        found = [self._engine.decide(context, names, id)]
        for place in range(2, size + 1):
            left = [name for name in left if name != found[-1].arm]
            own = place_id(found[0].id, place)
            before = self._engine.window.get(own)
            rest = {name: names[name] for name in left} if isinstance(names, Mapping) else tuple(left)
            found.append(
                self._engine.decide(context, rest, own) if before is None else self._engine.answer(before)
            )
        return Slate(found[0].id, tuple(found))

    def reward_slate(
        self, id: str, values: Sequence[float], *, seen: Reading = "cascade"
    ) -> list[RewardStatus | None]:
        """Learn what a reader of a slate did.

        Of a place that was not seen nothing is learned. With the probabilities e_k that place k is seen
        (the position-based model, Craswell et al. 2008, WSDM), v_k / e_k is learned, whose expectation is the
        value of an arm that is seen: exact in the mean, with more noise further down.

        Arguments:
            id: the id of the slate.
            values: the reward of each place, (S,), such as 1 for a click and 0 for none.
            seen: "cascade": the reader goes from the top down and stops at the first reward that is not 0;
                "all": all places were seen; or the probabilities e_k (S,), above 0 and at most 1.

        Returns:
            What became of the reward of each place; None if the place was not seen. Such a place waits for
            its reward until its window ends, and is dropped then.

        Raises:
            CredoError: there are not as many values as places, or a probability is none; or places are left
                without a reward where `on_missing` would have a reward learned for them; or as for `reward`.
            DataError: as for `reward`.
        """
        numbers = list(values)
        ids = [place_id(id, place) for place in range(1, max(self._places(id) or len(numbers), 1) + 1)]
        if len(numbers) != len(ids):
            raise CredoError(
                f"values must be as many as the places of the slate, {len(ids)}; got {len(numbers)}.",
                field="values",
            )
        stop = len(ids)
        if isinstance(seen, str) and seen == "cascade":
            stop = next((place for place, value in enumerate(numbers) if value != 0), len(ids) - 1) + 1
            if stop < len(ids) and self._engine.on_missing != "drop":
                raise CredoError(
                    "seen must be 'all' or probabilities where on_missing is a reward, which would be "
                    "learned for places that nobody saw; got 'cascade'.",
                    field="seen",
                )
        elif not (isinstance(seen, str) and seen == "all"):
            numbers = [value / share for value, share in zip(numbers, seen_shares(seen, stop), strict=True)]
        learned = self.reward_batch(ids[:stop], numbers[:stop])
        return [*learned, *[None] * (len(ids) - stop)]

    def _places(self, id: str) -> int:
        """The number of places of a slate in the window; 0 if it is not there."""
        window = self._engine.window
        count = 0
        while window.get(place_id(id, count + 1)) is not None:
            count += 1
        return count

    def reward(self, id: str, value: float, *, part: str | None = None) -> RewardStatus:
        """Learn the reward of a decision, once; or keep a part of it, until the last one comes.

        The whole reward is the sum of the named parts and of the one value without a name, which closes it,
        as 0 does if nothing is to come. It is learned in one piece, then, or when the window of the
        decision ends: rewards are learned by the belief of the day, and a sum is no sequence of rewards.

        Arguments:
            id: the id of the decision.
            value: its reward, or the part of it.
            part: the name of the part, such as the id of a purchase, by which a repeated one is known; None
                for the last value.

        Returns:
            What became of it, which is true only if it was learned. A reward that is a duplicate, conflicts
            with the one that was learned, came after the window, or has no decision changes nothing but the
            counts. One that the learner refused may be corrected by another.

        Raises:
            CredoError: the reward is no finite number, or outside the range, with the parts before it;
                nothing changes.
            DataError: the log cannot be written; nothing changes. If it was written, but the disk did not
                confirm it, all later calls are refused: load the bandit again, which learns what is there.
        """
        return rewarding.reward(self._engine, [id], [value], [part])[0]

    def reward_batch(
        self,
        ids: Sequence[str],
        values: Sequence[float] | np.ndarray,
        *,
        parts: Sequence[str | None] | None = None,
    ) -> list[RewardStatus]:
        """Learn several rewards, one after the other in one compiled program, as a loop of `reward` would.

        Arguments:
            ids: the ids of their decisions.
            values: the rewards.
            parts: the name of the part that each is, or None.

        Returns:
            What became of each.

        Raises:
            CredoError: one is no finite number, or there are not as many as ids; nothing changes.
        """
        ids = list(ids)
        numbers = list(values)
        names: list[str | None] = [None] * len(ids) if parts is None else list(parts)
        for field, given in (("values", numbers), ("parts", names)):
            if len(ids) != len(given):
                raise CredoError(
                    f"{field} must be as many as ids, {len(ids)}; got {len(given)}.", field=field
                )
        return rewarding.reward(self._engine, ids, numbers, names)

    def observe(
        self,
        context: Any,
        arm: str,
        reward: float | None = None,
        *,
        propensity: Propensity = None,
        arms: Names = None,
        id: str | None = None,
    ) -> Observed:
        """Learn from a choice that was made elsewhere, as by a legacy policy or a human.

        It is kept as decisions are: in the window, in the log, and on the disk before this returns. A log
        with its propensity serves off-policy evaluation; choices whose propensity nobody knows are learned,
        and `Log.read` leaves them out and counts them.

        Arguments:
            context: as for `decide`.
            arm: the name of the chosen arm, which may be a forbidden one.
            reward: its reward; None if it comes later, by `reward` and the id.
            propensity: the probability with which it was chosen; or those of all arms by name; None if
                nobody knows.
            arms: the arms among which it was chosen, as for `decide`; None for those of `propensity`, or all.
            id: an id of your own; None for a new one. A repeated id says again what was said, and learns no
                reward twice; without one, a call that is repeated is a second choice.

        Returns:
            The id, and what became of the reward.

        Raises:
            CredoError: an arm is unknown, the propensity is no probability, the reward or the context cannot
                be used, or the id was used for another choice. Nothing changes.
            DataError: the log cannot be written.
        """
        return observe(self._engine, context, arm, reward, propensity, arms, id)

    def tick(self, now: float | None = None) -> int:
        """Remove the decisions whose time is over from the window.

        Arguments:
            now: the time in seconds; None asks the clock. Time never goes back.

        Returns:
            How many had no reward, or only parts of it.
        """
        lost = self._engine.expire(self._engine.now(now))
        self._engine.sync()
        return lost

    def explain(self, id: str) -> Explanation:
        """Explain why a decision was taken, and what is believed about it now.

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
        return explain(self._engine, entry, self._prior)

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
