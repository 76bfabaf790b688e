"""A memory of the latest rows, whose nearest ones vote for the target of the next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import jax.scipy.special as jss
import numpy as np

from credo.beliefs.widening import widen_belief
from credo.core.errors import CredoError, require_integer, require_interval, require_positive
from credo.core.fields import field
from credo.core.keys import as_key
from credo.core.names import ForecastName
from credo.core.records import record, replace, static_field
from credo.core.subarrays import at_corner, put_corners
from credo.core.trees import as_like
from credo.core.types import Array, ArrayLike, Key, PyTree
from credo.core.weights import fixed_share
from credo.learners.acceptance import clean, sound
from credo.learners.base import Info, Learner, usable
from credo.learners.conjugate import closed_form
from credo.learners.votes import ClassVotes, CountVotes, NumberVotes, votes_of
from credo.likelihoods import Expectation, Predictive, WeightedExpectation, WeightedPredictive
from credo.likelihoods.base import LikelihoodBase

__all__ = ["NearestNeighbours", "RecalledFunction", "Remembered"]


@record
class Remembered:
    """The latest M rows, and how well each number of neighbours has forecast.

    Attributes:
        rows: the inputs (D, M), a column a row; column i is replaced by the row that comes M rows later.
        targets: the targets (M,).
        shares: the weights of the rows (M,); 0 where no row has come.
        base: what is known of all targets (see `credo.learners.votes`).
        log_weights: log P(the s-th number of neighbours forecasts best) (S,).
        written: how many rows were taken in.
        t: how many times `predict` has been called.

    Example:
        >>> import credo
        >>> NearestNeighbours(2, credo.Bernoulli(), size=100).init().rows.shape
        (2, 100)
    """

    rows: Array = field(raw=True)
    targets: Array = field(raw=True)
    shares: Array = field("nonnegative", raw=True)
    base: Any = field("positive", raw=True)
    log_weights: Array = field("log weights")
    written: Array = field("nonnegative")
    t: Array

    @property
    def size(self) -> int:
        """The number of parameters: none, since rows are kept as they come."""
        return 0


class _Near(NamedTuple):
    """The rows that are nearest to an input, nearest first: places, targets, and shares a width (S, k)."""

    places: Array
    targets: Array
    shares: Array


@record
class NearestNeighbours(Learner[Remembered]):
    """The latest M rows: those that are nearest to x vote, and how many of them is weighed by the evidence.

    With d_i the squared distance of the i-th nearest row, its vote under k neighbours has the share

        u_i = w_i exp(-decay d_i / d_k),   i <= k,

    and the votes give the conjugate forecast of `credo.learners.votes`: Dirichlet for classes, Student-t for
    numbers, negative binomial for counts. The forecast is the mixture p(y) = sum_k w_k p_k(y) over numbers of
    neighbours, with a fixed share before each row, and log w_k += log p_k(y) after it.

    Arguments:
        columns: the number D of inputs, in units in which their distances can be compared.
        likelihood: `Bernoulli`, `Categorical`, `OpenCategorical`, `Poisson`, `NegativeBinomial`, or
            `Normal(InverseGamma(...))` for numbers: the noise is always learned. It names the
            distribution of y; it has no part in the votes.
        size: the number M of rows that are remembered, at least 1.
        neighbours: numbers k of neighbours, increasing, at most M.
        decay: how fast a vote falls with the distance, at least 0. With 0 all k votes count alike.
        switching: the probability that another k is right at the next row, in [0, 0.5].
        clip: the largest size of an input that counts, above 0; None for any.

    Raises:
        CredoError: a number is out of its range, or the likelihood has no votes.

    A row with a weight has that share of a vote. Rows are forgotten after M others; `dt` has no part in it.
    Weights are exact, and so is the evidence of the mixture; the votes are a heuristic, with no model that
    they are exact for. `expectation` takes the votes for independent observations, and functions are drawn by
    the Bayesian bootstrap (Rubin 1981): each row's vote is multiplied by a standard exponential number, the
    same for all x, so that a function is consistent. `sample` draws these multipliers (M,).

    Cost: M D for the distances and M log k for the nearest; M (D + 2) numbers.

    Example:
        >>> import credo
        >>> learner = NearestNeighbours(1, credo.Bernoulli(), size=50, neighbours=(3,))
        >>> xs = jnp.linspace(-1, 1, 40)[:, None]
        >>> belief, _ = credo.run(learner, learner.init(), xs, (jnp.abs(xs[:, 0]) < 0.5).astype(int))
        >>> probs = learner.forecast_rows(belief, jnp.asarray([[0.0], [0.9]])).probs[:, 1]
        >>> [round(float(p), 2) for p in probs]
        [0.99, 0.01]
    """

    columns: int = static_field()
    likelihood: LikelihoodBase
    size: int = static_field(default=1500)
    neighbours: Sequence[int] = static_field(default=(3, 8, 20, 60))
    decay: ArrayLike = 3.0
    switching: ArrayLike = 1e-3
    clip: ArrayLike | None = None

    def __post_init__(self) -> None:
        require_integer("columns", self.columns, 1)
        require_integer("size", self.size, 1)
        if isinstance(self.neighbours, list):
            object.__setattr__(self, "neighbours", tuple(self.neighbours))
        for count in self.neighbours:
            require_integer("neighbours", count, 1)
        counts = list(self.neighbours)
        if not counts or counts != sorted(set(counts)) or counts[-1] > self.size:
            allowed = f"increasing numbers of at most size = {self.size}"
            raise CredoError(f"neighbours must be {allowed}; got {self.neighbours!r}.", field="neighbours")
        require_interval("decay", self.decay, 0.0, np.inf)
        require_interval("switching", self.switching, 0.0, 0.5)
        if self.clip is not None:
            require_positive("clip", self.clip)
        if isinstance(self.likelihood, LikelihoodBase):
            votes_of(self.likelihood)

    @property
    def votes(self) -> ClassVotes | NumberVotes | CountVotes:
        """The rule by which the nearest rows forecast."""
        return votes_of(self.likelihood)

    def init(self, params: PyTree = None, *, var: PyTree = 1.0) -> Remembered:
        """An empty memory. The arguments are ignored."""
        rows = jnp.zeros((self.columns, self.size), float)
        widths = len(self.neighbours)
        empty = jnp.zeros(self.size, rows.dtype)
        even = jnp.full(widths, -jnp.log(float(widths)), rows.dtype)
        start = jnp.zeros((), jnp.int32)
        return Remembered(rows, empty, empty, self.votes.base(widths, rows.dtype), even, start, start)

    def time_update(self, belief: Remembered, dt: ArrayLike | None) -> Remembered:
        logs = fixed_share(belief.log_weights, self.switching)
        return replace(belief, log_weights=logs, t=belief.t + 1)

    def _inputs(self, belief: Remembered, x: PyTree) -> Array:
        row = as_like(x, belief.rows)
        if row.shape != (self.columns,):
            raise CredoError(f"x must be one row of {self.columns} inputs; got shape {row.shape}.", field="x")
        if self.clip is None:
            return row
        return jnp.clip(row, -as_like(self.clip, row), as_like(self.clip, row))

    def _near(self, belief: Remembered, row: Array) -> _Near:
        """The nearest rows, and their shares under each number of neighbours."""
        squares = _squares(belief.rows, row)
        most = self.neighbours[-1]
        nearest, places = jax.lax.top_k(jnp.where(belief.shares > 0, -squares, -jnp.inf), most)
        squares = -nearest
        there = nearest > -jnp.inf
        reach = squares[np.asarray(self.neighbours) - 1]
        # where fewer rows than k are there, the farthest of them says how far the votes reach
        reach = jnp.where(jnp.isfinite(reach), reach, jnp.max(jnp.where(there, squares, 0.0)))
        reach = jnp.maximum(reach, jnp.finfo(reach.dtype).tiny)
        counted = np.arange(most)[None, :] < np.asarray(self.neighbours)[:, None]
        ratio = jnp.where(there, squares, 0.0)[None, :] / reach[:, None]
        votes = jnp.where(there, belief.shares[places], 0.0)[None, :]
        shares = jnp.where(counted, votes * jnp.exp(-as_like(self.decay, ratio) * ratio), 0.0)
        return _Near(places, belief.targets[places], shares)

    def predictive(
        self, belief: Remembered, x: PyTree, method: ForecastName | None, samples: int | None, key: Key | None
    ) -> Predictive:
        closed_form(method)
        near = self._near(belief, self._inputs(belief, x))
        forecasts = self.votes.forecast(belief.base, near.targets, near.shares)
        return WeightedPredictive(forecasts, belief.log_weights)

    def measurement_update(
        self, belief: Remembered, x: PyTree, y: PyTree, weight: ArrayLike, key: Key | None
    ) -> tuple[Remembered, Info]:
        votes = self.votes
        logs = belief.log_weights
        if jnp.size(y) != 1:
            raise CredoError(f"y must be one number or class label; got shape {jnp.shape(y)}.", field="y")
        observed, used = usable(votes.observed(y), weight, logs.dtype)
        row = self._inputs(belief, clean(x))
        target = jnp.where(observed, as_like(y, belief.targets), 0.0).reshape(())
        near = self._near(belief, row)
        forecasts = votes.forecast(belief.base, near.targets, near.shares)
        densities = jax.vmap(lambda one: one.log_prob(target))(forecasts).astype(logs.dtype)
        log_evidence = jss.logsumexp(logs + densities)
        scores = logs + used * densities
        weights: Array = scores - jss.logsumexp(scores)
        base = votes.learn(belief.base, forecasts, target, used, 1.0 / self.size)
        scored = jnp.isfinite(log_evidence) & ~jnp.any(jnp.isnan(weights))
        ok = sound((row, target, base), scored, observed, x, y, used)
        taken = ok & (used > 0)
        # All places are written in one pass, which is fused with the choices of wrappers around. To write one
        # place is slower in a bank, whose choices then ask for each place whether it is the one.
        here = (jnp.arange(self.size, dtype=belief.written.dtype) == belief.written % self.size) & taken
        new = Remembered(
            jnp.where(here[None, :], row[:, None], belief.rows),
            jnp.where(here, target, belief.targets),
            jnp.where(here, used, belief.shares),
            jax.tree.map(lambda one, old: jnp.where(taken, one, old), base, belief.base),
            jnp.where(taken, weights, logs),
            belief.written + taken.astype(belief.written.dtype),
            belief.t,
        )
        return new, Info(jnp.where(taken, log_evidence, 0.0), ok)

    def expectation(self, belief: Remembered, x: PyTree) -> Expectation:
        near = self._near(belief, self._inputs(belief, x))
        distributions = self.votes.expectation(belief.base, near.targets, near.shares)
        return WeightedExpectation(distributions, belief.log_weights)

    def function_draw(self, belief: Remembered, key: Key) -> Callable[[PyTree], Array]:
        first, second, third = jax.random.split(as_key(key), 3)
        which = jax.random.categorical(first, belief.log_weights)
        return RecalledFunction(self, belief, self.draws(belief, second, ()), which, third)

    def draws(self, belief: Remembered, key: Key, shape: tuple[int, ...]) -> Array:
        return jax.random.exponential(as_key(key), (*shape, self.size), belief.rows.dtype)


FEW = 32
"""Columns that are written out one by one; more are taken in blocks of so many."""


def _squares(rows: Array, row: Array) -> Array:
    """The squared distances (M,) of the columns of D x M rows.

    One input is taken after the other: a sum over an axis that is not the last is four times slower.
    """

    def some(rows: Array, row: Array, total: Array) -> Array:
        return sum(((rows[j] - row[j]) ** 2 for j in range(rows.shape[0])), total)

    whole = rows.shape[0] // FEW
    total = jnp.zeros(rows.shape[1], rows.dtype)

    def block(i: Array, total: Array) -> Array:
        part = jax.lax.dynamic_slice_in_dim
        return some(part(rows, i * FEW, FEW), part(row, i * FEW, FEW), total)

    if whole > 1:
        total = jax.lax.fori_loop(0, whole, block, total)
        rows = rows[whole * FEW :]
        row = row[whole * FEW :]
    return some(rows, row, total)


@widen_belief.register
def _(belief: Remembered, prior: Remembered) -> Remembered:
    """More columns, which are 0 in the rows that are there, and more classes."""
    for name in ("targets", "log_weights"):
        before = jnp.shape(getattr(belief, name))
        after = jnp.shape(getattr(prior, name))
        if before != after:
            raise CredoError(
                f"a memory is widened in its columns and classes only; {name} has shape {before} in the "
                f"belief and {after} in the wider one.",
                field="belief",
            )
    rows = at_corner("rows", belief.rows, prior.rows)
    base = put_corners("base", belief.base, prior.base)
    return replace(belief, rows=rows, base=base)


@record
class RecalledFunction:
    """A function x -> E[y] that was drawn from a memory.

    Attributes:
        learner, belief: the memory.
        multipliers: the weight of each remembered row (M,), in this function.
        which: the place of its number of neighbours.
        key: the key of its base.

    Example:
        >>> import credo
        >>> learner = NearestNeighbours(1, credo.Bernoulli(), size=10, neighbours=(2,))
        >>> belief, _ = credo.run(learner, learner.init(), jnp.ones((3, 1)), jnp.asarray([1, 1, 1]))
        >>> float(learner.sample_function(belief, 0)(jnp.ones(1))) > 0.5
        True
    """

    learner: NearestNeighbours
    belief: Remembered
    multipliers: Array
    which: Array
    key: Array

    def __call__(self, x: PyTree) -> Array:
        """E[y] at x: a scalar, or the class probabilities (C,)."""
        near = self.learner._near(self.belief, self.learner._inputs(self.belief, x))
        shares = near.shares[self.which] * self.multipliers[near.places]
        return self.learner.votes.value(self.belief.base, near.targets, shares, self.key)
