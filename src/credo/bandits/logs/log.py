"""The log of a bandit: what was chosen, with which probability, and what it earned."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from credo.bandits.logs.contexts import (
    ACTIONS,
    NO_PROPENSITY,
    arm_names,
    arm_numbers,
    check_pmfs,
    context_leaves,
    contexts_of,
    features_of_arm,
    row_of,
    take_rows,
)
from credo.bandits.logs.json_lines import json_line
from credo.bandits.logs.reading import LOG_FORMATS, LogFormat, LogSource, ReadCounts, read_log
from credo.core.errors import CredoError, DataError, require_choice
from credo.core.files import write_atomically
from credo.core.types import PyTree

__all__ = ["Log"]

LARGEST = 1e30
"""The largest reward, and the largest weight of a row: the squares of such numbers can still be added."""


@dataclass(frozen=True, eq=False)
class Log:
    """N decisions among K arms, each with its context, its probability and its reward.

    Arguments:
        arms: the names of the arms.
        chosen: the number of the arm that was drawn, (N,), from 0; or its name.
        rewards: what it earned, (N,), in units of the reward; NaN if nothing is known yet.
        propensities: the probability with which it was drawn, (N,), above 0 and at most 1.
        contexts: what was known before the choice: an array (N, d), or (N, K, d) with features of each arm; a
            tree of columns (N, ...), text among them, with features of each arm under "actions"; a list of
            dicts or a DataFrame; or None.
        pmfs: the probabilities of all arms, (N, K), or None.
        allowed: which arms could be chosen, (N, K); None for all.
        times: when the decision was taken, (N,), in seconds, or None.
        ids: the ids of the decisions, (N,), or None.
        counts: what a reader met, or None.

    Raises:
        DataError: an array has another length; an arm is not known or was not allowed; a propensity is
            missing, or is no probability, or is not the one in `pmfs`.

    Example:
        >>> log = Log(arms=("red", "blue"), chosen=[0, 1], rewards=[1.0, 0.0], propensities=[0.5, 0.5])
        >>> len(log), log.chosen.tolist()
        (2, [0, 1])
    """

    arms: tuple[str, ...]
    chosen: np.ndarray
    rewards: np.ndarray
    propensities: np.ndarray
    contexts: PyTree = None
    pmfs: np.ndarray | None = None
    allowed: np.ndarray = field(default=None)  # type: ignore[arg-type]  # None becomes all
    times: np.ndarray | None = None
    ids: np.ndarray | None = None
    counts: ReadCounts | None = None

    def __post_init__(self) -> None:
        def put(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        put("arms", arm_names(self.arms))
        put("contexts", contexts_of(self.contexts))
        put("chosen", arm_numbers(self.chosen, self.arms))
        if self.propensities is None:
            raise DataError(f"the log {NO_PROPENSITY}.", field="propensities")
        for name in ("rewards", "propensities"):
            put(name, self._array(name, np.float64, (self.rows,)))
        for name in ("pmfs", "times"):
            shape = (self.rows, len(self.arms)) if name == "pmfs" else (self.rows,)
            if getattr(self, name) is not None:
                put(name, self._array(name, np.float64, shape))
        full = (self.rows, len(self.arms))
        put("allowed", np.ones(full, bool) if self.allowed is None else self._array("allowed", bool, full))
        if self.ids is not None:
            put("ids", self._array("ids", np.str_, (self.rows,)))
        self._check()

    @property
    def rows(self) -> int:
        """N, the number of decisions."""
        return int(self.chosen.size)

    def __len__(self) -> int:
        return self.rows

    def _array(self, name: str, dtype: Any, shape: tuple[int, ...]) -> np.ndarray:
        try:
            array = np.asarray(getattr(self, name), dtype=dtype)
        except (TypeError, ValueError, OverflowError):
            raise DataError(f"{name} must be an array of numbers {shape}.", field=name) from None
        if array.shape != shape:
            raise DataError(
                f"{name} must have the shape {shape}, as there are {self.rows} decisions among "
                f"{len(self.arms)} arms; got {array.shape}.",
                field=name,
            )
        return array

    def _check(self) -> None:
        p = self.propensities
        rows = np.arange(self.rows)
        lost = np.flatnonzero(np.isnan(p))
        if lost.size:
            raise DataError(f"row {lost[0]} of the log {NO_PROPENSITY}.", field="propensities")
        wrong = np.flatnonzero(~((p > 0) & (p <= 1 + 1e-6)))
        if wrong.size:
            raise DataError(
                f"propensities must be above 0 and at most 1; row {wrong[0]} has {p[wrong[0]]:g}.",
                field="propensities",
            )
        absurd = np.flatnonzero(p < 1.0 / LARGEST)
        if absurd.size:
            raise DataError(
                f"propensities must be at least {1.0 / LARGEST:g}; row {absurd[0]} has {p[absurd[0]]:g}.",
                field="propensities",
            )
        known = np.where(np.isfinite(self.rewards), self.rewards, 0.0)
        far = np.flatnonzero(np.abs(known) > LARGEST)
        if far.size:
            raise DataError(
                f"rewards must be from {-LARGEST:g} to {LARGEST:g}; row {far[0]} has {known[far[0]]:g}.",
                field="rewards",
            )
        object.__setattr__(self, "propensities", np.minimum(p, 1.0))
        barred = np.flatnonzero(~self.allowed[rows, self.chosen])
        if barred.size:
            name = self.arms[self.chosen[barred[0]]]
            raise DataError(
                f"chosen must be an allowed arm; row {barred[0]} chose {name!r}, which was not.",
                field="chosen",
            )
        if np.isinf(self.rewards).any():
            raise DataError(
                "rewards must be finite, or NaN where they are missing; got inf.", field="rewards"
            )
        for path, leaf in context_leaves(self.contexts):
            if leaf.shape[:1] != (self.rows,):
                raise DataError(
                    f"contexts must have {self.rows} rows, one for each decision; "
                    f"{'.'.join(path) or 'the array'} has the shape {leaf.shape}.",
                    field="contexts",
                )
        if self.pmfs is not None:
            check_pmfs("pmfs", self.pmfs, self.allowed)
            drawn = self.pmfs[rows, self.chosen]
            off = np.flatnonzero(np.abs(drawn - self.propensities) > 1e-4 + 1e-3 * self.propensities)
            if off.size:
                raise DataError(
                    f"propensities must be the entries of the chosen arms in pmfs; row {off[0]} has "
                    f"{self.propensities[off[0]]:g} and {drawn[off[0]]:g}.",
                    field="propensities",
                )

    def take(self, rows: Any) -> Log:
        """The log of some rows.

        Arguments:
            rows: their numbers, a slice, or (N,) bool.

        Example:
            >>> Log(("a", "b"), [0, 1], [1.0, 0.0], [0.5, 0.5]).take([1]).chosen.tolist()
            [1]
        """
        names = [f.name for f in fields(self) if f.name not in ("arms", "contexts", "counts")]
        parts = {n: getattr(self, n)[rows] for n in names if getattr(self, n) is not None}
        return replace(self, contexts=take_rows(self.contexts, rows), **parts)

    @classmethod
    def read(cls, source: LogSource, *, format: LogFormat | None = None, window: float | None = None) -> Log:
        """Read a log of one of the formats, and join its rewards to its decisions by their ids.

        A reward may stand before or after its decision. Of two rewards of one id the first one counts.

        Arguments:
            source: a path, "-" for standard input, a readable stream, or lines (text or dicts).
            format: "credo", "dsjson" or "open-bandit"; None finds out which it is.
            window: how many seconds after its decision a reward counts; None for all.

        Returns:
            The log, whose `counts` say what was late, repeated, unknown or broken.

        Raises:
            DataError: the source cannot be read, is no log, or has decisions without propensities.

        Example:
            >>> log = Log.read([
            ...     {"kind": "decision", "id": "1", "arms": ["a", "b"], "arm": "b", "propensity": 0.3},
            ...     {"kind": "reward", "id": "1", "value": 2.0},
            ... ])
            >>> log.rewards.tolist(), log.counts.rewards
            ([2.0], 1)
        """
        return cls(**read_log(source, format=format, window=window))

    def write(self, path: str | os.PathLike[str], *, format: LogFormat = "credo") -> None:
        """Write the log as JSON lines, one row a line.

        Arguments:
            path: the file, which is replaced.
            format: "credo", or "dsjson" for VW.

        Raises:
            CredoError: the format cannot be written.
            DataError: the file cannot be written.

        Example:
            >>> import tempfile
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     Log(("a", "b"), [0, 1], [1.0, 0.0], [0.5, 0.5]).write(f"{folder}/log.jsonl")
            ...     Log.read(f"{folder}/log.jsonl").rewards.tolist()
            [1.0, 0.0]
        """
        require_choice("format", format, LOG_FORMATS)
        if format == "open-bandit":
            raise CredoError(
                "format must be credo or dsjson to write a log; got 'open-bandit'.", field="format"
            )
        compose = line_of if format == "credo" else dsjson_of
        write_atomically(Path(path), b"".join(json_line(compose(self, row)) for row in range(self.rows)))

    def __repr__(self) -> str:
        known = int(np.isfinite(self.rewards).sum())
        return f"Log({self.rows:,} decisions among {len(self.arms)} arms, {known:,} with rewards)"


def line_of(log: Log, row: int) -> dict[str, Any]:
    """A row of a log as one of our lines, of the kind "row"."""
    allowed = [name for name, may in zip(log.arms, log.allowed[row], strict=True) if may]
    line: dict[str, Any] = {"kind": "row", "id": str(row) if log.ids is None else str(log.ids[row])}
    if log.times is not None:
        line["time"] = log.times[row]
    line |= {"context": row_of(log.contexts, row), "arms": allowed, "arm": log.arms[log.chosen[row]]}
    line["propensity"] = log.propensities[row]
    if log.pmfs is not None:
        pmf = zip(log.arms, log.pmfs[row], strict=True)
        line["pmf"] = {name: p for name, p in pmf if name in allowed}
    return line | {"reward": log.rewards[row]}


def dsjson_of(log: Log, row: int) -> dict[str, Any]:
    """A row of a log as a line of dsjson; `_skipLearn` marks a row without a reward."""
    chosen = int(log.chosen[row])
    places = np.flatnonzero(log.allowed[row]).tolist()
    index = places.index(chosen)
    order = [index, *(place for place in range(len(places)) if place != index)]
    context = row_of(log.contexts, row)
    shared, own = _split(context, len(log.arms))
    multi = [{"_tag": log.arms[place], **features_of_arm(own, place)} for place in places]
    reward = float(log.rewards[row])
    known = np.isfinite(reward)
    line: dict[str, Any] = {
        "_label_cost": 0.0 - reward if known else 0.0,
        "_label_probability": log.propensities[row],
        "_label_Action": index + 1,
        "_labelIndex": index,
        "EventId": str(row) if log.ids is None else str(log.ids[row]),
        "a": [place + 1 for place in order],
        "c": {**shared, "_multi": multi},
    }
    if log.times is not None:
        line["Timestamp"] = datetime.fromtimestamp(float(log.times[row]), UTC).isoformat()
    if log.pmfs is not None:
        line["p"] = [log.pmfs[row, places[place]] for place in order]
    if known:
        return line
    return line | {"_skipLearn": True}


def _split(context: Any, arms: int) -> tuple[dict[str, Any], Any]:
    """The shared part of a context, as namespaces, and the parts of the arms."""
    if context is None:
        return {}, None
    if isinstance(context, Mapping):
        return {key: value for key, value in context.items() if key != ACTIONS}, context.get(ACTIONS)
    if np.ndim(context) == 2 and len(context) == arms:
        return {}, {"x": context}
    return {"x": np.atleast_1d(context)}, None
