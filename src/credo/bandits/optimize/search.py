"""The search for the best point of a space: which point to try next, given what was tried."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from credo.bandits.optimize.process_fit import fit_process
from credo.bandits.optimize.promises import (
    AcquisitionName,
    Promise,
    drawn,
    feasible_log_prob,
    improvement,
    knowledge,
    upper_bound,
)
from credo.bandits.optimize.space import Space, even_points
from credo.bandits.optimize.trials import Trials, Units
from credo.core.errors import CredoError, require_choice, require_integer, require_nonnegative
from credo.core.keys import as_key
from credo.core.records import record, replace, static_field
from credo.core.trees import select
from credo.core.types import Array, ArrayLike, Key
from credo.core.verbs import verb
from credo.learners import GaussianProcess, Learner
from credo.learners.base import require_learner

__all__ = ["AcquisitionName", "GoalName", "Search", "ascend_in_box", "maximize"]


Climb: TypeAlias = tuple[Array, Array, Array, Array, Array]
"""A row, its last gradient, its step lengths, the best row so far, and its value."""

FASTER = 1.2
SLOWER = 0.5
# How long the steps of a climb are at first, at most and at least.
FIRST = 0.05
LONGEST = 0.5
SHORTEST = 1e-7


def ascend_in_box(
    function: Callable[[Array], Array],
    starts: Array,
    box: Array,
    free: Array,
    steps: int,
    first: Array | None = None,
) -> tuple[Array, Array]:
    """Climb a function of a row (D,) from starts (S, D), by projected gradient steps whose lengths adapt.

    Each number of a row moves by a length of its own in the direction of the sign of its derivative. The
    length grows by 1.2 while the sign stays and halves when it turns, so the scale of the function does not
    matter (Rprop: Riedmiller & Braun 1993). The first steps have the lengths `first` (S,), or 0.05. Rows are
    projected onto -box <= row <= box, and only the numbers that are `free` (D,) move. The best row of each
    path (S, D) is kept, with its value (S,), which is not below that of its start.
    """
    slope = jax.value_and_grad(lambda row: jnp.reshape(function(row), ()))
    kind = starts.dtype

    def finite(value: Array) -> Array:
        return jnp.where(jnp.isfinite(value), value, -jnp.inf).astype(kind)

    def climb(start: Array, length: Array) -> tuple[Array, Array]:
        def step(carry: Climb, _: None) -> tuple[Climb, None]:
            row, before, length, best, top = carry
            value, gradient = slope(row)
            value = finite(value)
            best = jnp.where(value > top, row, best)
            top = jnp.maximum(top, value)
            turn = jnp.sign(gradient) * jnp.sign(before)
            factor = jnp.where(turn > 0, FASTER, jnp.where(turn < 0, SLOWER, 1.0))
            length = jnp.clip(length * factor, SHORTEST, LONGEST).astype(kind)
            move = jnp.nan_to_num(jnp.where(free, jnp.sign(gradient) * length, 0.0))
            return (jnp.clip(row + move, -box, box), gradient.astype(kind), length, best, top), None

        lowest = jnp.full((), -jnp.inf, kind)
        begin = (start, jnp.zeros_like(start), jnp.broadcast_to(length, start.shape), start, lowest)
        (_, _, _, best, top), _ = jax.lax.scan(step, begin, None, length=steps)
        return best, top

    return jax.vmap(climb)(starts, jnp.full(starts.shape[0], FIRST, kind) if first is None else first)


MOST = 512
"""The largest space of which every point is looked at."""

# How many candidates are spread evenly, how many lie near good points, and how near, in turn.
EVEN = 256
NEAR = 64
NEAR_SDS = (0.2, 0.05, 0.01, 0.002)

FIRST_SHARE = 0.3
"""The first step from a candidate near a good point, as a share of how near it is."""

# How many of the best candidates are improved, by how many gradient steps, in how many rounds.
STARTS = 8
STEPS = 30
ROUNDS = 2


def maximize(function: Callable[[Array], Array], space: Space, good: Array, key: Array) -> Array:
    """The point (D,) of a space where a differentiable function is largest, as far as a search finds it.

    Candidates are spread evenly and around rows (M, D) that are known to be good, and the best are improved
    by `ascend_in_box`. If there are whole numbers or choices, a second round follows: in the first, whole
    numbers move freely and are rounded; in both, each row then moves to the best of its neighbours, which
    differ in one whole number by 1 or in one choice. A space of at most 512 points is searched whole. Values
    that are not finite count as the worst. Half of the candidates near a good point
    differ from it in half of their numbers. Cost: 320 + M values, and 240 gradients a round.
    """
    kind = good.dtype

    def score(rows: Array) -> Array:
        values = jax.vmap(lambda row: jnp.reshape(function(row), ()))(rows)
        return jnp.where(jnp.isfinite(values), values, -jnp.inf).astype(kind)

    every = space.points(MOST)
    if every is not None:
        rows = jnp.asarray(every, kind)
        return rows[jnp.argmax(score(rows))]
    box = jnp.asarray(space.box, kind)
    ordered = jnp.asarray(space.ordered)
    smooth = jnp.asarray(space.smooth)

    def improve(carry: tuple[Array, Array], free: Array) -> tuple[tuple[Array, Array], None]:
        rows, values = carry
        climbed, _ = ascend_in_box(function, rows, box, free, STEPS, first)
        climbed = jax.vmap(space.snap)(climbed)
        beside = jax.vmap(space.neighbours)(climbed)
        options = jnp.concatenate([climbed[:, None], beside], axis=1)
        scores = jax.vmap(score)(options)
        rows = jnp.concatenate([rows[:, None], options], axis=1)
        values = jnp.concatenate([values[:, None], scores], axis=1)
        places = jnp.argmax(values, axis=1)[:, None]
        chosen = jnp.take_along_axis(rows, places[:, :, None], axis=1)[:, 0]
        return (chosen, jnp.take_along_axis(values, places, axis=1)[:, 0]), None

    one, two, three = jax.random.split(key, 3)
    even = jax.vmap(space.place)(even_points(one, 0, EVEN, len(space.variables))).astype(kind)
    turns = np.arange(NEAR)
    sds = jnp.asarray(np.asarray(NEAR_SDS)[turns % len(NEAR_SDS)], kind)
    moves = sds[:, None] * jax.random.normal(two, (NEAR, space.size), kind)
    some = jax.random.bernoulli(three, 0.5, (NEAR, space.size)) | (turns % 2 == 0)[:, None]
    places = (turns // len(NEAR_SDS)) % good.shape[0]
    near = good[places] + jnp.where(some & ordered[None, :], moves, 0.0)
    rows = jnp.concatenate([even, jax.vmap(space.snap)(jnp.concatenate([near, good]))])
    values, chosen = jax.lax.top_k(score(rows), STARTS)
    paces = jnp.concatenate(
        [jnp.full(EVEN, FIRST, kind), FIRST_SHARE * sds, jnp.full(good.shape[0], 0.01, kind)]
    )
    first = paces[chosen]
    mixed = not bool(space.smooth.all())
    free = jnp.stack([ordered, smooth][: ROUNDS if mixed else 1])
    (rows, values), _ = jax.lax.scan(improve, (rows[chosen], values), free)
    return rows[jnp.argmax(values)]


GoalName: TypeAlias = Literal["max", "min"]
"""The value that is looked for: the largest or the smallest."""

# Near how many of the best trials the maximiser looks, and how many a knowledge gradient compares.
BEST = 8
COMPARED = 16


@record
class Search:
    """A search as pure functions: `start`, `ask` and `tell`, which may stand in a scan or a vmap over keys.

    At each question the learner learns all trials from the start, in units of their mean and standard
    deviation. This costs one step a trial, and keeps the belief honest: no target that was learned changes
    its meaning later, as it would if the units moved under a belief.

    Arguments:
        learner: any learner or wrapper of one number, whose inputs are rows (D,) between -1 and 1.
        prior: its belief before any trial.
        space: the space.
        goal: "max" or "min".
        acquisition: "ei" takes the point of the largest expected improvement over the best expected value of
            a trial; "kg" that of the largest knowledge gradient, over the 16 best trials and the point
            itself; "ucb" the point whose mean is best after `width` standard deviations were added;
            "thompson" draws a function from the belief and takes its best point.
        width: see above.
        initial: how many points are spread evenly before the learner is asked.
        scaled: whether values are standardised for the learner.
        fitted: whether the learner is a `credo.GaussianProcess` whose numbers, with the bend of the values
            (see `Units`), are found again at each question.
        deterministic: whether values have no noise, for a process that is fitted.

    Example:
        >>> import credo
        >>> from credo import bandits
        >>> space = bandits.Space.read([[-1.0, 3.0]])
        >>> net = credo.models.RandomFeatures.draw(0, inputs=1, features=50, length=0.5)
        >>> learner = credo.extended_kalman(credo.Model(net, credo.Normal(1e-3)))
        >>> search = bandits.optimize.Search(learner, learner.init(net.init()), space)
        >>> def trial(trials, _):
        ...     trials, row = search.ask(trials)
        ...     value = -((space.values(row)[0] - 1.5) ** 2)
        ...     return search.tell(trials, row, value), value
        >>> _, values = jax.lax.scan(trial, search.start(0, capacity=8), length=8)
        >>> bool(values.max() > -0.01)
        True
    """

    learner: Learner[Any]
    prior: Any
    space: Space = static_field()
    goal: GoalName = static_field(default="max")
    acquisition: AcquisitionName = static_field(default="ei")
    width: ArrayLike = 2.0
    initial: int = static_field(default=3)
    scaled: bool = static_field(default=True)
    fitted: bool = static_field(default=False)
    deterministic: bool = static_field(default=False)

    def __post_init__(self) -> None:
        if type(self.learner) is object or type(self.prior) is object:  # what JAX puts in place of a tree
            return
        require_learner("learner", self.learner)
        require_choice("goal", self.goal, ("max", "min"))
        require_choice("acquisition", self.acquisition, get_args(AcquisitionName))
        require_nonnegative("width", self.width)
        require_integer("initial", self.initial, 1)
        if (self.fitted or self.acquisition == "kg") and not isinstance(self.learner, GaussianProcess):
            what = '"kg" needs' if self.acquisition == "kg" else "fitted needs"
            raise CredoError(
                f"{what} a credo.GaussianProcess as the learner; got {type(self.learner).__name__}.",
                field="learner",
            )
        if self.deterministic and not self.fitted:
            raise CredoError(
                "deterministic is of the process that is fitted; a learner of your own has its own noise.",
                field="deterministic",
            )
        learner = self.learner
        x = self.learner.inputs_of(self._row())
        size = jax.eval_shape(lambda belief: learner.expect(belief, x).mean, self.prior).shape[0]
        if size != 1:
            raise CredoError(
                f"learner must forecast one number, the value of a point; it forecasts {size}.",
                field="learner",
            )

    def _row(self) -> Array:
        return jnp.zeros(self.space.size, jnp.result_type(float))

    @property
    def sign(self) -> float:
        """1 if large values are good, else -1."""
        if self.goal == "max":
            return 1.0
        return -1.0

    def start(self, key: Key, capacity: int) -> Trials:
        """No trials yet.

        Arguments:
            key: the key from which all draws come.
            capacity: the largest number of trials.
        """
        require_integer("capacity", capacity, 1)
        return Trials.start(as_key(key), capacity, self.space.size)

    def tell(self, trials: Trials, row: Array, value: ArrayLike) -> Trials:
        """The trials with one more; nothing changes where the value is not finite, or there is no room."""
        return trials.tell(row, value)

    def ask(self, trials: Trials, labels: Trials | None = None) -> tuple[Trials, Array]:
        """The next point to try.

        Arguments:
            trials: the trials so far that gave a value.
            labels: if some trials failed, all trials, with the value 1 for each that gave a value, and -1 for
                each that failed: promises are then multiplied by the probability that a trial succeeds.

        Returns:
            The trials, with one more question counted; and the point, encoded (D,). Without a value between
            them, two questions may have one answer; `Optimizer` knows of pending points.

        Cost: a step of the learner for each place in `trials`, or a fit of a process; then some 600 values
        and gradients of what a point promises.
        """
        later = replace(trials, asked=trials.asked + 1)
        known = trials.count if labels is None else labels.count
        unknown = trials.count - trials.believed < 1
        even = (jnp.maximum(known, trials.asked) < self.initial) | unknown
        if isinstance(even, Tracer):
            row: Array = jax.lax.cond(even, self._spread, lambda one: _choose(self, one, labels), trials)
            return later, row
        return later, self._spread(trials) if even else _choose(self, trials, labels)

    def _spread(self, trials: Trials) -> Array:
        """A point of the first design."""
        return _spread(self, trials)

    def belief(self, trials: Trials) -> tuple[Any, Units]:
        """The belief of the learner after the trials, for the next one; and the units of its values."""
        return _learn(self, trials)

    def expect(self, belief: Any, rows: Array) -> tuple[Array, Array]:
        """The means and standard deviations (M,) of the function at rows (M, D), in units of the learner."""
        return _expect(self, belief, rows)


@verb(static=(), kept=True)
def _expect(search: Search, belief: Any, rows: Array) -> tuple[Array, Array]:
    def one(row: Array) -> tuple[Array, Array]:
        distribution = search.learner.expect(belief, search.learner.inputs_of(row))
        return distribution.mean[0], distribution.sd[0]

    mean, sd = jax.vmap(one)(rows)
    return mean, sd


@verb(static=(), kept=True)
def _spread(search: Search, trials: Trials) -> Array:
    unit = even_points(trials.key, trials.asked, 1, len(search.space.variables))[0]
    return search.space.place(unit)


@verb(static=(), kept=True)
def _learn(search: Search, trials: Trials) -> tuple[Any, Units]:
    if search.fitted and isinstance(search.learner, GaussianProcess):
        return fit_process(
            search.learner,
            search.space,
            trials,
            search.sign,
            search.scaled,
            deterministic=search.deterministic,
        )
    zero, one = (jnp.asarray(number, trials.values.dtype) for number in (0.0, 1.0))
    units = trials.units() if search.scaled else Units(zero, one)
    key = jax.random.fold_in(trials.key, 0)

    def learn(belief: Any, item: tuple[Array, Array, Array]) -> tuple[Any, None]:
        number, row, value = item
        x = search.learner.inputs_of(row)
        learned, _ = search.learner.step(belief, x, units.into(value), key=key)
        return select(number < trials.count, learned, belief), None

    items = (trials.numbers, trials.rows, trials.values)
    belief, _ = jax.lax.scan(learn, search.prior, items)
    return search.learner.predict(belief), units


@verb(static=(), kept=True)
def _label(search: Search, labels: Trials) -> Any:
    """The belief about which points fail."""
    return fit_process(_labeller(search), search.space, labels, 1.0, False, centred=False)[0]


def _labeller(search: Search) -> GaussianProcess:
    return GaussianProcess(search.space.size)


def _choose(search: Search, trials: Trials, labels: Trials | None) -> Array:
    belief, _ = _learn(search, trials)
    return _propose(search, belief, trials, None if labels is None else _label(search, labels))


@verb(static=(), kept=True)
def _propose(search: Search, belief: Any, trials: Trials, labelled: Any) -> Array:
    """The point that promises most, under a belief."""
    first, second = jax.random.split(jax.random.fold_in(trials.key, trials.asked + 1))
    promise, good = _promise(search, belief, trials, first)

    def feasible(row: Array) -> Array:
        return promise(row) + feasible_log_prob(_labeller(search), labelled, row)

    return maximize(promise if labelled is None else feasible, search.space, good, second)


def _promise(search: Search, belief: Any, trials: Trials, key: Array) -> tuple[Promise, Array]:
    """The promise of points by the acquisition, and the rows near which to look."""
    learner = search.learner
    sign = search.sign
    kind = trials.values.dtype
    if search.acquisition == "ucb":
        return upper_bound(learner, belief, jnp.asarray(search.width, kind), sign), trials.best(BEST, sign)
    if search.acquisition == "thompson":
        return drawn(learner, belief, key, sign), trials.best(BEST, sign)
    means = replace(trials, values=_expect(search, belief, trials.rows)[0].astype(kind))
    good = means.best(BEST, sign)
    if search.acquisition == "kg" and isinstance(learner, GaussianProcess):
        return knowledge(learner, belief, means.best(COMPARED, sign), sign), good
    return improvement(learner, belief, jnp.max(means.scores(sign)), sign), good
