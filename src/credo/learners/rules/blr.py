"""Rules that follow natural gradients: BONG, in one step, and BLR, on the evidence lower bound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import jax
import jax.numpy as jnp

from credo.core.errors import require_choice, require_integer
from credo.core.records import record, static_field
from credo.core.types import Array
from credo.covariances import Covariance, Updatable, inverse_of
from credo.learners.curvatures import Local, Penalty
from credo.learners.rules.base import RETRACTIONS, Measure, Rate, Retraction, Rule, Step, as_rate, rate_at
from credo.learners.rules.iterates import FEW, Iterate, RowSpace, start_iterate, start_row_space, temper
from credo.learners.rules.plain_gradient import Chart
from credo.linalg.matrices import kalman_weights, rounded, solve

__all__ = ["BLRRule", "BONGRule", "Gain"]

Gain: TypeAlias = Literal["joint", "kept"]
"""The covariance that moves the mean: the exact posterior of the local model, or the kept one."""

GAINS: tuple[Gain, ...] = ("joint", "kept")
"""All gains."""

MISSED = 0.5
"""Nats of log posterior by which Kalman's step may miss the mode, if BLR starts at the prior mean."""


@record
class BONGRule(Rule):
    """Bayesian online natural gradient: one step psi = psi0 + natural gradient of E log p(y | theta).

    There is no learning rate.

    With a Gaussian and the local model (J, e, A), the precision becomes L = L0 + J' A A' J, and the mean mu0
    + inv(L) J' e. On linear-Gaussian models this is Bayes' rule itself (the Kalman filter).

    Arguments:
        gain: which covariance moves the mean. "joint" (the default) uses the exact posterior of the local
            model, before the family forgets: S0 J' inv(I + A A' J S0 J') e, the Kalman gain. "kept" uses the
            kept covariance (mu0 + S g). For diagonal beliefs it costs k P instead of k^2 P for k rows, but it
            diverges on networks.
        iterations: how often to linearise at the latest mean (the iterated EKF). The observation counts only
            once. Where the log-likelihood bends, the first of several finds the mode of the model as it is
            linearised at the prior mean, and each later one goes as far as the posterior grows
            (`LinearizedGaussNewton.step_control`).

    Raises:
        CredoError: there is fewer than 1 iteration, or `gain` has another value.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> learner = credo.RecursiveLearner(model, credo.Diagonal(), rule=credo.BONGRule(iterations=2))
        >>> belief, info = learner.step(learner.init(jnp.zeros(2)), jnp.ones(2), 1.0)
        >>> bool(info.ok)
        True
    """

    gain: Gain = static_field(default="joint")
    iterations: int = static_field(default=1)

    def __post_init__(self) -> None:
        require_choice("gain", self.gain, GAINS)
        require_integer("iterations", self.iterations, 1)

    def update(self, mean: Array, cov: Covariance, measure: Measure, t: Array) -> Step:
        first = local = measure(mean, cov, 0)
        by_kept = self.gain == "kept" and cov.forgets
        if self.iterations == 1 and local.diagonal is None and not by_kept:
            if local.information is not None:
                local = local.counted(cov.push(local.rows))
            move, new_cov, inner = cov.assimilate(local.rows, local.residual, local.root)
            return Step(
                mean + rounded(_part(move, local.share(inner)), t), new_cov, first, inner, cov.vouches
            )
        inner = cov.push(first.rows)
        shift = jnp.zeros_like(mean)
        penalty = jnp.zeros((), mean.dtype)
        new_cov = cov
        for i in range(self.iterations):
            if i:
                local = measure(mean + shift, cov, i)
            base = cov if local.diagonal is None else cov.add_precision(local.diagonal)
            if by_kept:
                slope = local.gradient - inverse_of(cov)(shift) if i else local.gradient
                new_cov = base.condition(local.factor)
                shift = shift + new_cov.mv(slope)
                continue
            if not i and local.objective is not None and local.objective.plain and base is cov:
                weights = local.objective.mode(local.eta, local.rows, inner)
                cross, _ = cov.couple(local.rows)
                shift = cross.pull(weights)
                penalty = weights @ (inner @ weights)
                continue
            before = local.rows.push(shift)
            if local.information is not None:
                local = local.counted(cov.push(local.rows), before)
                residual = local.residual
            else:
                residual = local.residual + local.bend(before) if i else local.residual
            move, new_cov = base.absorb(local.rows, residual, local.root)
            if i and local.diagonal is not None:
                move = move + new_cov.mv(local.diagonal * shift)
            if local.objective is None or local.diagonal is not None:
                shift = move if i else _part(move, local.share(inner))
                continue
            spread = cov.push(local.rows) if i else inner
            weights = kalman_weights(local.root, residual, spread)
            after = spread @ weights
            between = Penalty(penalty, weights @ before, weights @ after)
            share = local.objective.share(local.eta, after - before, between)
            shift = jnp.where(share < 1.0, shift + share * (move - shift), move)
            penalty = 2.0 * between.at(share)
        return Step(mean + shift, new_cov, first, inner, cov.vouches and not by_kept)


def _part(move: Array, share: Array | None) -> Array:
    """The share of a move; None for all of it."""
    if share is None:
        return move
    return share * move


_State: TypeAlias = tuple[Array, Array, Iterate]
"""The shift m = mu - mu0, the dual d = L m, and the iterate."""

_SpaceState: TypeAlias = tuple[RowSpace, Array, Array, Array]
"""The rows, the root L of N = L' L, the dual, and the coefficients of the mean's shift."""


@dataclass(frozen=True)
class _Start:
    """The start of the iterations of a step, in the model that is linear at the prior mean.

    Attributes:
        local: the local model at the prior mean.
        inner: J S0 J' (k, k), for its rows J and the prior covariance S0.
        weights: w (k,), if the iterations start at the shift S0 J' w from the prior mean; None if they start
            at the prior mean.
    """

    local: Local
    inner: Array
    weights: Array | None = None


@record
class BLRRule(Rule):
    """The Bayesian learning rule: I natural-gradient steps on the evidence lower bound.

    The prior is the belief before the observation. Source: Khan & Rue 2023 (arXiv 2107.04562).

    With L0 and mu0 of that prior, and g and G = -U U' measured at the current iterate (mu, S = inv(L)), a
    step is

        L <- (1 - a) L + a L0 + a U U',     mu <- mu + a S [L0 (mu0 - mu) + g].

    A step of size a is a Kalman update of the blended belief (1 - a) psi + a psi0 with the data at strength
    a. It is computed in this way, without an inverse and, for `Full`, without a cost of P^3. With a = 1 and
    LIN-HESS the iterations are those of the iterated EKF; with one iteration it is BONG. The fixed point does
    not depend on a.

    Arguments:
        learning_rate: a, above 0 and at most 1, or a schedule over the steps of the stream (`Schedule`, or a
            function of the step). A scheduled rate outside [0, 1] rejects the update.
        iterations: I, at least 1. If there are several, and the log-likelihood bends so much that one step of
            Kalman's misses the mode of the linearised model by more than half a nat, they start at that mode
            (`LinearizedGaussNewton.step_control`; not with "moment").
        gain: "joint" moves the mean by the posterior before the family forgets; "kept" moves it by the kept
            covariance, as published; see `BONGRule`. They differ only for `Diagonal` and `LowRank`. With
            "joint" and LIN-HESS, a `LowRank` belief over a large network of dense layers forgets once, after
            the last iteration; otherwise, or where the iterations bring more than 256 rows, after each.
        parameters: "natural" (above), or "moment": mu <- mu + a S [L0 (mu0 - mu) + g] with the old S, and
            S <- S + a S (G + L - L0) S; for `Full` (P^3) and `Diagonal`.
        retraction: how the "moment" step stays positive definite: "safe", or "exact", which rejects the
            update where it does not.

    Raises:
        CredoError: a number is out of range, or a name is unknown.

    Cost: I times BONG's; `Full` P^2 k an iteration while I k < P, after that P^3. Exact for linear-Gaussian
    models when a = 1.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> rule = credo.BLRRule(learning_rate=0.5, iterations=3)
        >>> learner = credo.RecursiveLearner(model, credo.Diagonal(), rule=rule)
        >>> belief, info = learner.step(learner.init(jnp.zeros(2)), jnp.ones(2), 1.0)
        >>> bool(info.ok)
        True
    """

    learning_rate: Rate = 0.5
    iterations: int = static_field(default=10)
    gain: Gain = static_field(default="joint")
    parameters: Chart = static_field(default="natural")
    retraction: Retraction = static_field(default="safe")

    def __post_init__(self) -> None:
        object.__setattr__(self, "learning_rate", as_rate("learning_rate", self.learning_rate, 1.0))
        require_integer("iterations", self.iterations, 1)
        require_choice("gain", self.gain, GAINS)
        require_choice("parameters", self.parameters, ["natural", "moment"])
        require_choice("retraction", self.retraction, RETRACTIONS)

    def update(self, mean: Array, cov: Covariance, measure: Measure, t: Array) -> Step:
        rate = rate_at(self.learning_rate, t, mean.dtype, 1.0)
        first = measure(mean, cov, 0)
        if self.parameters == "moment":
            return self._moments(mean, cov, measure, rate, first)
        start = self._start(cov, first)
        rows = first.factor.shape[0] + (0 if first.diagonal is None else cov.size)
        few = self.gain == "joint" and self.iterations * rows <= FEW
        space = start_row_space(cov, first.rows, self.iterations) if few else None
        if space is not None:
            return self._in_row_space(mean, cov, measure, rate, start, space)

        def advance(i: Array | int, state: _State) -> _State:
            shift, dual, iterate = state
            return self._advance(cov, rate, shift, dual, iterate, measure(mean + shift, iterate.cov, i))

        iterate = start_iterate(cov, self.iterations * rows)
        if start.weights is None:
            zero = jnp.zeros_like(mean)
            state = self._advance(cov, rate, zero, zero, iterate, first)
            if self.iterations > 1:
                state = jax.lax.fori_loop(1, self.iterations, advance, state)
        else:
            cross, _ = cov.couple(first.rows)
            away = cross.pull(start.weights), first.rows.pull(start.weights), iterate
            state = jax.lax.fori_loop(0, self.iterations, advance, away)
        shift, _, iterate = state
        return Step(mean + shift, iterate.finish(), first, start.inner)

    def _start(self, prior: Covariance, first: Local) -> _Start:
        """The start of the iterations: the prior mean, or the mode where Kalman's step misses it by far.

        From a wide prior the iterations may overshoot, or need more than there are. Either way the curvature
        of a place that both the prior and the observation contradict stays in the precision, by (1 - a)^n
        after n others. The fixed point is the same from either start.
        """
        inner = prior.push(first.rows)
        objective = first.objective
        if objective is None or not objective.plain or first.diagonal is not None or self.iterations == 1:
            return _Start(first, inner)
        step = kalman_weights(first.root, first.residual, inner)
        mode = objective.mode(first.eta, first.rows, inner)
        missed = objective.height(first.eta, mode, inner) - objective.height(first.eta, step, inner)
        # a step to where the height is not finite misses the mode, too
        weights = jnp.where(missed <= MISSED, jnp.zeros_like(mode), mode)
        return _Start(first, inner, weights)

    def _advance(
        self, prior: Covariance, rate: Array, shift: Array, dual: Array, iterate: Iterate, local: Local
    ) -> _State:
        """One iteration, in the shift m = mu - mu0 from the prior and the dual d = L m."""
        part = local.weighted(rate)
        blend = iterate.blend(rate)
        carry = (1.0 - rate) * iterate.dual(shift, dual)
        after = iterate.advance(blend, rate, part.factor, part.diagonal)
        if self.gain == "kept" and prior.forgets:
            new_shift = shift + after.cov.mv(part.gradient - rate * inverse_of(prior)(shift))
            return new_shift, dual, after
        source = carry if part.diagonal is None else carry + part.diagonal * shift
        new_dual = source + part.rows.pull(part.residual + part.bend(part.rows.push(shift)))
        if after.whole:
            return after.cov.mv(new_dual), new_dual, after
        base = blend
        if part.diagonal is not None:
            assert isinstance(blend, Updatable)
            base = blend.add_precision(part.diagonal)
        before = base.mv(source)
        residual = part.residual + part.bend(part.rows.push(shift - before))
        cross, inner = base.couple(part.rows)
        new_shift = before + cross.pull(kalman_weights(part.root, residual, inner))
        return new_shift, new_dual, after

    def _in_row_space(
        self,
        mean: Array,
        cov: Covariance,
        measure: Measure,
        rate: Array,
        start: _Start,
        empty: RowSpace,
    ) -> Step:
        """All iterations in the space of their rows J: L = L0 + J' N J with N = B' B, and mu = mu0 + S0 J' u
        with (I + N J S0 J') u = z, where z are the coefficients of the dual vector. Cost: I P and P R^2.
        """
        first = start.local
        each = first.rows.shape[0]
        width = first.factor.shape[0]
        count = self.iterations * each
        eye = jnp.eye(count, dtype=mean.dtype)
        zero = jnp.zeros(count, mean.dtype)
        block = jnp.zeros((self.iterations * width, count), mean.dtype)

        def take(i: Array | int, state: _SpaceState, local: Local) -> _SpaceState:
            space, roots, dual, coefficients = state
            part = local.weighted(rate)
            space = space.add(part.rows, i)
            root = jnp.diag(part.root) if part.root.ndim == 1 else part.root
            roots = jax.lax.dynamic_update_slice(jnp.sqrt(1.0 - rate) * roots, root.T, (i * width, i * each))
            here = jax.lax.dynamic_slice(space.inner, (i * each, 0), (each, count)) @ coefficients
            pull = part.residual + part.bend(here)
            carry = (1.0 - rate) * dual
            # 0 but for the first group, where the iterations do not start at the prior mean
            before = jax.lax.dynamic_slice(carry, (i * each,), (each,))
            dual = jax.lax.dynamic_update_slice(carry, before + pull, (i * each,))
            new_coefficients = solve(eye + roots.T @ (roots @ space.inner), dual)
            return space, roots, dual, new_coefficients

        def advance(i: Array | int, state: _SpaceState) -> _SpaceState:
            return take(i, state, measure(mean + state[0].shift(state[3]), cov, i))

        if start.weights is None:
            state = take(0, (empty, block, zero, zero), first)
            if self.iterations > 1:
                state = jax.lax.fori_loop(1, self.iterations, advance, state)
        else:
            away = jax.lax.dynamic_update_slice(zero, start.weights, (0,))
            begun = empty.add(first.rows, 0), block, away, away
            state = jax.lax.fori_loop(0, self.iterations, advance, begun)
        space, roots, _, coefficients = state
        return Step(mean + space.shift(coefficients), space.condition(roots), first, start.inner)

    def _moments(self, mean: Array, cov: Covariance, measure: Measure, rate: Array, first: Local) -> Step:
        precise = inverse_of(cov)

        def take(state: tuple[Array, Covariance], local: Local) -> tuple[Array, Covariance]:
            current, here = state
            new_mean = current + rate * here.mv(local.gradient - precise(current - mean))
            return new_mean, temper(here, local.factor, local.diagonal, cov, rate, self.retraction)

        def advance(i: Array | int, state: tuple[Array, Covariance]) -> tuple[Array, Covariance]:
            return take(state, measure(state[0], state[1], i))

        state = take((mean, cov), first)
        if self.iterations > 1:
            state = jax.lax.fori_loop(1, self.iterations, advance, state)
        return Step(state[0], state[1], first, cov.push(first.rows))
