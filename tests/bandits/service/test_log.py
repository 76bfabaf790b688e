"""The log of a running bandit, and learning from logs."""

from __future__ import annotations

import json
import pathlib
import re
import subprocess
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.bandits.service.worlds import LINE, LINEAR, XS, Clock, coins, linear

import credo
from credo import bandits
from credo.bandits.service.content import content_of


def test_every_decision_and_reward_is_a_line_of_a_log(tmp_path: pathlib.Path) -> None:
    clock, path = Clock(), tmp_path / "deep" / "log.jsonl"
    bandit = coins(log=path, window=3, on_missing=0.0, clock=clock)
    bandit.forbid("c")
    decisions = []
    for step in range(5):
        clock.time = float(step)
        decisions.append(bandit.decide())
    bandit.reward(decisions[4].id, 1.0)
    bandit.reward(decisions[4].id, 0.0)
    bandit.close()
    assert not bandit.reward("no", 1.0)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["kind"] for line in lines].count("reward") == 3
    assert lines[0] == {"kind": "arm", "change": "forbid", "arm": "c"}
    assert lines[1] == {
        "kind": "decision",
        "id": "0-0",
        "time": 0.0,
        "context": None,
        "arms": ["a", "b"],
        "arm": decisions[0].arm,
        "propensity": decisions[0].propensity,
        "pmf": {name: decisions[0].pmf[name] for name in "ab"},
        "version": 0,
        "number": 0,
        "content": content_of(None, None),
        "mean": decisions[0].mean,
        "sd": decisions[0].sd,
    }
    assert lines[-1] == {"kind": "reward", "id": "0-4", "value": 1.0, "time": 4.0}
    assert lines[4] == {"kind": "reward", "id": "0-0", "value": 0.0, "time": 3.0, "imputed": True}
    log = bandits.Log.read(path)
    assert log.propensities.tolist() == [one.propensity for one in decisions]
    np.testing.assert_array_equal(log.rewards, [0.0, 0.0, np.nan, np.nan, 1.0])
    assert set(log.arms) == {"a", "b"} and log.counts is not None and log.counts.broken == 0


def test_a_log_that_a_crash_cut_goes_on_in_a_new_line(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text('{"kind": "decision", "id": "x", "arm')
    linear(log=path).decide({"age": 31, "device": "phone"})
    lines = path.read_text().splitlines()
    assert [json.loads(line)["kind"] for line in lines[1:]] == ["begin", "decision"]
    assert json.loads(lines[2])["context"] == {"age": 31, "device": "phone"}


def test_a_log_that_cannot_be_written_is_refused(tmp_path: pathlib.Path) -> None:
    with pytest.raises(credo.DataError, match="cannot write the log"):
        coins(log=tmp_path)
    bandit = coins(log=tmp_path / "log.jsonl")
    decision = bandit.decide()
    ledger = bandit._engine.ledger
    assert ledger is not None
    ledger.close()
    ledger._file = open("/dev/full", "wb", buffering=0)  # noqa: SIM115
    with pytest.raises(credo.DataError, match="No space left"):
        bandit.reward(decision.id, 1.0)
    assert bandit.version == 0 and bandit.counts.pending == 1
    with pytest.raises(credo.DataError, match="No space left"):
        bandit.decide()
    assert bandit.counts.decisions == 1
    bandit.close()
    assert bandit.reward(decision.id, 1.0)


def _log(rewards: np.ndarray | None = None) -> bandits.Log:
    rng = np.random.default_rng(1)
    chosen = rng.integers(0, 2, 40)
    values = rng.normal(size=40) if rewards is None else rewards
    return bandits.Log(("red", "blue"), chosen, values, np.where(chosen, 0.8, 0.2), contexts=XS)


@pytest.mark.parametrize("weights", ["none", "propensity"])
def test_a_warm_start_learns_the_rows_of_a_log(weights: Any) -> None:
    log = _log()
    log.rewards[3] = np.nan
    bandit, belief = linear(), LINEAR.init(LINE.init(0, (4,)))
    assert bandit.warm_start(log, weights) == 39 and bandit.version == 39
    scale = np.mean(1 / log.propensities[np.arange(40) != 3])
    for row in range(40):
        if row != 3:
            weight = 1.0 if weights == "none" else 1 / log.propensities[row] / scale
            belief, _ = LINEAR.update(
                belief, jnp.asarray(XS[row]), int(log.chosen[row]), log.rewards[row], weight=weight
            )
    for ours, theirs in zip(jax.tree.leaves(bandit.belief), jax.tree.leaves(belief), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_a_bandit_starts_from_its_own_log(tmp_path: pathlib.Path) -> None:
    first = linear(log=tmp_path / "log.jsonl")
    for x in XS[:20]:
        context = {"a": x[0], "kind": "even" if x[1] > 0 else None}
        first.reward(first.decide(context).id, x[0])
    second = linear()
    assert second.warm_start(bandits.Log.read(tmp_path / "log.jsonl")) == 20
    assert second.features == first.features
    for ours, theirs in zip(jax.tree.leaves(first.belief), jax.tree.leaves(second.belief), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


def _single(arm: str, contexts: Any) -> bandits.Log:
    return bandits.Log(("red", arm), np.array([1]), np.ones(1), np.array([0.5]), contexts=contexts)


def test_a_log_that_does_not_fit_is_refused() -> None:
    bandit = linear()
    for log, words in [
        (_single("grey", XS[:1]), "chose 'grey': add this arm"),
        (_log(np.full(40, np.nan)), "must have a row with a reward"),
        (_single("blue", {"a": XS[:1], "b": np.array([np.inf])}), "context must be finite"),
    ]:
        with pytest.raises(credo.CredoError, match=words):
            bandit.warm_start(log)
        assert bandit.version == 0
    with pytest.raises(credo.CredoError, match="weights must be one of none, propensity"):
        bandit.warm_start(_log(), "snips")  # type: ignore[arg-type]
    assert bandit.features == ("missing",) and bandit.warm_start(_log()) == 40


@pytest.mark.slow
def test_forks_come_together_through_a_log(tmp_path: pathlib.Path) -> None:
    double = jax.tree.map(lambda leaf: leaf.astype(jnp.float64), LINE.init(0, (4,)))
    first, alone = (linear(params=double) for _ in range(2))
    for bandit in (first, alone):
        bandit.observe(XS[0], "red", 1.0)
    second = first.fork(3, log=tmp_path / "second.jsonl")
    for step, x in enumerate(XS[1:20]):
        own = (first, second)[step % 2]
        decision = own.decide(x)
        own.reward(decision.id, x[0])
        alone.observe(x, decision.arm, x[0])
    assert first.warm_start(bandits.Log.read(tmp_path / "second.jsonl")) == 9 and first.version == 20
    for x in XS[20:25]:  # the belief has a root of the covariance, which is not unique
        ours, theirs = (LINEAR.expect(one.belief, jnp.asarray(x)) for one in (first, alone))
        np.testing.assert_allclose(ours.mean, theirs.mean, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(ours.sd, theirs.sd, rtol=1e-10, atol=1e-10)


SECOND_WRITER = """
import sys
import credo
from credo import bandits
agent = bandits.Agent(credo.BetaBernoulli(), 3, "arms")
try:
    bandits.Bandit(agent, ["a", "b", "c"], log=sys.argv[1])
except credo.CredoError as error:
    print(error)
"""


def test_a_second_writer_of_a_log_is_refused_in_this_process_and_in_another(tmp_path: pathlib.Path) -> None:
    log = tmp_path / "log.jsonl"
    first = coins(log=log)
    id = first.decide().id
    words = f"another one writes the log {log} just now, in this process or in another: close it first"
    with pytest.raises(credo.DataError, match=re.escape(words)):
        coins(log=log)
    command = [sys.executable, "-c", SECOND_WRITER, str(log)]
    other = subprocess.run(command, capture_output=True, text=True, check=True)
    assert words in other.stdout, other.stderr
    assert first.reward(id, 1.0)
    first.close()
    again = coins(log=log, replay=True)
    assert again.counts.learned == 1
    again.close()


def test_a_log_that_could_not_be_taken_up_is_free_again(tmp_path: pathlib.Path) -> None:
    log = tmp_path / "log.jsonl"
    first = coins(log=log)
    first.decide()
    first.close()
    log.write_text(re.sub(r'"number": ?0', '"number": "x"', log.read_text()))
    with pytest.raises(credo.DataError, match="lacks the numbers of its decisions"):
        coins(log=log, replay=True)
    coins(log=log).close()


def _nested(depth: int) -> Any:
    inside: Any = 1.0
    for _ in range(depth):
        inside = {"a": inside}
    return inside


@pytest.mark.parametrize(
    ("context", "words"),
    [
        (_nested(900), "context must have at most 8 levels"),
        ({"a": [[[[[[[[1.0]]]]]]]]}, "context must have at most 8 levels"),
        ([0.0] * 1_000_000, "context must have at most 10,000 entries; got 1,000,000"),
        ({str(number): 1.0 for number in range(10_001)}, "context must have at most 10,000 entries"),
        ({"t": "x" * 10_001}, "a text in context must have at most 10,000 characters; got 10,001"),
    ],
    ids=["objects", "lists", "numbers", "names", "text"],
)
def test_a_context_that_can_only_be_a_mistake_is_refused_and_leaves_the_log(
    context: Any, words: str, tmp_path: pathlib.Path
) -> None:
    bandit = linear(log=tmp_path / "log.jsonl")
    for act in (
        lambda: bandit.decide(context),
        lambda: bandit.decide_batch([context]),
        lambda: bandit.observe(context, "red", 1.0),
    ):
        with pytest.raises(credo.CredoError, match=words):
            act()
    bandit.close()
    assert not (tmp_path / "log.jsonl").read_text() and bandit.counts.decisions == 0
