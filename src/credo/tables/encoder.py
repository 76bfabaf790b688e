"""Turn chunks of raw cells into float32 features and targets, standardising online."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from credo.core.errors import DataError, FormatError
from credo.tables.cells import (
    Cells,
    cell_text,
    is_count,
    is_missing,
    label_text,
    to_list,
    to_number_columns,
    to_numbers,
    to_times,
)
from credo.tables.chunks import BadRow, Chunk
from credo.tables.encoded import EncodeReport, EncoderState
from credo.tables.lines import LineColumns
from credo.tables.one_hot import one_hot
from credo.tables.scaling import Moments, known_spread, shrunk_clip
from credo.tables.schema import ColumnSpec, Schema

__all__ = ["Encoder"]

_DAY = 86400.0


class Encoder:
    """Encode raw cells by a schema, with each row standardised only by the rows before it.

    A number becomes (x - mean) / sd of the rows before its own (the sample standard deviation), clipped to
    the size min(clip, sqrt(rows before)), and 0 while fewer than two rows or no spread were seen. A truth
    value becomes +1 or -1; a category a one-hot vector with a slot for other categories; a time its seconds,
    standardised, and sine and cosine of the hour of the day and the day of the week. A missing cell is 0 in
    all of these, and 1 in the column's own "missing" feature, or in the one shared by the columns without
    one. Rows without a usable target, with an unknown label, or with text in a numeric column are skipped and
    reported. There is no bias feature. Statistics are float64 and do not depend on how rows are split into
    chunks.

    Arguments:
        schema: from `infer_schema`.
        standardise: whether numbers are standardised; otherwise they pass unchanged, and a missing one
            becomes the running mean.
        clip: the largest size of a standardised number.

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
        self._scaled = [column.name for column in schema.columns if column.kind in ("numeric", "datetime")]
        self._layout = []
        at = 0
        for column in schema.columns:
            self._layout.append((column, at, len(column.features)))
            at += len(column.features)
        self._width = schema.width
        kinds = [column.kind for column in schema.columns if column.kind in ("numeric", "datetime")]
        self._clean_places = [place for place, kind in enumerate(kinds) if kind == "numeric"]
        self._read = [column.name for column in schema.columns]
        self._numeric = [column.name for column in schema.columns if column.kind == "numeric"]
        self._target = [] if schema.target.task == "classification" else [schema.target.name]
        self._labels = {label: number for number, label in enumerate(schema.target.classes)}

    @property
    def width(self) -> int:
        """D, the number of features."""
        return self._width

    def initial(self) -> EncoderState:
        """The state before any row."""
        return EncoderState(Moments.empty(len(self._scaled)))

    def encode(
        self,
        state: EncoderState,
        chunk: Chunk,
        learn: bool = True,
        *,
        need_target: bool = True,
        admit: Callable[[int], bool] | None = None,
    ) -> tuple[EncoderState, np.ndarray, np.ndarray, EncodeReport]:
        """Encode the rows of a chunk.

        Arguments:
            state: from `initial`, `EncoderState.from_arrays` or an earlier call.
            chunk: raw cells of n rows.
            learn: whether each row is taken into the statistics; otherwise `state` encodes all rows
                unchanged.
            need_target: whether a row without a usable target is bad; otherwise its y is NaN (regression) or
                -1, and the target's column may be absent.
            admit: whether there may be so many classes; with it, a label that is not in the schema becomes
                the next class, where `TargetSpec.admits` allows. Otherwise its row is bad.

        Returns:
            The next state; x (m, D) float32, finite; y (m,) float64 in the target's own units, or (m,) int32
            class numbers; and a report, with m <= n the rows used.

        Raises:
            DataError: the chunk lacks a column of the schema.
            FormatError: the state is that of another schema.
        """
        count = len(chunk)
        if state.moments.count.shape != (len(self._scaled),):
            raise FormatError(
                f"the encoder's state must be for {len(self._scaled)} numeric columns; it is for "
                f"{state.moments.count.size}."
            )
        chunk = self.convert(chunk)
        why: dict[int, str] = {}
        y, unknown = self._targets(chunk, need_target, why)
        x = np.zeros((count, self.width), np.float32)
        numbers = np.empty((count, len(self._scaled)))
        places: list[int] = []
        missing: dict[str, np.ndarray] = {}
        unseen: dict[str, np.ndarray] = {}
        clean = self._clean(chunk)
        if clean is not None:
            numbers[:, self._clean_places] = clean
        for column, at, width in self._layout:
            if clean is not None and column.kind == "numeric":
                places.append(at)
                continue
            cells = self._cells(chunk, column.name)
            if column.kind in ("numeric", "datetime"):
                values, lost = self._numbers(column, cells, x, at, why)
                numbers[:, len(places)] = values
                places.append(at)
            else:
                lost, other = one_hot(column, cells, x, at)
                if other.any():
                    unseen[column.name] = other
            if lost.any():
                missing[column.name] = lost
                x[lost, at + width - 1 if column.has_missing else -1] = 1.0
        labels = self._admitted(unknown, y, why, admit) if unknown else ()
        kept = np.ones(count, bool)
        kept[list(why)] = False
        if why:
            x, y, numbers = x[kept], y[kept], numbers[kept]
        after = state
        if places:
            after, x[:, places] = self._standardise(state, numbers, learn)
        rows = np.flatnonzero(kept)
        bad = [
            *chunk.bad,
            *(BadRow(int(chunk.lines[row]), reason, chunk.unit) for row, reason in why.items()),
        ]
        report = EncodeReport(
            count + len(chunk.bad),
            len(rows),
            rows,
            chunk.lines[rows],
            sorted(bad, key=lambda row: row.line),
            _totals(missing, kept),
            _totals(unseen, kept),
            labels,
        )
        return after, x, y, report

    def _clean(self, chunk: Chunk) -> np.ndarray | None:
        """The numbers of all numeric columns at once, (n, K), where each cell of them is a number."""
        names = [self._scaled[place] for place in self._clean_places]
        return to_number_columns([self._cells(chunk, name) for name in names]) if names else None

    def convert(self, chunk: Chunk) -> Chunk:
        """The chunk with whole columns as numbers, where its lines are plain; `encode` does so if need be.

        Arguments:
            chunk: raw cells. Cells that are no numbers, or are missing, leave it as it is.
        """
        lines, names = chunk.columns, self._read
        if not isinstance(lines, LineColumns) or not lines.keys() >= set(names):
            return chunk
        values = lines.numbers([name for name in (*self._numeric, *self._target) if name in lines])
        if values is None:
            return chunk
        numbers = dict(zip((*self._numeric, *self._target), np.ascontiguousarray(values.T), strict=False))
        rest = (name for name in (*names, self.schema.target.name) if name in lines and name not in numbers)
        return replace(chunk, columns=numbers | {name: lines[name] for name in rest})

    def _cells(self, chunk: Chunk, name: str) -> Cells:
        if name in chunk.columns:
            return chunk.columns[name]
        if chunk.loose:
            return [None] * len(chunk)
        raise DataError(
            f"column {name!r} is not in the table; its columns are {', '.join(chunk.names[:30])}."
        )

    def _numbers(
        self,
        column: ColumnSpec,
        cells: Cells,
        x: np.ndarray,
        at: int,
        why: dict[int, str],
    ) -> tuple[np.ndarray, np.ndarray]:
        if column.kind == "numeric":
            values, wrong = to_numbers(cells)
        else:
            seconds, clock, wrong = to_times(cells)
            values = seconds - column.origin
            turns = np.stack([clock / _DAY, (clock / _DAY + 3.0) / 7.0])  # 1970 began on a Thursday
            angles = 2 * np.pi * np.nan_to_num(turns % 1.0)
            waves = np.stack(
                [np.sin(angles[0]), np.cos(angles[0]), np.sin(angles[1]), np.cos(angles[1])], axis=1
            )
            x[:, at + 1 : at + 5] = np.where(np.isnan(clock)[:, None], 0.0, waves)
        for row in np.flatnonzero(wrong).tolist():
            why.setdefault(
                row, f"holds {cell_text(cells[row])[:40]!r} in the {column.kind} column {column.name!r}"
            )
        return values, np.isnan(values)

    def _standardise(
        self, state: EncoderState, numbers: np.ndarray, learn: bool
    ) -> tuple[EncoderState, np.ndarray]:
        moments, after = state.moments, state
        if learn:
            following, mean, sd, count = moments.scan(numbers)
            after = EncoderState(following)
        else:
            mean, sd, count = moments.mean(), moments.sd(), moments.count
        values = np.where(np.isnan(numbers), mean, numbers)
        if not self.standardise:
            return after, values
        spread = known_spread(mean, sd)
        limit = shrunk_clip(count, self.clip)
        z = np.clip((values - mean) / np.where(spread, sd, 1.0), -limit, limit)
        return after, np.where(spread, z, 0.0)

    def observed(self, chunk: Chunk) -> np.ndarray:
        """Which rows have a target that can be learned from, of the classes of the schema (n,).

        Arguments:
            chunk: raw cells of n rows; the target's column may be absent.
        """
        y, _ = self._targets(self.convert(chunk), False, {})
        known: np.ndarray = y >= 0 if y.dtype.kind == "i" else np.isfinite(y)
        return known

    def _admitted(
        self, unknown: dict[int, str], y: np.ndarray, why: dict[int, str], admit: Callable[[int], bool] | None
    ) -> tuple[str, ...]:
        """Number the rows of new classes, and say why the other rows of unknown labels are skipped."""
        target, fresh = self.schema.target, dict[str, int]()
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
                why[row] = (
                    f"has the target {label[:40]!r}, which is none of the classes {shown}; "
                    "give all classes with `classes`"
                )
        return tuple(fresh)

    def _targets(self, chunk: Chunk, need: bool, why: dict[int, str]) -> tuple[np.ndarray, dict[int, str]]:
        """The targets, and the labels that are no class, by row."""
        target = self.schema.target
        if not need and target.name not in chunk.columns:
            cells: Cells = [None] * len(chunk)
        else:
            cells = self._cells(chunk, target.name)
        if target.task != "classification":
            values, wrong = to_numbers(cells)
            if need and target.task == "count":
                for row in np.flatnonzero(~np.isnan(values) & ~is_count(values)).tolist():
                    why[row] = f"holds {values[row]:g} in the target {target.name!r}, which is no count"
            if need:
                for row in np.flatnonzero(np.isnan(values)).tolist():
                    text = cell_text(cells[row])[:40]
                    shown = f"holds {text!r} in the target {target.name!r}, which is no number"
                    why[row] = (
                        shown if wrong[row] else f"has no target: {target.name!r} is missing or infinite"
                    )
            return values, {}
        cells = to_list(cells)
        index = self._labels
        y = np.array([index.get(cell, -1) if type(cell) is str else -1 for cell in cells], np.int32)
        y = y.reshape(len(cells))
        for row in np.flatnonzero(y < 0).tolist():
            y[row] = index.get(label_text(cells[row], target.whole), -1)
        unknown: dict[int, str] = {}
        if need:
            for row in np.flatnonzero(y < 0).tolist():
                if is_missing(cells[row]):
                    why[row] = f"has no target: {target.name!r} is missing"
                else:
                    unknown[row] = label_text(cells[row], target.whole)
        return y, unknown


def _totals(masks: dict[str, np.ndarray], kept: np.ndarray) -> dict[str, int]:
    totals = {name: int((mask & kept).sum()) for name, mask in masks.items()}
    return {name: total for name, total in totals.items() if total}
