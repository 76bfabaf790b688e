"""The lines of `credo bandit decide`: what they may say, and what a bandit answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from credo.bandits import ArmDecision, Bandit
from credo.bandits.service import RewardStatus
from credo.core.errors import CredoError

__all__ = ["answer_of", "id_of", "is_reward", "parse_line"]

_KEYS = {
    "context": ("context", "id", "arms", "size"),
    "reward": ("id", "reward", "part"),
    "rewards": ("id", "rewards", "seen"),
    "arm": ("context", "arm", "reward", "propensity", "arms", "id"),
}
"""The keys of lines, by the key that says what a line is."""

CONFLICT = "reward must be the one that was learned for this decision, which stays; it is another one."


def is_reward(request: Mapping[str, Any]) -> bool:
    """Whether a line is the reward of a decision, or those of a slate."""
    return "rewards" in request or ("reward" in request and "arm" not in request)


def answer_of(bandit: Bandit | None, request: Mapping[str, Any], id: str | None) -> dict[str, Any]:
    """What a bandit answers to a line; there need be none for a reward."""
    if not is_reward(request):
        assert bandit is not None
        return _observed(bandit, request, id) if "arm" in request else _decided(bandit, request, id)
    if id is None:
        raise CredoError("a reward must have the id of its decision.")
    values = request.get("rewards", [])
    if not isinstance(values, list):
        raise CredoError(f"rewards must be a list, with a reward for each place; got {values!r:.60}.")
    return _unknown(request, id) if bandit is None else _rewarded(bandit, request, id)


def _unknown(request: Mapping[str, Any], id: str) -> dict[str, Any]:
    """The answer to a reward while there is no decision."""
    if "rewards" in request:
        return {"id": id, "statuses": ["unknown"] * len(request["rewards"])}
    return {"id": id, "status": "unknown"}


def _rewarded(bandit: Bandit, request: Mapping[str, Any], id: str) -> dict[str, Any]:
    """What became of a reward, or of those of the places of a slate."""
    if "rewards" not in request:
        statuses: list[RewardStatus | None] = [bandit.reward(id, request["reward"], part=request.get("part"))]
    else:
        statuses = bandit.reward_slate(id, request["rewards"], seen=request.get("seen", "cascade"))
    said = {"error": CONFLICT} if RewardStatus.CONFLICT in statuses else {}
    names = [None if status is None else status.value for status in statuses]
    return {"id": id} | ({"statuses": names} if "rewards" in request else {"status": names[0]}) | said


def _decided(bandit: Bandit, request: Mapping[str, Any], id: str | None) -> dict[str, Any]:
    about, size = (request.get("context"), request.get("arms")), request.get("size")
    if size is None:
        return _place(bandit.decide(*about, id=id))
    slate = bandit.decide_slate(*about, size=size, id=id)
    return {
        "id": slate.id,
        "arms": slate.arms,
        "propensity": slate.propensity,
        "places": list(map(_place, slate.decisions)),
    }


def _place(decision: ArmDecision) -> dict[str, Any]:
    """A decision as it is answered, or a place of a slate."""
    return {name: value for name, value in decision._asdict().items() if value is not None}


def _observed(bandit: Bandit, request: Mapping[str, Any], id: str | None) -> dict[str, Any]:
    asked = {name: request.get(name) for name in ("reward", "propensity", "arms")}
    said = bandit.observe(request.get("context"), request["arm"], id=id, **asked)
    error = {"error": CONFLICT} if said.status is RewardStatus.CONFLICT else {}
    return {"id": said.id, "status": "pending" if said.status is None else said.status.value} | error


def id_of(request: Mapping[str, Any]) -> str | None:
    """The id of a line, if it has one; a whole number is the text of its digits."""
    id = request.get("id")
    if isinstance(id, int) and not isinstance(id, bool):
        return str(id)
    if id is not None and not isinstance(id, str):
        raise CredoError(f"id must be a text; got {id!r}.")
    return id


def parse_line(line: str) -> dict[str, Any]:
    """What a line says; a CredoError if it is no line of these."""
    try:
        request = json.loads(line)
    except (ValueError, RecursionError):
        request = None
    if not isinstance(request, dict):
        raise CredoError("a line must be a JSON object with a context, or with an id and a reward.")
    kind = next((name for name in ("rewards", "arm", "reward") if name in request), "context")
    others = sorted(request.keys() - set(_KEYS[kind]))
    if others:
        every = "; or ".join(f"{', '.join(keys[:-1])} and {keys[-1]}" for keys in _KEYS.values())
        beside = {"arm": "an arm", "reward": "a reward"}.get(kind, kind) if kind in request else "a request"
        raise CredoError(f"a line must have the keys {every}; got {others[0]!r} beside {beside}.")
    if not request:
        raise CredoError("a line must have a context (null if there is none), or an id and a reward.")
    return request
