"""Bayesian optimisation by ask and tell."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, overload

import jax
import jax.numpy as jnp
import numpy as np

from credo.bandits.agent import ScaleName
from credo.bandits.optimizer.default_learner import default_learner
from credo.bandits.optimizer.pending import Pending
from credo.bandits.optimizer.search import GoalName, RuleName, Search
from credo.bandits.optimizer.space import AnyBounds, Point, Space
from credo.bandits.optimizer.storing import read_notes, write_notes
from credo.bandits.optimizer.trials import Trials
from credo.core.errors import CredoError, require_choice, require_integer
from credo.core.types import Array
from credo.learners import Learner
from credo.learners.base import require_learner
from credo.streams import checkpoint

__all__ = ["Optimizer"]

ROOM = 32
"""The room for trials at first; it doubles when it is full, and each size is compiled once."""


class Optimizer:
    """Find the best point of a function that is costly to try: ask for a point, try it, tell its value.

    Values may be noisy. They are standardised by the mean and the standard deviation of all that were told,
    and the learner learns all of them again at each question, so that its belief is the exact one in today's
    units.

    Points that were asked for and not told yet are pending. A question is answered as if each of them had
    come out as it is expected to, by the values that were told ("kriging believer": Ginsbourger, Le Riche &
    Carraro, 2010), so that trials may run side by side. This is a heuristic: it lowers the uncertainty where
    trials run, and leaves expectations as they are, exactly for a Gaussian belief without a scale.

    Arguments:
        learner: any learner or wrapper of one number; its inputs are rows (D,) between -1 and 1, in the order
            of the bounds, where a choice has one number for each option. None takes random features whose
            length scale and noise are averaged over, which need no settings.
        bounds: an array (d, 2) of lows and highs, whose points are arrays (d,); or a dict, whose points are
            dicts: (low, high), (low, high, "log"), (low, high, "whole"), (low, high, "log", "whole"), or a
            list of options.
        prior: the belief of the learner before any trial; None takes `learner.init()`.
        goal: "max" or "min".
        policy: "ucb" asks for the point whose mean is best after `width` standard deviations were added to
            it; "thompson" draws a function from the belief, and asks for its best point.
        width: of "ucb" alone; None for 2.
        initial: how many points are spread evenly before the learner is asked; None for two more than there
            are variables.
        scale: "online" standardises values; None leaves them as they are, as for outcomes of 0 and 1.
        seed: the seed of all draws.

    Raises:
        CredoError: a value is not allowed; the sentence names it.

    Cost of a question: one step of the learner for each value told so far, where points are pending as many
    again and one for each of them, and a search over some thousand points. Approximate: the maximiser may
    miss a narrow peak, and the policy is a heuristic.

    Example:
        >>> import credo
        >>> from credo import bandits
        >>> best = bandits.Optimizer(None, bounds={"rate": (1e-4, 1.0, "log")}, goal="min", seed=0)
        >>> for _ in range(8):
        ...     point = best.ask()
        ...     best.tell(point, (math.log10(point["rate"]) + 2.0) ** 2)
        >>> point, value = best.best
        >>> 0.005 < point["rate"] < 0.02, value < 0.1
        (True, True)
    """

    search: Search
    """The search as pure functions, for scans and vmaps."""

    def __init__(
        self,
        learner: Learner[Any] | None,
        bounds: AnyBounds,
        *,
        prior: Any = None,
        goal: GoalName = "max",
        policy: RuleName = "thompson",
        width: float | None = None,
        initial: int | None = None,
        scale: ScaleName | None = "online",
        seed: int = 0,
    ) -> None:
        require_integer("seed", seed, 0, 2**32 - 1)
        if width is not None and policy == "thompson":
            raise CredoError(
                f'width is of the policy "ucb" alone; got {width!r} with "thompson".', field="width"
            )
        if scale is not None:
            require_choice("scale", scale, ("online",))
        space = Space.read(bounds)
        if learner is None:
            if prior is not None:
                raise CredoError("prior must come with the learner that it belongs to.", field="prior")
            learner, prior = default_learner(space, seed)
        require_learner("learner", learner)
        self.search = Search(
            learner,
            _start(learner) if prior is None else prior,
            space,
            goal,
            policy,
            2.0 if width is None else width,
            len(space.variables) + 2 if initial is None else initial,
            scale == "online",
        )
        self._seed, self._asked = seed, 0
        self._points: list[Point] = []
        self._rows: list[np.ndarray] = []
        self._values: list[float] = []
        self._pending = Pending(space)

    @overload
    def ask(self, batch: None = None) -> Point: ...

    @overload
    def ask(self, batch: int) -> list[Point]: ...

    def ask(self, batch: int | None = None) -> Point | list[Point]:
        """The next point to try.

        Arguments:
            batch: how many points to try side by side; None for one. They are those of as many questions.

        Returns:
            A point, or a list of them, which is pending until its value is told, or it is dropped.

        Raises:
            CredoError: `batch` is below 1.
        """
        if batch is None:
            return self._ask()
        require_integer("batch", batch, 1)
        return [self._ask() for _ in range(batch)]

    def _ask(self) -> Point:
        rows = self._pending.rows
        means = self._expect(rows)[0].tolist() if rows else []
        _, row = self.search.ask(self._trials(rows, means))
        self._asked += 1
        point = self.search.space.decode(np.asarray(row))
        self._pending.add(point)
        return point

    @property
    def pending(self) -> list[Point]:
        """The points that were asked for and not told yet, in order."""
        return self._pending.points

    def drop(self, point: object) -> None:
        """Wait for a point no more, since it will not be tried.

        Arguments:
            point: a pending point.

        Raises:
            CredoError: it is not pending.
        """
        if not self._pending.settle(self.search.space.encode(point)):
            raise CredoError(
                f"point must be one of the {len(self._pending.rows)} that are pending; got {point!r}.",
                field="point",
            )

    def tell(self, point: object, value: float) -> None:
        """Learn the value of a point, which need not have been asked for.

        Arguments:
            point: the point.
            value: its value, a finite number. For a trial that failed, tell a value as bad as the worst.

        Raises:
            CredoError: the point has an unknown name, lacks one or is outside the bounds; or the value is not
                finite. Nothing has changed then.
        """
        row = self.search.space.encode(point)
        number = _number(value)
        self._pending.settle(row)
        self._points.append(self.search.space.plain(point))
        self._rows.append(row)
        self._values.append(number)

    @property
    def best(self) -> tuple[Point, float]:
        """The best point that was told, and its value.

        Raises:
            CredoError: nothing was told yet.
        """
        if not self._values:
            raise CredoError("no best point is known, because no value was told yet.")
        place = int(np.argmax(self.search.sign * np.asarray(self._values)))
        return self.history[place]

    @property
    def history(self) -> list[tuple[Point, float]]:
        """All points that were told, with their values, in order."""
        return [(point.copy(), value) for point, value in zip(self._points, self._values, strict=True)]

    def expect(self, points: Sequence[object]) -> tuple[np.ndarray, np.ndarray]:
        """What is believed about the values of some points, without the noise.

        Arguments:
            points: the points (M of them).

        Returns:
            Their means (M,) and standard deviations (M,), in units of the function.

        Raises:
            CredoError: a point is outside the bounds.
        """
        return self._expect([self.search.space.encode(point) for point in points])

    def _expect(self, rows: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        belief, units = self.search.belief(self._trials())
        mean, sd = _expect(self.search, belief, jnp.asarray(np.stack(rows), jnp.result_type(float)))
        centre, spread = self._units()
        return (
            centre + spread * np.asarray(units.back(mean), np.float64),
            spread * np.asarray(units.sd * sd, np.float64),
        )

    def _units(self) -> tuple[float, float]:
        """The mean and standard deviation of the values, in double precision whatever their size."""
        if not self.search.scaled or not self._values:
            return 0.0, 1.0
        values = np.asarray(self._values)
        largest = float(np.max(np.abs(values))) or 1.0
        centre, spread = float(np.mean(values / largest)), float(np.std(values / largest))
        return largest * centre, largest * spread if spread > 1e-15 * abs(centre) else 1.0

    def _trials(self, rows: Sequence[np.ndarray] = (), means: Sequence[float] = ()) -> Trials:
        """The trials, with values in units near 1, and after them those of which a value is expected."""
        centre, spread = self._units()
        values, points = [*self._values, *means], [*self._rows, *rows]
        room = ROOM
        while room < len(points):
            room *= 2
        trials = self.search.start(self._seed, room)
        kind = trials.values.dtype
        table, targets = np.zeros(trials.rows.shape, kind), np.zeros(room, kind)
        for i, (row, value) in enumerate(zip(points, values, strict=True)):
            table[i], targets[i] = row, (value - centre) / spread
        count, asked = (jnp.asarray(number, jnp.int32) for number in (len(points), self._asked))
        return Trials(jnp.asarray(table), jnp.asarray(targets), count, asked, trials.key)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write everything to one file. The next question is then bit by bit the same as without a stop.

        Arguments:
            path: the file, whose name usually ends in `.credo`.

        Returns:
            The path.

        Raises:
            DataError: the file cannot be written.
        """
        search = self.search
        notes = write_notes(search, self._seed, self._asked, self._points, self._values, self.pending)
        return checkpoint.save(path, search.learner, search.prior, meta=notes)

    @staticmethod
    def load(path: str | os.PathLike[str], learner: Learner[Any] | None = None) -> Optimizer:
        """Read an optimiser that was saved.

        Arguments:
            path: the file.
            learner: a learner of the same structure, which lends its functions, as in `credo.load`.

        Raises:
            DataError: there is no such file.
            FormatError: it is damaged, or no optimiser was saved in it.
        """
        saved = checkpoint.read(path, learner)
        notes = read_notes(saved.meta, str(path))
        best = Optimizer(
            saved.learner,
            notes.bounds,
            prior=saved.belief,
            goal=notes.goal,
            policy=notes.policy,
            width=notes.width,
            initial=notes.initial,
            scale=notes.scale,
            seed=notes.seed,
        )
        for point, value in zip(notes.points, notes.values, strict=True):
            best.tell(point, value)
        for point in notes.pending:
            best._pending.add(point)
        best._asked = notes.asked
        return best

    def __repr__(self) -> str:
        return f"Optimizer({len(self._values)} values told, {self._asked} points asked for)"


def _number(value: object) -> float:
    """A told value as a number."""
    try:
        number = math.nan if isinstance(value, str | bytes) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise CredoError(
            f"value must be a finite number; got {value!r}. For a trial that failed, tell a value as bad as "
            "the worst.",
            field="value",
        )
    return number


def _start(learner: Learner[Any]) -> Any:
    """The learner's own first belief, where it needs no parameters."""
    start: Any = learner.init
    try:
        return start()
    except (TypeError, ValueError, AttributeError) as error:
        raise CredoError(
            "prior is missing: this learner needs parameters, so pass prior=learner.init(params).",
            field="prior",
        ) from error


@jax.jit
def _expect(search: Search, belief: Any, rows: Array) -> tuple[Array, Array]:
    def one(row: Array) -> tuple[Array, Array]:
        law = search.learner.expect(belief, search.learner.inputs_of(row))
        return law.mean[0], law.sd[0]

    mean, sd = jax.vmap(one)(rows)
    return mean, sd
