"""Options to learn a source with one learner for each key, and the results of such a run."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from credo.core import archive
from credo.core.errors import CredoError, require_choice, require_integer
from credo.core.places import Place
from credo.recipes.settings import Options
from credo.sessions import ColumnOptions

__all__ = ["BEFORE", "FIXED", "FORMAT", "MARK", "STATE", "KeyedOptions", "KeyedResult", "Scale", "state_of"]

FORMAT = 1
STATE = "run.credo"
BEFORE = "run-before.credo"
MARK = "credo-keyed-run"

Scale: TypeAlias = Literal["shared", "key"]
"""By which rows numbers are standardised."""

FIXED = ("key", "time", "scale", "shards", "tile", "batch")
"""The options that cannot be changed in a run, beside the target and the learner."""


@dataclass(frozen=True)
class KeyedOptions:
    """The options to learn a source with one learner for each key.

    Arguments:
        key: the column of the keys; a cell is known by its text.
        columns: the target, and what else is known about the columns.
        learner: what is chosen about the learner, one for all keys; by default a linear model.
        time: the column of times: numbers, or ISO dates, which are counted in days. A step of a key is as
            long as the time since its latest row. None for steps of 1.
        scale: whether numbers and targets are standardised by the rows of all keys before ("shared") or by
            those of the same key ("key").
        shards: into how many parts the keys are divided, which cannot be changed later.
        workers: how many processes share the shards; 0 for none beside this one.
        ray: the address of a cluster of Ray whose actors the workers are, "local" for one in this machine;
            None for processes of this machine.
        tile: how many keys are stepped together; see `credo.Keyed`.
        evict: the most keys of a shard in memory; None for all.
        batch: the rows of a batch, which has a file of predictions for each shard.
        checkpoint: after how many batches the state is saved; so many are kept in memory.

    Raises:
        CredoError: a number is out of its range.

    Example:
        >>> KeyedOptions("user", ColumnOptions("y")).shards
        1
    """

    key: str
    columns: ColumnOptions
    learner: Options = dataclasses.field(default_factory=Options)
    time: str | None = None
    scale: Scale = "shared"
    shards: int = 1
    workers: int = 0
    tile: int = 16
    ray: str | None = None
    evict: int | None = None
    batch: int = 16_384
    checkpoint: int = 16

    def __post_init__(self) -> None:
        require_choice("scale", self.scale, get_args(Scale))
        require_integer("shards", self.shards, 1, 4096)
        require_integer("workers", self.workers, 0, self.shards)
        require_integer("tile", self.tile, 1, 1024)
        require_integer("batch", self.batch, 1, 2**20)
        require_integer("checkpoint", self.checkpoint, 1)
        if self.ray is not None and not self.workers:
            raise CredoError("ray needs `workers`, the number of actors.", field="ray")
        if self.evict is not None:
            require_integer("evict", self.evict, 4)

    def words(self) -> dict[str, Any]:
        """The options that cannot be changed later, as JSON data."""
        fixed = {name: getattr(self, name) for name in FIXED}
        chosen = {name: one for name, one in dataclasses.asdict(self.learner).items() if one is not None}
        plain = {
            name: one if isinstance(one, int | float | str) else str(one) for name, one in chosen.items()
        }
        return {**fixed, "target": self.columns.target, "learner": plain}

    @staticmethod
    def of(folder: Place) -> KeyedOptions:
        """The options of the run in a folder, of which `workers`, `ray`, `evict` and `checkpoint` may change.

        Raises:
            DataError: there is no run.
            FormatError: it is damaged, or has a newer format.
        """
        with archive.refusing(folder / STATE, "run of keyed learners"):
            words = dict(state_of(folder).header["options"])
            learner = Options(**words.pop("learner"))
            columns = ColumnOptions(words.pop("target"))
            return KeyedOptions(columns=columns, learner=learner, **words)


@dataclass(frozen=True)
class KeyedResult:
    """The results of a run so far, over all its parts.

    Attributes:
        folder: the folder of the run, with `predictions`, `metrics.json` and the state of the shards.
        line: the line up to which the source was read.
        metrics: rows, keys, nlpd, rmse and coverage_90 or error, reported changes, rows that were late, and
            the worst, newest and most changing keys, as lists.
        bad_rows: how many rows could not be used.
        bad: sentences about a few of them.

    Example:
        >>> from pathlib import Path
        >>> KeyedResult(Path("runs"), 10, {"keys": 3}, 0, ()).metrics["keys"]
        3
    """

    folder: Place
    line: int
    metrics: dict[str, Any]
    bad_rows: int
    bad: tuple[str, ...]


def state_of(folder: Place, name: str = STATE) -> archive.Archive:
    """The file that says how far the run in a folder is; a DataError if there is none."""
    return archive.read(folder / name, MARK, FORMAT, "run of keyed learners")
