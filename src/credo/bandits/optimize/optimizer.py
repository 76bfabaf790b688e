"""Bayesian optimisation by ask and tell."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, overload

import jax
import jax.numpy as jnp
import numpy as np

from credo.bandits.agent import ScaleName
from credo.bandits.optimize.default_learner import default_learner, first_belief
from credo.bandits.optimize.pending import Pending
from credo.bandits.optimize.search import AcquisitionName, GoalName, Search
from credo.bandits.optimize.space import AnyBounds, Candidate, Space
from credo.bandits.optimize.storing import read_notes, write_notes
from credo.bandits.optimize.told import Told, read_value
from credo.bandits.optimize.trials import Trials
from credo.bandits.optimize.units import Units
from credo.core.errors import CredoError, require_choice, require_integer, require_nonnegative
from credo.core.keys import as_key
from credo.core.types import Array
from credo.learners import Learner
from credo.learners.base import require_learner
from credo.streams import checkpoint

__all__ = ["Optimizer"]


class Optimizer:
    """Find the best point of a function that is costly to try: ask for a point, try it, tell its value.

    Values may be noisy. They are standardised by the mean and the standard deviation of all that were told,
    and the learner learns all of them again at each question, so that its belief is the exact one in today's
    units. Without a learner, a `credo.GaussianProcess` is fitted at each question, in double precision: its
    length scales, its noise, and how much values that are bad by far are bent together (`Units`).

    Points that were asked for and not told yet are pending. A question is answered as if each of them had
    come out as it is expected to, by the values that were told ("kriging believer": Ginsbourger, Le Riche &
    Carraro, 2010), so that trials may run side by side. This is a heuristic: it lowers the uncertainty where
    trials run, and leaves expectations as they are, exactly for a Gaussian belief without a scale and for a
    process that is fitted.

    If trials failed, what a point promises is multiplied by the probability that its trial succeeds
    (Schonlau, Welch & Jones 1998), by a second process that learns which points fail; and they count as
    pending, so that nothing more is expected to be learned there.

    Arguments:
        learner: any learner or wrapper of one number; its inputs are rows (D,) between -1 and 1, in the order
            of the bounds, where a choice has one number for each option. None takes the fitted process.
        bounds: an array (d, 2) of lows and highs, whose points are arrays (d,); or a dict, whose points are
            dicts: (low, high), (low, high, "log"), (low, high, "whole"), (low, high, "log", "whole"), a list
            of options, or one of these that is `given` an option of another.
        prior: the belief of the learner before any trial; None takes `learner.init()`.
        goal: "max" or "min".
        acquisition: "ei" asks for the point of the largest expected improvement over the best expected value
            of a trial (Jones, Schonlau & Welch 1998); "kg" for that of the largest knowledge gradient
            (Frazier, Powell & Dayanik 2009), which needs a `credo.GaussianProcess`; "ucb" for the point whose
            mean is best after `width` standard deviations were added to it; "thompson" draws a function from
            the belief, and asks for its best point.
        width: of "ucb" alone; None for 2.
        initial: how many points are spread evenly before the learner is asked; None for two more than there
            are variables.
        scale: "online" standardises values, and lets the fitted process bend them; None leaves them as they
            are, as for outcomes of 0 and 1.
        deterministic: whether a point has the same value whenever it is tried, so that the fitted process
            takes every dent for one of the function, and none for noise. Not for a learner of your own.
        seed: the seed of all draws.

    Raises:
        CredoError: a value is not allowed; the sentence names it.

    Cost of a question: the fit of a process, or one step of the learner for each value told so far, where
    points are pending as many again and one for each of them; and a search over some hundred points.
    Approximate: the maximiser may miss a narrow peak, and the acquisition is a heuristic.

    Example:
        >>> import math
        >>> from credo import bandits
        >>> best = bandits.Optimizer(None, bounds={"rate": (1e-4, 1.0, "log")}, goal="min", seed=0)
        >>> for _ in range(8):
        ...     point = best.ask()
        ...     best.tell(point, (math.log10(point["rate"]) + 2.0) ** 2)
        >>> point, value = best.best
        >>> 0.0098 < point["rate"] < 0.0102, value < 0.001
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
        acquisition: AcquisitionName = "ei",
        width: float | None = None,
        initial: int | None = None,
        scale: ScaleName | None = "online",
        deterministic: bool = False,
        seed: int = 0,
    ) -> None:
        require_integer("seed", seed, 0, 2**32 - 1)
        if width is not None and acquisition != "ucb":
            raise CredoError(
                f'width is of the acquisition "ucb" alone; got {width!r} with "{acquisition}".', field="width"
            )
        require_nonnegative("width", 2.0 if width is None else width)
        if scale is not None:
            require_choice("scale", scale, ("online",))
        space = Space.read(bounds)
        fitted = learner is None
        if learner is None:
            if prior is not None:
                raise CredoError("prior must come with the learner that it belongs to.", field="prior")
            learner, prior = default_learner(space)
        require_learner("learner", learner)
        self.search = Search(
            learner,
            first_belief(learner) if prior is None else prior,
            space,
            goal,
            acquisition,
            jnp.asarray(2.0 if width is None else width, jnp.float32),
            len(space.variables) + 2 if initial is None else initial,
            scale == "online",
            fitted,
            deterministic,
        )
        self._seed, self._asked = seed, 0
        self._told = Told(space)
        self._pending = Pending(space)

    @overload
    def ask(self, batch: None = None) -> Candidate: ...

    @overload
    def ask(self, batch: int) -> list[Candidate]: ...

    def ask(self, batch: int | None = None) -> Candidate | list[Candidate]:
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

    def _ask(self) -> Candidate:
        with self._precision():
            labels = self._told.labels(as_key(self._seed), self._asked) if self._told.failed else None
            _, row = self.search.ask(self._trials([*self._pending.rows, *self._told.failed]), labels)
            point = self.search.space.decode(np.asarray(row))
        self._asked += 1
        self._pending.add(point)
        return point

    @property
    def pending(self) -> list[Candidate]:
        """The points that were asked for and not told yet, in order."""
        return self._pending.points

    def wait_for(self, point: object) -> None:
        """Count a point as pending that was not asked for here, such as one that another process tries.

        Arguments:
            point: the point.

        Raises:
            CredoError: the point is not one of the space.
        """
        self._pending.add(point)

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

    def tell(self, point: object, value: float | None) -> None:
        """Learn the value of a point, which need not have been asked for.

        Arguments:
            point: the point.
            value: its value, a finite number; or None if the trial failed and has no value.

        Raises:
            CredoError: the point has an unknown name, lacks one or is outside the bounds; or the value is not
                finite. Nothing has changed then.
        """
        row = self.search.space.encode(point)
        number = None if value is None else read_value(value)
        self._pending.settle(row)
        self._told.add(point, row, number)

    def tell_all(self, trials: Iterable[tuple[object, float | None]]) -> None:
        """Learn trials that were made before, such as those of an earlier search.

        Arguments:
            trials: pairs of a point and its value, as `history` has them; None for a trial that failed.

        Raises:
            CredoError: a point or a value is not allowed. Nothing has changed then.
        """
        pairs = [(point, None if value is None else read_value(value)) for point, value in trials]
        for point, _ in pairs:
            self.search.space.encode(point)
        for point, value in pairs:
            self.tell(point, value)

    @property
    def best(self) -> tuple[Candidate, float]:
        """The point with the best value that was told, and that value.

        Raises:
            CredoError: nothing was told yet.
        """
        good = self._told.good
        if not good:
            raise CredoError("there is no best point before the first value: tell one first.")
        place = int(np.argmax([self.search.sign * value for _, _, value in good]))
        return good[place][0].copy(), good[place][2]

    @property
    def recommended(self) -> Candidate:
        """The point, of those that were told, whose value is expected to be best without its noise; the best
        one if the function is deterministic.

        Raises:
            CredoError: nothing was told yet.
        """
        if not self._told.good:
            raise CredoError("no point can be recommended before the first value: tell one first.")
        if self.search.deterministic:
            return self.best[0]
        with self._precision():
            means = np.asarray(self._law([row for _, row, _ in self._told.good])[0])
        return self._told.good[int(np.argmax(self.search.sign * means))][0].copy()

    @property
    def history(self) -> list[tuple[Candidate, float | None]]:
        """All points that were told, with their values, in order; None for trials that failed."""
        told = self._told
        return [(point.copy(), value) for point, value in zip(told.points, told.values, strict=True)]

    def expect(self, points: Sequence[object]) -> tuple[np.ndarray, np.ndarray]:
        """What is believed about the values of some points, without the noise.

        Arguments:
            points: the points (M of them).

        Returns:
            Their means (M,) and standard deviations (M,), in units of the function.

        Raises:
            CredoError: a point is outside the bounds.
        """
        rows = [self.search.space.encode(point) for point in points]
        centre, spread = self._told.units(self.search.scaled)
        with self._precision():
            mean, sd, units = self._law(rows)
            value, width = units.moments(mean, sd)
            return centre + spread * np.asarray(value, float), spread * np.asarray(width, float)

    def _law(self, rows: Sequence[np.ndarray]) -> tuple[Array, Array, Units]:
        """Means and standard deviations of the function at some rows, in units of the learner, and those."""
        belief, units = self.search.belief(self._trials())
        mean, sd = self.search.expect(belief, jnp.asarray(np.stack(rows), jnp.result_type(float)))
        return mean, sd, units

    def _precision(self) -> contextlib.AbstractContextManager[object]:
        """Double precision for a process that is fitted; else what JAX is set to."""
        return jax.enable_x64(True) if self.search.fitted else contextlib.nullcontext()

    def _trials(self, rows: Sequence[np.ndarray] = (), means: Sequence[float] | None = None) -> Trials:
        """The trials, with values in units near 1, and after them those of which a value is expected."""
        if len(rows) and means is None and not self.search.fitted:
            mean, _, units = self._law(rows)
            centre, spread = self._told.units(self.search.scaled)
            means = (centre + spread * np.asarray(units.back(mean), np.float64)).tolist()
        return self._told.trials(as_key(self._seed), self._asked, self.search.scaled, rows, means)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write everything to one file. The next question is then bit by bit the same as without a stop.

        Arguments:
            path: the file, whose name usually ends in `.credo`.

        Returns:
            The path.

        Raises:
            DataError: the file cannot be written.
        """
        search, told = self.search, self._told
        notes = write_notes(search, self._seed, self._asked, told.points, told.values, self.pending)
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
            None if notes.fitted else saved.learner,
            notes.bounds,
            prior=None if notes.fitted else saved.belief,
            **notes.options,
        )
        best.tell_all(zip(notes.points, notes.values, strict=True))
        for point in notes.pending:
            best.wait_for(point)
        best._asked = notes.asked
        return best

    def __repr__(self) -> str:
        return f"Optimizer({len(self._told.values)} values told, {self._asked} points asked for)"
