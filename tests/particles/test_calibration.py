"""Calibration by simulation: truths that come from the prior have uniform ranks among the particles.

`benchmarks/calibration.py` has the methods and the worlds, and `docs/explanation/correctness.md` its table.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\| ([\w ,-]+) \|" + r" (nan|[.\d]+) \(p = ([.\d]+)\)[^|]*\|" * 3 + "$", re.MULTILINE)
"""A row of the table."""

DRAWS = 100


def load() -> Any:
    spec = importlib.util.spec_from_file_location("calibration", ROOT / "benchmarks" / "calibration.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["calibration"] = module
    spec.loader.exec_module(module)
    return module


calibration = load()
PAGE = (ROOT / "docs" / "explanation" / "correctness.md").read_text(encoding="utf-8")
TABLE = {
    row[0]: dict(zip(calibration.WORLDS, map(float, row[1::2]), strict=True)) for row in ROW.findall(PAGE)
}
"""The distance of the ranks from uniform ones, by method and world, as the page has it."""

SAMPLE = (
    pytest.param("bootstrap", "bimodal", marks=pytest.mark.thorough),
    ("guard", "bimodal"),
    pytest.param("linear-2", "linear", marks=pytest.mark.thorough),
)
"""What runs beside the whole table."""


@pytest.mark.slow
@pytest.mark.parametrize(("name", "world"), SAMPLE)
def test_the_truth_has_uniform_ranks_among_the_particles(name: str, world: str) -> None:
    score = calibration.calibrate(calibration.METHODS[name], world, DRAWS, seed=1)
    # one false alarm in a thousand, and a fixed seed
    assert score.learned == 1 and score.p > 1e-3
    assert score.distance < 1.95 / np.sqrt(DRAWS)


@pytest.mark.slow
def test_a_map_that_knows_one_mode_has_no_uniform_ranks_where_there_are_two() -> None:
    score = calibration.calibrate(calibration.METHODS["flow, untrained"], "bimodal", DRAWS, seed=1)
    assert score.p < 1e-3 and score.distance > 0.2


@pytest.mark.thorough
@pytest.mark.table
@pytest.mark.parametrize("count", [50, 400])
def test_a_guarded_operator_has_the_ranks_of_a_bootstrap_filter_of_half_as_many_particles(count: int) -> None:
    guarded = replace(calibration.METHODS["linear-2, guarded"], particles=count)
    plain = replace(calibration.METHODS["bootstrap, 50 in two dimensions"], particles=count // 2)
    first, second = (calibration.calibrate(one, "bimodal", DRAWS, seed=1) for one in (guarded, plain))
    # by chance 100 ranks are .12 from uniform once in ten times
    assert abs(first.distance - second.distance) < 0.12
    assert (first.p > 1e-3) == (second.p > 1e-3) == (count == 400)


def test_the_worlds_draw_noise_of_the_size_that_they_state() -> None:
    # the upper quartiles of N(0, 1), twice, and of .5 t(3)
    for words, quartile in {"linear": 0.674, "bimodal": 0.674, "heavy tails": 0.382}.items():
        likelihood = calibration.WORLDS[words](2, False).model.likelihood
        keys = jax.random.split(jax.random.key(0), 4000)
        draws = np.asarray(jax.vmap(likelihood.sample, (None, 0))(jnp.zeros(1), keys))
        assert abs(np.median(np.abs(draws)) / quartile - 1) < 0.08 and np.max(np.abs(draws)) < 50, words


def test_the_page_on_correctness_has_every_method_or_says_that_it_was_not_run() -> None:
    for name in calibration.METHODS:
        assert (name in TABLE) != (f"*{name}*" in PAGE), name
    assert set(TABLE) <= set(calibration.METHODS)


@pytest.mark.thorough
@pytest.mark.parametrize("world", calibration.WORLDS)
@pytest.mark.parametrize("name", TABLE)
def test_ranks_are_as_far_from_uniform_as_the_page_on_correctness_says(name: str, world: str) -> None:
    score = calibration.calibrate(calibration.METHODS[name], world, 500, seed=2)
    # 1.95 / sqrt(500) is passed once in a thousand; what refuses most truths has no distance
    assert np.isnan(TABLE[name][world]) or score.distance < TABLE[name][world] + 0.09
