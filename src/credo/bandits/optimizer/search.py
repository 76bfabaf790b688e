"""The search for the best point of a space: which point to try next, given what was tried.

Of a function that is cheap to compute the best point is found by many starts, gradients and local search.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import jax
import jax.numpy as jnp
from jax.core import Tracer

from credo.bandits.optimizer.space import Space, even_points
from credo.bandits.optimizer.trials import Trials, Units
from credo.core.errors import CredoError, require_choice, require_integer, require_nonnegative
from credo.core.keys import as_key
from credo.core.records import record, replace, static_field
from credo.core.trees import select
from credo.core.types import Array, ArrayLike, Key
from credo.core.verbs import verb
from credo.learners import Learner
from credo.learners.base import require_learner

__all__ = ["GoalName", "RuleName", "Search", "ascend_in_box", "maximize"]

Climb: TypeAlias = tuple[Array, Array, Array, Array, Array]
"""A row, its last gradient, its step lengths, the best row so far, and its value."""

FASTER, SLOWER = 1.2, 0.5
FIRST, LONGEST, SHORTEST = 0.05, 0.5, 1e-7


def ascend_in_box(
    function: Callable[[Array], Array], starts: Array, box: Array, free: Array, steps: int
) -> tuple[Array, Array]:
    """Climb a function of a row (D,) from starts (S, D), by projected gradient steps whose lengths adapt.

    Each number of a row moves by a length of its own in the direction of the sign of its derivative. The
    length grows by 1.2 while the sign stays and halves when it turns, so the scale of the function does not
    matter (Rprop: Riedmiller & Braun 1993). Rows are projected onto -box <= row <= box, and only the numbers
    that are `free` (D,) move. The best row of each path (S, D) is kept, with its value (S,), which is not
    below that of its start.
    """
    slope = jax.value_and_grad(lambda row: jnp.reshape(function(row), ()))
    kind = starts.dtype

    def finite(value: Array) -> Array:
        return jnp.where(jnp.isfinite(value), value, -jnp.inf).astype(kind)

    def climb(start: Array) -> tuple[Array, Array]:
        def step(carry: Climb, _: None) -> tuple[Climb, None]:
            row, before, length, best, top = carry
            value, gradient = slope(row)
            value = finite(value)
            best, top = jnp.where(value > top, row, best), jnp.maximum(top, value)
            turn = jnp.sign(gradient) * jnp.sign(before)
            factor = jnp.where(turn > 0, FASTER, jnp.where(turn < 0, SLOWER, 1.0))
            length = jnp.clip(length * factor, SHORTEST, LONGEST).astype(kind)
            move = jnp.nan_to_num(jnp.where(free, jnp.sign(gradient) * length, 0.0))
            return (jnp.clip(row + move, -box, box), gradient.astype(kind), length, best, top), None

        lowest = jnp.full((), -jnp.inf, kind)
        first = (start, jnp.zeros_like(start), jnp.full_like(start, FIRST), start, lowest)
        (_, _, _, best, top), _ = jax.lax.scan(step, first, None, length=steps)
        return best, top

    return jax.vmap(climb)(starts)


MOST = 512
"""The largest space of which every point is looked at."""

EVEN, NEAR, NEAR_SD = 256, 64, 0.1
"""How many candidates are spread evenly, how many lie near good points, and how near."""

STARTS, STEPS, ROUNDS = 16, 40, 2
"""How many of the best candidates are improved, by how many gradient steps, in how many rounds."""


def maximize(function: Callable[[Array], Array], space: Space, good: Array, key: Array) -> Array:
    """The point (D,) of a space where a differentiable function is largest, as far as a search finds it.

    Candidates are spread evenly and around rows (M, D) that are known to be good, and the best are improved
    by `ascend_in_box`. Where there are whole numbers or choices, a second round follows: in the first, whole
    numbers move freely and are rounded; in both, each row then moves to the best of its neighbours, which
    differ in one whole number by 1 or in one choice. A space of at most 512 points is searched whole. Values
    that are not finite count as the worst. Cost: 320 + M values, and 640 gradients a round.
    """
    kind = good.dtype

    def score(rows: Array) -> Array:
        values = jax.vmap(lambda row: jnp.reshape(function(row), ()))(rows)
        return jnp.where(jnp.isfinite(values), values, -jnp.inf).astype(kind)

    every = space.points(MOST)
    if every is not None:
        rows = jnp.asarray(every, kind)
        return rows[jnp.argmax(score(rows))]
    box, ordered, smooth = jnp.asarray(space.box, kind), jnp.asarray(space.ordered), jnp.asarray(space.smooth)

    def improve(carry: tuple[Array, Array], free: Array) -> tuple[tuple[Array, Array], None]:
        rows, values = carry
        climbed, _ = ascend_in_box(function, rows, box, free, STEPS)
        climbed = jax.vmap(space.snap)(climbed)
        beside = jax.vmap(space.neighbours)(climbed)
        options = jnp.concatenate([climbed[:, None], beside], axis=1)
        scores = jax.vmap(score)(options)
        rows = jnp.concatenate([rows[:, None], options], axis=1)
        values = jnp.concatenate([values[:, None], scores], axis=1)
        places = jnp.argmax(values, axis=1)[:, None]
        chosen = jnp.take_along_axis(rows, places[:, :, None], axis=1)[:, 0]
        return (chosen, jnp.take_along_axis(values, places, axis=1)[:, 0]), None

    first, second = jax.random.split(key)
    even = jax.vmap(space.place)(even_points(first, 0, EVEN, len(space.variables))).astype(kind)
    moves = NEAR_SD * jax.random.normal(second, (NEAR, space.size), kind)
    near = good[jnp.arange(NEAR) % good.shape[0]] + jnp.where(ordered[None, :], moves, 0.0)
    rows = jnp.concatenate([even, jax.vmap(space.snap)(jnp.concatenate([near, good]))])
    values, places = jax.lax.top_k(score(rows), STARTS)
    mixed = not bool(space.smooth.all())
    free = jnp.stack([ordered, smooth][: ROUNDS if mixed else 1])
    (rows, values), _ = jax.lax.scan(improve, (rows[places], values), free)
    return rows[jnp.argmax(values)]


RuleName: TypeAlias = Literal["thompson", "ucb"]
"""How the next point is chosen."""

GoalName: TypeAlias = Literal["max", "min"]
"""What is looked for."""

BEST = 8
"""Near how many of the best trials the maximiser looks."""


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
        policy: "ucb" takes the point whose mean is best after `width` standard deviations were added;
            "thompson" draws a function from the belief and takes its best point.
        width: see above.
        initial: how many points are spread evenly before the learner is asked.
        scaled: whether values are standardised for the learner.

    Example:
        >>> import credo
        >>> from credo import bandits
        >>> space = bandits.Space.read([[-1.0, 3.0]])
        >>> net = credo.models.RandomFeatures.draw(0, inputs=1, features=50, length=0.5)
        >>> learner = credo.extended_kalman(credo.Model(net, credo.Normal(1e-3)))
        >>> search = bandits.Search(learner, learner.init(net.init()), space)
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
    policy: RuleName = static_field(default="thompson")
    width: ArrayLike = 2.0
    initial: int = static_field(default=3)
    scaled: bool = static_field(default=True)

    def __post_init__(self) -> None:
        if type(self.learner) is object or type(self.prior) is object:  # what JAX puts in place of a tree
            return
        require_learner("learner", self.learner)
        require_choice("goal", self.goal, ("max", "min"))
        require_choice("policy", self.policy, ("thompson", "ucb"))
        require_nonnegative("width", self.width)
        require_integer("initial", self.initial, 1)
        learner, x = self.learner, self.learner.inputs_of(self._row())
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
        """1 where large values are good, else -1."""
        return 1.0 if self.goal == "max" else -1.0

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

    def ask(self, trials: Trials) -> tuple[Trials, Array]:
        """The next point to try.

        Arguments:
            trials: the trials so far.

        Returns:
            The trials, with one more question counted; and the point, encoded (D,). Without a value between
            them, two questions under "ucb" have one answer; `Optimizer` knows of pending points.

        Cost: a step of the learner for each place in `trials`, then some thousand values of a function drawn
        from the belief ("thompson") or of what it expects ("ucb").
        """
        later = replace(trials, asked=trials.asked + 1)
        even = jnp.maximum(trials.count, trials.asked) < self.initial
        if isinstance(even, Tracer):
            row: Array = jax.lax.cond(even, self._spread, lambda one: _choose(self, one), trials)
            return later, row
        return later, self._spread(trials) if even else _choose(self, trials)

    def _spread(self, trials: Trials) -> Array:
        """A point of the first design."""
        return _spread(self, trials)

    def belief(self, trials: Trials) -> tuple[Any, Units]:
        """What the learner believes after the trials, for the next one; and the units of its values."""
        return _learn(self, trials)


@verb
def _spread(search: Search, trials: Trials) -> Array:
    unit = even_points(trials.key, trials.asked, 1, len(search.space.variables))[0]
    return search.space.place(unit)


@verb
def _learn(search: Search, trials: Trials) -> tuple[Any, Units]:
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


def _choose(search: Search, trials: Trials) -> Array:
    belief, _ = _learn(search, trials)
    return _propose(search, belief, trials.best(BEST, search.sign), trials.key, trials.asked)


@verb
def _propose(search: Search, belief: Any, best: Array, key: Array, asked: Array) -> Array:
    """The point that promises most, under a belief."""
    first, second = jax.random.split(jax.random.fold_in(key, asked + 1))
    learner, space, sign = search.learner, search.space, search.sign
    if search.policy == "thompson":
        function = learner.sample_function(belief, first)

        def promise(row: Array) -> Array:
            return sign * jnp.reshape(function(learner.inputs_of(row)), ())
    else:

        def promise(row: Array) -> Array:
            law = learner.expect(belief, learner.inputs_of(row))
            return sign * law.mean[0] + search.width * law.sd[0]

    return maximize(promise, space, best, second)
