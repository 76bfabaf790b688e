"""Rules: how far to go, given curvatures and a covariance family.

A rule needs of a family only its covariance protocol, and of a curvature only a `Local` model; nothing here
is written once per combination. Equations: Jones, Chang & Murphy 2024 (BONG, arXiv 2405.19681). The rules by
plain gradients, BOG and BBB, are in `credo.learners.ascent`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from credo.core.errors import CredoError, require_choice, require_integer
from credo.core.records import record, static_field
from credo.covariances import Covariance, Iterate, LowRankCovariance
from credo.covariances.base import kalman_shift
from credo.covariances.retraction import RETRACTIONS
from credo.covariances.row_space import FEW, RowSpace
from credo.learners.curvature import Local
from credo.learners.rates import as_rate, rate_at
from credo.linalg.outer import OuterRows

__all__ = ["BLRRule", "BONGRule", "Measure", "Rule", "Step"]

Measure = Callable[[jax.Array, Covariance, jax.Array | int], Local]
"""Measures the (weighted) local model at a belief (mean, cov), in the given inner iteration."""


@record
class Step:
    """What a rule made of an observation.

    Attributes:
        mean, cov: the new mean (P,) and covariance.
        local: the first local model, at the prior.
        inner: J S0 J' (k, k) of its rows.
    """

    mean: jax.Array
    cov: Covariance
    local: Local
    inner: jax.Array


class Rule:
    """From a prior N(mean, cov) and a way to measure, the new mean and covariance."""

    random_start: float = 0.0
    """The share of a low-rank prior's precision that starts in random directions; above 0 for rules to which
    W = 0 is a stationary point."""

    def update(self, mean: jax.Array, cov: Covariance, measure: Measure, t: jax.Array) -> Step:
        """One measurement update.

        Arguments:
            mean, cov: the prior of this step.
            measure: what is seen of the observation.
            t: the belief's time, for schedules.
        """
        raise NotImplementedError


@record
class BONGRule(Rule):
    """Bayesian online natural gradient: psi = psi0 + natural gradient of E log p(y | theta), one step, no
    learning rate.

    With a Gaussian and the local model (J, e, A): precision L0 + J' A A' J, and mean mu0 + inv(L) J' e. On
    linear-Gaussian models this is Bayes' rule itself (the Kalman filter).

    Arguments:
        gain: which covariance moves the mean. "joint" (the default) uses the exact posterior of the local
            model, before the family forgets: S0 J' inv(I + A A' J S0 J') e, the Kalman gain. "kept" uses the
            covariance that is kept (mu0 + S g); for diagonal beliefs it diverges on
            networks, but costs k P instead of k^2 P for k rows.
        iterations: how often to linearise anew at the latest mean (the iterated EKF); the observation is
            counted once.
    """

    gain: str = static_field(default="joint")
    iterations: int = static_field(default=1)

    def __post_init__(self) -> None:
        require_choice("gain", self.gain, ["joint", "kept"])
        require_integer("iterations", self.iterations, 1)

    def update(self, mean: jax.Array, cov: Covariance, measure: Measure, t: jax.Array) -> Step:
        """One measurement update."""
        first = local = measure(mean, cov, 0)
        inner, shift = cov.couple(first.rows)[1], jnp.zeros_like(mean)
        for i in range(self.iterations):
            if i:
                local = measure(mean + shift, cov, i)
            base = cov if local.diagonal is None else cov.add_precision(local.diagonal)
            if self.gain == "kept" and cov.kind != "full":
                slope = local.gradient - cov.precise(shift) if i else local.gradient
                conditioned = base.condition(local.factor)
                shift = shift + conditioned.mv(slope)
                continue
            residual = local.residual + local.bend(local.rows @ shift) if i else local.residual
            moved, conditioned = base.absorb(local.rows, residual, local.root)
            if i and local.diagonal is not None:
                moved = moved + conditioned.mv(local.diagonal * shift)
            shift = moved
        return Step(mean + shift, conditioned, first, inner)


@record
class BLRRule(Rule):
    """The Bayesian learning rule (Khan & Rue 2023, arXiv 2107.04562): I natural-gradient steps on the
    evidence lower bound, with the belief before the observation as the prior.

    With L0 and mu0 of that prior, g and G = -U U' measured at the current iterate (mu, S = inv(L)):

        L <- (1 - a) L + a L0 + a U U',     mu <- mu + a S [L0 (mu0 - mu) + g].

    A step of size a is a Kalman update of the blended belief (1 - a) psi + a psi0 with the data at strength
    a, which is how it is computed: no inverse, and for `Full` no P^3. With a = 1 and LIN-HESS the iterations
    are those of the iterated EKF; with one iteration it is BONG. The fixed point does not depend on a.

    Arguments:
        learning_rate: a, above 0 and at most 1; or a schedule over the steps of the stream (`Schedule`, or a
            function of the step), a rate outside [0, 1] of which rejects the update.
        iterations: I, at least 1.
        gain: "joint" moves the mean by the posterior before the family forgets, "kept" by what is kept, as
            published; see `BONGRule`. They differ for `Diagonal` and `LowRank` only. With "joint" and
            LIN-HESS, a `LowRank` belief over a large network of dense layers forgets once, after the last
            iteration; otherwise, or where the iterations bring more than 256 rows, after each.
        parameters: "natural" (above), or "moment": mu <- mu + a S [L0 (mu0 - mu) + g] with the old S, and
            S <- S + a S (G + L - L0) S; for `Full` (P^3) and `Diagonal`.
        retraction: how the "moment" step stays positive definite: "safe", or "exact" (which rejects the
            update where it does not).

    Cost: I times BONG's; `Full` P^2 k an iteration while I k < P, after that P^3. Exact for linear-Gaussian
    models when a = 1.
    """

    learning_rate: Any = 0.5
    iterations: int = static_field(default=10)
    gain: str = static_field(default="joint")
    parameters: str = static_field(default="natural")
    retraction: str = static_field(default="safe")

    def __post_init__(self) -> None:
        object.__setattr__(self, "learning_rate", as_rate("learning_rate", self.learning_rate, 1.0))
        require_integer("iterations", self.iterations, 1)
        require_choice("gain", self.gain, ["joint", "kept"])
        require_choice("parameters", self.parameters, ["natural", "moment"])
        require_choice("retraction", self.retraction, RETRACTIONS)

    def update(self, mean: jax.Array, cov: Covariance, measure: Measure, t: jax.Array) -> Step:
        """One measurement update."""
        rate = rate_at(self.learning_rate, t, mean.dtype, 1.0)
        first = measure(mean, cov, 0)
        inner = cov.couple(first.rows)[1]
        if self.parameters == "moment":
            return self._moments(mean, cov, measure, rate, first, inner)
        rows = first.factor.shape[0] + (0 if first.diagonal is None else cov.size)
        zero = jnp.zeros_like(mean)
        few = self.gain == "joint" and self.iterations * rows <= FEW
        if few and isinstance(first.rows, OuterRows) and isinstance(cov, LowRankCovariance):
            return self._in_row_space(mean, cov, measure, rate, first, inner)

        def advance(i: Any, state: tuple, local: Local | None = None) -> tuple:
            shift, dual, iterate = state
            if local is None:
                local = measure(mean + shift, iterate.cov, i)
            return self._advance(cov, rate, shift, dual, iterate, local)

        state = advance(0, (zero, zero, cov.iterate(self.iterations * rows)), first)
        if self.iterations > 1:
            state = jax.lax.fori_loop(1, self.iterations, advance, state)
        shift, _, iterate = state
        return Step(mean + shift, iterate.keep(), first, inner)

    def _advance(
        self,
        prior: Covariance,
        rate: jax.Array,
        shift: jax.Array,
        dual: jax.Array,
        iterate: Iterate,
        local: Local,
    ) -> tuple[jax.Array, jax.Array, Iterate]:
        """One iteration, in shifts m = mu - mu0 and duals d = L m from the prior."""
        part = local.weighted(rate)
        blended = iterate.blend(rate)
        scaled = (1.0 - rate) * iterate.dual(shift, dual)
        after = iterate.advance(blended, rate, part.factor, part.diagonal)
        if self.gain == "kept" and prior.kind != "full":
            moved = shift + after.cov.mv(part.gradient - rate * prior.precise(shift))
            return moved, dual, after
        source = scaled if part.diagonal is None else scaled + part.diagonal * shift
        seen = source + (part.residual + part.bend(part.rows @ shift)) @ part.rows
        if after.whole:
            return after.cov.mv(seen), seen, after
        base = blended if part.diagonal is None else blended.add_precision(part.diagonal)
        before = base.mv(source)
        residual = part.residual + part.bend(part.rows @ (shift - before))
        moved = before + kalman_shift(part.root, residual, *base.couple(part.rows))
        return moved, seen, after

    def _in_row_space(
        self,
        mean: jax.Array,
        cov: LowRankCovariance,
        measure: Measure,
        rate: jax.Array,
        first: Local,
        inner: jax.Array,
    ) -> Step:
        """All iterations in the space of their rows J: L = L0 + J' N J with N = B' B, and mu = mu0 + S0 J' u
        with (I + N J S0 J') u = z, where z are the coefficients of the dual vector. Cost I P and P R^2.
        """
        each, width = first.rows.shape[0], first.factor.shape[0]
        count = self.iterations * each
        eye, zero = jnp.eye(count, dtype=mean.dtype), jnp.zeros(count, mean.dtype)
        block = jnp.zeros((self.iterations * width, count), mean.dtype)

        def advance(i: Any, state: tuple, local: Local | None = None) -> tuple:
            space, left, dual, coefficients = state
            if local is None:
                local = measure(mean + space.shift(coefficients), cov, i)
            part = local.weighted(rate)
            space = space.add(part.rows, i)
            root = jnp.diag(part.root) if part.root.ndim == 1 else part.root
            left = jax.lax.dynamic_update_slice(jnp.sqrt(1.0 - rate) * left, root.T, (i * width, i * each))
            here = jax.lax.dynamic_slice(space.inner, (i * each, 0), (each, count)) @ coefficients
            pulled = part.residual + part.bend(here)
            dual = jax.lax.dynamic_update_slice((1.0 - rate) * dual, pulled, (i * each,))
            solved = jnp.linalg.solve(eye + left.T @ (left @ space.inner), dual)
            return space, left, dual, solved

        state = advance(0, (RowSpace.start(cov, first.rows, self.iterations), block, zero, zero), first)
        if self.iterations > 1:
            state = jax.lax.fori_loop(1, self.iterations, advance, state)
        space, left, _, coefficients = state
        return Step(mean + space.shift(coefficients), space.condition(left), first, inner)

    def _moments(
        self,
        mean: jax.Array,
        cov: Covariance,
        measure: Measure,
        rate: jax.Array,
        first: Local,
        inner: jax.Array,
    ) -> Step:
        if cov.kind == "low-rank":
            raise CredoError(
                "parameters='moment' needs a Full or Diagonal family; LowRank keeps a precision."
            )

        def advance(i: Any, state: tuple, local: Local | None = None) -> tuple:
            current, held = state
            if local is None:
                local = measure(current, held, i)
            moved = current + rate * held.mv(local.gradient - cov.precise(current - mean))
            return moved, held.temper(local.factor, local.diagonal, cov, rate, self.retraction)

        state = advance(0, (mean, cov), first)
        if self.iterations > 1:
            state = jax.lax.fori_loop(1, self.iterations, advance, state)
        current, held = state
        return Step(current, held, first, inner)
