"""The validation of rows, targets and weights, by scikit-learn's own functions if it has them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils.validation import _check_sample_weight, validate_data

from credo.core.errors import DataError
from credo.estimators.sklearn_inputs import Matrix, Table, by_name, read_table, text_cell
from credo.tables.cells import LARGEST_TARGET, to_numbers

__all__ = ["UNREAD", "read", "read_weights"]

UNREAD = "no_validation"
"""What scikit-learn takes for targets that are not there, and are not needed."""


def read(estimator: Any, X: Any, y: Any, *, reset: bool, numbers: bool) -> tuple[Matrix | Table, Any]:
    """Rows, and targets unless y is `UNREAD`. With `reset` these are the first rows, which set the attributes
    about columns; later ones are compared with them. What the estimator does not take is a ValueError.
    """
    mixed = None if reset else estimator._mixed
    y = _as_numpy(y)
    named = by_name(X)
    table = read_table(X, mixed=True if named else mixed)
    if reset:
        estimator._mixed = mixed = table is not None
    if named and table is not None:
        rows = _by_name(estimator, table, reset=reset)
        return rows, _targets(estimator, y, len(rows), numbers)
    if not mixed:
        rows, y = _numbers(estimator, X, y, reset=reset, numbers=numbers)
        if numbers and y is not UNREAD:
            _require_sizes(y)
        return rows, y
    validate_data(estimator, X, y, reset=reset, skip_check_array=True)
    if table is None:
        cells = np.asarray(X, dtype=object)
        table = Table(dict(zip(estimator._columns, cells.T, strict=True)), (), len(cells))
    if reset:
        estimator._columns = tuple(table.columns)
    return table, _targets(estimator, y, len(table), numbers)


def read_weights(sample_weight: Any, count: int) -> np.ndarray:
    """The weights of rows (n,); a DataError if one is negative, or all are 0."""
    if not np.asarray(sample_weight).any():
        raise DataError(
            f"sample_weight must be above 0 for some row; the weights of all {count} rows are zero.",
            field="sample_weight",
        )
    weights: np.ndarray = _check_sample_weight(sample_weight, np.empty((count, 1)), dtype=np.float64)
    if (weights < 0).any():
        row = int(np.argmax(weights < 0))
        raise DataError(
            f"sample_weight must be at least 0; row {row + 1} has {weights[row]:g}.", field="sample_weight"
        )
    return weights


def _in_order(estimator: Any, X: Any, y: Any) -> bool:
    """Whether scikit-learn's checks, which take longer than to learn a row, would find nothing in X and y."""
    if type(X) is not np.ndarray or X.dtype != np.float64 or X.ndim != 2 or not len(X):
        return False
    if X.shape[1] != estimator.n_features_in_ or hasattr(estimator, "feature_names_in_"):
        return False
    if not isinstance(y, str):
        plain = type(y) is np.ndarray and y.dtype.kind in "iuf" and y.shape == X.shape[:1]
        if not plain or not np.isfinite(y).all():
            return False
    return not np.isinf(X).any()


def _numbers(estimator: Any, X: Any, y: Any, *, reset: bool, numbers: bool) -> tuple[Matrix, Any]:
    if not reset and _in_order(estimator, X, y):
        return Matrix(X), None if y is UNREAD else y
    try:
        checked = validate_data(
            estimator,
            X,
            y,
            reset=reset,
            accept_sparse="csr",
            dtype=np.float64,
            ensure_all_finite="allow-nan",
            **({"y_numeric": True} if numbers and y is not UNREAD else {}),
        )
    except ValueError as error:
        names = None if reset else estimator._columns
        sentence = text_cell(X, list(getattr(X, "columns", ())) or names) if "convert" in str(error) else None
        if sentence is None:
            raise
        raise DataError(sentence, field="X") from None
    if reset:
        names = getattr(estimator, "feature_names_in_", None)
        width = estimator.n_features_in_
        estimator._columns = tuple(f"x{place}" for place in range(width)) if names is None else tuple(names)
    return (Matrix(checked), None) if y is UNREAD else (Matrix(checked[0]), checked[1])


def _by_name(estimator: Any, table: Table, *, reset: bool) -> Matrix | Table:
    """Rows whose columns go by their names alone; an absent one is missing."""
    if reset:
        estimator._columns = tuple(table.columns)
        estimator.n_features_in_ = len(table.columns)
        estimator.feature_names_in_ = np.array(estimator._columns, dtype=object)
    names = estimator._columns
    unknown = [name for name in table.columns if name not in names]
    if unknown:
        had = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
        raise DataError(
            f"X has the column {unknown[0]!r}, which the first rows did not have; they had {had}.", field="X"
        )
    if not len(table) or not names:
        raise DataError("X must have at least one row and one column.", field="X")
    columns = {name: table.columns.get(name, [None] * len(table)) for name in names}
    if estimator._mixed:
        return Table(columns, (), len(table))
    numbers = np.empty((len(table), len(names)))
    for place, (name, cells) in enumerate(columns.items()):
        numbers[:, place], wrong = to_numbers(cells)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise DataError(
                f"X must hold numbers; row {row + 1} holds {str(cells[row])[:40]!r} in column {name!r}.",
                field="X",
            )
    return Matrix(numbers)


def _targets(estimator: Any, y: Any, count: int, numbers: bool) -> Any:
    if y is UNREAD:
        return None
    if y is None:
        name = type(estimator).__name__
        raise ValueError(f"This {name} estimator requires y to be passed, but the target y is None.")
    kind: Any = np.float64 if numbers else None
    y = check_array(column_or_1d(y, warn=True), ensure_2d=False, input_name="y", dtype=kind)
    check_consistent_length(np.empty(count), y)
    if numbers:
        _require_sizes(y)
    return y


def _as_numpy(y: Any) -> Any:
    """Targets of pandas' own kinds as NumPy's, if none is missing: else whole numbers would become floats."""
    kind = getattr(getattr(y, "dtype", None), "numpy_dtype", None)
    if kind is None or y.isna().any():
        return y
    return y.to_numpy(dtype=kind)


def _require_sizes(y: np.ndarray | None) -> None:
    """Refuse targets whose squares are beyond all numbers: forecasts would be NaN."""
    far = np.flatnonzero(np.abs(y) > LARGEST_TARGET) if y is not None else np.zeros(0, int)
    if y is not None and far.size:
        raise DataError(
            f"y must be numbers of at most {LARGEST_TARGET:g}; row {far[0] + 1} has {y[far[0]]:g}.", field="y"
        )
