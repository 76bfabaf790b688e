"""Plain gradient steps in the parameters of a family, and the rules that take them: BOG and BBB.

The gradients by mean and covariance come from the curvature (dE / dS is half the expected Hessian), and each
family turns them into a step in its own parameters. The objective E has dE / d mean = u and dE / dS = N / 2
with N = -B' B - diag(d), to which an ELBO adds L - L0. Sources: Jones, Chang & Murphy 2024 (BONG, arXiv
2405.19681), after Blundell et al. 2015 (BBB), rederived and checked against automatic differentiation.

A full covariance S = W W' takes its step in the coordinates in which S is the identity.
There a precision is I + X, and only X has to be decomposed: a low-rank X by a small Gram matrix (cost k P^2),
a dense one by its eigenvalues (cost P^3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import ClassVar, Literal, TypeAlias

import jax
import jax.numpy as jnp

from credo.core.errors import CredoError, require_choice, require_integer
from credo.core.records import record, static_field
from credo.core.types import Array
from credo.covariances import (
    BlockCovariance,
    Covariance,
    DiagonalCovariance,
    FullCovariance,
    LowRankCovariance,
    inverse_of,
)
from credo.learners.curvatures import Local
from credo.learners.rules.base import (
    RETRACTIONS,
    Measure,
    Rate,
    Retraction,
    Rule,
    Step,
    as_rate,
    grown_root,
    rate_at,
    retract,
    retract_matrix,
)
from credo.linalg.jacobians import Rows
from credo.linalg.jacobians.outer import columns, cut, join
from credo.linalg.matrices import (
    cholesky,
    column_sums,
    eigh,
    inverse,
    precision,
    safe_sqrt,
    scale_rows,
    solve,
    solve_lower,
)

__all__ = ["Ascent", "BBBRule", "BOGRule", "Chart", "ascend", "diagonal_bend", "with_diagonal"]


def ascend_factors(
    base: Array,
    factor: Array,
    rows: Array,
    diagonal: Array | None,
    prior: tuple[Array, Array] | None,
    rate: Array,
    retraction: Retraction,
    tied: bool = False,
) -> tuple[Array, Array]:
    """The step to y + a diag(T) / 2 and W + a W T, with T = S (B' B + diag(d) + L0 - L) S.

    `prior` is y and W of L0; without it, L0 - L is left out. Where `tied`, y is one number for all
    parameters, whose gradient is the sum of theirs. Cost: P (R^2 + R k).
    """
    eye = jnp.eye(factor.shape[0], dtype=base.dtype)
    var = 1.0 / base
    spread = scale_rows(factor, var)
    chol = cholesky(eye + spread @ factor.T)
    arms = solve_lower(chol, spread)  # S = diag(1/y) - arms' arms

    def cover(block: Array) -> Array:
        """The product block S."""
        return scale_rows(block, var) - (block @ arms.T) @ arms

    level = jnp.zeros_like(base) if diagonal is None else diagonal
    blocks = [(rows, 1.0)]
    if prior is not None:
        level = level + prior[0] - base
        blocks += [(prior[1], 1.0), (factor, -1.0)]
    middle = scale_rows(arms, level) @ arms.T
    bend = var**2 * level - 2.0 * var * level * column_sums(arms**2) + column_sums(arms * (middle @ arms))
    here = cover(factor)
    drive = scale_rows(here, level)
    for block, sign in blocks:
        bend = bend + sign * column_sums(cover(block) ** 2)
        drive = drive + sign * (here @ block.T) @ block
    if tied:
        bend = jnp.full_like(bend, jnp.sum(bend))
    new_base = base * retract(0.5 * rate * bend / base, retraction)
    return new_base, factor + rate * cover(drive)


def ascend_naturals(
    root: Array,
    mean: Array,
    slope: Array,
    factor: Array,
    prior_root: Array | None,
    rate: Array,
    retraction: Retraction,
) -> tuple[Array, Array]:
    """A plain gradient step in (L mu, -L / 2): the new mean and root of S.

    L <- L - 2 a (S u mu' + mu u' S) - 2 a S N S and mu <- inv(L_new) (L mu + a S u), with N = -B' B, plus
    L - L0 where a prior is given. Cost: (k + 2) P^2 without a prior, else P^3: from the second iteration on,
    L - L0 has doubled its rank at every step.
    """
    white_slope = slope @ root  # W' u
    along = white_slope @ root.T  # S u
    sides = jnp.stack([along @ root, mean @ root])  # W' S u and W' mu
    rows = (factor @ root) @ root.T @ root  # B S W
    first = -2.0 * rate
    if prior_root is None and rows.shape[0] + 2 < root.shape[0]:
        arms = jnp.concatenate([sides, rows], axis=0)
        signs = jnp.zeros((arms.shape[0], arms.shape[0]), root.dtype)
        signs = signs.at[jnp.array([0, 1]), jnp.array([1, 0])].set(first)
        signs = signs + jnp.diag(jnp.where(jnp.arange(arms.shape[0]) < 2, 0.0, -first))
        # X = A' D A with orthonormal Q = T A, T = gamma^-1/2 V': X = Q' (T^-1' D T^-1) Q
        values, vectors = eigh(arms @ arms.T)
        # directions that rounding made of nothing: scaled down in Q, and exactly made up for in X
        machine = precision(root.dtype)
        floor = values[-1] * arms.shape[0] * machine.eps + machine.tiny
        lengths = jnp.sqrt(jnp.maximum(values, floor))
        inner = (vectors * lengths[None, :]).T @ signs @ (vectors * lengths[None, :])
        shrink, turn = retract_matrix(inner, retraction)
        basis = turn.T @ (vectors / lengths[None, :]).T  # rows of Q are basis @ arms
        axes = basis @ arms
        # A W^-1 mu needs no inverse: W' S u, W' mu and W' S B' give u' S mu, mu' mu and B S mu
        heights = basis @ jnp.concatenate(
            [jnp.stack([along @ mean, mean @ mean]), factor @ root @ root.T @ mean]
        )
        natural = axes @ (rate * (along @ root)) + heights
        spread = ((1.0 / shrink - 1.0) * natural) @ axes
        new_mean = mean + root @ (rate * (along @ root) + spread)
        new_root = root + (root @ axes.T) @ (((1.0 / jnp.sqrt(shrink)) - 1.0)[:, None] * axes)
        return new_mean, new_root
    inside = -rows.T @ rows
    if prior_root is not None:
        gram = root.T @ root
        ratio = solve(prior_root, root)  # W0^-1 W
        inside = inside + gram @ gram - gram @ (ratio.T @ ratio) @ gram
    change = first * (jnp.outer(sides[0], sides[1]) + jnp.outer(sides[1], sides[0]) + inside)
    shrink, turn = retract_matrix(change, retraction)
    natural = turn.T @ (solve(root, mean) + rate * sides[0])
    new_axes = root @ turn
    return new_axes @ (natural / shrink), new_axes / jnp.sqrt(shrink)[None, :]


def ascend_moments(
    root: Array,
    mean: Array,
    slope: Array,
    factor: Array,
    prior_root: Array | None,
    rate: Array,
    retraction: Retraction,
) -> tuple[Array, Array]:
    """A plain gradient step in (mu, S): mu + a u and S + a N / 2. Cost: P^3."""
    white = solve(root, factor.T)  # W^-1 B'
    change = -white @ white.T
    if prior_root is not None:
        inverted = inverse(root)
        ratio = solve(prior_root, inverted.T)  # W0^-1 W^-T
        here = inverted @ inverted.T
        change = change + here @ here - ratio.T @ ratio
    return mean + rate * slope, grown_root(root, 0.5 * rate * change, retraction)


Chart: TypeAlias = Literal["natural", "moment"]
"""The parameters of a Gaussian in which a step is taken: (L mu, -L / 2) or (mu, S)."""


@dataclass(frozen=True)
class Ascent:
    """One step of plain gradient ascent, with slope u (P,), factor B (k, P) and diagonal d (P,).

    Attributes:
        prior: the covariance inv(L0) of the ELBO's prior, or None if E has no such term.
        parameters: "natural" (L mu, -L / 2), "moment" (mu, S), or None for the family's own: natural, or
            (mu, y, W) for a low-rank precision, which has no other.
        retraction: "safe" stays positive definite for any rate; "exact" takes the step unchanged, and gives
            NaN if it leaves the positive definite matrices.
    """

    slope: Array
    factor: Rows
    diagonal: Array | None
    prior: Covariance | None
    rate: Array
    parameters: Chart | None
    retraction: Retraction


@singledispatch
def ascend(cov: Covariance, mean: Array, step: Ascent) -> tuple[Array, Covariance]:
    """The mean (P,) and covariance after one step of plain gradient ascent from N(mean, cov).

    A family of your own registers its step: `ascend.register(MyCovariance, function)`.

    Raises:
        CredoError: the family has no such step.
    """
    raise CredoError(
        f"the rules 'bog' and 'bbb' have no plain gradient step for a {type(cov).__name__}: register one "
        "with credo.learners.rules.ascend.register."
    )


@ascend.register
def _(cov: FullCovariance, mean: Array, step: Ascent) -> tuple[Array, FullCovariance]:
    """Cost in natural parameters P^2 (k + 2) without a prior, P^3 with one; in the moments P^3."""
    take = ascend_moments if step.parameters == "moment" else ascend_naturals
    prior_root = None
    if step.prior is not None:
        assert isinstance(step.prior, FullCovariance)
        prior_root = step.prior.as_root()
    rows = with_diagonal(step.factor, step.diagonal)
    new_mean, root = take(cov.as_root(), mean, step.slope, rows, prior_root, step.rate, step.retraction)
    return new_mean, cov.with_root(root)


@ascend.register
def _(cov: DiagonalCovariance, mean: Array, step: Ascent) -> tuple[Array, DiagonalCovariance]:
    """With n = diag(N), elementwise: lam - 4 a v u mu - 2 a v^2 n, v (lam mu + a v u); or v + a n / 2, mu
    + a u. Cost: k P.
    """
    bend = diagonal_bend(cov, step.factor, step.diagonal, step.prior)
    slope = step.slope
    rate = step.rate
    if step.parameters == "moment":
        var = cov.var * retract(0.5 * rate * bend / cov.var, step.retraction)
        return mean + rate * slope, DiagonalCovariance(var, cov.keep)
    change = -2.0 * rate * cov.var**2 * (2.0 * slope * mean + cov.var * bend)
    var = cov.var / retract(change, step.retraction)
    return var * (mean / cov.var + rate * cov.var * slope), DiagonalCovariance(var, cov.keep)


@ascend.register
def _(cov: LowRankCovariance, mean: Array, step: Ascent) -> tuple[Array, LowRankCovariance]:
    """In (mu, y, W), the only parameters of this family. Cost: P (R^2 + R k)."""
    if step.parameters is not None:
        raise CredoError(
            "parameters must be None for a low-rank family (its own are mean, y and W); "
            f"got {step.parameters!r}."
        )
    prior = None
    if step.prior is not None:
        assert isinstance(step.prior, LowRankCovariance)
        prior = (step.prior.base, step.prior.factor)
    base, rows = ascend_factors(
        cov.base,
        cov.factor,
        step.factor.dense(),
        step.diagonal,
        prior,
        step.rate,
        step.retraction,
        tied=cov.spherical,
    )
    return mean + step.rate * step.slope, LowRankCovariance(base, rows, cov.family)


@ascend.register
def _(cov: BlockCovariance, mean: Array, step: Ascent) -> tuple[Array, BlockCovariance]:
    """Block by block: the gradient by the parameters of a block depends on its own u, B and d alone."""
    priors: Sequence[Covariance | None] = [None] * len(cov.parts)
    if step.prior is not None:
        assert isinstance(step.prior, BlockCovariance)
        priors = step.prior.parts
    means = []
    parts = []
    for part, ranges, prior in zip(cov.parts, cov.places, priors, strict=True):
        own = replace(
            step,
            slope=cut(step.slope, ranges),
            factor=columns(step.factor, ranges),
            diagonal=None if step.diagonal is None else cut(step.diagonal, ranges),
            prior=prior,
        )
        block_mean, block = ascend(part, cut(mean, ranges), own)
        means.append(block_mean)
        parts.append(block)
    return join(means, cov.places), BlockCovariance(tuple(parts), cov.places, cov.keep)


def with_diagonal(factor: Rows, diagonal: Array | None) -> Array:
    """An array of rows that represent B' B + diag(d)."""
    if diagonal is None:
        return factor.dense()
    return jnp.concatenate([factor.dense(), jnp.diag(safe_sqrt(diagonal))], axis=0)


def diagonal_bend(
    cov: DiagonalCovariance, factor: Rows, diagonal: Array | None, prior: Covariance | None
) -> Array:
    """The diagonal n of N (P,)."""
    bend = -factor.squares()
    if diagonal is not None:
        bend = bend - diagonal
    if prior is None:
        return bend
    assert isinstance(prior, DiagonalCovariance)
    return bend + 1.0 / cov.var - 1.0 / prior.var


_State: TypeAlias = tuple[Array, Covariance]
"""A mean and a covariance."""


def _check(rule: BBBRule | BOGRule) -> None:
    object.__setattr__(rule, "learning_rate", as_rate("learning_rate", rule.learning_rate))
    if rule.parameters not in (None, "natural", "moment"):
        raise CredoError(f"parameters must be None, 'natural' or 'moment'; got {rule.parameters!r}.")
    require_choice("retraction", rule.retraction, RETRACTIONS)


@record
class BBBRule(Rule):
    """Online Bayes by backprop: I plain gradient steps on the evidence lower bound.

    A step is psi <- psi + a grad_psi ELBO, with the belief before the observation as the prior. The rule is
    not invariant to how the belief is parameterised, and its learning rate must be tuned. It is provided for
    comparison, and because most people use it.

    Arguments:
        learning_rate: a, above 0, or a schedule over the steps of the stream. A scheduled rate below 0
            rejects the update.
        iterations: I, at least 1. With 1 the rule is BOG, since the ELBO's prior has no gradient at itself.
        parameters: psi: None for the family's own (natural parameters; mean, diagonal and factor for
            `LowRank`), "natural" or "moment".
        retraction: "safe" keeps covariances positive definite for any rate; "exact" takes the step unchanged,
            and rejects the update where the result is no covariance.

    Raises:
        CredoError: a number is out of range, or a name is unknown.

    Cost: `Full` P^2 (k + 2) for the first iteration in natural parameters and P^3 for every other (the
    precision's distance from the prior doubles its rank each time); `Diagonal` k P; `LowRank` P (R^2 + R k).

    Example:
        >>> import credo, jax.numpy as jnp
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> rule = credo.BBBRule(learning_rate=0.01, iterations=3)
        >>> learner = credo.RecursiveLearner(model, credo.Diagonal(), rule=rule)
        >>> belief, info = learner.step(learner.init(jnp.zeros(2)), jnp.ones(2), 1.0)
        >>> bool(info.ok)
        True
    """

    learning_rate: Rate = 0.01
    iterations: int = static_field(default=10)
    parameters: Chart | None = static_field(default=None)
    retraction: Retraction = static_field(default="safe")

    random_start: ClassVar[float] = 0.1

    def __post_init__(self) -> None:
        require_integer("iterations", self.iterations, 1)
        _check(self)

    def update(self, mean: Array, cov: Covariance, measure: Measure, t: Array) -> Step:
        rate = rate_at(self.learning_rate, t, mean.dtype, jnp.inf)
        first = measure(mean, cov, 0)
        inner = cov.push(first.rows)

        def climb(
            current: Array, here: Covariance, slope: Array, local: Local, prior: Covariance | None
        ) -> _State:
            step = Ascent(slope, local.factor, local.diagonal, prior, rate, self.parameters, self.retraction)
            return ascend(here, current, step)

        def advance(i: Array, state: _State) -> _State:
            current, here = state
            local = measure(current, here, i)
            slope = local.gradient - inverse_of(cov)(current - mean)
            return climb(current, here, slope, local, cov)

        state = climb(mean, cov, first.gradient, first, None)
        if self.iterations > 1:
            state = jax.lax.fori_loop(1, self.iterations, advance, state)
        return Step(state[0], state[1], first, inner)


@record
class BOGRule(Rule):
    """Bayesian online gradient: one plain gradient step on the expected log-likelihood.

    The step is psi <- psi0 + a grad_psi E log p(y | theta).

    Arguments:
        learning_rate, parameters, retraction: as in `BBBRule`.

    Cost: `Full` P^2 (k + 2) in natural parameters (P^3 in moments), `Diagonal` k P, `LowRank` P (R^2 + R k).

    Example:
        >>> import credo, jax.numpy as jnp
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> rule = credo.BOGRule(learning_rate=lambda t: 0.1 / (1 + t))
        >>> learner = credo.RecursiveLearner(model, credo.Diagonal(), rule=rule)
        >>> belief, info = learner.step(learner.init(jnp.zeros(2)), jnp.ones(2), 1.0)
        >>> bool(info.ok)
        True
    """

    learning_rate: Rate = 0.01
    parameters: Chart | None = static_field(default=None)
    retraction: Retraction = static_field(default="safe")

    random_start: ClassVar[float] = 0.1

    def __post_init__(self) -> None:
        _check(self)

    def update(self, mean: Array, cov: Covariance, measure: Measure, t: Array) -> Step:
        """One measurement update: the first iteration of BBB."""
        rule = BBBRule(self.learning_rate, 1, self.parameters, self.retraction)
        return rule.update(mean, cov, measure, t)
