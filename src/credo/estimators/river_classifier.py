"""A classifier for River."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias, Unpack

import numpy as np
from river import base

from credo.core.errors import CredoError
from credo.core.locked_calls import in_turn
from credo.estimators.parameters import spelled_out
from credo.estimators.river_base import (
    Frame,
    RiverEstimator,
    Row,
    columns_of,
    like_frame,
    observations,
    weight_of,
)
from credo.live.feature_values import absent
from credo.recipes.language import Network
from credo.recipes.options import LearnerWords
from credo.tables.infer import MOST_CLASSES

__all__ = ["RiverClassifier"]

Label: TypeAlias = base.typing.ClfTarget
"""A class label."""


class RiverClassifier(RiverEstimator, base.MiniBatchClassifier):
    """A classifier that River can use: credo's learners behind `learn_one` and `predict_proba_one`.

    Features and classes may appear and vanish at any time. A feature that is absent, None or NaN is missing:
    it says nothing, and one input says that a feature of the first row is missing. Numbers are standardised
    by the rows before. Truth values are -1 and 1. A text has an input for each of its first 16 values, and
    one for all others; a text of several words has 16 for its hashed words. A time (a `date`, a `datetime`,
    or a text that is one, such as "2024-05-01 12:30") has an input for itself and four for its cycles.

    Arguments:
        model, posterior, method, curvature, drift, prior_var, learning_rate, iterations, seed, budget: as
            for `credo learn`; see `credo.sessions.Options`. By default a bank of learners.
        scale: whether numbers are standardised; False behind a scaler of River's own.

    Raises:
        CredoError: (with the first row) a setting is unknown or out of its range, or two do not fit together.

    The first two classes share one output. Further ones get outputs of their own, several at a time, and
    features get inputs in 8, 16, 32 and so on, so that a program is compiled again for few of them. All that
    was learned stays. One thread may use an estimator at a time.

    Cost: that of the learner, a few microseconds to turn a dict into a row, and a compilation at the first
    row and whenever inputs or outputs grow.

    Example:
        >>> import credo
        >>> model = credo.RiverClassifier("linear")
        >>> for a in range(40):
        ...     model.learn_one({"a": float(a % 8), "b": "xyz"[a % 3]}, a % 8 > 3)
        >>> model.predict_one({"a": 7.0}), model.predict_one({"a": 0.0, "new": 1.0})
        (True, False)
    """

    _task = "classification"

    @spelled_out(LearnerWords)
    def __init__(
        self,
        model: Network | str | None = "auto",
        *,
        seed: int = 0,
        scale: bool = True,
        **options: Unpack[LearnerWords],
    ) -> None:
        self._begin()
        self._labels: dict[Label, int] = {}

    @property
    def _multiclass(self) -> bool:
        return True

    @property
    def classes(self) -> tuple[Label, ...]:
        """The classes that were met, in order; both truth values once one of them was met."""
        return tuple(self._labels)

    @in_turn
    def learn_one(self, x: Row, y: Label, w: float = 1.0) -> None:
        """Learn a row.

        Arguments:
            x: its features.
            y: its class, any label.
            w: its weight; 0 leaves it out.

        Raises:
            CredoError: a value or the label cannot be used; nothing is changed.
        """
        weight = weight_of(w)
        try:
            labels = self._labels
            number = self._labels[y]
        except (KeyError, TypeError):
            labels = labels_with(self._labels, [y])
            number = labels[plain_label(y)]
        if weight == 0.0:
            return self._leave_out(x)
        slots, live = self._ready(x, max(2, len(labels)))
        row = slots.row(x)
        self._slots = slots
        self._live = live
        self._labels = labels
        live.step(row, number, weight)

    @in_turn
    def predict_proba_one(self, x: Row, **options: Any) -> dict[Label, float]:
        """The probability of each class that was met; empty before the first row.

        Arguments:
            x: the features of a row; those that were never learned from are left out.
            options: River's own, which change nothing.

        Raises:
            CredoError: a feature holds something else than before.
        """
        slots = self._slots
        labels = self._labels
        row = slots.row(x)
        if len(labels) < 2 or self._live is None:
            return dict.fromkeys(labels, 1.0)
        probs = self._live.probabilities(row)[: len(labels)]
        total = sum(probs)
        return {label: share / total for label, share in zip(labels, probs, strict=True)}

    @in_turn
    def learn_many(self, X: Frame, y: Any) -> None:
        """Learn the rows of a data frame in order, as `learn_one` does one by one.

        Arguments:
            X: their features.
            y: their classes, a series.

        Raises:
            CredoError: a value or a label cannot be used; nothing is changed.
        """
        columns = columns_of(X)
        targets = observations(y, len(X)).tolist()
        if not targets:
            return
        try:
            labels = labels_with(self._labels, list(dict.fromkeys(targets)))
        except TypeError:  # a label that is no key is refused with its sentence
            labels = labels_with(self._labels, targets)
        numbers = np.array([labels[label] for label in targets], np.int32)
        arrivals = self._slots.column_arrivals(columns)
        known = max(2, len(self._labels))
        slots, live = self._made_for(self._slots, arrivals, max(known, int(numbers[0]) + 1), len(labels))
        rows = slots.rows(columns, len(targets))
        self._slots = slots
        self._live = live
        self._labels = labels
        pairs = zip(*np.unique(numbers, return_index=True), strict=True)
        starts = [int(row) for number, row in pairs if number >= known and row > 0]
        for start, stop in zip([0, *starts], [*starts, len(numbers)], strict=True):
            live.grow(slots.room, max(live.classes, int(numbers[start]) + 1), slots.scaled)
            live.learn_rows(rows[start:stop], numbers[start:stop])

    @in_turn
    def predict_proba_many(self, X: Frame) -> Any:
        """The probabilities of the classes for the rows of a data frame, one column a class."""
        columns = columns_of(X)
        labels = self._labels
        rows = self._slots.rows(columns, len(X))
        if len(labels) < 2 or self._live is None or not len(X):
            return like_frame(X, {label: np.ones(len(X)) for label in labels})
        probs = self._live.forecast_rows(rows)[:, : len(labels)].astype(float)
        probs /= probs.sum(axis=1, keepdims=True)
        return like_frame(X, {label: probs[:, place] for place, label in enumerate(labels)})

    @in_turn
    def predict_many(self, X: Frame) -> Any:
        """The most probable classes for the rows of a data frame, a series."""
        columns = columns_of(X)
        labels = list(self._labels)
        rows = self._slots.rows(columns, len(X))
        if not labels:
            return like_frame(X, [None] * len(X))
        if len(labels) < 2 or self._live is None or not len(X):
            return like_frame(X, labels[:1] * len(X))
        best = self._live.forecast_rows(rows)[:, : len(labels)].argmax(axis=1)
        return like_frame(X, [labels[place] for place in best])

    def _words(self, x: Row) -> str:
        probs = sorted(self.predict_proba_one(x).items(), key=lambda pair: -pair[1])
        return ", ".join(f"{label} {share:.3f}" for label, share in probs[:10]) or "none yet"

    def _extras(self) -> dict[str, Any]:
        labels = list(self._labels)
        for label in labels:
            if not isinstance(label, str | int | float | bool):
                raise CredoError(
                    f"a label that is saved must be a text or a number; got {label!r}.", field="y"
                )
        return {"labels": labels}

    def _take(self, extras: Mapping[str, Any]) -> None:
        self._labels = {label: number for number, label in enumerate(extras["labels"])}


def plain_label(y: Any) -> Label:
    """A label as Python has it; a CredoError if it is missing, or cannot be a key of a dict."""
    label: Label = y.item() if isinstance(y, np.generic) else y
    try:
        hash(label)
    except TypeError:
        raise CredoError(f"y must be a class label; got {label!r}.", field="y") from None
    if absent(label):
        raise CredoError(f"y must be a class label; got {label!r}.", field="y")
    return label


def labels_with(labels: Mapping[Label, int], new: list[Any]) -> dict[Label, int]:
    """The numbers of labels with new ones, both truth values once one is met; at most `MOST_CLASSES`."""
    after = dict(labels)
    for each in new:
        label = plain_label(each)
        if label in after:
            continue
        for one in (False, True) if isinstance(label, bool) and not after else (label,):
            after[one] = len(after)
    if len(after) > MOST_CLASSES:
        raise CredoError(f"y must have at most {MOST_CLASSES} classes; got {len(after)}.", field="y")
    return after
