"""One belief whose forgetting is chosen at every step; the auxiliary variable is a change probability."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, Literal, TypeAlias, get_args

import jax
import jax.numpy as jnp
import numpy as np

from credo.adapt.moments import collapse, log_sum
from credo.adapt.nested import Around, B, floating
from credo.adapt.priors import descend
from credo.adapt.questions import Answer, Question, weighted
from credo.adapt.wrapper import Proposal, Wrapper
from credo.core.errors import (
    CredoError,
    require_choice,
    require_integer,
    require_interval,
    require_nonnegative,
    require_positive,
    require_representable,
)
from credo.core.fields import field
from credo.core.records import record, replace, static_field
from credo.core.trees import as_like, select
from credo.core.types import Array, ArrayLike, Key, PyTree
from credo.dynamics import Dynamics, OrnsteinUhlenbeck, RandomWalk
from credo.learners import Learner

__all__ = ["ChangeProbability", "Forgetting", "LevelChoice", "LevelKind"]

LevelKind: TypeAlias = Literal["ou", "inflation"]
"""The meaning of a level: the share that is kept, or the variance that is added."""

LevelChoice: TypeAlias = Literal["marginal", "map", "gradient"]
"""The way to choose a level."""


@record
class Forgetting(Around[B], Generic[B]):
    """A belief, and how much it will forget before the next observation.

    Attributes:
        belief: the belief after the latest observation, moved by the learner's own dynamics.
        prior: the belief before any data.
        level: the latest choice: the share that was kept ("ou") or the variance that was added.
        pending: the length of time that the next choice covers.
        t: how many times `predict` has been called.

    Example:
        >>> import credo
        >>> belief = ChangeProbability(credo.BetaBernoulli(), levels=(1.0, 0.5)).init()
        >>> float(belief.level), float(belief.pending)
        (1.0, 0.0)
    """

    belief: B
    prior: B
    level: Array = field("nonnegative")
    pending: Array = field("nonnegative")
    t: Array


@record
class ChangeProbability(Wrapper[Forgetting[B], B], Generic[B]):
    """A learner that forgets as much as each observation asks for.

    With `kind="ou"` and level u: N(u m + (1 - u) m0, u^2 S + (1 - u^2) S0) (CPP-OU: Titsias et al. 2024,
    Galashov et al. 2024). With `kind="inflation"` and level q: N(m, S + q I) (CPP-ACI). The level is chosen
    by how well it predicts y, with a prior on levels; without a prior, the maximum would follow every
    outlier.

    Arguments:
        learner: a learner with a Gaussian belief, or for "ou" a conjugate one.
        levels: the levels to choose from (G,), or for `method="gradient"` the level to start with.
        log_prior: their log prior (G,), up to a constant; None for uniform.
        kind: "ou" or "inflation".
        method: "marginal" averages over the levels by Bayes and keeps the mixture's first two moments; "map"
            keeps the likeliest; "gradient" carries one level along and moves it uphill.
        learning_rate, iterations: the rate and number of the gradient steps, in -2 log u or in q.
        limit: the largest -2 log u or the largest q, for "gradient".

    Raises:
        CredoError: a choice or a number is not allowed, or the shapes of levels and prior differ.

    For "marginal" the evidence is exact given the belief before, and the collapse is an approximation. "map"
    and "gradient" use y twice.

    Cost: G inner updates (marginal), G forecasts and one update (map), or `iterations` gradients of a
        forecast and
    one update (gradient), each with the move of the family.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> inner = credo.extended_kalman(credo.Model(lambda w, x: x @ w, credo.Normal(0.1)))
        >>> learner = ChangeProbability(inner, levels=(1.0, 0.9, 0.5, 0.0), log_prior=(0.0, -3.0, -4.0, -5.0))
        >>> belief, info = learner.step(learner.init(jnp.zeros(2)), jnp.ones(2), 1.0)
        >>> bool(info.ok)
        True
    """

    levels: ArrayLike | Sequence[float] = tuple(np.linspace(1.0, 0.0, 11).tolist())
    log_prior: ArrayLike | Sequence[float] | None = None
    kind: LevelKind = static_field(default="ou")
    method: LevelChoice = static_field(default="marginal")
    learning_rate: ArrayLike = 0.01
    iterations: int = static_field(default=3)
    limit: ArrayLike = 10.0

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("levels", "log_prior"):
            value = getattr(self, name)
            if isinstance(value, list | tuple | int | float):
                require_representable(name, value)
                object.__setattr__(self, name, jnp.atleast_1d(jnp.asarray(value, float)))
        if not isinstance(self.kind, str):
            return
        require_choice("kind", self.kind, get_args(LevelKind))
        require_choice("method", self.method, get_args(LevelChoice))
        require_integer("iterations", self.iterations, 1)
        require_nonnegative("learning_rate", self.learning_rate)
        require_positive("limit", self.limit)
        require_nonnegative("levels", self.levels)
        if self.kind == "ou":
            require_interval("levels", self.levels, 0.0, 1.0)
        if self.log_prior is not None and np.shape(self.log_prior) != np.shape(self.levels):
            raise CredoError(
                f"log_prior must have one entry for each level {np.shape(self.levels)}; got shape "
                f"{np.shape(self.log_prior)}."
            )

    def wrap(self, prior: B) -> Forgetting[B]:
        """The inner learner's first belief."""
        kind = floating(prior)
        level = jnp.asarray(self.levels, kind).reshape(-1)[0]
        return Forgetting(prior, prior, level, jnp.zeros((), kind), jnp.zeros((), jnp.int32))

    def advance(self, belief: Forgetting[B], dt: ArrayLike | None) -> Forgetting[B]:
        """Advance the belief by a step of time. How much is forgotten in it is chosen when y arrives."""
        later = self.learner.time_update(belief.belief, dt)
        # The first observation meets the prior itself.
        step = jnp.where(belief.t == 0, 0.0, 1.0) * (1.0 if dt is None else as_like(dt, belief.pending))
        return replace(belief, belief=later, pending=belief.pending + step.astype(belief.pending.dtype))

    def _move(self, level: Array) -> Dynamics:
        """The dynamics of a level."""
        if self.kind == "ou":
            return OrnsteinUhlenbeck(level)
        return RandomWalk(level)

    def _child(self, belief: Forgetting[B], level: Array) -> B:
        """The belief after a move of this level, unchanged bit by bit if nothing is forgotten."""
        child = descend(self._move(level), belief.belief, belief.prior, belief.pending)
        nothing = level == (1.0 if self.kind == "ou" else 0.0)
        return select(nothing | (belief.pending == 0), belief.belief, child)

    def _weights(self, belief: Forgetting[B]) -> tuple[Array, Array]:
        """The levels (G,) and their log prior, whose probabilities sum to one."""
        if self.method == "gradient":
            return belief.level[None], jnp.zeros(1, belief.level.dtype)
        levels = jnp.asarray(self.levels).astype(belief.level.dtype)
        if self.log_prior is None:
            return levels, jnp.full(levels.shape, -np.log(levels.size), levels.dtype)
        return levels, jax.nn.log_softmax(jnp.asarray(self.log_prior).astype(levels.dtype))

    def ask(self, belief: Forgetting[B], x: PyTree, question: Question) -> Answer:
        levels, log_prior = self._weights(belief)
        answers = jax.vmap(lambda level: question(self.learner, self._child(belief, level), x))(levels)
        return weighted(answers, log_prior)

    def pick(self, belief: Forgetting[B], key: Array) -> tuple[Learner[B], B]:
        levels, log_prior = self._weights(belief)
        return self.learner, self._child(belief, levels[jax.random.categorical(key, log_prior)])

    def propose(
        self, belief: Forgetting[B], x: PyTree, y: PyTree, weight: ArrayLike, key: Key | None
    ) -> Proposal[Forgetting[B]]:
        """Score the levels by how they predict y, choose, and learn y."""
        levels, log_prior = self._weights(belief)
        children = jax.vmap(lambda level: self._child(belief, level))(levels)
        learned, infos = jax.vmap(lambda one: self.learner.measurement_update(one, x, y, weight, key))(
            children
        )
        logs = log_prior + jnp.where(infos.ok, infos.log_evidence, -jnp.inf).astype(log_prior.dtype)
        log_evidence = log_sum(logs)
        best = jnp.argmax(logs)
        if self.method == "marginal":
            choice = collapse(logs, learned)
            level = jnp.sum(jnp.where(jnp.isfinite(logs), jax.nn.softmax(logs), 0.0) * levels)
        elif self.method == "map":
            choice = jax.tree.map(lambda leaf: leaf[best], learned)
            level = levels[best]
        else:
            level = self._climb(belief, x, y)
            choice, info = self.learner.measurement_update(self._child(belief, level), x, y, weight, key)
            level = jnp.where(info.ok, level, belief.level)
        ok = jnp.any(infos.ok) & jnp.isfinite(log_evidence) & jnp.isfinite(level)
        new = replace(belief, belief=choice, level=level, pending=jnp.zeros_like(belief.pending))
        return Proposal(new, log_evidence, ok, level)

    def _climb(self, belief: Forgetting[B], x: PyTree, y: PyTree) -> Array:
        """The level after some gradient steps on log p(y | x, level)."""
        limit = as_like(self.limit, belief.level)
        rate = as_like(self.learning_rate, belief.level)

        def to_level(place: Array) -> Array:
            if self.kind == "ou":
                return jnp.exp(-0.5 * place)
            return place

        def score(place: Array) -> Array:
            child = descend(self._move(to_level(place)), belief.belief, belief.prior, belief.pending)
            return self.learner.predictive(child, x, None, None, None).log_prob(y)

        def climb(_: int, place: Array) -> Array:
            slope: Array = jax.grad(score)(place)
            return jnp.clip(place + rate * jnp.where(jnp.isfinite(slope), slope, 0.0), 0.0, limit)

        start = -2.0 * jnp.log(belief.level) if self.kind == "ou" else belief.level
        start = jnp.clip(start, 0.0, limit)
        return to_level(jax.lax.fori_loop(0, self.iterations, climb, start))
