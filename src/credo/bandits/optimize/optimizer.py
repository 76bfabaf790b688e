"""Bayesian optimisation by ask and tell, and a search in one call."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict, overload

import jax
import jax.numpy as jnp
import numpy as np

from credo.bandits.agent import ScaleName
from credo.bandits.optimize.search import AcquisitionName, GoalName, Search
from credo.bandits.optimize.space import AnyBounds, Candidate, Space
from credo.bandits.optimize.trials import Trials, Units
from credo.bandits.optimize.variables import Option, given
from credo.core.archive import refusing
from credo.core.errors import (
    CredoError,
    FormatError,
    require_choice,
    require_integer,
    require_nonnegative,
    shown,
)
from credo.core.forms import Seed, Size, require_form
from credo.core.keys import as_key
from credo.core.types import Array
from credo.learners import GaussianProcess, Learner
from credo.learners.base import require_learner
from credo.learners.gaussian_process import ProcessBelief
from credo.streams import checkpoint

__all__ = ["Optimizer", "minimize", "read_notes"]

NAME = "optimizer"

LARGEST_ASKED = 2**31 - 1
"""The largest number of questions that a file may count."""


@dataclass(frozen=True)
class Notes:
    """The settings and the history of an optimiser; the attributes are those of `Optimizer`."""

    bounds: AnyBounds
    goal: GoalName
    acquisition: AcquisitionName
    width: float | None
    initial: int
    scale: ScaleName | None
    seed: int
    asked: int
    points: list[object]
    values: list[float | None]
    pending: list[object]
    fitted: bool
    deterministic: bool
    given: dict[str, dict[str, list[Option]]]

    @property
    def options(self) -> dict[str, Any]:
        """The settings by which `Optimizer` is called again, beside the learner, its prior and the bounds."""
        names = ("goal", "acquisition", "width", "initial", "scale", "deterministic", "seed")
        return {name: getattr(self, name) for name in names}


class _SavedRange(TypedDict):
    """A range: low, high and words such as "log"."""

    range: list[float | str]


class _SavedChoices(TypedDict):
    """The options of a choice."""

    options: list[str | float | bool]


class _SavedNotes(TypedDict):
    """The form of the notes that `write_notes` gives, by which they are checked."""

    bounds: dict[str, _SavedRange | _SavedChoices] | list[tuple[float, float]]
    goal: GoalName
    acquisition: AcquisitionName
    width: float | None
    initial: Size
    scale: Literal["online"] | None
    seed: Seed
    asked: Annotated[int, LARGEST_ASKED]
    points: list[dict[str, str | float | bool] | list[float]]
    values: list[float | None]
    pending: list[dict[str, str | float | bool] | list[float]]
    fitted: bool
    deterministic: bool
    given: dict[str, dict[str, list[str | float | bool]]]


def write_notes(
    search: Search,
    seed: int,
    asked: int,
    points: Sequence[Candidate],
    values: Sequence[float | None],
    pending: Sequence[Candidate],
) -> dict[str, object]:
    """The notes as JSON data. Python writes every double so that it is read back unchanged."""
    return {
        NAME: {
            "bounds": search.space.to_json(),
            "goal": search.goal,
            "acquisition": search.acquisition,
            "width": None if search.acquisition != "ucb" else float(np.asarray(search.width)),
            "initial": search.initial,
            "scale": "online" if search.scaled else None,
            "seed": seed,
            "asked": asked,
            "points": list(map(_plain, points)),
            "values": list(values),
            "pending": list(map(_plain, pending)),
            "fitted": search.fitted,
            "deterministic": search.deterministic,
            "given": search.space.to_given(),
        }
    }


def _plain(point: Candidate) -> object:
    if isinstance(point, np.ndarray):
        return point.tolist()
    return point


def read_notes(meta: Mapping[str, Any], file: str) -> Notes:
    """The notes in a file; a `FormatError` says that there are none."""
    notes = meta.get(NAME)
    if isinstance(notes, dict):
        notes = {"fitted": False, "deterministic": False, "given": {}, **notes}
    if not isinstance(notes, dict) or set(notes) != set(Notes.__dataclass_fields__):
        raise FormatError(f"{file} holds a learner, but no optimizer.")
    with refusing(file, "optimizer"):
        require_form(notes, _SavedNotes, "optimizer")
        if len(notes["points"]) != len(notes["values"]):
            raise FormatError("optimizer.values must be one for each point.", field="values")
    bounds = notes["bounds"]
    if isinstance(bounds, dict):
        bounds = {
            name: one["options"] if "options" in one else tuple(one["range"]) for name, one in bounds.items()
        }
        for name, choice in notes["given"].items():
            with refusing(file, "optimizer"):
                bounds[name] = given(bounds[name], **choice)
    return Notes(**{**notes, "bounds": bounds})


ROOM = 64
"""The room for trials at first; it doubles when it is full, and each size is compiled once."""


class Told:
    """The trials of an optimiser, in order; the value of one that failed is None."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self.points: list[Candidate] = []
        self.rows: list[np.ndarray] = []
        self.values: list[float | None] = []

    def add(self, point: object, row: np.ndarray, value: float | None) -> None:
        """One more trial."""
        self.points.append(self._space.plain(point))
        self.rows.append(row)
        self.values.append(value)

    @property
    def good(self) -> list[tuple[Candidate, np.ndarray, float]]:
        """The trials that gave a value."""
        every = zip(self.points, self.rows, self.values, strict=True)
        return [(point, row, value) for point, row, value in every if value is not None]

    @property
    def failed(self) -> list[np.ndarray]:
        """The rows of the trials that failed."""
        return [row for row, value in zip(self.rows, self.values, strict=True) if value is None]

    def units(self, scaled: bool) -> tuple[float, float]:
        """The mean and standard deviation of the values, in double precision whatever their size."""
        values = np.asarray([value for _, _, value in self.good])
        if not scaled or not len(values):
            return 0.0, 1.0
        largest = float(np.max(np.abs(values))) or 1.0
        centre = float(np.mean(values / largest))
        spread = float(np.std(values / largest))
        return largest * centre, largest * spread if spread > 1e-15 * abs(centre) else 1.0

    def trials(
        self,
        key: Array,
        asked: int,
        scaled: bool,
        rows: Sequence[np.ndarray] = (),
        means: Sequence[float] | None = None,
    ) -> Trials:
        """The trials with values, in units near 1, and rows whose values are believed.

        Of those, `means` are the values; without them a search that is fitted believes its own.
        """
        centre, spread = self.units(scaled)
        good = self.good
        values = [value for _, _, value in good] + list(means if means is not None else [centre] * len(rows))
        points = [row for _, row, _ in good] + list(rows)
        believed = 0 if means is not None else len(rows)
        return self._table(key, asked, points, (np.asarray(values) - centre) / spread, believed)

    def labels(self, key: Array, asked: int) -> Trials:
        """All trials, with 1 for each that gave a value and -1 for each that failed."""
        values = np.asarray([-1.0 if value is None else 1.0 for value in self.values])
        return self._table(key, asked, self.rows, values, 0)

    def _table(
        self, key: Array, asked: int, rows: Sequence[np.ndarray], values: np.ndarray, believed: int
    ) -> Trials:
        room = ROOM
        while room < len(rows):
            room *= 2
        empty = Trials.start(key, room, self._space.size)
        kind = empty.values.dtype
        table = np.zeros(empty.rows.shape, kind)
        targets = np.zeros(room, kind)
        if len(rows):
            table[: len(rows)] = np.stack(rows)
            targets[: len(rows)] = values
        count, questions, free = (jnp.asarray(one, jnp.int32) for one in (len(rows), asked, believed))
        return Trials(jnp.asarray(table), jnp.asarray(targets), count, questions, empty.key, free)


def read_value(value: object) -> float:
    """A finite number; a `CredoError` says that it is none."""
    array = np.asarray(value) if not isinstance(value, str | bytes) else np.asarray(np.nan)
    number = float(array.reshape(())) if array.size == 1 and array.dtype.kind in "biuf" else np.nan
    if not np.isfinite(number):
        raise CredoError(f"value must be a finite number; got {shown(value)}.", field="value")
    return number


SAME = 1e-6
"""The largest distance of a point's numbers, which lie between -1 and 1, from those that were asked for."""


class Pending:
    """Points of a space that were asked for and not told yet, and their `rows`, in order."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self._points: list[Candidate] = []
        self.rows: list[np.ndarray] = []

    @property
    def points(self) -> list[Candidate]:
        """Copies of the points."""
        return [point.copy() for point in self._points]

    def add(self, point: object) -> None:
        """Wait for a point."""
        self.rows.append(self._space.encode(point))
        self._points.append(self._space.plain(point))

    def settle(self, row: np.ndarray) -> bool:
        """Wait no more for the oldest point with this row; whether there was one."""
        for place, other in enumerate(self.rows):
            if np.allclose(row, other, rtol=0.0, atol=SAME):
                del self.rows[place], self._points[place]
                return True
        return False


def default_learner(space: Space) -> tuple[GaussianProcess, ProcessBelief]:
    """A Gaussian process with a Matern kernel, whose numbers come from `fit_process`, and its belief.

    The belief has the kind of those that are fitted, and room for one row, since none is learned by it.
    """
    with jax.enable_x64(False):  # files of it can then be read whatever JAX is set to
        # of arrays, since a program with numbers of Python's is not kept
        learner = jax.tree.map(jnp.asarray, GaussianProcess(space.size, size=1))
        return learner, learner.init()


def first_belief(learner: Learner[Any]) -> Any:
    """The learner's own first belief, where it needs no parameters."""
    start: Any = learner.init
    try:
        return start()
    except (TypeError, ValueError, AttributeError) as error:
        raise CredoError(
            "prior is missing: this learner needs parameters, so pass prior=learner.init(params).",
            field="prior",
        ) from error


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

    def __init__(  # noqa: PLR0913 - settings, each by its name
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
        self._seed = seed
        self._asked = 0
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
            means = np.asarray(self._distribution([row for _, row, _ in self._told.good])[0])
        return self._told.good[int(np.argmax(self.search.sign * means))][0].copy()

    @property
    def history(self) -> list[tuple[Candidate, float | None]]:
        """All points that were told, with their values, in order; None for trials that failed."""
        told = self._told
        return [(point.copy(), value) for point, value in zip(told.points, told.values, strict=True)]

    def expect(self, points: Sequence[object]) -> tuple[np.ndarray, np.ndarray]:
        """The belief about the values of some points, without the noise.

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
            mean, sd, units = self._distribution(rows)
            value, width = units.moments(mean, sd)
            return centre + spread * np.asarray(value, float), spread * np.asarray(width, float)

    def _distribution(self, rows: Sequence[np.ndarray]) -> tuple[Array, Array, Units]:
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
            mean, _, units = self._distribution(rows)
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
        search = self.search
        told = self._told
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


def minimize(
    function: Callable[[Any], Any],
    bounds: AnyBounds,
    evaluations: int = 50,
    *,
    trials: Iterable[tuple[object, float | None]] = (),
    acquisition: AcquisitionName = "ei",
    deterministic: bool = False,
    seed: int = 0,
) -> Optimizer:
    """Search for the point where a function that is costly to try is smallest.

    Arguments:
        function: takes a point, a dict by names or an array (d,), and gives a number. A trial that gives None
            or a number that is not finite has failed: nothing is known there but that.
        bounds: the space, as for `Optimizer`.
        evaluations: how often the function is tried.
        trials: trials that were made before, as for `Optimizer.tell_all`: pairs of a point and its value.
        acquisition: how the next point is chosen, as for `Optimizer`.
        deterministic: whether the function has one value at a point, without noise.
        seed: the seed of all draws.

    Returns:
        The optimiser that was told all values: `best` is the best point with its value, `recommended` the
        point that is expected to be the best, `history` all trials; and it can be asked for more.

    Raises:
        CredoError: a bound or setting is not allowed, or the function gives what is no number.

    Cost: `evaluations` calls of the function, and as many questions, of some 10 ms each.

    Example:
        >>> from credo import bandits
        >>> search = bandits.minimize(lambda x: (x[0] - 0.3) ** 2, [[-1.0, 1.0]], evaluations=12)
        >>> point, value = search.best
        >>> bool(abs(point[0] - 0.3) < 0.01)
        True
    """
    require_integer("evaluations", evaluations, 1)
    search = Optimizer(
        None, bounds, goal="min", acquisition=acquisition, deterministic=deterministic, seed=seed
    )
    search.tell_all(trials)
    for _ in range(evaluations):
        point = search.ask()
        search.tell(point, _number(function(point)))
    return search


def _number(value: object) -> float | None:
    """The value that a function gave: a finite number, or None if its trial failed."""
    if value is None:
        return None
    array = np.asarray(value)
    if array.size != 1 or array.dtype.kind not in "biuf":
        raise CredoError(f"function must give a number or None; it gave {value!r}.", field="function")
    number = float(array.reshape(()))
    if np.isfinite(number):
        return number
    return None
