"""`--resume`: continue a saved session with the learner that was saved in it, if it was."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from credo.cli.request import Request
from credo.core.errors import CredoError, DataError
from credo.sessions import Drift, Network, Posterior, Progress, Session
from credo.sessions.places import find_place

__all__ = ["find_start", "resume"]


def resume(request: Request, path: Path) -> Session:
    """The saved session; refused if a flag asks for another learner, or for other columns."""
    session = Session.load(path)
    saved = _saved(session)
    for name, choice in _choices(request).items():
        present = saved.get(name)
        if not _same(name, choice, present):
            option = "--" + name.replace("_", "-")
            value = "its own" if present is None else present
            raise CredoError(
                f"{path} was saved with {option} {value}, which cannot be changed to {choice} when "
                f"resuming; leave {option} out."
            )
    return session


def _choices(request: Request) -> dict[str, object]:
    """The flags that were given."""
    learner, columns = dataclasses.asdict(request.learner), request.columns
    table: dict[str, object] = {
        "target": columns.target,
        "task": columns.task,
        "classes": columns.classes,
        "drop": columns.drop,
        "categorical": columns.categorical,
    }
    named = {name: value for name, value in table.items() if value}
    return {name: value for name, value in learner.items() if value is not None} | named


def _saved(session: Session) -> Mapping[str, object]:
    budget = {"bank": "default", "wide-bank": "thorough"}.get(session.settings.model.kind, "fast")
    return {**session.settings.to_dict(), "target": session.encoding.target, "budget": budget}


def _same(name: str, choice: object, present: object) -> bool:
    """Whether a flag says what was saved, however it is spelled."""
    if choice == present or not (isinstance(choice, str) and isinstance(present, str)):
        return choice == present
    if name == "model":
        return Network.parse(choice) == Network.parse(present)
    if name == "posterior" and present != "none":
        return Posterior.parse(choice) == Posterior.parse(present)
    return name == "drift" and Drift.parse(choice) == Drift.parse(present)


def find_start(session: Session, request: Request, order: str) -> int:
    """The line after which a run goes on in its source, and 0 if the belief has not learned from it.

    The session's progress becomes that in this source. `order` is that of the rows of a named data set.
    Refused are rows that were learned from, in another order or beside others, unless they were asked for
    again.
    """
    name, latest = request.source, session.progress
    places = [*session.places, latest] if latest.line else session.places
    place = None
    if order:
        place = next((one for one in reversed(places) if one.source == name and one.order), None)
        if place is not None and place.order != order and not request.run.again:
            raise DataError(
                f"{request.run.resume} has learned from {place.line:,} rows of {name}, {place.order}, which "
                f"cannot be told from the rest {order}; --again learns from all of them."
            )
    elif request.rereadable:
        place, changed = find_place(name, places)
        if changed and place is None and not request.run.again:
            raise DataError(
                f"{name} begins with rows that {request.run.resume} has learned from, and then differs; "
                "--again learns from all of them."
            )
    session.places = [one for one in places if one is not place]
    start = 0 if place is None or request.run.again else place.line
    session.progress = Progress(
        name, start, order=order, forecast_bytes=latest.forecast_bytes, forecast_tail=latest.forecast_tail
    )
    return start
