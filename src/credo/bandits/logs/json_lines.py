"""JSON lines of decisions and rewards: ours, and VW's dsjson.

Those of VW's decision service have costs instead of rewards, and arms by number.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any, NamedTuple

import jax
import numpy as np

from credo.bandits.logs.contexts import NO_PROPENSITY
from credo.core.errors import DataError

__all__ = [
    "MARK",
    "DecisionLine",
    "RewardLine",
    "json_line",
    "parse_dsjson",
    "parse_line",
    "parse_slots",
    "place_id",
    "plain",
]


MARK = "#"
"""The separator between the id of a slate and the number of a place, from 2."""


class DecisionLine(NamedTuple):
    """A decision as a line of a log gives it.

    `arms` are the allowed ones (None: all), and `features` and `pmf` are those of arms by name. The reward is
    NaN if the line does not say, `time` is in seconds, and `thinning` is the probability with which such a
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
    """A reward as a line of a log gives it: the id of its decision, and when it came, in seconds. One with
    the name of a `part` is added to the others, and the one without closes the sum.
    """

    id: str
    value: float
    time: float | None = None
    part: str | None = None


def parse_line(line: Mapping[str, Any], where: str) -> DecisionLine | RewardLine | None:
    """Read one of our lines, of the kind "decision", "observed" (a decision that was made elsewhere, whose
    propensity is NaN if nobody knows it), "reward" or "row" (a decision with its reward); None if it
    says that a bandit began, how its arms changed, or what it was taught; and for a reward that was refused,
    which is none.

    A `DataError` says that a decision has no propensity; another error, such as a `KeyError`, that the line
    is broken.
    """
    kind = line["kind"]
    time = seconds(line.get("time"))
    if kind in ("begin", "seen", "arm", "taught") or (kind == "reward" and line.get("refused")):
        return None
    if kind == "reward":
        part = line.get("part")
        part = None if part is None else str(part)
        return RewardLine(str(line["id"]), number_or_nan(line["value"]), time, part)
    if kind not in ("decision", "observed", "row"):
        raise ValueError(f"kind must be decision, reward or row; got {kind!r}")
    pmf = line.get("pmf")
    pmf = None if pmf is None else {str(arm): float(p) for arm, p in pmf.items()}
    allowed = line.get("arms", None if pmf is None else list(pmf))
    name = str(line["arm"])
    stated = line.get("propensity", None if pmf is None else pmf.get(name))
    unknown = kind == "observed" and stated is None
    return DecisionLine(
        id=None if line.get("id") is None else str(line["id"]),
        arm=name,
        propensity=math.nan if unknown else probability(stated, where),
        reward=number_or_nan(line.get("reward")),
        context=line.get("context"),
        features=line.get("features"),
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
    if math.isfinite(number):
        return number
    return math.nan


def seconds(value: Any) -> float | None:
    """A time in seconds: a number, or an ISO 8601 time, in UTC unless it says otherwise."""
    if value is None or not isinstance(value, str):
        if value is None:
            return None
        return float(value)
    time = datetime.fromisoformat(value)
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


def json_line(line: Mapping[str, Any]) -> bytes:
    """One line of JSON with its end; numbers that JSON does not know are null."""
    return (json.dumps(plain(line), ensure_ascii=False, allow_nan=False) + "\n").encode()


def _known(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _same(array: np.ndarray) -> np.ndarray:
    return array


_PLAIN = frozenset((float, int, str, bool, type(None)))
"""The types of values that JSON has as they are."""


def plain(
    value: Any,
    single: Callable[[Any], Any] = _known,
    every: Callable[[np.ndarray], np.ndarray] = _same,
) -> Any:
    """A value as JSON has it: arrays as lists, names and times as texts, and single values as `single` has
    them, which `every` does to an array of finite numbers or of truth values.
    """
    if type(value) in _PLAIN:
        return single(value)
    if isinstance(value, np.generic | np.ndarray | jax.Array):
        whole = _whole(value)
        if whole is not None:
            return every(whole).tolist()
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): plain(item, single, every) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, single, every) for item in value]
    if isinstance(value, date):
        return value.isoformat()
    return single(value)


_KINDS = frozenset(np.dtype(letter).type for letter in "?bhilqBHILQefd")
"""The types of numbers in an array that lists have as truth values, ints and floats."""


def _whole(value: Any) -> np.ndarray | None:
    """An array of finite numbers or of truth values; None for anything else."""
    if type(value) is not np.ndarray and not isinstance(value, jax.Array):
        return None
    if value.dtype.type not in _KINDS:
        return None
    array = np.asarray(value)
    if array.dtype.kind != "f" or np.isfinite(array).all():
        return array
    return None


def parse_dsjson(line: Mapping[str, Any], where: str) -> DecisionLine | RewardLine:
    """Read a line of dsjson; its reward is -`_label_cost`.

    Arms have the names in `_tag`, where all have one, and otherwise their numbers from 1. `a` holds the
    numbers of the arms (from 1, or from 0 if 0 is among them) in the order of the probabilities in `p`.
    Without `_label_cost`, the reward is the first number among the observations `o`. An observation that
    stands alone (`RewardValue`) is a reward. Errors are those of `parse_line`.
    """
    if "RewardValue" in line and "c" not in line:
        time = seconds(line.get("EnqueuedTimeUtc"))
        return RewardLine(str(line["EventId"]), number_or_nan(line["RewardValue"]), time)
    chosen = line.get("_labelIndex")
    chosen = int(line["_label_Action"]) - 1 if chosen is None else int(chosen)
    order = line.get("a") or []
    shift = 0 if 0 in order else 1
    at_least = max([chosen + 1, *(number - shift + 1 for number in order)])
    names, shared, features = _situation(line.get("c") or {}, at_least)
    if chosen < 0:
        raise ValueError("_labelIndex")
    pmf = None
    p = line.get("p")
    if p and len(p) == len(order):
        pmf = {names[number - shift]: float(share) for number, share in zip(order, p, strict=True)}
    return DecisionLine(
        id=None if line.get("EventId") is None else str(line["EventId"]),
        arm=names[chosen],
        propensity=probability(line.get("_label_probability"), where),
        reward=_reward(line),
        context=shared or None,
        features=features,
        arms=tuple(names[number - shift] for number in sorted(order)) if order else tuple(names),
        pmf=pmf,
        time=seconds(line.get("Timestamp")),
        thinning=float(line.get("pdrop") or 0.0),
    )


def parse_slots(line: Mapping[str, Any], where: str) -> list[DecisionLine]:
    """Read a line of dsjson with slots (`_outcomes`, VW's conditional contextual bandits): a decision for
    each slot, with ids as the places of a slate have them.

    `_a` holds the numbers of the arms from 0, the chosen one first, in the order of `_p`. The context of a
    slot is the shared one and its own in `c._slots`. Errors are those of `parse_line`.
    """
    context = line.get("c") or {}
    outcomes = line["_outcomes"]
    at_least = max((number + 1 for outcome in outcomes for number in outcome["_a"]), default=0)
    names, shared, features = _situation(context, at_least)
    slots = context.get("_slots") or [{}] * len(outcomes)
    first = line.get("EventId") or outcomes[0].get("_id")
    decisions = []
    for number, (outcome, slot) in enumerate(zip(outcomes, slots, strict=True), 1):
        order = outcome["_a"]
        p = outcome["_p"]
        pmf = dict(zip((names[arm] for arm in order), map(float, p), strict=True))
        decisions.append(
            DecisionLine(
                id=None if first is None else place_id(str(first), number),
                arm=names[order[0]],
                propensity=probability(p[0], where),
                reward=_reward({"o": outcome.get("_o"), **outcome}),
                context={**shared, **_namespaces(slot)} or None,
                features=features,
                arms=tuple(names[arm] for arm in sorted(order)),
                pmf=pmf,
                time=seconds(line.get("Timestamp")),
                thinning=float(line.get("pdrop") or 0.0),
            )
        )
    return decisions


def place_id(id: str, number: int) -> str:
    """The id of a place of a slate: that of the slate for the first one, and `id#2`, `id#3`, ... below."""
    if number == 1:
        return id
    return f"{id}{MARK}{number}"


def _situation(
    context: Mapping[str, Any], at_least: int
) -> tuple[list[str], dict[str, Any], dict[str, Any] | None]:
    """The names of the arms, what is shared by them, and what each one has, None if none has anything."""
    actions = context.get("_multi") or []
    count = len(actions) or at_least
    tags = [str(action["_tag"]) for action in actions if "_tag" in action]
    names = tags if len(set(tags)) == count else [str(number + 1) for number in range(count)]
    features = [_namespaces(action) for action in actions]
    return names, _namespaces(context), dict(zip(names, features, strict=True)) if any(features) else None


def _reward(line: Mapping[str, Any]) -> float:
    if line.get("_skipLearn"):
        return float("nan")
    cost = line.get("_label_cost")
    if cost is not None:
        return 0.0 - number_or_nan(cost)
    values = (observed.get("v") for observed in line.get("o") or [])
    return next((number_or_nan(value) for value in values if isinstance(value, int | float)), float("nan"))


def _namespaces(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _namespace(value) for name, value in values.items() if not name.startswith("_")}


def _namespace(value: Any) -> Any:
    """VW writes a namespace as an object, or as a list that holds it."""
    one = isinstance(value, Sequence) and len(value) == 1 and isinstance(value[0], Mapping)
    if one:
        return value[0]
    return value
