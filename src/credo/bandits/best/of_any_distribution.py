"""The probability that each arm is best, for any distribution of the expected rewards.

The probability that an arm is best, for independent probabilities (Beta) or rates (Gamma).

On the scale u = log(p / (1 - p)), or u = log(rate), the densities are smooth and log-concave. The
distribution functions are integrals of the same densities at the same nodes, so no incomplete function is
needed.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtr

from credo.bandits.best.of_normals import best_of_normals, student_distribution, student_terms
from credo.bandits.best.quadrature import (
    LEAST_SHAPE,
    MANY,
    cell_nodes,
    merge_cells,
    noise_nodes,
    wide_noise_nodes,
)
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

__all__ = ["best_of_betas", "best_of_draws", "best_of_gammas", "best_of_separate_draws", "probability_best"]


_ORDER = 6
_FALL = 15.0
"""By how much the log density has fallen at the ends."""

_FRACTIONS = (1.0, 0.7, 0.45, 0.25, 0.1)
"""The ends of cells, as shares of the way from the mode to an end."""

_LEAST = 1e-12


def best_of_betas(
    a: Array, b: Array, log_weights: Array | None = None, allowed: Array | None = None
) -> Array:
    """The probability (K,) that each of K independent p ~ Beta(a, b) is the largest, to 1e-5.

    a and b are (K,), or (K, J) for mixtures with `log_weights` (K, J); `allowed` is (K,). The cost is 66 K^2
    exponentials for fewer than 20 arms, and 430 K above.
    """
    a = _columns(a)
    b = _columns(b)
    total = a + b
    share = a / total
    rest = b / total
    mode = jnp.log(a) - jnp.log(b)

    def fall(d: Array) -> Array:
        """The log density at a distance d from the mode, relative to the mode."""
        small = jnp.abs(d) < 0.03
        far = jnp.where(small, 1.0, d)
        # log(rest + share e^d), where neither e^d nor e^-d may overflow
        log_sum = jnp.logaddexp(jnp.log(rest), jnp.log(share) + far)
        product = share * rest
        series = 0.5 + d * ((rest - share) / 6.0 + d * (1.0 - 6.0 * product) / 24.0)
        return jnp.where(small, -total * product * d * d * series, a * far - total * log_sum)

    def slope(d: Array) -> Array:
        return a - total * jax.nn.sigmoid(mode + d)

    low = (total * jnp.log(rest) - _FALL) / a
    high = (_FALL - total * jnp.log(share)) / b
    return _best(mode, fall, slope, low, high, log_weights, allowed)


def best_of_gammas(
    shape: Array, per: Array, log_weights: Array | None = None, allowed: Array | None = None
) -> Array:
    """The probability (K,) that each of K independent rates ~ Gamma(shape, per) is the largest, to 1e-5.

    Class probabilities ~ Dirichlet(counts) are largest with the same probabilities as Gamma(counts, 1).
    Shapes and costs are those of `best_of_betas`.
    """
    shape = _columns(shape)
    per = _columns(per)
    mode = jnp.log(shape) - jnp.log(per)

    def fall(d: Array) -> Array:
        """The log density at a distance d from the mode, relative to the mode."""
        small = jnp.abs(d) < 0.03
        far = jnp.where(small, 1.0, jnp.minimum(d, 50.0))
        series = d * d * (0.5 + d * (1.0 / 6.0 + d / 24.0))
        return -shape * jnp.where(small, series, jnp.expm1(far) - far)

    def slope(d: Array) -> Array:
        return -shape * jnp.expm1(jnp.minimum(d, 50.0))

    low = -_FALL / shape - 1.0
    high = jnp.log1p(_FALL / shape + jnp.sqrt(2.0 * _FALL / shape)) + jnp.sqrt(2.0 * _FALL / shape)
    return _best(mode, fall, slope, low, jnp.minimum(high, 50.0), log_weights, allowed)


def _columns(values: Array) -> Array:
    if values.ndim == 2:
        return values
    return values[:, None]


def _ends(fall: Callable[[Array], Array], slope: Callable[[Array], Array], start: Array) -> Array:
    """The place where the log density fell by `_FALL`: Newton's method from outside never overshoots."""

    def step(_: int, d: Array) -> Array:
        return d - (fall(d) + _FALL) / slope(d)

    found: Array = jax.lax.fori_loop(0, 12, step, start)
    return found


def _best(
    mode: Array,
    fall: Callable[[Array], Array],
    slope: Callable[[Array], Array],
    low: Array,
    high: Array,
    log_weights: Array | None,
    allowed: Array | None,
) -> Array:
    """The integral of f_a prod F_b, where each F is integrated along: first the cells, then within a cell."""
    allowed = jnp.ones(mode.shape[0], bool) if allowed is None else allowed
    below, above = (_ends(fall, slope, start) for start in jax.lax.stop_gradient((low, high)))
    steps = [below * f for f in _FRACTIONS] + [jnp.zeros_like(mode)] + [above * f for f in _FRACTIONS[::-1]]
    edges = mode[None] + jnp.stack(steps)
    # An arm that may not be chosen has no cells of its own.
    first = jnp.min(jnp.where(allowed[:, None], edges[0], jnp.inf))
    edges = jnp.where(allowed[None, :, None], edges, first)
    rows = edges.transpose(1, 2, 0).reshape(-1, edges.shape[0])
    row = merge_cells(rows) if rows.size > MANY else rows.reshape(-1)
    nodes, weights = cell_nodes(row, _ORDER)
    cells = (-1, _ORDER, *mode.shape)
    density = jnp.exp(jax.vmap(fall)(nodes[:, None, None] - mode[None])).reshape(cells)
    inside, whole = _running()
    width = weights.reshape(-1, _ORDER)[:, :1] / whole[0]
    masses = jnp.einsum("j,cjka->cka", jnp.asarray(whole, density.dtype), density) * width[..., None]
    before = jnp.cumsum(masses, axis=0) - masses
    within = jnp.einsum("ij,cjka->cika", jnp.asarray(inside, density.dtype), density) * width[..., None, None]
    total = jnp.sum(masses, axis=0)
    cdf = (before[:, None] + within) / total[None, None]
    density = density / total[None, None]
    if log_weights is None:
        cdf = cdf[..., 0]
        density = density[..., 0]
    else:
        parts = jnp.exp(log_weights)[None, None]
        cdf = jnp.sum(cdf * parts, axis=-1)
        density = jnp.sum(density * parts, axis=-1)
    cdf = jnp.where(allowed[None, None], jnp.maximum(cdf, _LEAST), 1.0)
    joint = jnp.prod(cdf, axis=-1) * weights.reshape(-1, _ORDER)
    shares = jnp.where(allowed, jnp.sum(density / cdf * joint[..., None], axis=(0, 1)), 0.0)
    everything = jnp.sum(shares)
    return shares / jnp.where(everything > 0, everything, 1.0)


def _running() -> tuple[np.ndarray, np.ndarray]:
    """The matrix that integrates a polynomial from 0 to each Gauss node of [0, 1], and the weights to 1."""
    points, weights = np.polynomial.legendre.leggauss(_ORDER)
    points = 0.5 + 0.5 * points
    powers = np.vander(points, increasing=True)
    integrals = points[:, None] * powers / np.arange(1, _ORDER + 1)
    return integrals @ np.linalg.inv(powers), 0.5 * weights


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
        >>> distribution = IndependentExpectation(jax.vmap(lambda belief: arm.expect(belief, None))(arms))
        >>> [round(p, 3) for p in probability_best(distribution, key=jax.random.key(0)).tolist()]
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
    if found is None:
        return best_of_draws(expectation.sample(key, (draws,)), None, allowed)
    return found


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
        log_weights = parts.log_weights
        parts = parts.parts
    if isinstance(parts, ConjugateExpectation):
        belief = parts.belief
        if isinstance(belief, Beta):
            return best_of_betas(belief.a, belief.b, log_weights, allowed)
        if isinstance(belief, Gamma):
            return best_of_gammas(belief.shape, belief.per, log_weights, allowed)
    if isinstance(parts, DrawnExpectation):
        values = parts.values[..., 0]
        logs = parts.log_weights
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
    locations = []
    scales = []
    freedoms = []
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
    centre = part.location
    spread = jnp.maximum(part.scale, 1e-3)
    falls = part.link(centre + spread)[0] < part.link(centre - spread)[0]
    return jnp.where(falls, -1.0, 1.0).astype(part.eta.dtype)


def _best_of_latent(part: LatentExpectation, allowed: Array, key: Array, draws: int) -> Array:
    """Arms that are jointly normal, or Student-t with one noise for all."""
    turn = _turn(part)
    location = turn * part.location
    cov = part.cov
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
        chances = student_distribution(ends, student_terms(2.0 * jnp.asarray(noise.shape, gap.dtype)))[0]
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
    arms = values.shape[0]
    points = values.reshape(-1)
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
