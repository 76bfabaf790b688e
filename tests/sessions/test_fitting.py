"""Saved sessions whose parts cannot belong together are refused by the name of the field."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import credo
from credo.core.archive import refusing
from credo.sessions import Session
from credo.sessions import session as sessions
from credo.sessions.fitting import State, require_fitting

ROWS = [{"a": float(i % 7), "b": "xy"[i % 2], "y": 2.0 * (i % 7) + (i % 3)} for i in range(40)]


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> State:
    """The state of a session that has learned forty rows."""
    session = Session.from_rows(ROWS, "y", model="linear")
    session.learn(ROWS)
    return sessions.read(session.save(tmp_path_factory.mktemp("state") / "state.credo"))


def changed(record: Any, path: str, value: Callable[[Any], Any]) -> Any:
    """The record with another value at a path of fields."""
    name, _, rest = path.partition(".")
    old = getattr(record, name)
    new = changed(old, rest, value) if rest else value(old)
    forged = copy.copy(record)
    object.__setattr__(forged, name, new)
    return forged


def test_a_session_is_whole(state: State) -> None:
    require_fitting(state)


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        ("encoding.encoder.clip", lambda _: 0.0, "encoding.clip"),
        ("encoding.encoder.clip", lambda _: np.inf, "encoding.clip"),
        ("settings.task", lambda _: "classification", "settings.task"),
        ("settings.prior_var", lambda _: 0.0, "settings.prior_var"),
        ("settings.noise_var", lambda _: -1.0, "settings.noise_var"),
        ("settings.prior_var", lambda _: "much", "settings.prior_var"),
        ("encoding.state.moments.count", lambda old: old[:0], "encoding.count"),
    ],
)
def test_parts_that_cannot_be_are_refused(
    state: State, path: str, value: Callable[[Any], Any], field: str
) -> None:
    forged = changed(state, path, value)
    with pytest.raises(credo.FormatError) as caught, refusing("forged.credo", "session"):
        require_fitting(forged)
    assert caught.value.field == field, caught.value
    assert str(caught.value).startswith("forged.credo cannot be used: ")
