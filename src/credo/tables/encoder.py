"""Turn chunks of raw cells into float32 features and targets, standardising online."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from credo.core.errors import DataError, FormatError, Named, Sentence
from credo.core.outlying import ABSURD, standardise
from credo.tables.cells import LARGEST_TARGET, cell_text, is_missing, label_text, to_list, to_numbers
from credo.tables.chunks import BadRow, Chunk
from credo.tables.moments import Moments, shrunk_clip
from credo.tables.prepared import Preparation, Prepared, cells_of
from credo.tables.schema import Schema

__all__ = ["EncodeReport", "Encoder", "EncoderState"]


@dataclass(frozen=True)
class EncoderState:
    """The learned state of an encoder: the moments of the K numeric and datetime columns.

    Arguments:
        moments: the running count, mean and spread of those columns.

    Example:
        >>> state = EncoderState(Moments.empty(2))
        >>> sorted(state.arrays())
        ['centre', 'count', 'rows', 's1', 's2']
    """

    moments: Moments

    def arrays(self) -> dict[str, np.ndarray]:
        """The state as named arrays, from which `from_arrays` continues bitwise."""
        return self.moments.arrays()

    @staticmethod
    def from_arrays(arrays: Mapping[str, np.ndarray]) -> EncoderState:
        """Restore what `arrays` gave.

        Raises:
            FormatError: an array is missing or has another shape.
        """
        return EncoderState(Moments.from_arrays(arrays, "encoding"))


@dataclass(frozen=True)
class EncodeReport:
    """The report on the rows of one chunk.

    Arguments:
        read: the number of rows read, good and bad.
        used: the number of rows encoded.
        kept: the places of those rows in the chunk, (used,) int64.
        lines: the places of those rows in the source, (used,) int64.
        bad: the skipped rows, including those that the chunk came with, in the order of the source.
        missing: the number of missing or infinite cells in used rows, by column.
        unseen: the number of cells of an unknown category in used rows, by column.
        labels: the labels that became new classes, in the order in which they came.

    Example:
        >>> EncodeReport(read=2, used=1, kept=np.array([1]), lines=np.array([3])).missing
        {}
    """

    read: int
    used: int
    kept: np.ndarray
    lines: np.ndarray
    bad: list[BadRow] = field(default_factory=list)
    missing: dict[str, int] = field(default_factory=dict)
    unseen: dict[str, int] = field(default_factory=dict)
    labels: tuple[str, ...] = ()


class Encoder:
    """Encode raw cells by a schema, with each row standardised only by the rows before it.

    A number becomes (x - mean) / sd of the rows before its own (the sample standard deviation), clipped to
    the size min(clip, sqrt(rows before)), and 0 while fewer than two rows or no spread were seen; what is
    more than a hundred standard deviations away comes near to 0 again, as if it were missing. A truth value
    becomes +1 or -1; a category a one-hot vector with a slot for other categories, or several slots to which
    these are hashed; a time its seconds, standardised, and sine and cosine of the hour of the day, the day of
    the week and the day of the year; a text a bag of hashed words (see `credo.tables.hashing`). A missing
    cell is 0 in all of these, and 1 in the column's own "missing" feature, or in the one shared by the
    columns without one. Rows without a usable target, with an unknown label, or with text in a numeric column
    are skipped and reported. There is no bias feature. Statistics are float64, and chunks do not matter.

    Arguments:
        schema: from `infer_schema`.
        standardise: whether numbers are standardised; else they pass unchanged, a missing one as the running
            mean.
        clip: the largest size of a standardised number.

    Attributes:
        width: D, the number of features.
        scaled: the names of the columns that are standardised, in the order of their moments.
        places: the features that hold them, in the same order.

    Raises:
        DataError: `clip` is not above 0.

    Example:
        >>> from credo.tables import infer_schema
        >>> chunk = Chunk({"a": ["1", "3", "8", "x"], "y": ["u", "v", "u", "v"]}, np.array([2, 3, 4, 5]))
        >>> encoder = Encoder(infer_schema(Chunk({"a": ["1"] * 2, "y": ["u", "v"]}, np.array([2, 3])), "y"))
        >>> state, x, y, report = encoder.encode(encoder.initial(), chunk)
        >>> x[:, 0].tolist(), y.tolist(), str(report.bad[0])
        ([0.0, 0.0, 1.4142135381698608], [0, 1, 0], "line 5 holds 'x' in the numeric column 'a'")
    """

    def __init__(self, schema: Schema, *, standardise: bool = True, clip: float = 8.0) -> None:
        if not clip > 0:
            raise DataError(f"clip must be above 0; got {clip!r}.")
        self.schema = schema
        self.standardise = standardise
        self.clip = float(clip)
        self._preparation = Preparation(schema)
        self.width = self._preparation.width
        self.scaled = self._preparation.scaled
        self.places = self._preparation.places
        self._places = np.array(self.places, np.intp)
        self._kind = schema.target.kind
        self._classed = self._kind.classed
        self._labels = {label: number for number, label in enumerate(schema.target.classes)}

    def initial(self) -> EncoderState:
        """The state before any row."""
        return EncoderState(Moments.empty(len(self.scaled)))

    def encode(
        self,
        state: EncoderState,
        chunk: Chunk,
        learn: bool = True,
        *,
        need_target: bool = True,
        admit: Callable[[int], bool] | None = None,
        weights: np.ndarray | None = None,
    ) -> tuple[EncoderState, np.ndarray, np.ndarray, EncodeReport]:
        """Encode the rows of a chunk.

        Arguments:
            state: from `initial`, `EncoderState.from_arrays` or an earlier call.
            chunk: raw cells of n rows.
            learn: whether rows are taken into the statistics; otherwise `state` stays as it is.
            need_target: whether a row without a usable target is bad; otherwise its y is NaN (regression) or
                -1, and the target's column may be absent.
            admit: whether there may be so many classes; with it, a label that is not in the schema becomes
                the next class, where `TargetSpec.admits` allows. Otherwise its row is bad.
            weights: the weights (n,) of the rows in the statistics; see `credo.tables.Moments.scan`.

        Returns:
            The next state; x (m, D) float32, finite; y (m,) float64 in the target's own units, or (m,) int32
            class numbers; and a report, with m <= n the rows used.

        Raises:
            DataError: the chunk lacks a column of the schema.
            FormatError: the state is that of another schema.
        """
        if state.moments.count.shape != (len(self.scaled),):
            raise FormatError(
                f"the encoder's state must be for {len(self.scaled)} numeric columns; it is for "
                f"{state.moments.count.size}."
            )
        rows = self._preparation.complete(chunk)
        count = len(rows.x)
        x = rows.x.copy()
        numbers = rows.numbers
        why: dict[int, str] = {}
        y, unknown = self._targets(rows, need_target, why)
        why = {**rows.why, **why}
        labels = self._admitted(unknown, y, why, admit) if unknown else ()
        kept = None
        used = np.arange(count)
        lines = rows.lines
        if why:
            kept = np.ones(count, bool)
            kept[list(why)] = False
            x = x[kept]
            y = y[kept]
            numbers = numbers[kept]
            used = used[kept]
            lines = lines[kept]
            weights = None if weights is None else weights[kept]
        after = state
        if self.scaled:
            after, x[:, self._places] = self._standardise(state, numbers, learn, weights)
        bad = list(rows.bad)
        if why:
            bad += [BadRow(int(rows.lines[row]), reason, rows.unit) for row, reason in why.items()]
            bad.sort(key=lambda row: row.line)
        missing = _totals(rows.missing, kept) if rows.missing else {}
        unseen = _totals(rows.unseen, kept) if rows.unseen else {}
        report = EncodeReport(count + len(rows.bad), len(used), used, lines, bad, missing, unseen, labels)
        return after, x, y, report

    def prepare(self, chunk: Chunk) -> Prepared:
        """Read the cells of a chunk, which a thread may do ahead of `encode`; otherwise `encode` does so.

        Arguments:
            chunk: raw cells.

        Raises:
            DataError: the chunk lacks a column of the schema.
        """
        return self._preparation.prepare(chunk)

    def complete(self, chunk: Chunk) -> Prepared:
        """Read all cells of a chunk, those of late columns among them.

        Arguments:
            chunk: raw or prepared rows.

        Raises:
            DataError: the chunk lacks a column of the schema.
        """
        return self._preparation.complete(chunk)

    def prepare_numbers(self, numbers: np.ndarray) -> Prepared:
        """Read rows that are numbers, for a schema of numeric columns only.

        Arguments:
            numbers: the numbers (n, K) float64 in the order of the columns, NaN if missing.
        """
        return self._preparation.prepare_numbers(numbers)

    def _standardise(
        self, state: EncoderState, numbers: np.ndarray, learn: bool, weights: np.ndarray | None
    ) -> tuple[EncoderState, np.ndarray]:
        moments = state.moments
        after = state
        if learn:
            following, mean, sd, count, spread = moments.scan(numbers, weights)
            after = EncoderState(following)
        else:
            mean, sd, spread = moments.facts[:3]
            count = moments.count
        values = np.where(np.isnan(numbers), mean, numbers)
        if not self.standardise:
            return after, values
        every = np.count_nonzero(spread) == spread.size
        away = (values - mean) / (sd if every else np.where(spread, sd, 1.0))
        limit = shrunk_clip(count, self.clip)
        z = np.maximum(np.minimum(away, limit), -limit)
        if np.count_nonzero(np.abs(away) > ABSURD):  # which is rare, and takes twice the passes
            z = standardise(np, away, limit)
        return after, z if every else np.where(spread, z, 0.0)

    def observed(self, chunk: Chunk) -> np.ndarray:
        """Which rows have a target that can be learned from, of the classes of the schema (n,).

        Arguments:
            chunk: raw cells of n rows; the target's column may be absent.
        """
        y, _ = self._targets(chunk, False, {})
        known: np.ndarray = y >= 0 if y.dtype.kind == "i" else np.isfinite(y)
        return known

    def _admitted(
        self, unknown: dict[int, str], y: np.ndarray, why: dict[int, str], admit: Callable[[int], bool] | None
    ) -> tuple[str, ...]:
        """Number the rows of new classes, and say why the other rows of unknown labels are skipped."""
        target = self.schema.target
        fresh = dict[str, int]()
        known = len(target.classes)
        for row, label in unknown.items():
            if row in why:
                continue
            if label not in fresh and admit is not None and target.admits(label):
                if admit(known + len(fresh) + 1):
                    fresh[label] = known + len(fresh)
                else:
                    why[row] = f"has the new class {label[:40]!r}, for which no room is left"
                    continue
            if label in fresh:
                y[row] = fresh[label]
                continue
            shown = f"({', '.join(target.classes[:10])}{', ...' if known > 10 else ''})"
            if target.first and admit is not None:
                kind = "whole number" if target.whole else "number"
                why[row] = f"has the target {label[:40]!r}, which is no {kind} as the classes {shown} are"
            else:
                none = f"has the target {label[:40]!r}, which is none of the classes {shown}"
                why[row] = Sentence(f"{none}; give all classes with {Named('classes')}")
        return tuple(fresh)

    def _targets(self, chunk: Chunk, need: bool, why: dict[int, str]) -> tuple[np.ndarray, dict[int, str]]:
        """The targets, and the labels that are no class, by row."""
        target = self.schema.target
        if not need and target.name not in chunk.columns:
            none = np.int32(-1) if self._classed else np.float64(np.nan)
            return np.full(len(chunk), none), {}
        cells = chunk.columns[target.name] if target.name in chunk.columns else cells_of(chunk, target.name)
        if not self._classed:
            values, wrong = to_numbers(cells, target.decimal)
            lost = ~(np.abs(values) <= LARGEST_TARGET)
            if np.count_nonzero(lost):
                values = np.where(lost, np.nan, values)
            if need and self._kind.allowed is not None:
                for row in self._kind.refused(values):
                    what = self._kind.name
                    why[row] = f"holds {values[row]:g} in the target {target.name!r}, which is no {what}"
            if need and np.count_nonzero(lost):
                for row in np.flatnonzero(lost).tolist():
                    why[row] = self._without_target(cells[row], bool(wrong[row]))
            return values, {}
        return self._classes(to_list(cells), need, why)

    def _classes(
        self, cells: list[object], need: bool, why: dict[int, str]
    ) -> tuple[np.ndarray, dict[int, str]]:
        """The class numbers of targets, -1 for none, and the labels that are no class, by row."""
        target = self.schema.target
        index = self._labels
        y = np.array([index.get(cell, -1) if type(cell) is str else -1 for cell in cells], np.int32)
        y = y.reshape(len(cells))
        unknown: dict[int, str] = {}
        if not (y < 0).any():
            return y, unknown
        for row in np.flatnonzero(y < 0).tolist():
            y[row] = index.get(label_text(cells[row], target.whole), -1)
        if need:
            for row in np.flatnonzero(y < 0).tolist():
                if is_missing(cells[row]):
                    why[row] = f"has no target: {target.name!r} is missing"
                else:
                    unknown[row] = label_text(cells[row], target.whole)
        return y, unknown

    def _without_target(self, cell: object, wrong: bool) -> str:
        """The reason why a row has no number to learn; `wrong` says that the cell is none."""
        name = self.schema.target.name
        if wrong:
            return f"holds {cell_text(cell)[:40]!r} in the target {name!r}, which is no number"
        if is_missing(cell):
            return f"has no target: {name!r} is missing"
        return f"has no target: {name!r} is infinite or larger than {LARGEST_TARGET:g}"


def _totals(masks: dict[str, np.ndarray], kept: np.ndarray | None) -> dict[str, int]:
    """The number of rows of each mask, of all or of those that are kept."""
    totals = {name: int((mask if kept is None else mask & kept).sum()) for name, mask in masks.items()}
    return {name: total for name, total in totals.items() if total}
