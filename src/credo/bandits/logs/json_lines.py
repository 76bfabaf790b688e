"""Our JSON lines: decisions, rewards, and rows that hold both."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

import jax
import numpy as np

from credo.bandits.logs.checks import NO_PROPENSITY
from credo.bandits.logs.contexts import row_of
from credo.bandits.logs.log import Log
from credo.core.errors import DataError

__all__ = [
    "DecisionLine",
    "RewardLine",
    "json_line",
    "line_of",
    "number_or_nan",
    "parse_line",
    "probability",
    "seconds",
]


class DecisionLine(NamedTuple):
    """A decision as a line of a log gives it.

    `arms` are the allowed ones (None: all), and `features` and `pmf` are those of arms by name. The reward is
    NaN where the line does not say, `time` is in seconds, and `thinning` is the probability with which such a
    line was left out of the log.
    """

    id: str | None
    arm: str
    propensity: float
    reward: float = math.nan
    context: Any = None
    features: Mapping[str, Any] | None = None
    arms: tuple[str, ...] | None = None
    pmf: Mapping[str, float] | None = None
    time: float | None = None
    thinning: float = 0.0


class RewardLine(NamedTuple):
    """A reward as a line of a log gives it: the id of its decision, and when it came, in seconds."""

    id: str
    value: float
    time: float | None = None


def parse_line(line: Mapping[str, Any], where: str) -> DecisionLine | RewardLine | None:
    """Read one of our lines, of the kind "decision", "reward" or "row" (a decision with its reward); None
    where it says how a bandit's arms changed or what it was taught.

    A `DataError` says that a decision has no propensity; another error, such as a `KeyError`, that the line
    is broken.
    """
    kind, time = line["kind"], seconds(line.get("time"))
    if kind == "reward":
        return RewardLine(str(line["id"]), number_or_nan(line["value"]), time)
    if kind in ("arm", "taught"):
        return None
    if kind not in ("decision", "row"):
        raise ValueError(f"kind must be decision, reward or row; got {kind!r}")
    pmf = line.get("pmf")
    pmf = None if pmf is None else {str(arm): float(p) for arm, p in pmf.items()}
    allowed = line.get("arms", None if pmf is None else list(pmf))
    name = str(line["arm"])
    stated = line.get("propensity", None if pmf is None else pmf.get(name))
    return DecisionLine(
        id=None if line.get("id") is None else str(line["id"]),
        arm=name,
        propensity=probability(stated, where),
        reward=number_or_nan(line.get("reward")),
        context=line.get("context"),
        arms=None if allowed is None else tuple(map(str, allowed)),
        pmf=pmf,
        time=time,
    )


def probability(value: Any, where: str) -> float:
    """The propensity of a line; a `DataError` says that there is none, or none in (0, 1]."""
    if value is None or value != value:
        raise DataError(f"{where} {NO_PROPENSITY}.", field="propensities")
    number = float(value)
    if not 0 < number <= 1 + 1e-6:
        raise DataError(
            f"{where} must have a propensity above 0 and at most 1; it has {number:g}.", field="propensities"
        )
    return number


def number_or_nan(value: Any) -> float:
    """A number of a line; null is NaN, and so is what is not finite."""
    number = math.nan if value is None else float(value)
    return number if math.isfinite(number) else math.nan


def seconds(value: Any) -> float | None:
    """A time in seconds: a number, or an ISO 8601 time, in UTC unless it says otherwise."""
    if value is None or not isinstance(value, str):
        return None if value is None else float(value)
    time = datetime.fromisoformat(value)
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


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


def json_line(line: Mapping[str, Any]) -> bytes:
    """One line of JSON with its end; numbers that JSON does not know are null."""
    return (json.dumps(_plain(line), ensure_ascii=False, allow_nan=False) + "\n").encode()


def _plain(value: Any) -> Any:
    value = value.tolist() if isinstance(value, np.generic | np.ndarray | jax.Array) else value
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
