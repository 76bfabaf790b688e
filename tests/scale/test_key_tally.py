"""The tally of keys, which knows keys again by their slots."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from credo.scale.feed import Batch
from credo.scale.keyed_run import KeyTally

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("warmup", [0, 3])
def test_slots_that_stay_give_the_tally_of_names(warmup: int) -> None:
    slot_of: dict[str, int] = {}
    named, slotted, late = (KeyTally(False, warmup) for _ in range(3))
    for turn in range(6):
        keys = [f"k{number}" for number in RNG.zipf(1.5, 40) % (10 * turn + 3)]
        for key in keys:
            slot_of.setdefault(key, 200 - len(slot_of))  # in another order than their places
        count, ones = len(keys), np.ones(len(keys))
        lines = np.arange(count) + 100 * turn
        mean, y = RNG.normal(size=(2, count))
        rows = Batch(0, 1, keys, lines, np.zeros((count, 1)), y, ones, 0 * ones, ones, ones > 0)
        outcome = SimpleNamespace(probs=None, mean=mean, pit=RNG.uniform(size=count), log_prob=-(mean**2))
        slots = np.array([slot_of[key] for key in keys])
        told: Any = SimpleNamespace(outcome=outcome, ok=ones > 0, alarm=mean > 1, late=None, slots=slots)
        named.add(rows, told)
        slotted.add(rows, told, stay=True)
        late.add(rows, told, stay=turn > 2)  # as after a checkpoint, which does not know slots
    assert list(named.places) == list(slotted.places) == list(late.places)
    for name in ("totals", "count", "losses", "first", "changes", "came"):
        arrays = [getattr(one, name) for one in (named, slotted, late)]
        assert all(np.array_equal(one, arrays[0]) for one in arrays), name
