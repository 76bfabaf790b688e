"""What a drift that is a wrapper says row by row, for the report (in bounded memory) and for a file.

Like the scores, rows are gathered in blocks, and neighbouring blocks are merged where there are too many; so
are neighbouring run lengths. It is saved with the belief, so that a resumed run goes on.
"""

from __future__ import annotations

import csv
from pathlib import Path
from types import TracebackType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.adapt import Bank, Hypotheses
from credo.cli import defaults
from credo.cli.options import WRAPPED, parse_drift
from credo.core.errors import DataError
from credo.core.records import record
from credo.learners import Info

__all__ = ["ChangeTally", "DriftFile", "Steps", "collect", "joined"]

COLUMNS, BINS, KEPT, SHOWN = 300, 200, 1000, 5
"""The most blocks of rows, bins of run lengths, reported changes that are kept, and that a sentence names."""


@record
class Steps:
    """What was said at each of n rows.

    Attributes:
        probs: of each hypothesis or expert (n, K).
        lengths: the run length of each hypothesis, or the number of each expert (n, K).
        change: P(a segment began with the row); of experts 0 (n,).
        alarm: whether a change was reported (n,).
        began: how many rows before this one the reported segment began (n,).
    """

    probs: Any
    lengths: Any
    change: Any
    alarm: Any
    began: Any


def collect(belief: Any, info: Info) -> Steps:
    """The steps of one row, of a belief after it; traceable."""
    no, zero = jnp.zeros((), bool), jnp.zeros((), jnp.int32)
    if isinstance(belief, Hypotheses):
        lengths, told = belief.segments.run_length, info.extras
        back = jnp.where(told.alarm, belief.t - belief.reported, 0)
        # The first row begins the first segment, which is no change.
        change = jnp.where(belief.t > 1, told.change, 0.0)
        return Steps(belief.weights, lengths, change, told.alarm, back)
    if isinstance(belief, Bank):
        weights = belief.weights
        return Steps(
            weights, jnp.arange(len(weights), dtype=jnp.int32), jnp.zeros((), weights.dtype), no, zero
        )
    reset = info.ok & (belief.run_length == 0) & (belief.retention == 0)
    change = jnp.where(info.ok, info.extras, 0.0)
    return Steps(jnp.ones(1, change.dtype), belief.run_length[None], change, reset, zero)


class ChangeTally:
    """What was said of changes in a stream so far.

    Arguments:
        drift: the `--drift`.
    """

    def __init__(self, drift: str) -> None:
        self.drift, self.kind = drift, parse_drift(drift)[0]
        self.rows, self.size, self.width, self.reported = 0, 1, 1, 0
        self.grid = np.zeros((0, len(defaults.MIXTURE) if self.kind == "mixture" else BINS))
        self.curves = np.zeros((0, 2))
        self.alarms = np.zeros((0, 2))
        self.latest = np.zeros(self.grid.shape[1])
        self.largest = np.array([-1.0, 0.0])

    @staticmethod
    def of(drift: str) -> ChangeTally | None:
        """A tally for a drift that says something of changes, else None."""
        return ChangeTally(drift) if parse_drift(drift)[0] in WRAPPED else None

    def add(self, steps: Steps) -> None:
        """Take in the steps of consecutive rows."""
        n = len(steps.change)
        if n == 0:
            return
        probs = np.asarray(steps.probs, float)
        lengths = np.where(probs > 0, np.maximum(steps.lengths, 0), 0)
        block = (self.rows + np.arange(n)) // self.size
        self._grow(int(block[-1]) + 1)
        while lengths.max() >= self.width * self.grid.shape[1]:
            self.grid = np.pad(self.grid[:, ::2] + self.grid[:, 1::2], ((0, 0), (0, self.grid.shape[1] // 2)))
            self.width *= 2
        np.add.at(self.grid, (block[:, None], lengths // self.width), probs)
        np.maximum.at(self.curves[:, 0], block, steps.change)
        np.add.at(self.curves[:, 1], block, (probs * lengths).sum(axis=1))
        at = np.flatnonzero(steps.alarm)
        self.reported += len(at)
        rows = self.rows + 1 + at
        self.alarms = np.concatenate([self.alarms, np.stack([rows, rows - steps.began[at]], axis=1)])[:KEPT]
        top = int(np.argmax(steps.change))
        if steps.change[top] > self.largest[0]:
            self.largest = np.array([float(steps.change[top]), self.rows + 1 + top])
        if self.kind == "mixture":
            self.latest = probs[-1]
        else:
            self.latest = np.r_[(probs[-1] * lengths[-1]).sum(), np.zeros(len(self.latest) - 1)]
        self.rows += n
        while len(self.grid) > COLUMNS:
            self._grow(len(self.grid) + len(self.grid) % 2)
            self.grid = self.grid[::2] + self.grid[1::2]
            peaks, sums = self.curves[:, 0], self.curves[:, 1]
            self.curves = np.stack([np.maximum(peaks[::2], peaks[1::2]), sums[::2] + sums[1::2]], axis=1)
            self.size *= 2

    def _grow(self, length: int) -> None:
        more = max(length - len(self.grid), 0)
        self.grid = np.pad(self.grid, ((0, more), (0, 0)))
        self.curves = np.pad(self.curves, ((0, more), (0, 0)))

    @property
    def counts(self) -> np.ndarray:
        """The rows in each block."""
        return np.clip(self.rows - self.size * np.arange(len(self.grid)), 0, self.size)

    @property
    def experts(self) -> list[str]:
        """What the experts of a mixture are called."""
        return [f"walk:{q:g}" if q else "no drift" for q in defaults.MIXTURE]

    def summary(self) -> dict[str, Any]:
        """What metrics.json says."""
        if self.kind == "mixture":
            mean = self.grid.sum(axis=0) / max(self.rows, 1)
            return {
                "weights": dict(zip(self.experts, self.latest.tolist(), strict=True)),
                "mean_weights": dict(zip(self.experts, mean.tolist(), strict=True)),
            }
        made: dict[str, Any] = {"reported": self.reported, "rows": self.alarms[:, 0].astype(int).tolist()}
        if self.kind == "run-length":
            made["began"] = self.alarms[:, 1].astype(int).tolist()
        made["largest_probability"], row = self.largest.tolist()
        made |= {"largest_at": int(row), "run_length": float(self.latest[0])}
        return made

    def sentences(self) -> list[str]:
        """What to say at the end."""
        if not self.rows:
            return []
        if self.kind == "mixture":
            shares = [f"{share:.3f} {name}" for share, name in zip(self.latest, self.experts, strict=True)]
            return [f"Weights of the experts at the end: {', '.join(shares)}."]
        soft, count = self.kind == "soft-reset", self.reported
        what, done = ("full reset", "made") if soft else ("change", "reported")
        if count:
            rows, began = ([f"{int(row)}" for row in column] for column in self.alarms[:SHOWN].T)
            verb = "was" if count == 1 else "were"
            many = "s"[: count > 1]
            first = f"{count:,} {what}{many} {verb} {done}, at row{many} {_joined(rows, count - len(rows))}"
            if not soft:
                first += f", of segments that began at {_joined(began, count - len(began))}"
        else:
            first = f"No {what} was {done}"
        value, row = self.largest
        told = f"Judged at the row itself, the largest probability of a change was {value:.3g}"
        length = round(self.latest[0])
        many = "s"[: length != 1]
        ending = f"at row {int(row)}; the run length at the end is {length:,} row{many}"
        return [f"{first}.", f"{told}, {ending}."]

    def arrays(self) -> dict[str, np.ndarray]:
        """The state as arrays."""
        names = ("grid", "curves", "alarms", "latest", "largest")
        numbers = np.array([self.rows, self.size, self.width, self.reported])
        return {name: getattr(self, name) for name in names} | {"numbers": numbers}

    @staticmethod
    def from_arrays(drift: str, arrays: dict[str, Any]) -> ChangeTally | None:
        """Restore what `arrays` gave."""
        tally = ChangeTally.of(drift)
        if tally is None or not arrays:
            return tally
        for name in ("grid", "curves", "alarms", "latest", "largest"):
            setattr(tally, name, np.array(arrays[name], float))
        tally.rows, tally.size, tally.width, tally.reported = (int(number) for number in arrays["numbers"])
        return tally


def _joined(words: list[str], more: int) -> str:
    if more:
        return f"{', '.join(words)} and {more:,} more"
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


class DriftFile:
    """`drift.csv`: what was said of changes, row by row; a context.

    Arguments:
        path: the file.
        tally: of the drift; None writes nothing.
        row: how many rows were learned from before.
    """

    def __init__(self, path: Path, tally: ChangeTally | None, row: int) -> None:
        self.path, self.tally, self.row = path, tally, row
        self.file: Any = None

    def __enter__(self) -> DriftFile:
        if self.tally is not None:
            heads = ["row", "line"]
            if self.tally.kind == "mixture":
                heads += self.tally.experts
            else:
                heads += ["change", "run_length", "likeliest_run_length", "alarm"]
            try:
                self.file = self.path.open("w", newline="")
            except OSError as error:
                raise self._refused(error) from None
            self._write([heads])
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.file is not None:
            self.file.close()

    def add(self, lines: np.ndarray, steps: Steps | None) -> None:
        """Write the rows that came from these lines."""
        if steps is None or self.tally is None:
            return
        rows = self.row + 1 + np.arange(len(lines))
        self.row += len(lines)
        if self.tally.kind == "mixture":
            cells = [[f"{share:.6g}" for share in shares] for shares in steps.probs]
        else:
            lengths = np.maximum(steps.lengths, 0)
            expected = (steps.probs * lengths).sum(axis=1)
            likeliest = lengths[np.arange(len(lengths)), steps.probs.argmax(axis=1)]
            cells = [
                [f"{change:.6g}", f"{mean:.6g}", str(int(top)), str(int(alarm))]
                for change, mean, top, alarm in zip(
                    steps.change, expected, likeliest, steps.alarm, strict=True
                )
            ]
        self._write(
            [[int(row), int(line), *rest] for row, line, rest in zip(rows, lines, cells, strict=True)]
        )

    def _write(self, rows: list[list[Any]]) -> None:
        try:
            csv.writer(self.file, lineterminator="\n").writerows(rows)
        except OSError as error:
            raise self._refused(error) from None

    def _refused(self, error: OSError) -> DataError:
        return DataError(f"cannot write {self.path.name}: {(error.strerror or str(error)).lower()}.")


def joined(parts: list[Any]) -> Steps:
    """The steps of several chunks, one after the other."""
    made: Steps = jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)
    return made
