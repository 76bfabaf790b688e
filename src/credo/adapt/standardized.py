"""Standardisation as a wrapper: raw rows go in, and each is scaled by the rows before it.

Targets are learned in units of their own spread, once it is known: the first rows wait until then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from credo.adapt.moments import matched
from credo.adapt.nested import Around, B, floating
from credo.adapt.priors import moved, moved_inside
from credo.adapt.questions import Answer, Question
from credo.adapt.running_moments import RunningMoments, farthest
from credo.adapt.wrapper import Proposal, Wrapper, first_inside
from credo.core.errors import CredoError, require_integer, require_positive
from credo.core.fields import field, nonnegative_at
from credo.core.outlying import FAR
from credo.core.records import record, replace, static_field
from credo.core.trees import as_like, select
from credo.core.types import Array, ArrayLike, DTypeLike, Key, PyTree
from credo.learners import Info, Learner
from credo.learners.acceptance import call_fenced, clean
from credo.likelihoods import Predictive, Rescaled, RescaledExpectation
from credo.likelihoods.rescaled import FARTHEST

__all__ = [
    "Plan",
    "Scaled",
    "Scaling",
    "Standardized",
    "Target",
    "Waiting",
    "learn_scaled",
    "planned",
    "target_of",
]


@record
class Waiting:
    """The first rows of a stream, which wait until the units of their targets are known.

    Attributes:
        rows: the weight, the target in its own units and the standardised inputs of each row (W, 2 + D), in
            one array, which costs a compiled program less than three; 0 if no row waits.

    Example:
        >>> waiting = Waiting.empty(2, 1, float)
        >>> int(waiting.keep(jnp.ones(1), jnp.asarray(5.0), jnp.asarray(1.0)).filled)
        1
    """

    rows: Array = field(nonnegative_at([0], "weights"), raw=True)

    @staticmethod
    def empty(count: int, size: int, dtype: DTypeLike) -> Waiting:
        """Room for W rows of D inputs."""
        return Waiting(jnp.zeros((count, 2 + size), dtype))

    @property
    def weight(self) -> Array:
        """The weights of the rows (W,), which are above 0 for rows that wait."""
        return self.rows[:, 0]

    @property
    def y(self) -> Array:
        """The targets in their own units (W,)."""
        return self.rows[:, 1]

    @property
    def x(self) -> Array:
        """The standardised inputs (W, D)."""
        return self.rows[:, 2:]

    @property
    def filled(self) -> Array:
        """The number of rows that wait."""
        return jnp.sum(self.weight > 0, dtype=jnp.int32)

    def keep(self, x: Array, y: Array, weight: Array) -> Waiting:
        """The rows with one more, if there is room for it."""
        here = jnp.arange(self.rows.shape[0], dtype=jnp.int32) == self.filled
        row = jnp.concatenate([weight[None], y[None], x])
        return Waiting(jnp.where(here[:, None], row[None, :], self.rows))


class Scaled(NamedTuple):
    """The results of a row with a target, named as in a `Proposal`."""

    belief: Any
    target: RunningMoments
    waiting: Waiting
    log_evidence: Array
    ok: Array
    extras: PyTree


class Plan(NamedTuple):
    """The moments after a row, the rows that wait with it, what is to be learned of it, and whether those
    that waited are learned with it.
    """

    after: RunningMoments
    kept: Waiting
    ready: Array
    flush: Array
    cut: Array
    exact: Array
    clipped: Array
    near: Array
    early: Array
    trips: Array


class _Trip(NamedTuple, Generic[B]):
    """The values that one trip of the loop hands to the next."""

    number: Array
    belief: B
    first: Array
    first_ok: Array
    info: Info


class Target(NamedTuple):
    """The target of a row in its own units and its weight, two numbers of the dtype of its moments."""

    value: Array
    weight: Array


def target_of(moments: RunningMoments, y: PyTree, weight: ArrayLike) -> Target:
    """The target of a row; a CredoError if it or the weight is not one number."""
    if jnp.size(y) != 1 or jnp.size(weight) != 1 or not jax.tree_util.all_leaves([y]):
        raise CredoError("Standardized scales one number a step: y and weight must be numbers.", field="y")
    value, share = (as_like(number, moments.values).reshape(()) for number in (y, weight))
    return Target(value, share)


def learn_scaled(
    learner: Learner[B],
    belief: B,
    before: RunningMoments,
    x: Array,
    target: Target,
    plan: Plan,
    key: Key | None,
) -> Scaled:
    """Score a row, and learn it or let it wait; if it makes the units known, learn all that waited.

    All of this is one loop of few trips around the learner's update, which is compiled once. The first trip
    scores the row by its exact target. An ordinary row has no other; a clipped one is learned in a second
    trip, with the weight (8 / z)^2 if it is more than eight standard deviations away. A row that waits has
    a second trip of weight 0, for the reports; and the row that makes the units known has one for each that
    waited.

    `before` are the moments of the targets before this one, and x (D,) are the standardised inputs.
    """
    after, kept, ready, flush, cut, exact, clipped, near, early, trips = plan
    value, share = target
    rows = kept.rows.shape[0]

    def trip(last: _Trip[B]) -> _Trip[B]:
        number = last.number
        inner = last.belief
        begin = last.number == 0
        place = jnp.clip(number - 1, 0, rows - 1)
        old = flush & ~begin
        one_x = jnp.where(old, kept.x[place], x)
        one_y = jnp.where(old, early[place], jnp.where(begin, exact, clipped))
        own_weight = jnp.where(begin, share, share * near)
        one_weight = jnp.where(old, kept.weight[place], jnp.where(ready | begin, own_weight, 0.0))
        inner = jax.lax.cond(old, lambda b: _alike(learner.time_update(b, None), b), lambda b: b, inner)
        learned, info = learner.measurement_update(inner, one_x, one_y, one_weight, key)
        inner = select(~begin | (ready & ~cut), _alike(learned, inner), inner)
        first = jnp.where(begin, info.log_evidence.astype(last.first.dtype), last.first)
        return _Trip(
            number + 1, inner, first, jnp.where(begin, info.ok, last.first_ok), _alike(info, last.info)
        )

    belief = jax.tree.map(jnp.asarray, belief)
    shapes = jax.eval_shape(lambda b: learner.measurement_update(b, x, value, share, key)[1], belief)
    blank: Info = jax.tree.map(lambda like: jnp.zeros(like.shape, like.dtype), shapes)
    start = _Trip(jnp.zeros((), jnp.int32), belief, blank.log_evidence, blank.ok, blank)

    def more(last: _Trip[B]) -> Array:
        # Where the row itself is refused, those that wait go on waiting.
        return (last.number < trips) & (~flush | (last.number == 0) | last.first_ok)

    end = jax.lax.while_loop(more, trip, start)
    evidence = jnp.where(end.first_ok, end.first, end.info.log_evidence) - jnp.log(before.scale)
    ok = jnp.where(ready, end.info.ok, end.first_ok)
    later = Waiting(jnp.where(flush, 0.0, kept.rows))
    return Scaled(end.belief, after, later, evidence, ok, end.info.extras)


def planned(before: RunningMoments, waiting: Waiting, x: Array, target: Target, clip: ArrayLike) -> Plan:
    """The plan for a row, whose standardised inputs are x (D,); a CredoError if it has another number of
    inputs than those that wait. `clip` is the largest size of a standardised target that is learned.
    """
    if jnp.shape(x) != (waiting.rows.shape[1] - 2,):
        raise CredoError(
            f"x must have the shape {(waiting.rows.shape[1] - 2,)}; got {jnp.shape(x)}.", field="x"
        )
    x = as_like(x, waiting.rows)
    value, share = target
    most = farthest(value.dtype)
    rows = waiting.rows.shape[0]
    value = jnp.where(jnp.abs(value) > most, jnp.inf, value)
    after = before.observe(value)
    ready = before.fixed | _known(before, rows)
    kept = select(ready, waiting, waiting.keep(x, value, share))
    flush = ~ready & (share > 0) & _known(after, rows)
    away = jnp.clip(before.gap(value) / before.scale, -FARTHEST, FARTHEST)
    exact = jnp.where(jnp.isinf(value), value, away)
    limit = before.limit(clip)
    cut = (jnp.abs(exact) > jnp.minimum(limit, FAR)) & jnp.isfinite(exact)
    clipped = jnp.where(cut, jnp.sign(exact) * limit, exact)
    near = (FAR / jnp.maximum(jnp.abs(exact), FAR)) ** 2
    early = jnp.clip(after.gap(kept.y) / after.scale, -after.limit(clip), after.limit(clip))
    trips = jnp.where(ready, 1 + cut.astype(jnp.int32), jnp.where(flush, 1 + kept.filled, 2))
    return Plan(after, kept, ready, flush, cut, exact, clipped, near, early, trips)


def _known(moments: RunningMoments, warmup: int) -> Array:
    """Whether enough was seen to say what the units are."""
    return (moments.count >= warmup) & moments.known


def _alike(tree: Any, like: Any) -> Any:
    """The tree with the dtypes of another, without types that JAX calls weak."""
    return jax.tree.map(lambda leaf, other: jnp.asarray(leaf, jnp.asarray(other).dtype), tree, like)


@record
class Scaling(Around[B], Generic[B]):
    """The belief of a learner of standardised rows, and what the rows before said of their units.

    Attributes:
        belief: the belief of the learner inside, in standardised units.
        inputs: the moments of the inputs (D,), or None if all pass as they come.
        target: the moments of the target (), or None if it passes as it comes.
        waiting: the first rows, while the units of the target are not known; None if it passes as it
            comes.
        t: how many times `predict` has been called.

    Example:
        >>> import credo
        >>> inner = credo.extended_kalman(credo.Model(lambda w, x: x @ w, credo.Bernoulli()))
        >>> belief = Standardized(inner).init(jnp.zeros(3), size=3)
        >>> belief.inputs.count.tolist(), belief.mean.tolist()
        ([0.0, 0.0, 0.0], [0.0, 0.0, 0.0])
    """

    belief: B
    inputs: RunningMoments | None
    target: RunningMoments | None
    waiting: Waiting | None
    t: Array

    def init_arguments(self) -> dict[str, PyTree]:
        """The arguments of `init` that such a belief began from: the number of inputs, where it is known."""
        if self.inputs is not None:
            return {"size": np.shape(self.inputs.values)[-2]}
        if self.waiting is not None:
            return {"size": np.shape(self.waiting.x)[-1]}
        return {}

    @property
    def units(self) -> tuple[Array, Array]:
        """The location and the scale of the target: its mean and standard deviation so far.

        Raises:
            CredoError: the target is not standardised.
        """
        if self.target is None:
            raise CredoError("the target of this belief is not standardised: it has no units.")
        return self.target.mean, self.target.scale


@record
class Standardized(Wrapper[Scaling[B], B], Generic[B]):
    """A learner of raw rows, each of which is standardised by the rows before it.

    Of an input x_j with the mean m_j and the sample standard deviation s_j so far, the learner inside sees

        z_j = (x_j - m_j) / s_j,   of a size of at most min(clip, sqrt(n_j)),

    and 0 if x_j is missing, or if fewer than two values or no spread were seen. Beyond a hundred
    standard deviations that size falls again, with (100 / z_j)^2, so that an absurd input counts as a missing
    one. Forecasts use the present moments. A target is standardised in the same way, and forecasts and
    evidence are in its own units. The learner inside sees no target before `warmup` of them have said what
    their units are; the first ones wait in the belief, and are then learned in their order, one time step
    apart. No single number can ruin the moments, and other units for good are followed (`RunningMoments`).

    Arguments:
        learner: any learner of one observation a step.
        inputs: whether inputs are standardised. If not, they pass as they come, and missing ones become 0.
        targets: whether the target, a number, is standardised.
        clip: the largest size of a standardised number, above 0. Forecasts and evidence use the target as it
            is; the learner inside learns it clipped.
        warmup: how many targets say in which units they are, at least 2.
        target_clip: the largest size of a standardised target; None for `clip`.

    Raises:
        CredoError: a number is outside its range, or (later) a row has another number of inputs.

    An input that is NaN, infinite or larger in size than 1e15 (1e123 in double precision) is missing, and
    leaves the moments of its column; so are those that are not marked as `scaled`, which pass unchanged.
    A target of that size is refused. A row that is refused, misses its target or has the weight 0 leaves
    everything as it was; any other weight counts as one row. The moments keep all digits that the inputs
    have; but times in seconds since 1970 have steps of 128 in single precision, so subtract an origin first.
    A spread below 1e-19 counts as none in single precision.

    Draws of parameters and the answers of the belief are those of the learner inside, in standardised units;
    expectations and sampled functions take raw rows and are in the target's own units. `Info.log_evidence`
    is the log density of the forecast at the target. While targets wait, forecasts are those of the prior,
    around the mean of the targets so far. Around a learner that watches for changes the units stay when the
    world changes; inside one, each regime finds its own.

    Cost: that of the learner inside, and O(D). With `targets`, updates have forward derivatives only.

    Example:
        >>> import credo, numpy as np
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(1e4, 50.0, (200, 2))
        >>> y = 1e6 + 30.0 * x[:, 0] + rng.normal(size=200)
        >>> inner = credo.extended_kalman(credo.Model(lambda w, x: x @ w, credo.Normal(0.01)))
        >>> learner = Standardized(inner, targets=True)
        >>> belief = learner.init(jnp.zeros(2), size=2)
        >>> belief, trace = credo.run(learner, belief, jnp.asarray(x), jnp.asarray(y))
        >>> forecast = learner.forecast(learner.predict(belief), jnp.asarray([10050.0, jnp.nan]))
        >>> abs(float(forecast.mean) - 1301500.0) < 100.0
        True
    """

    inputs: bool = static_field(default=True)
    targets: bool = static_field(default=False)
    clip: ArrayLike = 8.0
    warmup: int = static_field(default=10)
    target_clip: ArrayLike | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive("clip", self.clip)
        if self.target_clip is not None:
            require_positive("target_clip", self.target_clip)
        require_integer("warmup", self.warmup, 2)

    @property
    def takes_missing(self) -> bool:
        return True

    def init(
        self,
        params: PyTree = None,
        *,
        var: PyTree = None,
        size: int | None = None,
        scaled: ArrayLike | None = None,
        **others: PyTree,
    ) -> Scaling[B]:
        """The belief before any data.

        Arguments:
            params, var, others: as for the learner inside.
            size: the number D of inputs; needed unless both inputs and targets pass as they come.
            scaled: which inputs are standardised, booleans (D,); None for all of them.

        Raises:
            CredoError: `size` is missing, or `scaled` has another shape.
        """
        return self.wrap(first_inside(self.learner, params, var, others), size, scaled)

    def wrap(self, prior: B, size: int | None = None, scaled: ArrayLike | None = None) -> Scaling[B]:
        """The first belief around one that the learner inside starts from.

        Arguments:
            prior: the first belief of the learner inside.
            size, scaled: as for `init`.

        Raises:
            CredoError: as for `init`.
        """
        dtype = floating(prior)
        inputs = None
        target = None
        waiting = None
        if size is None and (self.inputs or self.targets):
            raise CredoError("size must be the number of inputs; it is missing.", field="size")
        if size is not None:
            require_integer("size", size, 0)
        if self.inputs and size is not None:
            chosen = jnp.ones(size, bool) if scaled is None else jnp.asarray(scaled, bool)
            if chosen.shape != (size,):
                raise CredoError(
                    f"scaled must hold one truth value an input, ({size},); got shape {chosen.shape}.",
                    field="scaled",
                )
            inputs = RunningMoments.empty((size,), dtype, chosen)
        if self.targets and size is not None:
            target = RunningMoments.empty((), dtype)
            waiting = Waiting.empty(self.warmup, size, dtype)
        zero = jnp.zeros((), jnp.int32)
        return Scaling(prior, inputs, target, waiting, zero)

    def fix(
        self,
        belief: Scaling[B],
        xs: ArrayLike | None = None,
        ys: ArrayLike | None = None,
        *,
        weights: ArrayLike | None = None,
    ) -> Scaling[B]:
        """The belief with the moments of a batch, which all later rows leave as they are.

        It is for batches that are standardised as a whole. Moments are computed in double precision, outside
        of compiled programs. Rows learn at once: none waits.

        Arguments:
            belief: a belief of this learner.
            xs: inputs (N, D), with NaN if one is missing; None to keep the present moments.
            ys: targets (N,), likewise.
            weights: how often each row counts (N,), at least 0; None for once.

        Raises:
            CredoError: the rows have another number of inputs.
        """
        share = None if weights is None else np.asarray(weights, float)
        inputs = belief.inputs
        target = belief.target
        if inputs is not None:
            rows = None if xs is None else np.asarray(xs, float)
            if rows is not None and (rows.ndim != 2 or rows.shape[1:] != inputs.count.shape):
                raise CredoError(
                    f"xs must be (N, {inputs.count.shape[0]}); got shape {rows.shape}.", field="xs"
                )
            inputs = inputs.stay() if rows is None else inputs.of(rows, share)
        if target is not None:
            target = target.stay() if ys is None else target.of(np.asarray(ys, float).reshape(-1), share)
        return replace(belief, inputs=inputs, target=target)

    def encode(self, belief: Scaling[B], x: PyTree) -> PyTree:
        """One raw row as the learner inside sees it.

        Arguments:
            belief: a belief of this learner.
            x: one row of inputs (D,).

        Raises:
            CredoError: the row has another number of inputs.
        """
        return encode(belief, x, self.clip)

    def ask(self, belief: Scaling[B], x: PyTree, question: Question) -> Answer:
        answer = question(self.learner, belief.belief, self.encode(belief, x))
        if not self.targets:
            return answer
        wrap = Rescaled if isinstance(answer, Predictive) else RescaledExpectation
        return wrap(answer, *belief.units)  # type: ignore[arg-type]

    def function_draw(self, belief: Scaling[B], key: Key) -> Callable[[PyTree], Array]:
        function = self.learner.function_draw(belief.belief, key)
        return RawFunction(function, replace(belief, belief=None, waiting=None), self.clip)

    def propose(
        self, belief: Scaling[B], x: PyTree, y: PyTree, weight: ArrayLike, key: Key | None
    ) -> Proposal[Scaling[B]]:
        """Standardise the row, let the learner inside learn it, and take it into the moments."""
        scaling = replace(belief, belief=None)
        if belief.target is None or belief.waiting is None:
            row, inputs = call_fenced(self._take, (scaling, x))
            learned, info = self.learner.measurement_update(belief.belief, row, y, weight, key)
            new = replace(belief, belief=learned, inputs=inputs)
            return Proposal(new, info.log_evidence, info.ok, info.extras)
        target = target_of(belief.target, y, weight)
        row, inputs, plan = call_fenced(self._plan, (scaling, x, target))
        scaled = learn_scaled(self.learner, belief.belief, belief.target, row, target, plan, key)
        new = replace(
            belief, belief=scaled.belief, inputs=inputs, target=scaled.target, waiting=scaled.waiting
        )
        return Proposal(new, scaled.log_evidence, scaled.ok, scaled.extras)

    def _take(self, belief: Scaling[Any], x: PyTree) -> tuple[PyTree, RunningMoments | None]:
        """A row as the learner inside sees it, and the moments of the inputs after it."""
        inputs = belief.inputs
        return encode(belief, x, self.clip), None if inputs is None else inputs.observe(
            as_like(x, inputs.values)
        )

    def _plan(
        self, belief: Scaling[Any], x: PyTree, target: Target
    ) -> tuple[PyTree, RunningMoments | None, Plan]:
        """The results of `_take`, and the plan for the row."""
        assert belief.target is not None and belief.waiting is not None
        (row, inputs) = self._take(belief, x)
        clip = self.target_clip
        clip = self.clip if clip is None else clip
        return row, inputs, planned(belief.target, belief.waiting, row, target, clip)

    def settle(self, used: Array, new: Scaling[B], old: Scaling[B]) -> Scaling[B]:
        # The learner inside has given its belief back where the row is refused: another choice would copy it.
        own = select(used, replace(new, belief=None), replace(old, belief=None))
        return replace(own, belief=new.belief)


@record
class RawFunction:
    """A function of raw rows, in the target's own units, by one of standardised rows and what is known of the
    units.
    """

    function: Callable[[PyTree], Array]
    scaling: Scaling[Any]
    clip: ArrayLike

    def __call__(self, x: PyTree) -> Array:
        """The expected observation at one raw row x."""
        value = self.function(encode(self.scaling, x, self.clip))
        if self.scaling.target is None:
            return value
        location, scale = self.scaling.units
        return location + scale * value


def encode(scaling: Scaling[Any], x: PyTree, clip: ArrayLike) -> PyTree:
    """One raw row, standardised; see `Standardized.encode`."""
    moments = scaling.inputs
    if moments is None:
        return clean(x)
    if jnp.shape(x) != moments.count.shape:
        raise CredoError(
            f"x must be one row of {moments.count.shape[0]} inputs; got shape {jnp.shape(x)}.", field="x"
        )
    raw = as_like(x, moments.values)
    z = moments.z(raw, clip)
    here = jnp.abs(raw) <= farthest(raw.dtype)  # comparisons with NaN are false
    return jnp.where(here, jnp.where(moments.scaled, z, raw), 0.0)


@matched.register
def _(beliefs: Scaling, weights: Array) -> Scaling[Any]:  # type: ignore[type-arg]
    # Units cannot be mixed: those of the heaviest stay.
    heaviest = jnp.argmax(weights)
    first: Scaling[Any] = jax.tree.map(lambda leaf: leaf[heaviest], replace(beliefs, belief=None))
    return replace(first, belief=matched(beliefs.belief, weights), t=beliefs.t[0])


moved.register(Scaling)(moved_inside)
