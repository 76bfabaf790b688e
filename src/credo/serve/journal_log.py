"""Decisions and rewards of a bandit of a service, as the lines of a log that policies are evaluated on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from credo.bandits.logs.json_lines import place_id
from credo.core.errors import DataError
from credo.serve.building import JOURNAL
from credo.serve.contents import Decide, Observe, Reward
from credo.serve.journal_lines import Event, event_of
from credo.serve.journal_source import model_of
from credo.serve.journal_store import Store

__all__ = ["log_lines"]

_decode = msgspec.json.Decoder().decode


def log_lines(folder: Path, model: str) -> Iterator[dict[str, Any]]:
    """The decisions and rewards of a bandit so far, as `Log.read` takes them; a slate is a decision for each
    of its places.

    Arguments:
        folder: the folder of the service, which may be running.
        model: the name of the bandit.

    Raises:
        DataError: there is no such model, or it is not a bandit.
    """
    store = Store(folder / JOURNAL)
    try:
        row, spec = model_of(store, folder, model)
        if "target" in spec:
            raise DataError(f"{folder}/{model} must be a bandit; it is a model of a table.")
        arms = tuple(spec.get("arms", ()))
        for lines in store.lines(row, 0, store.last()):
            for line in lines:
                answer = None if line.answer is None else _decode(line.answer)
                if answer is not None and "refused" not in answer:
                    yield from _said(event_of(line), answer, arms)
    finally:
        store.close()


def _said(event: Event, answer: Mapping[str, Any], arms: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """The lines of a log that an event is."""
    content = event.content
    about = {"id": event.id, "time": event.time}
    if isinstance(content, Decide):
        seen = {"kind": "decision", **_asked(content)}
        left = list(arms if content.arms is None else content.arms)
        for number, place in enumerate(answer.get("places", [answer]), 1):
            id = place_id(event.id, number)
            pmf = dict.fromkeys(left, 0.0) | place["pmf"]
            yield {
                **seen,
                **about,
                "id": id,
                "arm": place["arm"],
                "propensity": place["propensity"],
                "pmf": pmf,
            }
            left = [arm for arm in left if arm != place["arm"]]
    elif isinstance(content, Observe):
        odds = content.propensity
        whole = {"pmf": odds, "propensity": odds.get(content.arm)} if isinstance(odds, dict) else {}
        allowed = list(arms if content.arms is None else content.arms)
        seen = {"propensity": odds, **whole, **({"arms": allowed} if allowed else {})}
        yield {"kind": "observed", **about, **_asked(content), "arm": content.arm, **seen}
        if content.reward is not None:
            yield {"kind": "reward", **about, "value": content.reward}
    elif isinstance(content, Reward):
        if content.values is None:
            if answer["status"] not in ("learned", "added"):
                return
            part = {} if content.part is None else {"part": content.part}
            yield {"kind": "reward", **about, "value": content.value, **part}
            return
        shares = content.seen if isinstance(content.seen, list) else [1.0] * len(content.values)
        rows = zip(answer["statuses"], content.values, shares, strict=True)
        for number, (status, value, share) in enumerate(rows, 1):
            if status == "learned":
                id = place_id(event.id, number)
                yield {"kind": "reward", **about, "id": id, "value": value / share}


def _asked(content: Decide | Observe) -> dict[str, Any]:
    """The context, and the features of arms if the call brought them."""
    features = {"features": content.arms} if isinstance(content.arms, dict) else {}
    return {"context": content.context, **features}
