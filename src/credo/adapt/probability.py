"""One belief whose forgetting is chosen anew at every step: changepoint probability as auxiliary variable."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.adapt.hypotheses import floating, log_sum
from credo.adapt.priors import collapse, descend
from credo.adapt.wrapped import Around
from credo.core.errors import (
    CredoError,
    require_choice,
    require_integer,
    require_interval,
    require_nonnegative,
)
from credo.core.keys import as_key
from credo.core.records import record, replace, static_field
from credo.core.trees import as_like, select
from credo.dynamics import OrnsteinUhlenbeck, RandomWalk
from credo.learners import Info, Learner
from credo.likelihoods import Predictive, WeightedPredictive

__all__ = ["ChangeProbability", "Forgetting"]

# How a level becomes dynamics, and the level that forgets nothing.
MOVES = {"ou": (OrnsteinUhlenbeck, 1.0), "inflation": (RandomWalk, 0.0)}


@record
class Forgetting(Around):
    """A belief, and how much it will forget before the next observation.

    Attributes:
        belief: what was believed after the latest observation, moved by the learner's own dynamics.
        prior: the belief before any data.
        level: what was chosen last: the share that was kept ("ou") or the variance that was added.
        pending: how much time the next choice is about.
        t: how many times `predict` has been called.
    """

    belief: Any
    prior: Any
    level: jax.Array
    pending: jax.Array
    t: jax.Array


@record
class ChangeProbability(Learner):
    """A learner that forgets as much as each observation asks for.

    With `kind="ou"` and level u: N(u m + (1 - u) m0, u^2 S + (1 - u^2) S0) (CPP-OU: Titsias et al. 2024,
    Galashov et al. 2024). With `kind="inflation"` and level q: N(m, S + q I) (CPP-ACI). The level is chosen
    by how well it predicts y, over a prior on levels; to maximise without a prior follows every outlier.

    Arguments:
        learner: a learner with a Gaussian belief (for "ou" also conjugate).
        levels: the levels to choose from (G,); for `method="gradient"` the one to start with.
        log_prior: their log prior (G,), up to a constant; None for uniform.
        kind: "ou" or "inflation".
        method: "marginal" averages over the levels by Bayes and keeps the mixture's first two moments; "map"
            keeps the likeliest; "gradient" carries one level along and moves it uphill.
        rate, iterations: of the gradient steps, in -2 log u or in q.
        limit: for "gradient": the largest -2 log u, or the largest q.

    Exact evidence for "marginal" given the belief before; the collapse is an approximation. "map" and
    "gradient" use y twice. Cost: G inner updates (marginal), G forecasts and one update (map), `iterations`
    gradients of a forecast and one update (gradient), each with the family's move.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> inner = credo.extended_kalman(credo.Model(lambda w, x: x @ w, credo.Normal(0.1)))
        >>> learner = ChangeProbability(inner, levels=(1.0, 0.9, 0.5, 0.0), log_prior=(0.0, -3.0, -4.0, -5.0))
        >>> belief, info = learner.step(learner.init(jnp.zeros(2)), jnp.ones(2), 1.0)
        >>> bool(info.ok)
        True
    """

    learner: Learner
    levels: Any = tuple(np.linspace(1.0, 0.0, 11).tolist())
    log_prior: Any = None
    kind: str = static_field(default="ou")
    method: str = static_field(default="marginal")
    rate: Any = 0.01
    iterations: int = static_field(default=3)
    limit: Any = 10.0

    def __post_init__(self) -> None:
        for name in ("levels", "log_prior"):
            value = getattr(self, name)
            if isinstance(value, list | tuple | int | float):
                object.__setattr__(self, name, jnp.atleast_1d(jnp.asarray(value, float)))
        if not isinstance(self.kind, str):
            return
        require_choice("kind", self.kind, MOVES)
        require_choice("method", self.method, ["marginal", "map", "gradient"])
        require_integer("iterations", self.iterations, 1)
        require_nonnegative("rate", self.rate)
        require_nonnegative("levels", self.levels)
        if self.kind == "ou":
            require_interval("levels", self.levels, 0.0, 1.0)
        if self.log_prior is not None and jnp.shape(self.log_prior) != jnp.shape(self.levels):
            raise CredoError(
                f"log_prior must have one entry a level {jnp.shape(self.levels)}; got shape "
                f"{jnp.shape(self.log_prior)}."
            )

    def init(self, params: Any = None, *, var: Any = 1.0, **given: Any) -> Forgetting:
        """The inner learner's first belief."""
        prior = self.learner.init(params, var=var, **given)
        kind = floating(prior)
        level = jnp.asarray(self.levels, kind).reshape(-1)[0]
        return Forgetting(prior, prior, level, jnp.zeros((), kind), jnp.zeros((), jnp.int32))

    def time_update(self, belief: Forgetting, dt: Any) -> Forgetting:
        moved = self.learner.time_update(belief.belief, dt)
        # The first observation meets the prior itself.
        step = jnp.where(belief.t == 0, 0.0, 1.0) * (1.0 if dt is None else as_like(dt, belief.pending))
        pending = belief.pending + step.astype(belief.pending.dtype)
        return replace(belief, belief=moved, pending=pending, t=belief.t + 1)

    def _child(self, belief: Forgetting, level: jax.Array) -> Any:
        """The belief after a move of this level; the one that forgets nothing is the belief bit by bit."""
        move, none = MOVES[self.kind]
        moved = descend(move(level), belief.belief, belief.prior, belief.pending)
        return select((level == none) | (belief.pending == 0), belief.belief, moved)

    def _weights(self, belief: Forgetting) -> tuple[jax.Array, jax.Array]:
        """The levels (G,) and their log prior, of sum one."""
        if self.method == "gradient":
            return belief.level[None], jnp.zeros(1, belief.level.dtype)
        levels = as_like(self.levels, belief.level)
        if self.log_prior is None:
            return levels, jnp.full(levels.shape, -np.log(levels.size), levels.dtype)
        return levels, jax.nn.log_softmax(as_like(self.log_prior, levels))

    def predictive(
        self, belief: Forgetting, x: Any, method: str | None, samples: int | None, key: Any
    ) -> Predictive:
        levels, log_prior = self._weights(belief)

        def one(level: jax.Array) -> Predictive:
            return self.learner.predictive(self._child(belief, level), x, method, samples, key)

        return WeightedPredictive(jax.vmap(one)(levels), log_prior)

    def measurement_update(
        self, belief: Forgetting, x: Any, y: Any, weight: Any, key: Any
    ) -> tuple[Forgetting, Info]:
        levels, log_prior = self._weights(belief)
        children = jax.vmap(lambda level: self._child(belief, level))(levels)
        learned, infos = jax.vmap(lambda one: self.learner.measurement_update(one, x, y, weight, key))(
            children
        )
        logs = log_prior + jnp.where(infos.ok, infos.log_evidence, -jnp.inf).astype(log_prior.dtype)
        log_evidence = log_sum(logs)
        best = jnp.argmax(logs)
        if self.method == "marginal":
            kept = collapse(logs, learned)
            level = jnp.sum(jnp.where(jnp.isfinite(logs), jax.nn.softmax(logs), 0.0) * levels)
        elif self.method == "map":
            kept, level = jax.tree.map(lambda leaf: leaf[best], learned), levels[best]
        else:
            level = self._climb(belief, x, y)
            kept, info = self.learner.measurement_update(self._child(belief, level), x, y, weight, key)
            level = jnp.where(info.ok, level, belief.level)
        ok = jnp.any(infos.ok) & jnp.isfinite(log_evidence) & jnp.isfinite(level)
        new = replace(belief, belief=kept, level=level, pending=jnp.zeros_like(belief.pending))
        used = ok & jnp.any(jnp.asarray(weight) != 0)
        return select(used, new, belief), Info(jnp.where(used, log_evidence, 0.0), ok, level)

    def _climb(self, belief: Forgetting, x: Any, y: Any) -> jax.Array:
        """The level after some gradient steps on log p(y | x, level)."""
        limit, rate = as_like(self.limit, belief.level), as_like(self.rate, belief.level)

        def to_level(place: jax.Array) -> jax.Array:
            return jnp.exp(-0.5 * place) if self.kind == "ou" else place

        def score(place: jax.Array) -> jax.Array:
            move, _ = MOVES[self.kind]
            child = descend(move(to_level(place)), belief.belief, belief.prior, belief.pending)
            return self.learner.predictive(child, x, None, None, None).log_prob(y)

        def climb(_: int, place: jax.Array) -> jax.Array:
            slope = jax.grad(score)(place)
            return jnp.clip(place + rate * jnp.where(jnp.isfinite(slope), slope, 0.0), 0.0, limit)

        start = -2.0 * jnp.log(belief.level) if self.kind == "ou" else belief.level
        start = jnp.clip(start, 0.0, limit)
        return to_level(jax.lax.fori_loop(0, self.iterations, climb, start))

    def draws(self, belief: Forgetting, key: Any, shape: tuple[int, ...]) -> Any:
        return self.learner.draws(belief.belief, as_key(key), shape)
