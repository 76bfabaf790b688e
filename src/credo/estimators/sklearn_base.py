"""Parts that the estimators of scikit-learn share: settings, validation, learning, and state."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Self, TypedDict
from weakref import WeakKeyDictionary

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_consistent_length, check_random_state, column_or_1d
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from credo.core.archive import refusing
from credo.core.errors import CredoError, DataError, FormatError, require_integer, shown
from credo.core.forms import require_form
from credo.core.integers import LARGEST_SEED
from credo.core.locked_calls import Turns, in_turn
from credo.core.types import PyTree
from credo.learners import Learner
from credo.learners.base import require_learner
from credo.live.passes import Ask, parameter_count
from credo.live.trainer import Trainer
from credo.recipes.defaults import CLIP, SCHEMA_ROWS
from credo.recipes.language import Network
from credo.recipes.resolution import input_clip
from credo.sessions import Options, TaskName, resolve
from credo.streams import checkpoint
from credo.tables import Chunk, ColumnSpec, Dropped, Encoder, Schema, TargetSpec
from credo.tables.cells import LARGEST_TARGET, Cells, cell_text, to_list, to_numbers
from credo.tables.infer import Remarks, infer_column
from credo.tables.readers import unique_names

__all__ = ["OnlineEstimator", "within_floats"]


BUCKET = 1024
"""The most rows that are encoded, and of a sparse matrix made dense, at a time."""

MOST_CATEGORIES = 50
TARGET = TargetSpec("(target)", "regression")
"""The target of a schema, whose cells come apart from the rows."""


@dataclass(frozen=True)
class Matrix:
    """Rows of numbers (n, D) float64, dense or in scipy's CSR format; NaN if missing."""

    numbers: Any

    def __len__(self) -> int:
        return int(self.numbers.shape[0])

    def where(self, keep: np.ndarray) -> Matrix:
        """The rows that are kept."""
        return Matrix(self.numbers[keep])

    def chunks(self, encoder: Encoder) -> Iterator[Chunk]:
        """The rows in buckets, each made dense."""
        for start in range(0, len(self), BUCKET):
            part = self.numbers[start : start + BUCKET]
            yield encoder.prepare_numbers(part if isinstance(part, np.ndarray) else part.toarray())


@dataclass(frozen=True)
class Table:
    """Rows of cells of any kind, by column, and which columns hold numbers by their type."""

    columns: Mapping[str, Cells]
    numeric: tuple[str, ...]
    count: int

    def __len__(self) -> int:
        return self.count

    def where(self, keep: np.ndarray) -> Table:
        """The rows that are kept."""
        if keep.all():
            return self
        rows = np.flatnonzero(keep)
        columns = {
            name: cells[rows] if isinstance(cells, np.ndarray) else [cells[int(row)] for row in rows]
            for name, cells in self.columns.items()
        }
        return Table(columns, self.numeric, len(rows))

    def chunks(self, encoder: Encoder) -> Iterator[Chunk]:
        """The rows in buckets."""
        whole = Chunk(self.columns, np.arange(1, self.count + 1), unit="row")
        for start in range(0, self.count, BUCKET):
            yield encoder.prepare(whole.part(start, start + BUCKET))


def read_table(rows: Any, *, mixed: bool | None) -> Table | None:
    """Rows by column, None for numbers alone; `mixed` says whether rows before were a table, if any."""
    import narwhals as nw

    if mixed is False or isinstance(rows, np.ndarray):
        return None
    names = [str(name) for name in getattr(rows, "columns", ())]
    if len(set(names)) < len(names):
        unique_names(names, "X")  # which says what two columns have one name
    frame = nw.from_native(rows, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        types = {str(name): kind for name, kind in frame.schema.items()}
        numeric = tuple(name for name, kind in types.items() if kind.is_numeric())
        if mixed is None and len(numeric) == len(types):
            return None
        columns = {str(name): frame[name].to_numpy() for name in frame.columns}
        return Table(columns, numeric, len(frame))
    if not by_name(rows):
        return None
    if isinstance(rows, Mapping):
        return _of_columns(rows)
    return _of_columns({name: [row.get(name) for row in rows] for name in dict.fromkeys(chain(*rows))})


def by_name(rows: Any) -> bool:
    """Whether rows are a dict of columns, or a list of dicts."""
    if isinstance(rows, Mapping):
        return not hasattr(rows, "tocsr")  # a sparse matrix may be a dict
    return isinstance(rows, list | tuple) and len(rows) > 0 and all(isinstance(row, Mapping) for row in rows)


def _of_columns(columns: Mapping[Any, Cells]) -> Table:
    lengths = {len(cells) for cells in columns.values()}
    if len(lengths) > 1:
        counts = ", ".join(f"{name!r} has {len(cells)}" for name, cells in columns.items())
        raise DataError(f"X must have one cell a row in each column; {counts}.", field="X")
    named = {str(name): cells for name, cells in columns.items()}
    return Table(named, (), lengths.pop() if lengths else 0)


def numeric_schema(names: Sequence[str]) -> Schema:
    """The schema of columns of numbers. They share one feature that says that a value is missing."""
    return Schema(TARGET, tuple(ColumnSpec(name, "numeric") for name in names))


def table_schema(table: Table) -> Schema:
    """The schema of a table as `credo learn` infers it, with all columns of numbers; a DataError for none."""
    columns: list[ColumnSpec] = []
    dropped: list[Dropped] = []
    notes: list[str] = []
    for name, cells in table.columns.items():
        column = infer_column(name, to_list(cells[:SCHEMA_ROWS]), False, MOST_CATEGORIES, Remarks(notes, []))
        if isinstance(column, ColumnSpec):
            columns.append(column)
        elif name in table.numeric:
            columns.append(ColumnSpec(name, "numeric"))
        else:
            dropped.append(column)
    if not columns:
        reasons = "; ".join(map(str, dropped)) or "it has none"
        raise DataError(f"X has no column to learn from: {reasons}.", field="X")
    return Schema(TARGET, tuple(columns), tuple(dropped), tuple(notes))


@contextmanager
def within_floats(**given: Any) -> Iterator[None]:
    """Read floats inside; a number that no float can hold is refused with the name of its field."""
    try:
        yield
    except OverflowError:
        for field, values in given.items():
            for entry in np.asarray(values, dtype=object).flat:
                if _is_beyond(entry):
                    words = f"{field} must be numbers that a float can hold; got {shown(entry)}."
                    raise DataError(words, field=field) from None
        raise


def _is_beyond(entry: Any) -> bool:
    try:
        float(entry)
    except OverflowError:
        return True
    except (TypeError, ValueError):
        return False
    return False


def text_cell(rows: Any, names: Sequence[str] | None) -> str | None:
    """A sentence about the first text in rows that must be numbers; None if there is none."""
    try:
        cells = np.asarray(rows, dtype=object)
    except ValueError:
        return None
    if cells.ndim != 2:
        return None
    for place in range(cells.shape[1]):
        column = cells[:, place].tolist()
        texts = [row for row, cell in enumerate(column) if isinstance(cell, str | bytes)]
        wrong = to_numbers([cell_text(column[row]) for row in texts])[1] if texts else np.zeros(0, bool)
        if wrong.any():
            row = texts[int(np.argmax(wrong))]
            name = f"x{place}" if names is None else names[place]
            shown = cell_text(column[row])[:40]
            return f"X must hold numbers; row {row + 1} holds {shown!r} in column {name!r}."
    return None


FORMAT = 1
"""The number of the format; it grows when older readers could misread a file."""

LONGEST_LABEL = 1000
"""So many characters a label may have room for, although none is as long."""


class _SavedClasses(TypedDict):
    """Class labels, and the dtype of their array."""

    labels: list[bool | int | float | str]
    dtype: str


class _Saved(TypedDict):
    """The data that `write` keeps beside the trainer, by whose form that is checked."""

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
        "trainer": trainer.summary(),
    }
    return checkpoint.save(path, trainer.learner, trainer.belief, meta=meta, arrays=trainer.arrays())


def read_estimator(path: str | os.PathLike[str], kind: type[Any], learner: Learner[Any] | None) -> Any:
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
        trainer = Trainer.restore(meta["trainer"], saved.arrays, saved.learner, saved.belief)
        if trainer.settings is None:
            estimator.learner = trainer.learner
        columns = tuple(meta["columns"])
        schema = trainer.table.schema
        kept = {one.name for one in (*schema.columns, *schema.late)}
        if set(columns) != kept | {one.name for one in schema.dropped}:
            raise FormatError(f"columns must be those of the schema; got {columns[:5]!r}.", field="columns")
        if meta["classes"] is not None:
            estimator.classes_ = _classes(meta["classes"])
        estimator.n_features_in_ = len(columns)
        if meta["named"]:
            estimator.feature_names_in_ = np.array(columns, dtype=object)
        estimator._columns = columns
        estimator._mixed = bool(meta["mixed"])
        estimator._trainer = trainer
    return estimator


def _classes(saved: _SavedClasses) -> np.ndarray:
    """The labels as an array of their dtype, which must hold them and no more."""
    labels = saved["labels"]
    dtype = np.dtype(saved["dtype"])
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


UNREAD = "no_validation"
"""The word of scikit-learn for targets that are not there, and are not needed."""


def read(estimator: Any, X: Any, y: Any, *, reset: bool, numbers: bool) -> tuple[Matrix | Table, Any]:
    """Rows, and targets unless y is `UNREAD`. With `reset` these are the first rows, which set the attributes
    about columns; later ones are compared with them. What the estimator does not take is a ValueError.
    """
    with within_floats(X=X, y=y):
        return _read(estimator, X, y, reset=reset, numbers=numbers)


def _read(estimator: Any, X: Any, y: Any, *, reset: bool, numbers: bool) -> tuple[Matrix | Table, Any]:
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
    with within_floats(sample_weight=sample_weight):
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
    if y is UNREAD:
        return (Matrix(checked), None)
    return (Matrix(checked[0]), checked[1])


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


_TURNS: WeakKeyDictionary[OnlineEstimator, Turns] = WeakKeyDictionary()
"""The turns of each estimator, whose own attributes are its parameters and what it has learned."""


class OnlineEstimator(BaseEstimator):  # type: ignore[misc]
    """The base of the estimators, whose docstrings name the parameters. A call that is refused changes
    nothing: it works on a copy, which takes the place of the state at the end.
    """

    model: Network | str | None
    passes: int
    random_state: Any
    learner: Learner[Any] | None
    params: PyTree
    _trainer: Trainer
    _columns: tuple[str, ...]
    _mixed: bool
    n_features_in_: int
    feature_names_in_: np.ndarray

    @property
    def n_parameters_(self) -> int:
        """The number of parameters, of all members of a bank together."""
        return parameter_count(self._fitted.belief)

    @property
    def log_evidence_(self) -> float:
        """The sum of the log probabilities of targets, each forecast from the rows before it, in nats."""
        return self._fitted.log_evidence

    @property
    def n_seen_(self) -> int:
        """The number of rows learned from; those of weight 0 are left out, and passes do not count."""
        return self._fitted.seen

    @property
    def changes_(self) -> np.ndarray:
        """The rows, from 1, at which the drift reported a change."""
        return np.asarray(self._fitted.changes, int)

    @property
    def _turns(self) -> Turns:
        """The turns of the calls that learn. A forecast needs none: it reads a state that never changes."""
        return _TURNS.setdefault(self, Turns())

    @property
    def _fitted(self) -> Trainer:
        if not self.__sklearn_is_fitted__():
            raise AttributeError(f"this {type(self).__name__} is not fitted yet; call fit or partial_fit.")
        return self._trainer

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_trainer")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the estimator to a file, completely or not at all, without pickle.

        Arguments:
            path: the file; by custom it ends in `.credo`.

        Returns:
            The path.

        Raises:
            NotFittedError: nothing was learned yet.
            DataError: the file cannot be written.
            CredoError: a class label or a parameter cannot be saved.
        """
        check_is_fitted(self)
        return write(path, self)

    @classmethod
    def load(cls, path: str | os.PathLike[str], learner: Learner[Any] | None = None) -> Self:
        """Read an estimator back. It continues bit by bit as if it had never stopped.

        Arguments:
            path: a file that `save` wrote.
            learner: a learner of the same structure, which lends its functions where `learner` was a
                parameter with functions of its own.

        Raises:
            DataError: there is no such file.
            FormatError: it is damaged, of another version, or holds something else.
        """
        estimator: Self = read_estimator(path, cls, learner)
        return estimator

    _numbers: bool
    """Whether targets are numbers."""

    def _encode_targets(self, y: np.ndarray, classes: Any, *, online: bool) -> np.ndarray:
        """Targets as the trainer takes them."""
        raise NotImplementedError

    def _class_count(self) -> int:
        raise NotImplementedError

    @in_turn
    def _learn_all(self, X: Any, y: Any, sample_weight: Any) -> Self:
        """`fit`: standardise by all rows, then learn them in order, as often as `passes` says."""
        passes = self.passes
        if not isinstance(passes, int | np.integer) or passes < 1:
            raise CredoError(f"passes must be a whole number from 1; got {passes!r}.", field="passes")
        work = self._apart()
        rows, y, weights = work._read_labelled(X, y, sample_weight, reset=True)
        targets = work._encode_targets(y, None, online=False)
        trainer = work._begin(rows)
        trainer.take_columns(rows.chunks(trainer.encoder))
        trainer.standardise(rows.chunks(trainer.encoder), targets, weights)
        for turn in range(passes):
            chunks = rows.chunks(trainer.encoder)
            trainer.learn(chunks, targets, weights, online=False, again=turn > 0)
        work._trainer = trainer
        return self._become(work)

    @in_turn
    def _learn_more(self, X: Any, y: Any, sample_weight: Any, classes: Any = None) -> Self:
        """`partial_fit`: each row is standardised by the rows before it, and learned."""
        work = self._apart()
        begun = hasattr(work, "_trainer")
        rows, y, weights = work._read_labelled(X, y, sample_weight, reset=not begun)
        targets = work._encode_targets(y, classes, online=True)
        trainer = work._trainer.copy() if begun else work._begin(rows)
        trainer.learn(rows.chunks(trainer.encoder), targets, weights, online=True)
        work._trainer = trainer
        return self._become(work)

    def _read_labelled(
        self, X: Any, y: Any, sample_weight: Any, *, reset: bool
    ) -> tuple[Matrix | Table, np.ndarray, np.ndarray | None]:
        """Rows with their targets and weights, less those of weight 0."""
        rows, y = read(self, X, y, reset=reset, numbers=self._numbers)
        if sample_weight is None:
            return rows, y, None
        weights = read_weights(sample_weight, len(rows))
        keep = weights > 0
        weights = weights[keep]
        return rows.where(keep), y[keep], None if (weights == 1).all() else weights

    def _begin(self, rows: Matrix | Table) -> Trainer:
        """A trainer of the parameters, for rows like these."""
        schema = table_schema(rows) if isinstance(rows, Table) else numeric_schema(self._columns)
        given: dict[str, Any] = self.get_params(deep=False)
        seed = _seed(given["random_state"])
        classes = self._class_count()
        own = given["learner"]
        params = given["params"]
        if own is not None:
            return _around(own, params, given, schema, classes, seed)
        if params is not None:
            raise CredoError("params is for `learner`: the parameters that it begins with.", field="params")
        names = Options.__dataclass_fields__
        options = Options(**{name: given[name] for name in names if name in given}, seed=seed)
        task: TaskName = "classification" if classes else "regression"
        settings = resolve(options, task, (schema.width,), classes)
        clip = input_clip(settings)
        return Trainer(schema, clip, classes, settings, seed=seed if settings.draws else None)

    def _ask(self, X: Any, ask: Ask, y: np.ndarray | None = None, levels: tuple[float, ...] = (0.5,)) -> Any:
        """The answers of the trainer about rows."""
        check_is_fitted(self)
        rows, _ = read(self, X, UNREAD, reset=False, numbers=self._numbers)
        return self._trainer.forecast(rows.chunks(self._trainer.encoder), ask, y, levels)

    def _apart(self) -> Self:
        """A copy of the state, to work on."""
        other: Self = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        return other

    def _become(self, other: Self) -> Self:
        # never without its state, which another thread may read
        self.__dict__.update(other.__dict__)
        for name in self.__dict__.keys() - other.__dict__.keys():
            del self.__dict__[name]
        return self


_LENT = ("learner", "params", "passes", "prior_var", "random_state")
"""The parameters that stay where `learner` is given; the others say how one is built."""


def _around(
    learner: Any, params: Any, given: dict[str, Any], schema: Any, classes: int, seed: int
) -> Trainer:
    """A trainer around a learner of the user's."""
    require_learner("learner", learner)
    for name, value in given.items():
        if name not in _LENT and value is not None and value != "auto":
            raise CredoError(
                f"`{name}={value!s}` says how a learner is built, and `learner` is one; "
                "leave one of the two out.",
                field=name,
            )
    known: dict[str, Any] = {} if given["prior_var"] is None else {"var": given["prior_var"]}
    if "size" in inspect.signature(learner.init).parameters:  # a wrapper that must know the inputs
        known["size"] = sum(len(column.features) for column in schema.columns)
    prior = learner.init(params, **known)
    return Trainer(schema, CLIP, classes, learner=learner, prior=prior, seed=seed)


def _seed(random_state: Any) -> int:
    """The seed of a `random_state`: 0 if it is None."""
    if random_state is None:
        return 0
    if isinstance(random_state, int | np.integer):
        require_integer("random_state", int(random_state), 0, LARGEST_SEED)
        return int(random_state)
    return int(check_random_state(random_state).randint(min(LARGEST_SEED, 2**31 - 1)))
