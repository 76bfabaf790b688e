"""The experiments with bandits: contests, their cells and figures, and the slopes of regret."""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from credo.bandits import UCB, Thompson
from credo.bandits.environments import Wheel
from credo.plots import figures
from credo_papers.bandits import bandit_agents as agents
from credo_papers.bandits import (
    bandit_contest,
    bandit_mab,
    bandit_memory,
    bandit_mnist,
    bandit_tabular,
    bandit_wheel,
)
from credo_papers.bandits.bandit_contest import Contest, Contestant, Peer, contest
from credo_papers.engine.cell_folder import Cells
from credo_papers.engine.portions import silent

BEST = Peer(5.0, 1.0, "another package")


@pytest.mark.slow
def test_a_contest_has_every_run_and_goes_on_from_its_cells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bandit_contest, "BATCH", 3)
    player = Contestant("uniform", agents.uniform, {"a": BEST})
    plan = Contest("Wheels", {"a": Wheel(delta=0.5)}, [player], 20, 6, True, {}, {"a": [BEST]})
    first = contest(plan, 0, silent, Cells(tmp_path))
    cells = Cells(tmp_path)
    again = contest(plan, 0, silent, cells)
    assert (cells.computed, cells.reused) == (0, 2)
    for name, values in first.arrays.items():
        np.testing.assert_array_equal(values, again.arrays[name])
    rows = {row.quantity: row for row in first.rows}
    assert rows["regret, a: uniform"].published == 5.0
    final = first.arrays["regret a: uniform"][:, -1]
    assert final.shape == (6,) and len(set(final.tolist())) == 6
    assert rows["regret, a: uniform"].ours == pytest.approx(final.mean())
    assert f"worst {final.max():,.0f}" in rows["regret, a: uniform"].note
    with figures.style():
        assert figures.png(first.figure()).startswith(b"\x89PNG")


@pytest.mark.slow
@pytest.mark.parametrize("build", [agents.linear_outputs, bandit_wheel.FEATURES])
def test_an_agent_starts_without_a_preference(build: agents.Build) -> None:
    agent, params, var, _ = build(3, 4)
    scaled = {} if agent.scale is None else {"context": np.zeros(4)}
    belief = agent.init(params(jax.random.key(0)), var=var, **scaled)
    choice = agent.decide(belief, jnp.ones(4), key=0)
    assert choice.pmf.shape == (3,) and float(choice.pmf.sum()) == pytest.approx(1.0)
    assert float(jnp.ptp(choice.mean)) == 0.0


@pytest.mark.slow
def test_slopes_and_posteriors_of_arms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bandit_mab, "SIZES", {"quick": (3, 300)})
    monkeypatch.setattr(bandit_mab, "ARMS", {"Thompson": Thompson()})
    monkeypatch.setattr(bandit_mab, "LINEAR", {"linear UCB": UCB(2.0)})
    outcome = bandit_mab.run("quick", 0, silent)
    posteriors = outcome.arrays["posteriors"]
    assert (posteriors.sum(axis=(1, 2)) - 8).tolist() == [20, 200, 300]
    assert posteriors[-1].sum(axis=1).argmax() == 3
    rows = {row.quantity: row for row in outcome.rows}
    assert rows["regret a unit of log T, Thompson"].published == 1.96
    assert 0.0 < rows["power of T, linear UCB"].ours < 1.0
    with figures.style():
        assert figures.png(outcome.figure()).startswith(b"\x89PNG")


@pytest.mark.slow
def test_reward_against_memory_has_a_curve_for_each_way_of_keeping_the_past(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def build(size: int, arms: int, inputs: int) -> agents.Player:
        return agents.uniform(arms, inputs)

    sizes = tuple(functools.partial(build, size) for size in (1, 3, 10))
    monkeypatch.setattr(bandit_memory, "FAMILIES", {"rank": sizes})
    monkeypatch.setattr(bandit_memory, "STEPS", {"quick": 20})
    monkeypatch.setattr(bandit_memory, "load_environment", lambda name: Wheel(delta=0.5))
    outcome = bandit_memory.run("quick", 0, silent)
    assert [row.quantity for row in outcome.rows] == ["reward, statlog: rank 1", "reward, statlog: rank 10"]
    with figures.style():
        figure: Any = outcome.figure()
        assert list(figure.axes[0].lines[0].get_xdata()) == [1, 10]
        assert figures.png(figure).startswith(b"\x89PNG")
    replayed = bandit_memory.replay(10, 3, 4)
    assert replayed.options["example"][0][0].shape == (4,) and replayed.agent.scale == "online"


@pytest.mark.slow
@pytest.mark.parametrize("module", [bandit_tabular, bandit_mnist])
def test_plans_on_data(module: object, monkeypatch: pytest.MonkeyPatch) -> None:
    if "CREDO_DATA_DIR" not in os.environ:
        pytest.skip("CREDO_DATA_DIR is not set, and these data are shipped with no package")
    plans: list[Contest] = []
    monkeypatch.setattr(module, "contest", lambda plan, *_: plans.append(plan))
    for size in ("quick", "full"):
        module.run(size, 0, silent)  # type: ignore[attr-defined]
    quick, full = plans
    assert full.steps == 5000 and quick.seeds < full.seeds
    for world, environment in full.worlds.items():
        assert environment.steps is not None and environment.steps >= full.steps
        assert {peer.name for peer in full.peers[world]}
    assert all(set(player.peers) <= set(full.worlds) for player in full.contestants)
