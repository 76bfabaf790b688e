"""The searcher for Ray Tune: it asks for configurations of the space, and learns from all trials."""

from __future__ import annotations

import builtins
import math
from pathlib import Path
from typing import Any

import pytest
from tests.needed import needs

import credo
from credo.bandits import optimize
from credo.bandits.optimize.variables import Parameter


@pytest.fixture
def tune() -> Any:
    """Ray Tune, whose import takes 130 MB of a process that may run no test of it."""
    return needs("ray.tune")


def space(tune: Any) -> dict[str, Any]:
    return {
        "net": {"rate": tune.loguniform(1e-4, 1.0), "depth": tune.randint(1, 10)},
        "share": tune.quniform(0.0, 1.0, 0.25),
        "wide": tune.qrandint(10, 50, 10),
        "kind": tune.choice(["a", "b"]),
        "fixed": 3,
    }


def loss(config: dict[str, Any]) -> float:
    net = config["net"]
    off = (math.log10(net["rate"]) + 2.0) ** 2 + (config["share"] - 0.5) ** 2 + (net["depth"] - 4) ** 2
    return float(off + (config["wide"] - 30) ** 2 / 1e3 + (config["kind"] == "a"))


@pytest.mark.slow
def test_a_space_of_tune_is_searched(tmp_path: Path, tune: Any) -> None:
    search: Any = optimize.ray_searcher(seed=1)
    assert search.set_search_properties("loss", "min", space(tune))
    best = math.inf
    for trial in range(7):
        config = search.suggest(f"t{trial}")
        assert 1 <= config["net"]["depth"] <= 9 and config["share"] in (0.0, 0.25, 0.5, 0.75, 1.0)
        assert config["wide"] in (10, 20, 30, 40, 50) and isinstance(config["wide"], int)
        assert config["kind"] in ("a", "b") and "fixed" not in config  # Tune adds constants
        if trial == 2:
            search.on_trial_complete("t2", error=True)
        else:
            search.on_trial_complete(f"t{trial}", {"loss": loss(config)})
            best = min(best, loss(config))
    assert best < 3.0
    # a trial runs while the search is saved; what is restored goes on as if nothing had happened
    search.suggest("running")
    search.save(str(tmp_path / "state.pkl"))
    other: Any = optimize.ray_searcher(space(tune), metric="loss", mode="min", seed=1)
    other.restore(str(tmp_path / "state.pkl"))
    for one in (search, other):
        one.on_trial_complete("running", {"loss": 0.7})
    assert search.suggest("next") == other.suggest("next")
    (tmp_path / "broken").write_text("no state")
    with pytest.raises(credo.FormatError, match="no searcher"):
        other.restore(str(tmp_path / "broken"))


@pytest.mark.slow
def test_trials_of_others_are_learned_and_losses_may_be_gains(tune: Any) -> None:
    lows: Any = optimize.ray_searcher({"x": tune.uniform(0, 1)}, metric="y", mode="min")
    highs: Any = optimize.ray_searcher({"x": tune.uniform(0, 1)}, metric="y", mode="max")
    for x in (0.1, 0.4, 0.7, 0.95):
        lows.add_evaluated_point({"x": x}, (x - 0.5) ** 2)
        highs.add_evaluated_point({"x": x}, -((x - 0.5) ** 2))
    lows.add_evaluated_point({"x": 0.2}, 9.0, pruned=True)
    assert lows.suggest("a")["x"] == pytest.approx(highs.suggest("a")["x"], abs=1e-3)
    assert lows.suggest("b") != lows.suggest("c")
    assert not lows.set_search_properties("y", "min", space(tune))


def test_a_metric_without_noise_is_searched_as_such(tune: Any) -> None:
    asked = []
    for deterministic in (False, True):
        search: Any = optimize.ray_searcher(
            {"x": tune.uniform(0, 1)}, metric="y", mode="min", deterministic=deterministic
        )
        for x in (0.1, 0.35, 0.4, 0.6, 0.7, 0.9):
            search.add_evaluated_point({"x": x}, math.cos(40.0 * x))
        asked.append(search.suggest("a")["x"])
    assert asked[0] != asked[1]


def test_what_cannot_be_searched_is_refused(monkeypatch: pytest.MonkeyPatch, tune: Any) -> None:
    for space, words in (
        ({"x": tune.randn()}, "x must be a uniform"),
        ({"x": tune.grid_search([1, 2])}, "x must be a domain to search, not a grid"),
        ({"net": {"a/b": tune.uniform(0, 1)}}, "'a/b' must have no slash"),
    ):
        with pytest.raises(credo.CredoError, match=words):
            optimize.ray_searcher(space)
    empty: Any = optimize.ray_searcher({"x": 1}, metric="y", mode="min")
    with pytest.raises(credo.CredoError, match="at least one domain"):
        empty.suggest("a")
    nameless: Any = optimize.ray_searcher({"x": tune.uniform(0, 1)})
    with pytest.raises(credo.CredoError, match="metric and mode"):
        nameless.suggest("a")
    some: Any = optimize.ray_searcher({"x": tune.uniform(0, 1), "y": 3}, metric="loss", mode="min")
    with pytest.raises(credo.CredoError, match="parameters must have x, as the space has; got y"):
        some.add_evaluated_point({"y": 3}, 1.0)
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.startswith("ray"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(credo.CredoError, match="pip install 'ray"):
        optimize.ray_searcher()


@pytest.mark.parametrize(
    ("one", "value"),
    [
        (Parameter(0.0, 1.0, 0.3), 0.6),
        (Parameter(10, 50, 10), 30),
        (Parameter(1, 9, 1), 4),
        (Parameter(1e-3, 1.0, log=True), 0.1),
        (Parameter(16, 256, 16, True), 64),
        (Parameter(options=("a", None, math.nan)), None),
    ],
)
def test_a_value_comes_back_as_it_was(one: Parameter, value: Any) -> None:
    assert one.value_of(one.seen_as(value)) == pytest.approx(value)
