"""An estimator for River in a file: the learner and belief, and names and counts as JSON data."""

from __future__ import annotations

import os
from collections import deque
from pathlib import Path
from typing import Any, Literal, NamedTuple, NotRequired, TypedDict

from credo.core.archive import refusing
from credo.core.errors import CredoError, FormatError
from credo.core.forms import Name, Size, require_form
from credo.live.feature_slots import FeatureSlots, Slot
from credo.live.feature_values import FeatureKind
from credo.live.live_learner import Extent, LiveLearner
from credo.live.recovery import Recovery, SavedRecovery
from credo.recipes.networks import Origin
from credo.recipes.settings import Settings
from credo.streams import checkpoint

__all__ = ["SavedEstimator", "read", "write"]

FORMAT = 1
"""The number of the format; it grows when older readers could misread a file."""


class SavedEstimator(NamedTuple):
    """A file: the arguments of the class, the slots, the learner, and what the class keeps beside them."""

    parameters: dict[str, Any]
    slots: FeatureSlots
    live: LiveLearner
    extras: dict[str, Any]


class _Saved(TypedDict):
    """What `write` keeps beside the learner and its belief."""

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
        live.change, live.recovery = meta["change"], Recovery.from_dict(meta["recovery"])
        live.hold(saved.belief)
        parameters = {name: value for name, value in meta["parameters"].items() if name != "kind"}
        return SavedEstimator(parameters, slots, live, meta["extras"])
