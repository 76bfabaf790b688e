"""What the alarms about classes are worth: `benchmarks/class_alarms.py`."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import credo


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    return importlib.import_module("class_alarms")


def test_a_change_is_found_once_and_what_is_far_from_all_is_false(bench: Any) -> None:
    world = bench.World({}, (1000, 2000), near=60)
    still = bench.World({})
    count = bench.counted([500, 999, 1000, 1030, 1059, 1060, 1299, 1300, 2059], world)
    assert count == bench.Count(2, (0, 59), 3)
    assert str(count) == "2 of 2, 30 rows, 3 false"
    assert str(bench.counted([], still)) == "0 false"
    assert count + bench.counted([5], still) == bench.Count(2, (0, 59), 4)


def test_losses_alone_give_the_alarms_of_a_learner_that_asks_for_no_surprise(bench: Any) -> None:
    rng = np.random.default_rng(0)
    ys = rng.uniform(size=500) < np.where(np.arange(500) < 250, 0.02, 0.6)
    learner = credo.Monitored(credo.BetaBernoulli(), surprise=0.0)
    _, trace = credo.run(learner, learner.init(), None, jnp.asarray(ys.astype(np.float32)))
    assert bench.by_losses(np.asarray(trace.log_evidence)) == credo.alarms(trace).tolist() != []


def test_a_world_is_that_of_its_key_and_changes_in_the_middle(bench: Any) -> None:
    assert bench.softmax("half of the weights new", 2, 0).changes == (1500,)
    assert bench.softmax("still", 2, 0).changes == ()
    labels = [bench.softmax("all weights new", 3, key).columns["y"] for key in (1, 1, 2)]
    assert (labels[0] == labels[1]).all()
    assert (labels[0] != labels[2]).any()
