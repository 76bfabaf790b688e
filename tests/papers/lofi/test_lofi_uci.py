"""The regressions of UCI: divisions, and that test rows take no part in choices."""

from __future__ import annotations

import math
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo.datasets import Dataset
from credo.plots import figures
from credo_papers import find
from credo_papers.engine.cell_folder import Cells
from credo_papers.engine.portions import silent
from credo_papers.lofi import lofi_uci_learner, lofi_uci_world
from credo_papers.lofi.lofi_uci_learner import build, make_learner, make_prior, make_program, search_of
from credo_papers.lofi.lofi_uci_plan import LEARNERS, PLANS, PUBLISHED, UCIPlan
from credo_papers.lofi.lofi_uci_world import make_splits

ROWS, WIDTH = 60, 3


def toy(name: str = "yacht", split: str = "all") -> Dataset:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(ROWS, WIDTH)).astype(np.float32) * np.array([1.0, 50.0, 0.1], np.float32)
    y = (10.0 + 3.0 * np.sin(x[:, 0]) + 0.3 * rng.normal(size=ROWS)).astype(np.float32)
    return Dataset(name, x, y, "regression")


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lofi_uci_world, "load", toy)
    monkeypatch.setattr(lofi_uci_learner, "TUNING_ROWS", 30)
    plan = UCIPlan(("yacht",), 3, ("LOFI-1", "replay SGD-10"))
    monkeypatch.setitem(PLANS, "quick", plan)


def test_divisions_are_random_complete_and_standardised_by_their_training_rows() -> None:
    splits = make_splits(toy(), 0, 3)
    data = toy()
    for i in range(3):
        x, y = splits.x[i], splits.y[i]
        assert x.shape == (54, WIDTH) and splits.x_test[i].shape == (6, WIDTH)
        np.testing.assert_allclose(x.mean(axis=0), 0, atol=1e-5)
        np.testing.assert_allclose(x.std(axis=0), 1, atol=1e-5)
        assert abs(y.mean()) < 1e-5 and abs(y.std() - 1) < 1e-5
        order = np.random.default_rng([0, i]).permutation(ROWS)
        level, unit = data.y[order[:54]].mean(), data.y[order[:54]].std()
        np.testing.assert_allclose(splits.unit[i], unit, rtol=1e-5)
        np.testing.assert_allclose(unit * splits.y_test[i] + level, data.y[order[54:]], rtol=1e-4)
        rows = np.concatenate([splits.y[i], splits.y_test[i]]) * unit + level
        np.testing.assert_allclose(np.sort(rows), np.sort(data.y), rtol=1e-4)
    assert not np.array_equal(splits.x[0], splits.x[1])


def test_published_splits_have_the_sizes_of_ours() -> None:
    rows = {"concrete": 1030, "energy": 768, "kin8nm": 8192, "power": 9568, "wine": 1599, "yacht": 308}
    for name, published in PUBLISHED.items():
        assert round(0.9 * rows[name]) == published["rows"]
        assert set(published["rmse"]) == set(LEARNERS)


@pytest.mark.slow
def test_the_choice_uses_training_rows_only() -> None:
    program = make_program("vd-ekf", 0)
    program["tuning_rows"] = 30
    one = jax.jit(build(program))
    split = jax.tree.map(lambda leaf: leaf[0], make_splits(toy(), 0, 1))
    result = one(None, split, None)
    other = one(None, split._replace(x_test=split.x_test + 1.0, y_test=-split.y_test), None)
    np.testing.assert_array_equal(result["tuning"], other["tuning"])
    assert result["chosen_noise_var"] == other["chosen_noise_var"] and result["rmse"] != other["rmse"]
    late = split._replace(y=np.concatenate([split.y[:30], -split.y[30:]]))
    np.testing.assert_array_equal(one(None, late, None)["tuning"], result["tuning"])

    # The noise is found: its variance is about 0.02 of the standardised target.
    assert float(result["chosen_noise_var"]) in (pytest.approx(0.008), pytest.approx(0.03))
    # The chosen setting, learned again by hand.
    setting = {key[7:]: value for key, value in result.items() if key.startswith("chosen_")}
    learner = make_learner("vd-ekf", 0, setting)
    prior = make_prior(learner, setting, split)
    half = credo.run(learner, prior, split.x[:30], split.y[:30])[1].log_evidence[15:].mean()
    np.testing.assert_allclose(half, result["tuning"][5:].max(), rtol=1e-4)
    belief, _ = credo.run(learner, prior, split.x, split.y)
    gap = jax.vmap(lambda x: learner.forecast(belief, x).mean)(split.x_test) - split.y_test
    np.testing.assert_allclose(result["rmse"], split.unit * jnp.sqrt(jnp.mean(gap**2)), rtol=1e-3)


def test_the_prior_is_as_described() -> None:
    split = jax.tree.map(lambda leaf: leaf[0], make_splits(toy(), 0, 1))
    setting = {"init_var": jnp.float32(3.0), "prior_var": jnp.float32(10.0), "noise_var": jnp.float32(0.1)}
    learner = make_learner("full", 0, setting)
    belief = make_prior(learner, setting, split)
    params, sd = belief.params, belief.unravel(belief.sd)
    np.testing.assert_allclose(sd[0]["w"] ** 2, 3.0 / WIDTH, rtol=1e-5)
    np.testing.assert_allclose(sd[0]["b"] ** 2, 3.0, rtol=1e-5)
    np.testing.assert_allclose(sd[1]["w"] ** 2, 10.0 / 50, rtol=1e-5)
    np.testing.assert_allclose(sd[1]["b"] ** 2, 10.0, rtol=1e-5)
    spread = jnp.concatenate([params[0]["w"].ravel() * math.sqrt(WIDTH), params[0]["b"]]) / math.sqrt(3.0)
    assert abs(float(spread.std()) - 1.0) < 4 / np.sqrt(2 * spread.size) and not np.any(params[1]["w"])


@pytest.mark.parametrize("label", LEARNERS)
def test_every_learner_can_be_made(label: str) -> None:
    method, rank = LEARNERS[label]
    search = search_of(method)
    first = search["start"] | {key: column[0] for stage in search["stages"] for key, column in stage.items()}
    setting = {key: jnp.float32(value) for key, value in first.items()}
    learner = make_learner(method, rank, setting)
    split = jax.tree.map(lambda leaf: leaf[0], make_splits(toy(), 0, 1))
    assert make_prior(learner, setting, split).size == 50 * (WIDTH + 2) + 1


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_the_experiment_runs_and_resumes(tmp_path: Path) -> None:
    shares: list[float] = []
    first = find("lofi-uci").run("quick", 0, lambda done, text: shares.append(done), cells=Cells(tmp_path))
    assert shares == sorted(shares) and shares[-1] == 1.0
    by_name = {row.quantity: row for row in first.rows}
    assert by_name["yacht, replay SGD-10"].published == 7.92 and by_name["yacht, LOFI-1"].published == 5.91
    best = by_name["yacht, best of full EKF and LOFI"]
    assert best.ours == by_name["yacht, LOFI-1"].ours and best.published == 2.31
    sd = float(toy().y.std())
    assert all(0.1 * sd < row.ours < 1.5 * sd for row in first.rows)
    assert first.arrays["yacht LOFI-1 refused"].sum() == 0
    cells = Cells(tmp_path)
    second = find("lofi-uci").run("quick", 0, silent, cells=cells)
    assert (cells.reused, cells.computed) == (2, 0) and second.rows == first.rows
    with figures.style():
        assert figures.png(first.figure()).startswith(b"\x89PNG")
