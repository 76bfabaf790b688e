"""VW's dsjson, the JSON lines of its decision service: costs instead of rewards, and arms by number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from credo.bandits.logs.contexts import ACTIONS, row_of
from credo.bandits.logs.json_lines import DecisionLine, RewardLine, number_or_nan, probability, seconds
from credo.bandits.logs.log import Log

__all__ = ["dsjson_of", "parse_dsjson"]


def parse_dsjson(line: Mapping[str, Any], where: str) -> DecisionLine | RewardLine:
    """Read a line of dsjson; its reward is -`_label_cost`.

    Arms have the names in `_tag`, where all have one, and otherwise their numbers from 1. `a` holds the
    numbers of the arms (from 1, or from 0 where 0 is among them) in the order of the probabilities in `p`.
    Without `_label_cost`, the reward is the first number among the observations `o`. An observation that
    stands alone (`RewardValue`) is a reward. Errors are those of `parse_line`.
    """
    if "RewardValue" in line and "c" not in line:
        time = seconds(line.get("EnqueuedTimeUtc"))
        return RewardLine(str(line["EventId"]), number_or_nan(line["RewardValue"]), time)
    chosen = line.get("_labelIndex")
    chosen = int(line["_label_Action"]) - 1 if chosen is None else int(chosen)
    context = line.get("c") or {}
    actions = context.get("_multi") or []
    order = line.get("a") or []
    shift = 0 if 0 in order else 1
    count = len(actions) or max([chosen + 1, *(number - shift + 1 for number in order)])
    tags = [str(action["_tag"]) for action in actions if "_tag" in action]
    names = tags if len(set(tags)) == count else [str(number + 1) for number in range(count)]
    if chosen < 0:
        raise ValueError("_labelIndex")
    pmf, p = None, line.get("p")
    if p and len(p) == len(order):
        pmf = {names[number - shift]: float(share) for number, share in zip(order, p, strict=True)}
    shared = {key: _namespace(value) for key, value in context.items() if not key.startswith("_")}
    features = [{k: _namespace(v) for k, v in action.items() if not k.startswith("_")} for action in actions]
    return DecisionLine(
        id=None if line.get("EventId") is None else str(line["EventId"]),
        arm=names[chosen],
        propensity=probability(line.get("_label_probability"), where),
        reward=_reward(line),
        context=shared or None,
        features=dict(zip(names, features, strict=True)) if any(features) else None,
        arms=tuple(names[number - shift] for number in sorted(order)) if order else tuple(names),
        pmf=pmf,
        time=seconds(line.get("Timestamp")),
        thinning=float(line.get("pdrop") or 0.0),
    )


def _reward(line: Mapping[str, Any]) -> float:
    if line.get("_skipLearn"):
        return float("nan")
    cost = line.get("_label_cost")
    if cost is not None:
        return 0.0 - number_or_nan(cost)
    values = (observed.get("v") for observed in line.get("o") or [])
    return next((number_or_nan(value) for value in values if isinstance(value, int | float)), float("nan"))


def _namespace(value: Any) -> Any:
    """VW writes a namespace as an object, or as a list that holds it."""
    one = isinstance(value, Sequence) and len(value) == 1 and isinstance(value[0], Mapping)
    return value[0] if one else value


def dsjson_of(log: Log, row: int) -> dict[str, Any]:
    """A row of a log as a line of dsjson; `_skipLearn` marks a row without a reward."""
    chosen = int(log.chosen[row])
    places = np.flatnonzero(log.allowed[row]).tolist()
    index = places.index(chosen)
    order = [index, *(place for place in range(len(places)) if place != index)]
    context = row_of(log.contexts, row)
    shared, own = _split(context, len(log.arms))
    multi = [{"_tag": log.arms[place], **_of_arm(own, place)} for place in places]
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
    return line if known else line | {"_skipLearn": True}


def _split(context: Any, arms: int) -> tuple[dict[str, Any], Any]:
    """What the arms share, as namespaces, and what is of each arm."""
    if context is None:
        return {}, None
    if isinstance(context, Mapping):
        return {key: value for key, value in context.items() if key != ACTIONS}, context.get(ACTIONS)
    if np.ndim(context) == 2 and len(context) == arms:
        return {}, {"x": context}
    return {"x": np.atleast_1d(context)}, None


def _of_arm(own: Any, place: int) -> dict[str, Any]:
    if own is None:
        return {}
    return {key: _of_arm(v, place) if isinstance(v, Mapping) else v[place] for key, v in own.items()}
