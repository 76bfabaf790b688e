"""The state of a session between two rows, which a file holds, and the check that its parts fit together."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping
from typing import Any, NoReturn

import jax
import numpy as np

from credo.core.errors import FormatError
from credo.core.setting import settings_of
from credo.live.encoding import Encoding, TableEncoding, members_at
from credo.live.recovery import Recovery
from credo.live.runner import Early
from credo.recipes.assembly import Belief, SessionLearner, build
from credo.recipes.options import Options
from credo.recipes.settings import Settings
from credo.recipes.tasks import slots
from credo.sessions.change_tally import ChangeTally
from credo.sessions.places import Progress
from credo.sessions.tally import Tally
from credo.streams.annotations import misfit
from credo.streams.soundness import layout_of
from credo.tables import Moments

__all__ = ["NAMES", "State", "require_fitting"]


@dataclasses.dataclass(frozen=True)
class State:
    """All that a session carries from one row to the next, by the names that it has there."""

    settings: Settings
    encoding: Encoding
    learner: SessionLearner
    belief: Belief
    scaler: Moments
    tally: Tally
    changes: ChangeTally | None
    progress: Progress
    places: list[Progress]
    rows_read: int
    rows_used: int
    rows_refused: int
    missing: Counter[str]
    unseen: Counter[str]
    recovery: Recovery
    early: Early
    clock: float | None = None


NAMES = tuple(field.name for field in dataclasses.fields(State))
"""The names."""


def _refuse(field: str, what: str) -> NoReturn:
    raise FormatError(f"{field} {what}.", field=field)


def require_fitting(state: State) -> None:
    """Refuse a session whose parts are malformed, or do not fit together, by a `FormatError`."""
    encoding = state.encoding
    settings = state.settings
    if encoding.task != settings.task:
        _refuse("settings.task", f"must be that of the encoding, {encoding.task!r}; got {settings.task!r}")
    rows = {"read": state.rows_read, "used": state.rows_used, "refused": state.rows_refused}
    _require_numbers(rows | {"missing": state.missing, "unseen": state.unseen}, "counters")
    if state.clock is not None and not (isinstance(state.clock, float) and np.isfinite(state.clock)):
        _refuse("clock", f"must be a finite time; got {state.clock!r}")
    _require_types(state.progress, "progress")
    for place in state.places:
        _require_types(place, "places")
    for name in ("prior_var", "noise_var"):
        settings_of(Options)[name].require(f"settings.{name}", getattr(settings, name))
    if isinstance(encoding, TableEncoding):
        _require_types(encoding.schema.target, "encoding.schema.target")
        columns = (*encoding.schema.columns, *encoding.schema.late)
        for number, column in enumerate(columns):
            _require_types(column, f"encoding.schema.columns.{number}")
        if not (encoding.encoder.clip > 0 and np.isfinite(encoding.encoder.clip)):
            _refuse("encoding.clip", f"must be finite and above 0; got {encoding.encoder.clip!r}")
        width = sum(one.scaled for one in columns)
        _require_moments(encoding.state.moments, "encoding", width)
    _require_moments(state.scaler, "scaler", 1)
    _require_like(state.tally.arrays(), Tally(settings.task, len(encoding.classes)).arrays(), "tally")
    bank = members_at(settings, encoding)
    fresh = ChangeTally.of(settings.drift, [str(member) for member in bank])
    if state.changes is not None and fresh is not None:
        _require_like(state.changes.arrays(), fresh.arrays(), "changes")
    _require_network(state)


def _require_types(record: Any, field: str) -> None:
    """Refuse a part of a session one of whose fields has another type than its annotation."""
    for one in dataclasses.fields(record):
        value = getattr(record, one.name)
        expected = misfit(type(record), one.name, value)
        if expected:
            _refuse(f"{field}.{one.name}", f"must be {expected}; got {value!r}")


def _require_numbers(value: object, field: str) -> None:
    """Refuse counts that are not whole numbers of at least 0."""
    if isinstance(value, Mapping):
        for name, child in value.items():
            _require_numbers(child, f"{field}.{name}")
    elif isinstance(value, bool) or not isinstance(value, int) or value < 0:
        _refuse(field, f"must be a whole number at least 0; got {value!r}")


def _require_moments(moments: Moments, field: str, width: int) -> None:
    """Refuse running moments of another number of columns."""
    if moments.count.shape != (width,):
        _refuse(f"{field}.count", f"must have the shape {(width,)}; got {moments.count.shape}")


def _require_like(arrays: Mapping[str, np.ndarray], fresh: Mapping[str, np.ndarray], field: str) -> None:
    """Refuse scores whose arrays are not those of new scores, but for the number of their rows."""
    for name, like in fresh.items():
        array = arrays[name]
        whole = name in ("counts", "last", "latest", "largest", "size", "numbers")
        fixed = 0 if whole or name.startswith("by_class_") else 1
        if array.ndim != like.ndim or array.shape[fixed:] != like.shape[fixed:]:
            _refuse(f"{field}.{name}", f"must have the shape {like.shape}; got {array.shape}")
        counted = name in ("bins", "counts", "size", "numbers", "grid")
        if counted and not ((array >= 0) & np.isfinite(array)).all():
            _refuse(f"{field}.{name}", "must be finite and at least 0")
        if name in ("alarms", "broken", "curves", "latest", "largest") and not np.isfinite(array).all():
            _refuse(f"{field}.{name}", "must be finite")
    if "size" in fresh:
        scored, size = (int(number) for number in arrays["size"])
        if size < 1 or len(arrays["sums"]) != -(-scored // size):
            _refuse(f"{field}.sums", f"must be {scored} rows in blocks of {size}; got {len(arrays['sums'])}")


def _require_network(state: State) -> None:
    """Refuse a learner that was not built by the settings for the columns and classes of the encoding."""
    encoding = state.encoding
    belief = state.belief
    learner = state.learner
    given = encoding.shape, len(encoding.classes), encoding.first, None, encoding.origin
    like = jax.eval_shape(lambda: build(state.settings, *given)[1])
    ours = layout_of(belief)
    theirs = layout_of(like)
    if ours is None or theirs is None or ours.shapes != theirs.shapes:
        _refuse("settings", "do not fit the belief: they give a network of another size")
    x = jax.ShapeDtypeStruct(encoding.shape, np.float32)
    classes = len(encoding.classes)

    def answer(believed: Any, row: Any) -> Any:
        forecast = learner.forecast(believed, row)
        if classes:
            return forecast.probs
        return forecast.mean

    outputs = jax.eval_shape(answer, belief, x)
    size = int(np.prod(outputs.shape))
    if size != max(slots(encoding.first, classes), 1):
        _refuse("encoding.classes", f"must be as many as the learner's outputs, {size}; got {classes}")
