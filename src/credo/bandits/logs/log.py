"""The log of a bandit: what was chosen, with which probability, and what it earned.

When a log is read, its format is found out, and rewards are joined to decisions by their ids. The format that
is only read is that of the Open Bandit data set: the CSV files of an online fashion shop, with true
propensities.
"""

from __future__ import annotations

import io
import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple, TypeAlias, cast, get_args

import numpy as np

from credo.bandits.logs.contexts import (
    ACTIONS,
    NO_PROPENSITY,
    arm_names,
    arm_numbers,
    check_pmfs,
    context_columns,
    context_leaves,
    contexts_of,
    features_of_arm,
    row_of,
    take_rows,
)
from credo.bandits.logs.json_lines import (
    DecisionLine,
    RewardLine,
    json_line,
    parse_dsjson,
    parse_line,
    parse_slots,
)
from credo.core.errors import CredoError, DataError, require_choice, require_positive
from credo.core.files import write_atomically
from credo.core.types import PyTree
from credo.tables import open_table
from credo.tables.cells import Cells, to_list, to_numbers
from credo.tables.opening import ByteStream, open_bytes

__all__ = ["LOG_FORMATS", "Log", "LogFormat", "LogSource", "ReadCounts", "read_log"]

LogFormat: TypeAlias = Literal["credo", "dsjson", "open-bandit"]
"""The formats of logs: our JSON lines, VW's JSON lines, and the CSV of the Open Bandit data set."""

LOG_FORMATS: tuple[LogFormat, ...] = get_args(LogFormat)
"""All formats of logs."""

LogSource: TypeAlias = str | os.PathLike[str] | IO[str] | IO[bytes] | Iterable[str | Mapping[str, Any]]
"""A path, "-" for standard input, a readable stream, or lines: text, or dicts."""


class ReadCounts(NamedTuple):
    """The numbers of lines of each kind that a reader of a log has read.

    Attributes:
        decisions: the decisions that were read.
        rewards: those of them that have a reward.
        missing: those without one.
        duplicates: lines that say again what an id has: the first one counts.
        unknown: rewards of an id that no decision has; they are left out.
        late: rewards that came after the window; they are left out.
        broken: lines that could not be read; they are left out.
        unweighed: choices that were made elsewhere with a probability that nobody knows; they are left out.

    Example:
        >>> ReadCounts(decisions=10, rewards=8, missing=2, late=1).sentences()
        ('1 reward came after the window (left out)',)
    """

    decisions: int = 0
    rewards: int = 0
    missing: int = 0
    duplicates: int = 0
    unknown: int = 0
    late: int = 0
    broken: int = 0
    unweighed: int = 0

    def sentences(self) -> tuple[str, ...]:
        """The facts that a reader may want to know, one sentence each, without full stops."""
        left_out = "left out"
        said = (
            (self.duplicates, "line repeats an id", "lines repeat an id", "the first one counts"),
            (self.unknown, "reward has no decision", "rewards have no decision", left_out),
            (self.late, "reward came after the window", "rewards came after the window", left_out),
            (self.broken, "line could not be read", "lines could not be read", left_out),
            (self.unweighed, "choice has no propensity", "choices have no propensity", left_out),
        )
        return tuple(f"{n:,} {one if n == 1 else many} ({end})" for n, one, many, end in said if n)


_NEEDED = ("item_id", "position", "click", "propensity_score")
_ITEMS = "item_context.csv"
_AFFINITY = re.compile(r"user-item_affinity_(\d+)")


def read_open_bandit(source: str | os.PathLike[str] | IO[str] | IO[bytes]) -> dict[str, Any]:
    """Read a CSV of the Open Bandit data set (Saito et al., 2021): items are arms, and clicks are rewards.

    Each row is a decision about one of the positions of a page. The context has the columns `position` and
    `user_feature_*`, and `user-item_affinity` as a feature of each arm. In the folder of a campaign,
    `item_context.csv` says how many items there are; without it, they are counted up to the greatest
    `item_id`. A `DataError` says that a column is missing, or that a cell of one that is needed is no number.
    """
    source = _table_of(source)
    with open_table(source, format="csv") as table:
        chunks = list(table)
        name = table.name
    lost = [column for column in _NEEDED if column not in chunks[0].columns]
    if "propensity_score" in lost:
        raise DataError(f"{name} {NO_PROPENSITY}.", field="propensities")
    if lost:
        raise DataError(f"{name} must have the columns {', '.join(_NEEDED)}; {', '.join(lost)} is missing.")
    cells = {c: [cell for chunk in chunks for cell in to_list(chunk.columns[c])] for c in chunks[0].columns}
    items = _whole(cells, "item_id", name)
    clicks = _numbers(cells, "click", name)
    arms = max(_items_beside(source), int(items.max()) + 1)
    affinity = [cells.get(f"user-item_affinity_{arm}") for arm in range(arms)]
    contexts: dict[str, object] = {
        column: np.array([str(cell) for cell in values], dtype=object)
        for column, values in cells.items()
        if column == "position" or column.startswith("user_feature_")
    }
    if all(column is not None for column in affinity):
        table_of = np.stack([to_numbers(column)[0] for column in affinity if column is not None], axis=1)
        contexts["actions"] = {"user-item_affinity": table_of}
    rows = len(items)
    broken = sum(len(chunk.bad) for chunk in chunks)
    return dict(
        arms=tuple(map(str, range(arms))),
        chosen=items,
        rewards=clicks,
        propensities=_numbers(cells, "propensity_score", name),
        contexts=contexts,
        counts=ReadCounts(decisions=rows, rewards=rows, broken=broken),
    )


def _table_of(source: str | os.PathLike[str] | IO[str] | IO[bytes]) -> str | IO[str] | IO[bytes]:
    if not isinstance(source, str | os.PathLike):
        return source
    path = Path(source)
    if not path.is_dir():
        return str(path)
    tables = sorted(file for file in path.glob("*.csv") if file.name != _ITEMS)
    if len(tables) != 1:
        found = ", ".join(file.name for file in tables) or "none"
        raise DataError(
            f"{path} must be the folder of one campaign, with one CSV beside {_ITEMS}; found {found}."
        )
    return str(tables[0])


def _items_beside(source: str | IO[str] | IO[bytes]) -> int:
    beside = Path(source).parent / _ITEMS if isinstance(source, str) else None
    if beside is None or not beside.is_file():
        return 0
    with open_table(str(beside), format="csv") as table:
        return sum(len(chunk) for chunk in table)


def _numbers(cells: Mapping[str, Cells], column: str, name: str) -> np.ndarray:
    values, _ = to_numbers(cells[column])
    wrong = np.flatnonzero(np.isnan(values))
    if wrong.size:
        raise DataError(f"{name} must have a number in every row of {column!r}; row {wrong[0] + 1} has none.")
    return values


def _whole(cells: Mapping[str, Cells], column: str, name: str) -> np.ndarray:
    values = _numbers(cells, column, name)
    if (values % 1 != 0).any() or (values < 0).any():
        raise DataError(f"{name} must have numbers of items from 0 in {column!r}.")
    return values.astype(np.int64)


_VW = {"_label_probability", "_labelIndex", "_label_cost", "_label_Action", "_outcomes", "RewardValue"}


def read_log(
    source: LogSource, *, format: LogFormat | None = None, window: float | None = None
) -> dict[str, Any]:
    """The arguments of a `Log`; see `Log.read`, which calls this."""
    if format is not None:
        require_choice("format", format, LOG_FORMATS)
    if window is not None:
        require_positive("window", window)
    if isinstance(source, str | os.PathLike) and Path(source).is_dir():
        return read_open_bandit(source)
    if isinstance(source, str | os.PathLike) or hasattr(source, "read"):
        file = open_bytes(cast("str | IO[bytes]", source))
        name = file.name
        head = file.head().removeprefix(b"\xef\xbb\xbf").lstrip()
        if format == "open-bandit" or (format is None and head[:1] not in (b"{", b"[")):
            return read_open_bandit(_as_table(source, file))
        lines: Iterable[str | Mapping[str, Any]] = io.TextIOWrapper(
            io.BufferedReader(file), encoding="utf-8-sig", errors="replace"
        )
    elif isinstance(source, Iterable) and not isinstance(source, bytes | Mapping):
        name = "the log"
        lines = cast("Any", source)
    else:
        raise DataError(f"a log must be a path, a readable stream, or lines; got {type(source).__name__}.")
    return _from_lines(lines, name, format, window)


def _as_table(source: object, file: ByteStream) -> str | os.PathLike[str] | IO[bytes]:
    """A path keeps its folder, in which the list of items may stand; a stream was looked into already."""
    if isinstance(source, str | os.PathLike) and source != "-":
        file.close()
        return cast("str | os.PathLike[str]", source)
    return cast("IO[bytes]", file)


def _from_lines(
    lines: Iterable[str | Mapping[str, Any]], name: str, format: LogFormat | None, window: float | None
) -> dict[str, Any]:
    decisions: list[DecisionLine] = []
    rewards: list[RewardLine] = []
    broken = 0
    first = ""
    for where, line in _objects(lines, name):
        if line is not None and format is None:
            format = _format_of(line, where)
        try:
            if line is None:
                raise ValueError("it is no JSON object")
            if format == "dsjson" and "_outcomes" in line:
                decisions += parse_slots(line, where)
                continue
            parsed = (parse_dsjson if format == "dsjson" else parse_line)(line, where)
        except DataError:
            raise
        except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
            broken += 1
            first = first or f"{where} ({type(error).__name__}: {error})"
            continue
        if isinstance(parsed, RewardLine):
            rewards.append(parsed)
        elif parsed is not None:
            decisions.append(parsed)
    if not decisions:
        why = f"; the first line that could not be read is {first}" if first else ""
        raise DataError(f"{name} must hold one or more decisions; it has none{why}.")
    return join_lines(decisions, rewards, window=window, broken=broken)


def _objects(
    lines: Iterable[str | Mapping[str, Any]], name: str
) -> Iterator[tuple[str, Mapping[str, Any] | None]]:
    for number, line in enumerate(lines, 1):
        where = f"line {number} of {name}"
        if isinstance(line, Mapping):
            yield where, line
        elif not isinstance(line, str):
            raise DataError(f"{where} must be text or a dict; got {type(line).__name__}.")
        elif line.strip():
            try:
                value = json.loads(line)
            except (ValueError, RecursionError):
                value = None
            yield where, value if isinstance(value, dict) else None


def _format_of(line: Mapping[str, Any], where: str) -> LogFormat:
    if "kind" in line:
        return "credo"
    if _VW & line.keys() or {"c", "p"} <= line.keys():
        return "dsjson"
    raise DataError(
        f"{where} is no line of a log: it must have `kind` (decision, reward or row), or be VW's dsjson with "
        f"`_label_probability`; its keys are {', '.join(map(str, list(line)[:8]))}."
    )


def _weighed(decisions: Sequence[DecisionLine]) -> tuple[list[DecisionLine], dict[str, int], int]:
    """The decisions whose propensity is known; the places of all ids among them, -1 for one that is left out;
    and how many decisions had the id of an earlier one.
    """
    kept: list[DecisionLine] = []
    places: dict[str, int] = {}
    duplicates = 0
    for decision in decisions:
        if decision.id is not None and decision.id in places:
            duplicates += 1
            continue
        weighed = math.isfinite(decision.propensity)
        if decision.id is not None:
            places[decision.id] = len(kept) if weighed else -1
        if weighed:
            kept.append(decision)
    return kept, places, duplicates


def join_lines(
    decisions: Sequence[DecisionLine],
    rewards: Sequence[RewardLine] = (),
    *,
    window: float | None = None,
    broken: int = 0,
) -> dict[str, Any]:
    """Join rewards to decisions by their ids. Of two of one id the first one counts.

    A reward counts for `window` seconds after its decision (None: always), its parts are added to its last
    value, decisions whose propensity is NaN are left out, and `broken` lines could not be read. Arms come in
    the order in which they first occur. A `DataError` says that some decisions were thinned more than others,
    so that the log is no fair sample.
    """
    rates = {decision.thinning for decision in decisions}
    if len(rates) > 1:
        raise DataError(
            f"the decisions of a log must all be thinned at one rate (`pdrop`); these are at "
            f"{len(rates)} rates from {min(rates):g} to {max(rates):g}."
        )
    kept, places, duplicates = _weighed(decisions)
    unweighed = len(decisions) - len(kept) - duplicates
    parts: dict[tuple[int, str], float] = {}
    unknown = late = 0
    values = np.array([decision.reward for decision in kept])
    for reward in rewards:
        place = places.get(reward.id)
        if place is None:
            unknown += 1
        elif place < 0:
            continue
        elif _is_late(reward, kept[place], window):
            late += 1
        elif np.isfinite(values[place]) if reward.part is None else (place, reward.part) in parts:
            duplicates += 1
        elif reward.part is None:
            values[place] = reward.value
        else:
            parts[place, reward.part] = reward.value
    for (place, _), value in parts.items():  # without the last value the sum is not known, and stays NaN
        values[place] += value
    known = int(np.isfinite(values).sum())
    counts = ReadCounts(len(kept), known, len(kept) - known, duplicates, unknown, late, broken, unweighed)
    return _assemble(kept, values, counts)


def _is_late(reward: RewardLine, decision: DecisionLine, window: float | None) -> bool:
    if window is None or reward.time is None or decision.time is None:
        return False
    return reward.time - decision.time > window


def _assemble(decisions: Sequence[DecisionLine], rewards: np.ndarray, counts: ReadCounts) -> dict[str, Any]:
    arms = list(dict.fromkeys(name for d in decisions for name in (*(d.arms or ()), *(d.pmf or ()), d.arm)))
    places = {name: place for place, name in enumerate(arms)}
    allowed = np.zeros((len(decisions), len(arms)), bool)
    pmfs = None if any(d.pmf is None for d in decisions) else np.zeros(allowed.shape)
    for row, decision in enumerate(decisions):
        allowed[row, [places[name] for name in decision.arms or arms]] = True
        if pmfs is not None and decision.pmf is not None:
            pmfs[row, [places[name] for name in decision.pmf]] = list(decision.pmf.values())
    contexts = context_columns([d.context for d in decisions])
    if any(d.features for d in decisions):
        own = context_columns([[(d.features or {}).get(name) for name in arms] for d in decisions])
        contexts = {**(contexts or {}), ACTIONS: own}
    return dict(
        arms=tuple(arms),
        chosen=np.array([places[d.arm] for d in decisions]),
        rewards=rewards,
        propensities=np.array([d.propensity for d in decisions]),
        contexts=contexts,
        pmfs=pmfs,
        allowed=allowed,
        times=None if any(d.time is None for d in decisions) else np.array([d.time for d in decisions]),
        ids=None if any(d.id is None for d in decisions) else np.array([d.id for d in decisions]),
        counts=counts,
    )


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
