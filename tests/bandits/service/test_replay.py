"""A bandit whose process was killed: its log brings back all that it had answered."""

from __future__ import annotations

import json
import pathlib
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
from typing import Any

import jax
import numpy as np
import pytest
from tests.bandits.service.worlds import COINS, LINEAR, XS, Clock, coins, linear

import credo
from credo import bandits
from credo.bandits.service.ledger import Ledger


def same(one: bandits.Bandit, other: bandits.Bandit) -> None:
    """All that two bandits know is the same, bit by bit, but for the rewards that changed nothing."""
    for left, right in zip(jax.tree.leaves(one.belief), jax.tree.leaves(other.belief), strict=True):
        np.testing.assert_array_equal(left, right)
    ours, theirs = one._engine, other._engine
    assert (ours.count, ours.time.latest, ours.state.version) == (
        theirs.count,
        theirs.time.latest,
        theirs.state.version,
    )
    assert ours.state.arms == theirs.state.arms and ours.inputs.to_dict() == theirs.inputs.to_dict()
    assert ours.window.gone == theirs.window.gone and ours.window.waiting == theirs.window.waiting
    for a, b in zip(ours.window, theirs.window, strict=True):
        assert (a.id, a.number, a.slot, a.arms, a.version, a.time, a.expires, a.content) == (
            (b.id, b.number, b.slot, b.arms, b.version, b.time, b.expires, b.content)
        )
        assert (a.status, a.reward) == (b.status, b.reward)
        np.testing.assert_array_equal(a.numbers, b.numbers)
        np.testing.assert_array_equal(a.x, b.x)
    unlogged = ("duplicate", "conflict", "expired", "unknown")
    assert one.counts._replace(**dict.fromkeys(unlogged, 0)) == other.counts._replace(
        **dict.fromkeys(unlogged, 0)
    )


def live(bandit: bandits.Bandit, clock: Clock, steps: range) -> None:
    """Decisions of all kinds, rewards that are late, missing or doubled, and arms that come and go."""
    rng, waiting = np.random.default_rng(steps.start), []
    for step in steps:
        clock.time += float(rng.exponential(2.0))
        context = {"age": float(rng.normal()), "kind": "even" if step % 2 else "odd"}
        if step % 11 == 5:
            waiting += [one.id for one in bandit.decide_batch([context, {"age": None}, context])]
        else:
            waiting.append(bandit.decide(context, id=f"own-{step}" if step % 5 == 0 else None).id)
        if step % 3 and waiting:
            bandit.reward(waiting.pop(int(rng.integers(len(waiting)))), float(rng.normal()))
        if step % 13 == 7:
            ids = [waiting.pop() for _ in range(min(3, len(waiting)))]
            bandit.reward_batch([*ids, "nobody"], [*[0.5, 1.5, -1.0][: len(ids)], 9.0])
    if steps.start:
        bandit.forbid("red")
        bandit.decide({"age": 1.0})
        bandit.allow("red")
        bandit.remove_arm("red")
        bandit.decide({"age": 0.0})


@pytest.mark.parametrize("options", [{}, {"timeout": 9.0, "window": 12}, {"on_missing": 0.25, "window": 7}])
def test_a_log_brings_back_what_was_not_saved(tmp_path: pathlib.Path, options: dict[str, Any]) -> None:
    clock, log = Clock(), tmp_path / "log.jsonl"
    bandit = linear(log=log, clock=clock, **options)
    live(bandit, clock, range(0, 18))
    saved = bandit.save(tmp_path / "b.credo")
    live(bandit, clock, range(18, 45))
    crash = tmp_path / "crash.jsonl"
    shutil.copy(log, crash)
    again = bandits.Bandit.load(saved, log=crash, clock=clock)
    same(bandit, again)
    fresh = linear(log=shutil.copy(log, tmp_path / "fresh.jsonl"), replay=True, clock=clock, **options)
    same(bandit, fresh)


def test_rewards_that_were_all_alike_come_back_while_others_are_awaited(tmp_path: pathlib.Path) -> None:
    clock, log = Clock(), tmp_path / "log.jsonl"
    agent = credo.replace(LINEAR, units="online")
    options: dict[str, Any] = {"features": 4, "clock": clock}
    bandit = bandits.Bandit(agent, ["red", "blue"], log=log, **options)

    def reward(one: bandits.Bandit, rewards: list[float]) -> None:
        for value in rewards:
            one.reward(one.decide({"age": value}).id, value)

    reward(bandit, [3.0] * 14 + [5.0, 4.0])
    saved = bandit.save(tmp_path / "b.credo")
    reward(bandit, [3.0, 6.5])
    waiting = bandit.belief.units
    assert waiting is not None and int(waiting.first.filled) == 14 and float(waiting.known[1]) == 0.0
    logs = [shutil.copy(log, tmp_path / f"{name}.jsonl") for name in ("crash", "fresh")]
    again = bandits.Bandit.load(saved, log=logs[0], clock=clock)
    fresh = bandits.Bandit(agent, ["red", "blue"], log=logs[1], replay=True, **options)
    for one in (bandit, again, fresh):
        reward(one, [3.5, 4.5, 7.0, 2.0, 5.5, 6.0, 3.0])
    known = bandit.belief.units
    assert known is not None and float(known.known[1]) > 0.0
    same(bandit, again)
    same(bandit, fresh)


def test_what_comes_after_a_replay_is_what_would_have_come(tmp_path: pathlib.Path) -> None:
    clock, log = Clock(), tmp_path / "log.jsonl"
    bandit = linear(log=log, clock=clock)
    live(bandit, clock, range(0, 20))
    again = linear(log=shutil.copy(log, tmp_path / "copy.jsonl"), replay=True, clock=clock)
    for x in XS[:10]:
        decision = bandit.decide({"age": x[0]})
        assert again.decide({"age": x[0]}) == decision
        assert again.reward(decision.id, x[1]) == bandit.reward(decision.id, x[1])
    same(bandit, again)
    assert (tmp_path / "copy.jsonl").read_bytes() == log.read_bytes()


def test_arms_with_features_and_what_was_taught_come_back(tmp_path: pathlib.Path) -> None:
    model = credo.Model(credo.Linear(), credo.Normal(0.25))
    agent = bandits.Agent(credo.extended_kalman(model), 3, "actions", bandits.Thompson(floor=0.05))

    def make(path: pathlib.Path, replay: bool = False) -> bandits.Bandit:
        arms = {"red": {"hue": 0.0}, "blue": {"hue": 0.6}}
        return bandits.Bandit(agent, arms, features=2, arm_features=3, log=path, replay=replay)

    bandit = make(tmp_path / "log.jsonl")
    bandit.add_arm("green", {"hue": 0.3, "new": True})
    for x in XS[:6]:
        bandit.reward(bandit.decide({"a": x[0]}).id, x[1])
    same(bandit, make(pathlib.Path(shutil.copy(tmp_path / "log.jsonl", tmp_path / "c")), replay=True))
    taught = linear(log=tmp_path / "taught.jsonl")
    chosen = np.arange(40) % 2
    log = bandits.Log(("red", "blue"), chosen, np.where(chosen, 1.0, -1.0), np.full(40, 0.5), contexts=XS)
    assert taught.warm_start(log, "propensity") == 40
    taught.reward(taught.decide(XS[0]).id, 1.0)
    path = shutil.copy(tmp_path / "taught.jsonl", tmp_path / "d")
    same(taught, linear(log=path, replay=True))
    assert bandits.Log.read(path).counts == bandits.Log.read(tmp_path / "taught.jsonl").counts


def test_ids_are_never_given_twice(tmp_path: pathlib.Path) -> None:
    log = tmp_path / "log.jsonl"
    first = coins(log=log)
    ids = [first.decide().id for _ in range(5)]
    saved = first.save(tmp_path / "b.credo")
    ids += [first.decide().id for _ in range(3)]
    first.close()
    other = coins(log=log)  # another bandit that goes on with the file
    ids += [other.decide().id for _ in range(3)]
    moved = tmp_path / "moved.jsonl"
    moved.write_text("".join(line + "\n" for line in log.read_text().splitlines()[3:]))
    with pytest.warns(UserWarning, match=r"moved\.jsonl is not the log that the bandit wrote"):
        third = bandits.Bandit.load(saved, log=moved)
    assert third.counts.decisions == 5
    ids += [third.decide().id for _ in range(3)]
    third.save(saved)
    third.close()
    again = bandits.Bandit.load(saved, log=moved)
    ids += [again.decide().id for _ in range(2)]
    assert len(set(ids)) == len(ids)


def test_a_log_of_another_bandit_is_refused(tmp_path: pathlib.Path) -> None:
    coins(log=tmp_path / "log.jsonl").decide()
    with pytest.raises(
        credo.DataError, match="line 1 of what is new in the log cannot be one of this bandit"
    ):
        linear(log=tmp_path / "log.jsonl", replay=True)
    old = {"kind": "decision", "id": "0-0", "arm": "a", "propensity": 1.0, "pmf": {"a": 1.0}, "time": 0.0}
    (tmp_path / "old.jsonl").write_text(json.dumps(old) + "\n")
    with pytest.raises(credo.DataError, match="lacks the numbers of its decisions"):
        coins(log=tmp_path / "old.jsonl", replay=True)


def test_a_default_reward_that_a_crash_kept_from_the_log_is_learned_now(tmp_path: pathlib.Path) -> None:
    clock, log = Clock(), tmp_path / "log.jsonl"
    bandit = linear(log=log, clock=clock, window=2, on_missing=0.25)
    for age in (1.0, 2.0, 3.0):
        bandit.decide({"age": age})
    lines = log.read_text().splitlines(keepends=True)
    assert [json.loads(line)["kind"] for line in lines] == ["decision", "decision", "reward", "decision"]
    cut = tmp_path / "cut.jsonl"
    cut.write_text("".join(lines[:2] + lines[3:]))  # the decision came, its predecessor's reward did not
    again = linear(log=cut, replay=True, clock=clock, window=2, on_missing=0.25)
    assert again.counts.imputed == 1 and again.version == bandit.version == 1
    assert json.loads(cut.read_text().splitlines()[-1]) == json.loads(lines[2])
    same(bandit, again)


def test_a_replay_needs_a_log() -> None:
    with pytest.raises(credo.CredoError, match="replay needs the log"):
        linear(replay=True)


def test_threads_write_a_log_that_can_be_done_again(tmp_path: pathlib.Path) -> None:
    bandit = linear(log=tmp_path / "log.jsonl")

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(30):
            decision = bandit.decide({"age": float(rng.normal()), "kind": "x"})
            bandit.reward(decision.id, float(rng.normal()))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    again = linear(log=shutil.copy(tmp_path / "log.jsonl", tmp_path / "c"), replay=True)
    for left, right in zip(jax.tree.leaves(bandit.belief), jax.tree.leaves(again.belief), strict=True):
        np.testing.assert_array_equal(left, right)
    assert again.counts == bandit.counts and again.features == bandit.features


CHILD = """
    import sys
    import jax
    jax.config.update("jax_enable_x64", True)
    from tests.bandits.service.worlds import coins
    from credo import bandits
    saved, log = sys.argv[1:3]
    try:
        bandit = bandits.Bandit.load(saved, log=log)
    except Exception:
        bandit = coins(log=log, replay=True)
    for step in range(100_000):
        decision = bandit.decide()
        print("decided", decision.id, flush=True)
        if bandit.reward(decision.id, step % 3 / 2):
            print("learned", decision.id, flush=True)
        if step % 17 == 11:
            bandit.save(saved)
"""


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_when_the_process_is_killed(tmp_path: pathlib.Path) -> None:
    saved, log = tmp_path / "b.credo", tmp_path / "log.jsonl"
    said: list[str] = []
    for kill in range(3):
        command = [sys.executable, "-c", textwrap.dedent(CHILD), str(saved), str(log)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            for number, line in enumerate(child.stdout):
                said.append(line.strip())
                if number == 40 + 31 * kill:
                    child.send_signal(signal.SIGKILL)
            assert child.wait() == -signal.SIGKILL
    said = [line for line in said if len(line.split()) == 2]
    decided = [line.split()[1] for line in said if line.startswith("decided")]
    learned = [line.split()[1] for line in said if line.startswith("learned")]
    assert len(set(decided)) == len(decided) > 60
    bandit = bandits.Bandit.load(saved, COINS, log=log)
    settled = {entry.id for entry in bandit._engine.window if entry.status is not None}
    known = {entry.id for entry in bandit._engine.window}
    assert set(decided) <= known and set(learned) <= settled
    same(bandit, coins(log=shutil.copy(log, tmp_path / "c"), replay=True))


def full_disk(bandit: bandits.Bandit, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the next line of the log find no room."""
    ledger, real = bandit._engine.ledger, Ledger.append
    assert ledger is not None

    def append(self: Ledger, lines: Any) -> None:
        monkeypatch.setattr(Ledger, "append", real)
        raise credo.DataError("no space left")

    monkeypatch.setattr(Ledger, "append", append)


def test_a_decision_that_could_not_be_written_comes_back_as_if_it_had_not_been_asked_for(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, log = Clock(), tmp_path / "log.jsonl"
    bandit = linear(log=log, clock=clock)
    live(bandit, clock, range(0, 6))
    saved = tmp_path / "b.credo"
    for step in range(4):
        full_disk(bandit, monkeypatch)
        with pytest.raises(credo.DataError, match="no space"):
            bandit.decide({"age": 50.0 + step, "kind": "lost"})
        if step == 1:
            full_disk(bandit, monkeypatch)
            with pytest.raises(credo.DataError, match="no space"):
                bandit.decide({"age": 1.0})  # the context before is still not in the log
        if step == 2:
            bandit.save(saved)
        before = bandit.features, bandit.counts
        full_disk(bandit, monkeypatch)
        with pytest.raises(credo.DataError, match="no space"):
            bandit.decide_batch([{"other": 1.0}, {"age": 3.0}])
        assert (bandit.features, bandit.counts) == before
        live(bandit, clock, range(0, 3))
    counts = bandits.Log.read(log).counts
    assert counts is not None and counts.broken == 0 and counts.decisions == bandit.counts.decisions
    same(bandit, linear(log=shutil.copy(log, tmp_path / "c"), replay=True, clock=clock))
    same(bandit, bandits.Bandit.load(saved, log=shutil.copy(log, tmp_path / "d"), clock=clock))


def test_a_save_waits_for_decisions_that_are_under_way(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bandit, log = linear(log=tmp_path / "log.jsonl"), tmp_path / "log.jsonl"
    bandit.decide({"age": 1.0})
    asked, go, real = threading.Event(), threading.Event(), bandit._engine.programs.decide

    def slow(*about: Any) -> Any:
        asked.set()
        assert go.wait(30.0)
        return real(*about)

    monkeypatch.setattr(bandit._engine.programs, "decide", slow)
    work = [
        threading.Thread(target=bandit.decide, args=({"age": 2.0},)),
        threading.Thread(target=bandit.save, args=(tmp_path / "b.credo",)),
        threading.Thread(target=bandit.decide, args=({"age": 7.0},)),
    ]
    work[0].start()
    assert asked.wait(30.0)
    for thread in work[1:]:
        thread.start()
        thread.join(0.2)
    assert not (tmp_path / "b.credo").exists() and len(log.read_bytes().splitlines()) == 1
    assert bandit._engine.count == 2  # the third waits for the save
    go.set()
    for thread in work:
        thread.join(30.0)
    bandit.decide({"age": 3.0})
    same(bandit, bandits.Bandit.load(tmp_path / "b.credo", log=shutil.copy(log, tmp_path / "c")))
    with bandit._engine.flights.none():  # a handler of a signal may decide while it saves
        bandit.decide({"age": 4.0})
