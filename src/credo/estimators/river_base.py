"""What the classifier and the regressor for River share: settings, rows, growth, pickles and files."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeAlias

import numpy as np

from credo.core.archive import refusing
from credo.core.errors import CredoError, require_nonnegative
from credo.core.turns import Turns, in_turn
from credo.estimators.river_storage import SavedEstimator, read, write
from credo.live.feature_slots import Arrival, FeatureSlots
from credo.live.feature_values import FeatureName, absent
from credo.live.live_learner import Extent, LiveLearner, require_room_for
from credo.recipes.networks import Origin
from credo.recipes.resolution import input_clip, resolve
from credo.recipes.settings import Options, TaskName
from credo.tables.readers import unique_names

if TYPE_CHECKING:
    from credo.recipes.architecture import Network
    from credo.recipes.drift import Drift
    from credo.recipes.posterior import Posterior

__all__ = ["Cells", "Frame", "RiverEstimator"]

Row: TypeAlias = Mapping[Any, object]
"""The features of one row, whose names are of any kind."""

OPTIONS = tuple(Options.__dataclass_fields__)
"""The parameters of an estimator that are options of `credo learn`."""

WIDEST = 30
"""The most characters of a name or value that are shown."""


class Cells(Protocol):
    """A column of a data frame."""

    def to_numpy(self) -> np.ndarray:
        """Its values."""
        ...


class Frame(Protocol):
    """A data frame: pandas, Polars, or another one whose columns know `to_numpy`."""

    @property
    def columns(self) -> Any:
        """The names of its columns."""
        ...

    def __getitem__(self, name: Any, /) -> Cells: ...

    def __len__(self) -> int: ...


class RiverEstimator:
    """The base of the estimators for River, which are classes of River's own beside it."""

    model: Network | str | None
    posterior: Posterior | str | None
    drift: Drift | str | None
    seed: int | None
    scale: bool

    _task: TaskName

    def _begin(self) -> None:
        """The state before any row."""
        self._turns = Turns()
        self._slots = FeatureSlots(centred=bool(self.scale))
        self._live: LiveLearner | None = None

    def _classes(self) -> int:
        """The number of classes that there must be room for; 0 for a regression."""
        return 0

    def _extent(self, slots: FeatureSlots, classes: int) -> Extent:
        options = Options(**{name: getattr(self, name, None) for name in OPTIONS})
        settings = resolve(options, self._task, (slots.room,), min(classes, 2))
        inputs = max(1, len(slots.slots))
        return Extent(settings, Origin(inputs, inputs), bool(self.scale), input_clip(settings))

    def _made_for(
        self, slots: FeatureSlots, arrivals: list[Arrival], classes: int, coming: int = 0
    ) -> tuple[FeatureSlots, LiveLearner]:
        """The slots with what is new, and a learner that has room for them, for the classes with the first
        row, and for those `coming` with the last; a CredoError, after which nothing is changed.
        """
        after = slots.including(arrivals)
        live = self._live
        if live is None:
            first = [arrival for arrival in arrivals if arrival.row == 0]
            extent = self._extent(slots.including(first), classes)
            require_room_for(extent, after.room, max(classes, coming))
            live = LiveLearner(extent, after.room, classes, after.scaled)
        elif after is not slots or max(classes, coming) != live.classes:
            require_room_for(live.extent, after.room, max(classes, coming))
            live.grow(after.room, classes, after.scaled)
        return after, live

    def _ready(self, x: Row, classes: int) -> tuple[FeatureSlots, LiveLearner]:
        """Slots and learner for a row that is to be learned."""
        slots, live = self._slots, self._live
        if live is not None and slots.plain and slots.knows(x) and classes == live.classes:
            return slots, live
        slots.knows(x)
        return self._made_for(slots, slots.arrivals(x), classes)

    def _leave_out(self, x: Row) -> None:
        """Check a row of weight 0, which changes nothing."""
        self._slots.knows(x)
        self._slots.arrivals(x)

    @property
    def n_seen(self) -> int:
        """How many rows were learned from."""
        return 0 if self._live is None else self._live.rows

    @property
    def feature_names(self) -> tuple[FeatureName, ...]:
        """The features that were met, in the order of their slots."""
        return tuple(self._slots.kinds)

    @in_turn
    def debug_one(self, x: Row, **options: Any) -> str:
        """What the estimator makes of a row, as a text: its forecast, its inputs, and what the drift reports.

        Arguments:
            x: the features of a row.
            options: River's own, which change nothing.
        """
        self._slots.knows(x)
        return report(self._slots, self._live, x, self._words(x))

    def _words(self, x: Row) -> str:
        """The forecast of a row in words."""
        raise NotImplementedError

    @in_turn
    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the estimator to a file, completely or not at all.

        Arguments:
            path: the file; by custom it ends in `.credo`.

        Returns:
            The path.

        Raises:
            DataError: the file cannot be written.
            CredoError: nothing was learned yet, or a name is neither a text nor a number.
        """
        if self._live is None:
            raise CredoError("an estimator can be saved once it has learned a row.")
        state = SavedEstimator(self._saved_parameters(), self._slots, self._live, self._extras())
        return write(path, state)

    def _saved_parameters(self) -> dict[str, object]:
        names = [name for name in (*OPTIONS, "scale") if hasattr(self, name)]
        values = {name: getattr(self, name) for name in names}
        plain = {
            name: value if value is None or isinstance(value, bool | int | float) else str(value)
            for name, value in values.items()
        }
        return {"kind": type(self).__name__, **plain}

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read an estimator back. It continues bit by bit as if it had never stopped.

        Arguments:
            path: a file that `save` wrote.

        Raises:
            DataError: there is no such file.
            FormatError: it is damaged, of another version, or does not hold an estimator of this class.
        """
        saved = read(path, cls.__name__)
        with refusing(path, "estimator"):
            estimator = cls(**saved.parameters)
            estimator._slots, estimator._live = saved.slots, saved.live
            estimator._take(saved.extras)
        return estimator

    def _extras(self) -> dict[str, Any]:
        """What an estimator keeps beside its learner, as JSON data."""
        raise NotImplementedError

    def _take(self, extras: Mapping[str, Any]) -> None:
        """Restore what `_extras` gave."""
        raise NotImplementedError

    @property
    def _raw_memory_usage(self) -> int:
        """The bytes of the belief and of the names; programs are shared by all estimators of a kind."""
        size = 0 if self._live is None else self._live.nbytes
        return size + sum(100 + len(str(slot)) for slot in self._slots.slots)


def weight_of(w: float) -> float:
    """The weight of a row; a CredoError if it is below 0, infinite, or no number."""
    if type(w) is float and 0.0 <= w < math.inf:
        return w
    try:
        weight = float(w)
    except (TypeError, ValueError):
        raise CredoError(f"w must be a number; got {w!r}.", field="w") from None
    require_nonnegative("w", weight)
    return weight


def observations(y: Any, count: int) -> np.ndarray:
    """The targets or labels of several rows (count,); a CredoError if there are more or fewer of them."""
    values = np.asarray(y, None if hasattr(y, "dtype") else object)
    if values.shape != (count,):
        raise CredoError(
            f"y must hold one value for each of {count} rows; got shape {values.shape}.", field="y"
        )
    return values


def columns_of(frame: Frame) -> dict[FeatureName, np.ndarray]:
    """The columns of a data frame as arrays; a CredoError if it is none."""
    try:
        columns = {name: np.asarray(frame[name].to_numpy()) for name in frame.columns}
    except (AttributeError, TypeError):
        raise CredoError(f"X must be a data frame; got {type(frame).__name__}.", field="X") from None
    if len(columns) < len(frame.columns):
        unique_names(list(frame.columns), "X")  # which says what two columns have one name
    for name, cells in columns.items():
        if cells.dtype.kind in "mM":  # as Python's own times; of nanoseconds, it has none
            columns[name] = cells.astype(f"{cells.dtype.kind}8[us]").astype(object)
    return columns


def like_frame(frame: Any, values: Any, *, name: str | None = None) -> Any:
    """Answers for the rows of a frame, of its kind (pandas with its index): a series; a frame of a dict."""
    import narwhals as nw

    if hasattr(frame, "index"):
        import pandas as pd

        if isinstance(values, dict):
            return pd.DataFrame(values, index=frame.index)
        return pd.Series(values, index=frame.index, name=name)
    backend = nw.from_native(frame, eager_only=True).implementation
    if isinstance(values, dict):
        return nw.from_dict({str(key): column for key, column in values.items()}, backend=backend).to_native()
    return nw.new_series(name or "", values, backend=backend).to_native()


def report(slots: FeatureSlots, live: LiveLearner | None, x: Mapping[Any, object], forecast: str) -> str:
    """What the estimator makes of a row, below its forecast in words; no `live` before the first row."""
    lines = [f"Forecast: {forecast}"]
    if live is None:
        return "\n".join([*lines, "Nothing was learned yet."])
    refused = f", {live.refused:,} of them refused" if live.refused else ""
    lines.append(f"Learned: {live.rows:,} rows{refused}; {len(slots.slots)} of {live.inputs} inputs in use")
    lines += changes(live)
    row = slots.row(x)
    seen = live.inputs_of(row)
    table = [("feature", "value", "input")]
    for place, slot in enumerate(slots.slots):
        if slot.kind in ("text", "words", "gap") and seen[place] == 0.0:
            continue
        value = x.get(slot.name)
        shown = "missing" if absent(value) else _short(value)
        table.append((_short(str(slot)), "" if slot.kind == "gap" else shown, f"{seen[place]:+.3f}"))
    unknown = [(_short(str(name)), _short(x[name]), "not met") for name in x if name not in slots.kinds]
    table += unknown
    widths = [max(len(cells[column]) for cells in table) for column in range(3)]
    lines.append("")
    lines += [
        f"{name:<{widths[0]}}  {value:>{widths[1]}}  {seen_as:>{widths[2]}}" for name, value, seen_as in table
    ]
    return "\n".join(lines)


def changes(live: LiveLearner) -> list[str]:
    """What the drift reported, one line; none where it reports nothing."""
    if live.change is None:
        return []
    alarms = f"{live.alarms} alarm{'s' * (live.alarms != 1)}"
    rows = ", ".join(f"{row:,}" for row in live.latest)
    where = f" (at row {rows})" if live.latest else ""
    return [f"Changes: {alarms}{where}; P(the latest row began a segment) {live.change:.3f}"]


def _short(value: object) -> str:
    if isinstance(value, float | np.floating):
        return f"{value:.6g}"
    text = str(value)
    return text if len(text) <= WIDEST else f"{text[: WIDEST - 3]}..."
