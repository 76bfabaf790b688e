"""What a session carries from one row to the next, which a file holds."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import NamedTuple

from credo.live.early import Early
from credo.live.encoding import Encoding
from credo.live.recovery import Recovery
from credo.recipes.assembly import Belief, SessionLearner
from credo.recipes.settings import Settings
from credo.sessions.change_tally import ChangeTally
from credo.sessions.places import Progress
from credo.sessions.tally import Tally
from credo.tables import Moments

__all__ = ["NAMES", "Counters", "State"]


class Counters(NamedTuple):
    """How many rows were read, used and refused, and how many cells were missing or unknown."""

    read: int
    used: int
    refused: int
    missing: Counter[str]
    unseen: Counter[str]


@dataclasses.dataclass(frozen=True)
class State:
    """All that a session carries from one row to the next."""

    settings: Settings
    encoding: Encoding
    learner: SessionLearner
    belief: Belief
    scaler: Moments
    tally: Tally
    changes: ChangeTally | None
    progress: Progress
    places: list[Progress]
    counters: Counters
    recovery: Recovery
    early: Early


NAMES = tuple(field.name for field in dataclasses.fields(State) if field.name != "counters")
"""What a state and a session have in common, by the same names."""
