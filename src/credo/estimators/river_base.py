"""Parts that the classifier and the regressor for River share: settings, rows, growth, pickles and files."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeAlias

import numpy as np

from credo.core.archive import refusing
from credo.core.errors import CredoError, require_nonnegative
from credo.core.locked_calls import Turns, in_turn
from credo.live.feature_slots import Arrival, FeatureSlots
from credo.live.feature_values import FeatureName, absent
from credo.live.live_learner import Extent, LiveLearner, require_room_for
from credo.recipes.networks import Origin
from credo.recipes.options import Options, TaskName
from credo.recipes.resolution import input_clip, resolve
from credo.tables.readers import unique_names

if TYPE_CHECKING:
    from credo.recipes.language import Drift, Network, Posterior

from collections import deque
from typing import Literal, NamedTuple, NotRequired, TypedDict

from credo.core.errors import FormatError
from credo.core.forms import Name, Size, require_form
from credo.live.feature_slots import Slot
from credo.live.feature_values import FeatureKind
from credo.live.recovery import Recovery, SavedRecovery
from credo.recipes.settings import Settings
from credo.streams import checkpoint

__all__ = ["Cells", "Frame", "RiverEstimator"]


FORMAT = 1
"""The number of the format; it grows when older readers could misread a file."""


class SavedEstimator(NamedTuple):
    """A file: the arguments of the class, the slots, the learner, and what the class keeps beside them."""

    parameters: dict[str, Any]
    slots: FeatureSlots
    live: LiveLearner
    extras: dict[str, Any]


class _Saved(TypedDict):
    """The data that `write` keeps beside the learner and its belief."""

    parameters: dict[str, bool | float | str | None]
    slots: list[tuple[Name | bool, FeatureKind | Literal["gap"], str | None]]
    origins: list[float]
    first: NotRequired[Size]
    settings: dict[str, Any]
    extent: tuple[Size, Size, bool, float]
    classes: Size
    counts: tuple[int, int, int]
    latest: list[int]
    recovery: SavedRecovery
    change: float | None
    extras: dict[str, Any]


def write(path: str | os.PathLike[str], estimator: SavedEstimator) -> Path:
    """Write an estimator to a file; a CredoError if a feature's name is neither a text nor a number."""
    parameters, slots, live, extras = estimator
    for slot in slots.slots:
        if not isinstance(slot.name, str | int | float | bool):
            raise CredoError(
                f"a feature that is saved must be named by a text or a number; got {slot.name!r}.", field="x"
            )
    extent = live.extent
    meta = {
        "river": FORMAT,
        "parameters": parameters,
        "slots": [list(slot) for slot in slots.slots],
        "origins": list(slots.origins),
        "first": slots.first,
        "settings": extent.settings.to_dict(),
        "extent": [*extent.origin, extent.scale, extent.clip],
        "classes": live.classes,
        "counts": [live.rows, live.refused, live.alarms],
        "latest": list(live.latest),
        "recovery": live.recovery.to_dict(),
        "change": live.change,
        "extras": extras,
    }
    return checkpoint.save(path, live.learner, live.belief, meta=meta)


def read(path: str | os.PathLike[str], kind: str) -> SavedEstimator:
    """Read an estimator of the class with this name back; refusals are those of `RiverEstimator.load`."""
    saved = checkpoint.read(path)
    meta = saved.meta
    with refusing(path, "estimator"):
        if meta.get("river") != FORMAT or meta["parameters"].get("kind") != kind:
            raise FormatError(f"{path} does not hold a {kind} of this version of credo.")
        require_form(meta, _Saved, "estimator")
        inputs, features, scale, clip = meta["extent"]
        settings = Settings.from_dict(meta["settings"])
        slots = FeatureSlots(
            [Slot(*one) for one in meta["slots"]], meta["origins"], scale, meta.get("first", 0)
        )
        extent = Extent(settings, Origin(inputs, features), scale, clip)
        live = LiveLearner(extent, slots.room, meta["classes"], slots.scaled)
        live.rows, live.refused, live.alarms = meta["counts"]
        live.latest = deque(meta["latest"], maxlen=live.latest.maxlen)
        live.change = meta["change"]
        live.recovery = Recovery.from_dict(meta["recovery"])
        live.hold(saved.belief)
        parameters = {name: value for name, value in meta["parameters"].items() if name != "kind"}
        return SavedEstimator(parameters, slots, live, meta["extras"])


Row: TypeAlias = Mapping[Any, object]
"""The features of one row, whose names are of any kind."""

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
        settings = resolve(self._options(), self._task, (slots.room,), min(classes, 2))
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
        slots = self._slots
        live = self._live
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
        """The number of rows learned from."""
        if self._live is None:
            return 0
        return self._live.rows

    @property
    def feature_names(self) -> tuple[FeatureName, ...]:
        """The features that were met, in the order of their slots."""
        return tuple(self._slots.kinds)

    @in_turn
    def debug_one(self, x: Row, **options: Any) -> str:
        """A row as the estimator sees it, as a text: its forecast, its inputs, and what the drift reports.

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

    def _options(self) -> Options:
        return Options(**{name: getattr(self, name, None) for name in Options.__dataclass_fields__})

    def _saved_parameters(self) -> dict[str, object]:
        return {"kind": type(self).__name__, "scale": bool(self.scale), **self._options().plain()}

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
            estimator._slots = saved.slots
            estimator._live = saved.live
            estimator._take(saved.extras)
        return estimator

    def _extras(self) -> dict[str, Any]:
        """The parts of an estimator beside its learner, as JSON data."""
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
    """A row as the estimator sees it, below its forecast in words; no `live` before the first row."""
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
    """The report of the drift, one line; none if it reports nothing."""
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
    if len(text) <= WIDEST:
        return text
    return f"{text[: WIDEST - 3]}..."
