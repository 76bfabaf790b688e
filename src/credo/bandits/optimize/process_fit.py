"""The numbers of a Gaussian process that make some trials most probable, found again for each question."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np

from credo.bandits.optimize.space import Space
from credo.bandits.optimize.trials import Trials, Units
from credo.core.records import replace
from credo.core.types import Array
from credo.learners import GaussianProcess
from credo.learners.gaussian_process import ProcessBelief, correlations
from credo.linalg.matrices import identity, precision

__all__ = ["climb_in_box", "fit_process", "log_marginal"]


# The first inverse curvature, the longest step, what a failed step is cut to, and Armijo's share.
FIRST = 0.1
LONGEST_STEP = 2.0
SHORTER = 0.3
ENOUGH = 1e-4


class _Place(NamedTuple):
    """The state of the descent: the point, its value and gradient, the inverse Hessian, and the next step."""

    point: Array
    value: Array
    slope: Array
    inverse: Array
    step: Array


def climb_in_box(
    function: Callable[[Array], Array], start: Array, low: Array, high: Array, steps: int
) -> tuple[Array, Array]:
    """Climb a smooth function of a point (p,) in low <= point <= high, by projected BFGS.

    Each step evaluates the function and its gradient once. A step that does not rise enough (Armijo) is cut
    to 0.3 of it, and numbers that stand at an end of the box and want to leave it stay. Source: Nocedal &
    Wright 2006, Numerical Optimization, equation 6.17.

    Returns:
        The best point (p,), and its value, which is not below that of the start.
    """
    kind = start.dtype
    size = start.shape[0]

    def look(point: Array) -> tuple[Array, Array]:
        both: tuple[Array, Array] = jax.value_and_grad(function)(point)
        value, slope = both
        good = jnp.isfinite(value)
        cost: Array = jnp.where(good, -value, jnp.inf)
        fall: Array = jnp.where(good & jnp.isfinite(slope), -slope, 0.0)
        return cost, fall

    def move(place: _Place, _: None) -> tuple[_Place, None]:
        point, value, slope, inverse, step = place
        held = ((point <= low) & (slope > 0)) | ((point >= high) & (slope < 0))
        free = jnp.where(held, 0.0, slope)
        way = jnp.where(held, 0.0, -(inverse @ free))
        falls = way @ free < 0
        way = jnp.where(falls, way, -free)
        way = way * jnp.minimum(1.0, LONGEST_STEP / jnp.maximum(jnp.max(jnp.abs(way)), 1e-30))
        new = jnp.clip(point + step * way, low, high)
        new_value, new_slope = look(new)
        moved = new - point
        turned = new_slope - slope
        taken = new_value <= value + ENOUGH * (free @ moved)
        curve = moved @ turned
        curved = taken & (curve > 1e-10)
        per = 1.0 / jnp.where(curved, curve, 1.0)
        away = identity(size, kind) - per * jnp.outer(moved, turned)
        updated = away @ inverse @ away.T + per * jnp.outer(moved, moved)
        plain = jnp.where(falls, inverse, FIRST * identity(size, kind))
        return _Place(
            jnp.where(taken, new, point),
            jnp.where(taken, new_value, value),
            jnp.where(taken, new_slope, slope),
            jnp.where(curved, updated, plain),
            jnp.where(taken, jnp.ones_like(step), SHORTER * step),
        ), None

    value, slope = look(start)
    first = _Place(start, value, slope, FIRST * identity(size, kind), jnp.ones((), kind))
    last, _ = jax.lax.scan(move, first, None, length=steps)
    return last.point, -last.value


STEPS = 25
"""The number of steps of a climb from a start."""

# The inverse-gamma distribution of the variance of the function, for values of variance 1.
SHAPE = 2.0
SCALE = 1.0

# The distributions of the logarithms of length scales, of the noise in units of that variance, and of the
# bend.
LENGTH_SD = 1.0
NOISE = 1e-4
NOISE_SD = 3.0
BEND = 2.0
BEND_SD = 2.0

# The least noise in units of that variance, in double and in single precision: it limits how near a search
# can come to the minimum of a smooth function.
LEAST = 1e-10
LEAST_SINGLE = 1e-5

# The ends of length scales, and the most noise of values that are not centred, such as labels.
SHORTEST = 0.03
LONGEST = 30.0
SURE = 1e-2

# The median of the noise of a deterministic function, and the most of it: the kernel is not quite right.
ROUNDING = 1e-7
MOST_ROUNDING = 1e-6

STARTS = ((0.0, 1e-3, 1.0), (-1.0, 1e-4, 0.1))
"""The starts of the search: length scales (as logarithms, from their medians), noise and bend."""


@jax.custom_vjp
def log_marginal(matrix: Array, values: Array, count: Array) -> Array:
    """log of the density of values z (N,) ~ N(0, v C) with v ~ InverseGamma(2, 1), up to a constant.

    -log|C| / 2 - (n / 2 + 2) log(1 + z' inv(C) z / 2),

    a multivariate Student-t of n = `count` values. Its derivative by C takes the inverse of a triangle, and
    no derivative of a factorisation: (c a a' - inv(C)) / 2 with a = inv(C) z, c = (n + 4) / (2 + z' a).
    """
    return _marginal(matrix, values, count)[0]


def _marginal(matrix: Array, values: Array, count: Array) -> tuple[Array, tuple[Array, ...]]:
    chol = jnp.linalg.cholesky(matrix)
    root = jsl.solve_triangular(chol, identity(chol.shape[0], chol.dtype), lower=True)
    dual = root.T @ (root @ values)
    power = 0.5 * count + SHAPE
    inner = SCALE + 0.5 * (values @ dual)
    value = -jnp.sum(jnp.log(jnp.diagonal(chol))) - power * jnp.log(inner)
    return value, (root, dual, power / inner)


def _marginal_slopes(kept: tuple[Array, ...], slope: Array) -> tuple[Array, Array, None]:
    root, dual, factor = kept
    by_matrix = 0.5 * slope * (factor * jnp.outer(dual, dual) - root.T @ root)
    return by_matrix, -slope * factor * dual, None


log_marginal.defvjp(_marginal, _marginal_slopes)


def _columns(space: Space) -> np.ndarray:
    """The variable of each column of a row (D,)."""
    return np.repeat(np.arange(len(space.variables)), [one.columns for one in space.variables])


def _bent(trials: Trials, sign: float, bend: Array | None, centred: bool) -> tuple[Units, Array, Array]:
    """Units for the trials, their values in them (N,), and the log density that bending adds."""
    told = trials.numbers < trials.count
    values = trials.values
    count = jnp.maximum(trials.count, 1).astype(values.dtype)
    best = None
    seen = values
    slopes = jnp.zeros_like(values)
    if bend is not None:
        best = sign * jnp.max(jnp.where(told, sign * values, -jnp.inf))
        best = jnp.where(jnp.isfinite(best), best, 0.0)
        far = jnp.where(told, jnp.maximum(sign * (best - values), 0.0), 0.0)
        slopes = -jnp.log1p(far / bend)
        seen = -bend * slopes
    if not centred:
        return Units(jnp.zeros_like(count), jnp.ones_like(count)), jnp.where(told, seen, 0.0), 0.0 * count
    mean = jnp.sum(jnp.where(told, seen, 0.0)) / count
    gaps = jnp.where(told, seen - mean, 0.0)
    var = jnp.sum(gaps * gaps) / count
    spread = var > (1e-6 * jnp.abs(mean)) ** 2  # less than that is rounding
    sd = jnp.sqrt(jnp.where(spread, var, 1.0))
    units = Units(mean, sd, best, bend, 1.0 if bend is None else sign)
    turned = gaps / sd if bend is None else -sign * gaps / sd
    return units, turned, jnp.sum(jnp.where(told, slopes - jnp.log(sd), 0.0))


def fit_process(
    learner: GaussianProcess,
    space: Space,
    trials: Trials,
    sign: float,
    bends: bool,
    *,
    centred: bool = True,
    deterministic: bool = False,
) -> tuple[ProcessBelief, Units]:
    """The belief of a Gaussian process about some trials, under its most probable numbers, and their units.

    Most probable are the length scales of the variables, the noise and the bend of the values (see `Units`),
    given the values and under log-normal distributions, and with the variance of the function integrated out:
    length scales have the median sqrt(d) for d variables on inputs from -1 to 1 (as Hvarfner, Hellsten &
    Nardi 2024, "Vanilla Bayesian optimization performs great in high dimensions"). Two starts are climbed by
    BFGS.
    Approximate: the uncertainty of these numbers does not enter the belief.

    Arguments:
        learner: gives the kernel, and the variance of the level in units of that of the function.
        space: the space of the points.
        trials: the points and their values.
        sign: 1 if large values are good, else -1.
        bends: whether values may be bent.
        centred: whether values are standardised; if they are not, they cannot be bent, and have little noise.
        deterministic: whether values have no noise; it is then at most 1e-6 of the variance of the function.

    Returns:
        The belief, whose memory is as large as the trials, and the units of its targets.
    """
    columns = _columns(space)
    variables = len(space.variables)
    every = trials.numbers < trials.count
    kind = trials.values.dtype
    trials = replace(trials, count=trials.count - trials.believed)
    told = trials.numbers < trials.count
    count = trials.count.astype(kind)
    pairs = told[:, None] & told[None, :]
    eye = identity(trials.capacity, kind)
    offset = jnp.asarray(learner.offset_var, kind)
    spread = trials.units().sd
    median = 0.5 * math.log(variables)
    lowest = LEAST if precision(kind).eps < 1e-10 else LEAST_SINGLE
    usual = NOISE
    most = 1.0 if centred else SURE
    if deterministic:
        usual = max(ROUNDING, lowest)
        most = max(MOST_ROUNDING, lowest)

    def matrix(numbers: Array) -> Array:
        length = jnp.exp(numbers[:variables])[columns]
        rough = correlations(learner.kernel, trials.rows, trials.rows, length) + offset
        noise = jnp.where(told, jnp.exp(numbers[variables]), 1.0)
        return jnp.where(pairs, rough, 0.0) + eye * noise[:, None]

    def promise(numbers: Array) -> Array:
        bend = spread * jnp.exp(numbers[-1]) if bends else None
        _, seen, slopes = _bent(trials, sign, bend, centred)
        distribution = jnp.sum(((numbers[:variables] - median) / LENGTH_SD) ** 2)
        distribution += ((numbers[variables] - math.log(usual)) / NOISE_SD) ** 2
        if bends:
            distribution += ((numbers[-1] - math.log(BEND)) / BEND_SD) ** 2
        return log_marginal(matrix(numbers), seen, count) + slopes - 0.5 * distribution

    def point(length: float, noise: float, bend: float) -> list[float]:
        return [length] * variables + [math.log(noise)] + [math.log(bend)] * bends

    low = point(math.log(SHORTEST), lowest, 1e-3)
    high = point(math.log(LONGEST), most, 30.0)
    places = [point(median + move, usual if deterministic else noise, bend) for move, noise, bend in STARTS]
    starts = jnp.asarray(places, kind)
    ends = jnp.asarray(low, kind), jnp.asarray(high, kind)
    points, values = jax.vmap(lambda start: climb_in_box(promise, start, *ends, STEPS))(starts)
    numbers = points[jnp.argmax(values)]
    # values of which there is one at most say nothing of a bend
    bend = jnp.where(count > 1, spread * jnp.exp(numbers[-1]), 1e6) if bends else None
    units, seen, _ = _bent(trials, sign, bend, centred)
    rough = ProcessBelief(
        jnp.exp(numbers[:variables])[columns],
        jnp.ones((), kind),
        offset,
        jnp.exp(numbers[variables]),
        trials.rows,
        seen,
        told.astype(kind),
        eye,
        jnp.zeros_like(seen),
        trials.count,
        trials.count,
    ).conditioned(learner.kernel)
    var = (SCALE + 0.5 * (seen @ rough.dual)) / (SHAPE + 0.5 * count)
    belief = replace(
        rough,
        signal_var=var,
        offset_var=var * offset,
        noise_var=var * rough.noise_var,
        root=jnp.where(pairs, rough.root / jnp.sqrt(var), rough.root),
        dual=rough.dual / var,
    )
    return _believing(learner, belief, every), units


def _believing(learner: GaussianProcess, belief: ProcessBelief, every: Array) -> ProcessBelief:
    """The belief after the rows of `every` that it does not know came out as it expects."""

    def believe(belief: ProcessBelief) -> ProcessBelief:
        means = belief.cross(learner.kernel, belief.rows) @ belief.dual
        targets = jnp.where(belief.there, belief.targets, means)
        new = replace(belief, targets=targets, shares=every.astype(means.dtype))
        return new.conditioned(learner.kernel)

    some = jnp.any(every & ~belief.there)
    new: ProcessBelief = jax.lax.cond(some, believe, lambda one: one, belief)
    return new
