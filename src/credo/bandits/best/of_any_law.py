"""The probability that each arm is best, for any distribution of the expected rewards."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtr

from credo.bandits.best.of_counts import best_of_betas, best_of_gammas
from credo.bandits.best.of_normals import best_of_normals, student_law, student_terms
from credo.bandits.best.quadrature import LEAST_SHAPE, noise_nodes, wide_noise_nodes
from credo.beliefs import Beta, Dirichlet, Gamma, InverseGamma
from credo.core.errors import require_integer
from credo.core.groups import Groups, each, in_order
from credo.core.types import Array
from credo.likelihoods import (
    ConjugateExpectation,
    DrawnExpectation,
    Expectation,
    IndependentExpectation,
    LatentExpectation,
    WeightedExpectation,
)
from credo.linalg.matrices import safe_sqrt
from credo.linalg.normals import standard_normals

__all__ = ["best_of_draws", "best_of_separate_draws", "probability_best"]


def probability_best(
    expectation: Expectation, allowed: Array | None = None, *, key: Array, draws: int = 256
) -> Array:
    """The probability that each of K arms has the largest expected reward.

    - Independent arms (one learner an arm) are exact: normal, Student-t, Beta, Gamma, or mixtures of one of
      them, to 1e-4 by quadrature; draws of independent ensembles without any error.
    - Dirichlet class probabilities are exact, by independent gammas.
    - A mixture of hypotheses about all arms is the average over them.
    - Two joint normal arms, or Student-t arms with one noise variance, are exact; more are exact if no two
      are correlated. If a learner is known to correlate them, as one of low rank does or one with more
      arms than parameters, this is not looked for.
    - All other distributions are represented by `draws` joint draws, and the probability is the share of
      them. A policy that plays these shares is *defined* by the draws, so that the probability it reports of
      its choice is exact, given the key.

    Arguments:
        expectation: the distribution of the expected rewards.
        allowed: whether each arm may be chosen (K,); None allows all.
        key: the key of the draws, where draws are needed.
        draws: how many joint draws, at least 1.

    Returns:
        Probabilities (K,), which sum to 1 unless no arm is allowed. Arms that tie share equally.

    Raises:
        CredoError: `draws` is below 1.

    Example:
        >>> import credo
        >>> arm = credo.BetaBernoulli()
        >>> arms = jax.vmap(lambda a: credo.replace(arm, a=a).init())(jnp.array([1.0, 2.0]))
        >>> law = IndependentExpectation(jax.vmap(lambda belief: arm.expect(belief, None))(arms))
        >>> [round(p, 3) for p in probability_best(law, key=jax.random.key(0)).tolist()]
        [0.333, 0.667]
    """
    require_integer("draws", draws, 1)
    allowed = jnp.ones(expectation.size, bool) if allowed is None else allowed
    if isinstance(expectation, WeightedExpectation):
        return _average(expectation, allowed, key, draws)
    found = None
    if isinstance(expectation, IndependentExpectation):
        found = _best_of_independent(expectation.parts, allowed)
    elif isinstance(expectation, DrawnExpectation):
        found = best_of_draws(expectation.values, expectation.log_weights, allowed)
    elif isinstance(expectation, ConjugateExpectation) and isinstance(expectation.belief, Dirichlet):
        counts = expectation.belief.counts
        found = best_of_gammas(counts, jnp.ones_like(counts), allowed=allowed)
    elif isinstance(expectation, LatentExpectation) and expectation.eta.shape[1] == 1:
        found = _best_of_latent(expectation, allowed, key, draws)
    return best_of_draws(expectation.sample(key, (draws,)), None, allowed) if found is None else found


def _average(expectation: WeightedExpectation, allowed: Array, key: Array, draws: int) -> Array:
    """The average over hypotheses; those without weight may say anything."""
    shares = in_order(
        each(lambda part: probability_best(part, allowed, key=key, draws=draws), expectation.parts)
    )
    weights = jnp.exp(expectation.log_weights)[:, None]
    return jnp.sum(jnp.where(weights > 0, weights * shares, 0.0), axis=0)


def _best_of_independent(parts: Expectation, allowed: Array) -> Array | None:
    """Arms that are independent of one another, each a distribution of one number with a leading axis K."""
    log_weights = None
    if isinstance(parts, WeightedExpectation):
        if isinstance(parts.parts, Groups):
            return _best_of_unlike(parts, parts.parts, allowed)
        log_weights, parts = parts.log_weights, parts.parts
    if isinstance(parts, ConjugateExpectation):
        belief = parts.belief
        if isinstance(belief, Beta):
            return best_of_betas(belief.a, belief.b, log_weights, allowed)
        if isinstance(belief, Gamma):
            return best_of_gammas(belief.shape, belief.per, log_weights, allowed)
    if isinstance(parts, DrawnExpectation):
        values, logs = parts.values[..., 0], parts.log_weights
        if log_weights is not None:
            logs = logs + log_weights[..., None]
        rows = values.shape[0]
        return best_of_separate_draws(values.reshape(rows, -1), logs.reshape(rows, -1), allowed)
    if isinstance(parts, LatentExpectation) and parts.eta.shape[-2:] == (1, 1):
        nested = jax.vmap(_latent) if log_weights is None else jax.vmap(jax.vmap(_latent))
        location, scale, df = nested(parts)
        return best_of_normals(location, scale, log_weights, df, allowed)
    return None


def _best_of_unlike(mixture: WeightedExpectation, parts: Groups[Expectation], allowed: Array) -> Array | None:
    """Independent arms whose hypotheses differ in kind; exact if all are normal or Student-t."""
    order = np.argsort([place for group in parts.places for place in group])
    dtype = mixture.log_weights.dtype
    locations, scales, freedoms = [], [], []
    known = True
    for part in parts.parts:
        if not isinstance(part, LatentExpectation) or part.eta.shape[-2:] != (1, 1):
            return None
        if part.latent_name != mixture.latent_name:
            return None
        location, scale, df = jax.vmap(jax.vmap(_latent))(part)
        known = known and df is None
        locations.append(location.astype(dtype))
        scales.append(scale.astype(dtype))
        freedoms.append(jnp.full_like(locations[-1], jnp.inf) if df is None else df.astype(dtype))
    location, scale, df = (
        jnp.concatenate(values, axis=1)[:, order] for values in (locations, scales, freedoms)
    )
    return best_of_normals(location, scale, mixture.log_weights, None if known else df, allowed)


def _latent(part: LatentExpectation) -> tuple[Array, Array, Array | None]:
    """The location, the scale and the degrees of freedom of one number; None for a normal distribution."""
    return _turn(part) * part.location[0], part.scale[0], part.df


def _turn(part: LatentExpectation) -> Array:
    """1 if the mean of y grows with the output, and -1 if it falls."""
    if part.linear:
        return jnp.ones((), part.eta.dtype)
    centre, spread = part.location, jnp.maximum(part.scale, 1e-3)
    falls = part.link(centre + spread)[0] < part.link(centre - spread)[0]
    return jnp.where(falls, -1.0, 1.0).astype(part.eta.dtype)


def _best_of_latent(part: LatentExpectation, allowed: Array, key: Array, draws: int) -> Array:
    """Arms that are jointly normal, or Student-t with one noise for all."""
    turn = _turn(part)
    location, cov = turn * part.location, part.cov
    if location.shape == (2,):
        return _best_of_pair(location, cov, part.noise, allowed)
    unit = part.unit_sd

    def over(nodes: tuple[Array, Array]) -> Array:
        sds, weights = nodes
        return weights @ jax.vmap(lambda sd: best_of_normals(location, sd * unit, None, None, allowed))(sds)

    def exact() -> Array:
        noise = part.noise
        if noise is None:
            return best_of_normals(location, unit, None, None, allowed)
        shares: Array = jax.lax.cond(
            jnp.asarray(noise.shape) < LEAST_SHAPE,
            lambda: over(wide_noise_nodes(noise, location.dtype)),
            lambda: over(noise_nodes(noise, location.dtype)),
        )
        return shares

    def drawn() -> Array:
        if part.noise is not None:
            return best_of_draws(part.sample(key, (draws,)), None, allowed)
        return best_of_draws(joint_normals(location, part.root(), key, draws), None, allowed)

    if part.correlated or part.factor is not None:
        return drawn()
    apart = jnp.where(allowed[:, None] & allowed[None, :], cov, 0.0)
    correlated = jnp.any(apart * (1.0 - jnp.eye(cov.shape[0], dtype=cov.dtype)) != 0)
    shares: Array = jax.lax.cond(correlated, drawn, exact)
    return shares


def _best_of_pair(location: Array, cov: Array, noise: InverseGamma | None, allowed: Array) -> Array:
    """Two arms, correlated or not: the sign of a normal or Student-t gap."""
    both = allowed[0] & allowed[1]
    gap = jnp.where(both, location[0] - location[1], 0.0)
    spread = safe_sqrt(jnp.maximum(jnp.where(both, cov[0, 0] + cov[1, 1] - 2.0 * cov[0, 1], 1.0), 0.0))
    if noise is not None:
        spread = spread * jnp.sqrt(jnp.asarray(noise.scale, gap.dtype) / jnp.asarray(noise.shape, gap.dtype))
    z = gap / jnp.where(spread > 0, spread, 1.0)
    if noise is None:
        chances = ndtr(jnp.stack([z, -z]))
    else:
        ends = jnp.clip(jnp.stack([z, -z]), -1e14, 1e14)
        chances = student_law(ends, student_terms(2.0 * jnp.asarray(noise.shape, gap.dtype)))[0]
    sure = 0.5 + 0.5 * jnp.sign(jnp.stack([gap, -gap]))
    chances = jnp.where(both, jnp.where(spread > 0, chances, sure), 1.0)
    return jnp.where(allowed, chances, 0.0)


_TIE_ORDER = 8
"""Nodes that share ties of up to 16 arms exactly."""


def best_of_draws(values: Array, log_weights: Array | None = None, allowed: Array | None = None) -> Array:
    """The weighted share (K,) of joint draws (M, K) in which each arm is the largest; ties share equally.

    Log weights (M,) sum to one; None means equal weights. Exact for the distribution on these M points;
    derivatives are 0.
    """
    usable = values if allowed is None else jnp.where(allowed[None], values, -jnp.inf)
    best = usable == jnp.max(usable, axis=1, keepdims=True)
    if allowed is not None:
        best = best & allowed[None]
    tied = jnp.maximum(jnp.sum(best, axis=1, keepdims=True), 1)
    shares = best.astype(values.dtype) / tied.astype(values.dtype)
    if log_weights is None:
        return jnp.mean(shares, axis=0)
    return jnp.exp(log_weights) @ shares


def best_of_separate_draws(values: Array, log_weights: Array, allowed: Array | None = None) -> Array:
    """The probability (K,) that each arm is the largest, where arm a is one of the points `values[a]` (K, M).

    Each row of the log weights (K, M) sums to one. A uniform s of its own breaks the ties of a point, so that

        P(a is best) = sum_m w_am integral_0^1 prod_{b != a} (P(b < x_am) + s P(b = x_am)) ds,

    which is exact for ties of up to 16 arms. The cost is K^2 M log M.
    """
    arms, points = values.shape[0], values.reshape(-1)
    order = jnp.argsort(values, axis=1)
    ranked = jnp.take_along_axis(values, order, axis=1)
    weights = jnp.exp(log_weights)
    sums = jnp.cumsum(jnp.take_along_axis(weights, order, axis=1), axis=1)
    sums = jnp.pad(sums / sums[:, -1:], ((0, 0), (1, 0)))

    def below(row: Array, running: Array, side: str) -> Array:
        return running[jnp.searchsorted(row, points, side=side)]

    less = jax.vmap(lambda row, running: below(row, running, "left"))(ranked, sums)
    upto = jax.vmap(lambda row, running: below(row, running, "right"))(ranked, sums)
    nodes, shares = np.polynomial.legendre.leggauss(_TIE_ORDER)
    place = jnp.asarray(0.5 + 0.5 * nodes, values.dtype)[:, None, None]
    chance = less[None] + place * (upto - less)[None]  # (nodes, K, K M)
    others = jnp.ones(arms, bool) if allowed is None else allowed
    own = (jnp.arange(points.shape[0]) // values.shape[1])[None] == jnp.arange(arms)[:, None]
    won = jnp.prod(jnp.where((own | ~others[:, None])[None], 1.0, chance), axis=1)
    wins = jnp.asarray(0.5 * shares, values.dtype) @ won
    result = jnp.where(others, jnp.sum((wins * weights.reshape(-1)).reshape(values.shape), axis=1), 0.0)
    total = jnp.sum(result)
    return result / jnp.where(total > 0, total, 1.0)


def joint_normals(location: Array, root: Array, key: Array, draws: int) -> Array:
    """Draws (M, K) of N(location, root root'), root (K, R), that are spread evenly over the distribution.

    A randomised lattice (Richtmyer's, with a random shift; Cranley & Patterson 1976) makes shares of draws
    vary less than independent draws do.
    """
    normals = standard_normals(key, draws, root.shape[1], location.dtype, quasi=True)
    return location[None] + normals @ root.T
