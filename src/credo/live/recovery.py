"""Recovery of a learner that refuses row after row: it begins again from its prior, and says so at once."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TypedDict, TypeVar, cast

import jax
import numpy as np

from credo.core.errors import Named, Sentence
from credo.core.forms import require_form
from credo.learners import Info

__all__ = ["REFUSALS", "Recovery", "SavedRecovery"]

REFUSALS = 10
"""The number of refusals in a row that are taken as a sign that a belief is beyond repair."""

SHOWN = 5
"""The most rows that a sentence names."""

B = TypeVar("B")
Outcomes = TypeVar("Outcomes")


class SavedRecovery(TypedDict):
    """The state of a `Recovery` as JSON data."""

    rows: list[int]
    streak: int
    seen: int


class Recovery:
    """A count of refusals, and a fresh start if there are ten in a row: data are finite, so the belief
    itself has run away. `rows` are those after which it began again, `streak` the refusals since a row was
    learned, and `seen` all rows; `notify` is given the sentence about it, by default as a warning.
    """

    def __init__(self, rows: list[int] | None = None, streak: int = 0, seen: int = 0) -> None:
        self.rows = list(rows or [])
        self.streak = streak
        self.seen = seen
        self.notify: Callable[[str], None] = _warn

    def broken(self, ok: np.ndarray) -> int | None:
        """The first row with ten refusals in a row, where `ok` says which were learned (n,); or None."""
        if np.count_nonzero(ok) == len(ok):
            self.streak = 0
            return None
        streak = self.streak
        for row, learned in enumerate(ok):
            streak = 0 if learned else streak + 1
            if streak == REFUSALS:
                return row
        self.streak = streak
        return None

    def due(self, ok: bool, row: int) -> bool:
        """Whether the learner must begin again after a row with this number, which was learned or refused."""
        self.seen = row
        if self.broken(np.array([ok])) is None:
            return False
        self.streak = 0
        self.rows.append(row)
        self.notify(self.sentence)
        return True

    def go_on(
        self,
        learn: Callable[[B, int], tuple[B, Outcomes, Info]],
        first: tuple[B, Outcomes, Info],
        fresh: Callable[[], B],
        size: int,
    ) -> tuple[B, Outcomes, Info]:
        """Go on after `first`, what was learned of `size` rows some of which were refused, with fresh starts
        if they are due: the belief, and outcomes and infos of the rows. `learn` takes a belief and the row to
        begin with. Results do not depend on the chunks.
        """
        start = 0
        parts = []
        later, outcome, info = first
        while (end := self.broken(np.asarray(info.ok))) is not None:
            parts.append(jax.tree.map(lambda leaf, stop=end + 1: leaf[:stop], (outcome, info)))
            start = start + end + 1
            later = fresh()
            self.streak = 0
            self.rows.append(self.seen + start)
            self.notify(self.sentence)
            if start == size:
                break
            later, outcome, info = learn(later, start)
        else:
            parts.append((outcome, info))
        if len(parts) == 1:
            return later, *parts[0]
        outcomes, infos = jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)
        return later, outcomes, infos

    @property
    def sentence(self) -> Sentence:
        """The sentence on what was done, and on what would help; empty if nothing was done."""
        if not self.rows:
            return Sentence("")
        named = ", ".join(f"{row:,}" for row in self.rows[:SHOWN])
        more = f" and {len(self.rows) - SHOWN:,} more" if len(self.rows) > SHOWN else ""
        return Sentence(
            f"{REFUSALS} rows in a row would have made the belief infinite: it began again from the "
            f"prior after row{'s'[: len(self.rows) > 1]} {named}{more}; a smaller {Named('prior_var')} "
            f"or {Named('drift')} may help.",
        )

    def to_dict(self) -> SavedRecovery:
        """The state as JSON data."""
        return {"rows": self.rows, "streak": self.streak, "seen": self.seen}

    @staticmethod
    def from_dict(saved: object) -> Recovery:
        """Restore what `to_dict` gave."""
        require_form(saved, SavedRecovery, "recovery")
        return Recovery(**cast(SavedRecovery, saved))


def _warn(sentence: str) -> None:
    warnings.warn(sentence, stacklevel=4)
