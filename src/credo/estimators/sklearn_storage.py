"""Estimators of scikit-learn in files: parameters and columns as JSON, and the state as arrays."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from credo.core.archive import refusing
from credo.core.errors import CredoError, FormatError
from credo.core.forms import require_form
from credo.learners import Learner
from credo.live import trainer_storage
from credo.live.trainer import Trainer
from credo.streams import checkpoint

__all__ = ["read", "write"]

FORMAT = 1
"""The number of the format; it grows when older readers could misread a file."""

LONGEST_LABEL = 1000
"""So many characters a label may have room for, although none is as long."""


class _SavedClasses(TypedDict):
    """Class labels, and the dtype of their array."""

    labels: list[bool | int | float | str]
    dtype: str


class _Saved(TypedDict):
    """What `write` keeps beside the trainer, by whose form that is checked."""

    parameters: dict[str, bool | float | str | None]
    columns: list[str]
    named: bool
    mixed: bool
    classes: _SavedClasses | None
    trainer: dict[str, Any]


def write(path: str | os.PathLike[str], estimator: Any) -> Path:
    """Write a fitted estimator to a file; a CredoError if a class label or a parameter cannot be saved."""
    trainer: Trainer = estimator._trainer
    classes = getattr(estimator, "classes_", None)
    names = getattr(estimator, "feature_names_in_", None)
    meta = {
        "estimator": FORMAT,
        "kind": type(estimator).__name__,
        "parameters": _parameters(estimator),
        "columns": list(estimator._columns),
        "named": names is not None,
        "mixed": estimator._mixed,
        "classes": None if classes is None else _labels(classes),
        "trainer": trainer_storage.summary(trainer),
    }
    return checkpoint.save(
        path, trainer.learner, trainer.belief, meta=meta, arrays=trainer_storage.arrays(trainer)
    )


def read(path: str | os.PathLike[str], kind: type[Any], learner: Learner[Any] | None) -> Any:
    """Read an estimator of a class back; `learner` lends functions. Refusals are those of `load`."""
    saved = checkpoint.read(path, learner)
    meta = saved.meta
    if meta.get("estimator") != FORMAT:
        author = (
            "by another version of credo" if "estimator" in meta else "by a program that kept no estimator"
        )
        raise FormatError(f"{path} was saved {author}.")
    if meta.get("kind") != kind.__name__:
        raise FormatError(f"{path} holds an {meta.get('kind')}; load it with credo.{meta.get('kind')}.load.")
    with refusing(path, "estimator"):
        require_form(meta, _Saved, "estimator")
        estimator = kind(**meta["parameters"])
        trainer = trainer_storage.restore(meta["trainer"], saved.arrays, saved.learner, saved.belief)
        if trainer.settings is None:
            estimator.learner = trainer.learner
        columns, schema = tuple(meta["columns"]), trainer.table.schema
        kept = {one.name for one in (*schema.columns, *schema.late)}
        if set(columns) != kept | {one.name for one in schema.dropped}:
            raise FormatError(f"columns must be those of the schema; got {columns[:5]!r}.", field="columns")
        if meta["classes"] is not None:
            estimator.classes_ = _classes(meta["classes"])
        estimator.n_features_in_ = len(columns)
        if meta["named"]:
            estimator.feature_names_in_ = np.array(columns, dtype=object)
        estimator._columns, estimator._mixed, estimator._trainer = columns, bool(meta["mixed"]), trainer
    return estimator


def _classes(saved: _SavedClasses) -> np.ndarray:
    """The labels as an array of their dtype, which must hold them and no more."""
    labels, dtype = saved["labels"], np.dtype(saved["dtype"])
    longest = max((len(label) for label in labels if isinstance(label, str)), default=0)
    if dtype.kind not in "biufUO" or (dtype.kind == "U" and dtype.itemsize > 4 * max(longest, LONGEST_LABEL)):
        raise FormatError(f"classes.dtype must be one of numbers or texts that long; got {dtype.str}.")
    classes = np.array(labels, dtype=dtype)
    if classes.ndim != 1 or classes.tolist() != labels:
        raise FormatError(f"classes.dtype must hold the labels {labels[:5]!r}; got {dtype.str}.")
    return classes


def _parameters(estimator: Any) -> dict[str, Any]:
    """The parameters as JSON data, without a learner of the user's, which is saved beside them."""
    plain: dict[str, Any] = {}
    for name, value in estimator.get_params(deep=False).items():
        if name in ("learner", "params"):
            continue
        if isinstance(value, np.generic):
            value = value.item()
        known = value is None or isinstance(value, bool | int | float | str)
        if not known and name == "random_state":
            settings = estimator._trainer.settings
            value = estimator._trainer.seed if settings is None else settings.seed
        plain[name] = value if known or isinstance(value, int) else str(value)
    return plain


def _labels(classes: np.ndarray) -> dict[str, Any]:
    labels = classes.tolist()
    odd = [label for label in labels if not isinstance(label, bool | int | float | str)]
    if odd:
        raise CredoError(f"classes must be numbers or texts to be saved; got {odd[0]!r}.", field="classes")
    return {"labels": labels, "dtype": classes.dtype.str}
