"""A shard: the keys that belong to it, the line up to which it has learned, its predictions and its tally."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from credo.adapt import Standardized
from credo.core.errors import DataError
from credo.core.files import replacing
from credo.core.places import Place
from credo.live.live_learner import TARGET_CLIP
from credo.live.targets import WARMUP
from credo.recipes import defaults
from credo.recipes.assembly import build
from credo.recipes.settings import Settings
from credo.scale.batches import Batch
from credo.scale.generations import Generation
from credo.scale.key_tally import KeyTally
from credo.streams.keyed import Keyed, KeyedRows
from credo.streams.keyed.engine import Late
from credo.streams.keyed.pages import latest

__all__ = ["Plan", "Shard"]


@dataclass(frozen=True)
class Plan:
    """The settings that all shards have in common, which are the same in every process.

    Attributes:
        folder: the folder of the run, or its address.
        settings: the settings of the learner, as JSON data.
        inputs: the number of inputs.
        classes: the labels of the classes, none for numbers.
        tile, evict: see `Keyed`; `evict` is for one shard.
        parquet: whether predictions are Parquet, and otherwise CSV.
        scaled: which inputs each key standardises by its own rows, as it then does with its target; None
            where rows come standardised.
        late: see `Keyed.learn`.
    """

    folder: Place
    settings: dict[str, Any]
    inputs: int
    classes: tuple[str, ...]
    tile: int
    evict: int | None
    parquet: bool
    scaled: tuple[bool, ...] | None = None
    late: Late = "now"

    def begin(self) -> tuple[Any, Any, Settings]:
        """The learner, its prior, and the settings."""
        settings = Settings.from_dict(self.settings)
        learner, prior = build(settings, (self.inputs,), len(self.classes))
        if self.scaled is None:
            return learner, prior, settings
        own = Standardized(learner, True, not self.classes, defaults.CLIP, WARMUP, TARGET_CLIP)
        return own, own.wrap(prior, self.inputs, np.asarray(self.scaled)), settings

    def folder_of(self, shard: int) -> Place:
        """The folder of the state of a shard."""
        return self.folder / f"shard-{shard:03d}"

    @property
    def predictions(self) -> Place:
        """The folder of the predictions."""
        return self.folder / "predictions"


class Shard:
    """A `Keyed` that knows up to which line it has learned; rows up to there are passed over.

    Arguments:
        plan: what all shards have in common.
        number: its number. Its folder is read if there is a checkpoint.
    """

    def __init__(self, plan: Plan, number: int) -> None:
        self.plan = plan
        self.number = number
        folder = plan.folder_of(number)
        self.generation = Generation(folder)
        learner, prior, settings = plan.begin()
        if latest(folder):
            self.keyed: Keyed[Any] = Keyed.load(folder, learner)
            self.line = self.keyed.offset
            self.tally = KeyTally.load(folder, self.line)
        else:
            key = jax.random.key(settings.seed) if settings.draws else None
            self.keyed = Keyed(learner, prior, tile=plan.tile, evict=plan.evict, key=key)
            warmup = 0 if plan.scaled is None or plan.classes else WARMUP
            self.line = 0
            self.tally = KeyTally(bool(plan.classes), warmup)
        self._forget_later()

    def apply(self, batch: Batch) -> None:
        """Forecast, score and learn the rows of a batch that come after those that it has learned."""
        if batch.last <= self.line:
            return
        if batch.before > self.line:
            raise DataError(
                f"shard {self.number} of {self.plan.folder} has learned up to line {self.line:,} only, and "
                f"the next rows come after line {batch.before:,}: a checkpoint is damaged or gone."
            )
        rows = batch.after(self.line)
        if rows.keys:
            told = self.keyed.learn(
                *(rows.keys, rows.x, rows.y, rows.weights), times=rows.times, late=self.plan.late
            )
            self.tally.add(rows, told, stay=self.plan.evict is None)
            self._write(rows, told)
        self.line = batch.last

    def save(self) -> int:
        """Write a checkpoint; the line up to which it goes."""
        self.generation.require_latest()
        folder = self.plan.folder_of(self.number)
        self.tally.save(folder, self.line)
        self.keyed.save(folder, offset=self.line)
        return self.line

    def _file(self, before: int) -> Place:
        """The file of the predictions of a batch, which has the same name when the batch comes again."""
        ending = "parquet" if self.plan.parquet else "csv"
        return self.plan.predictions / f"shard-{self.number:03d}-after-{before:012d}.{ending}"

    def _forget_later(self) -> None:
        """Take away predictions of rows that will be learned again, and files that were cut short."""
        torn = (
            (self.plan.folder_of(self.number), ".*"),
            (self.plan.predictions, f".shard-{self.number:03d}-*"),
        )
        for folder, pattern in torn:
            for path in folder.glob(pattern):
                path.unlink(missing_ok=True)
        for path in self.plan.predictions.glob(f"shard-{self.number:03d}-after-*"):
            if int(path.stem.rpartition("-")[2]) >= self.line:
                path.unlink(missing_ok=True)

    def _write(self, rows: Batch, told: KeyedRows) -> None:
        self.generation.require_latest()
        columns: dict[str, Any] = {"line": rows.lines, "key": rows.keys}
        outcome = told.outcome
        if outcome.probs is None:
            columns["mean"] = rows.location + rows.scale * np.asarray(outcome.mean, float)
            columns["sd"] = rows.scale * np.asarray(outcome.sd, float)
        else:
            columns |= {f"p({name})": outcome.probs[:, place] for place, name in enumerate(self.plan.classes)}
        with replacing(self._file(rows.before)) as path:
            _write_table(path, columns, self.plan.parquet)


def _write_table(path: Path, columns: dict[str, Any], parquet: bool) -> None:
    if parquet:
        import pyarrow as pa
        import pyarrow.parquet as pq

        # forecasts do not become smaller, and a dictionary of keys costs more than the rest of the file
        pq.write_table(
            pa.table(columns),
            path,
            use_dictionary=False,
            compression={"key": "snappy"},  # pyright: ignore[reportArgumentType]
            column_encoding={"line": "DELTA_BINARY_PACKED"},
            write_statistics=["line"],  # pyright: ignore[reportArgumentType]
        )
        return
    import csv

    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        lists = (column if isinstance(column, list) else column.tolist() for column in columns.values())
        writer.writerows(zip(*lists, strict=True))
