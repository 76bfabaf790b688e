"""What a bandit has answered stays: ids, rewards and time, with a log and without one."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import shutil
import threading
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.bandits.service.worlds import XS, Clock, coins, linear, nameless

import credo
from credo import bandits
from credo.bandits.service.content import content_of
from credo.bandits.service.window import Time
from credo.live.journal import Journal

YEAR = 365.25 * 86400.0


def test_a_decision_that_a_load_has_lost_is_unknown_and_its_id_is_not_given_again(
    tmp_path: pathlib.Path,
) -> None:
    first = coins()
    kept = first.decide()
    saved = first.save(tmp_path / "b.credo")
    lost = [first.decide() for _ in range(3)]
    loads = [bandits.Bandit.load(saved) for _ in range(2)]
    loads += [bandits.Bandit.load(saved, seed=0), first.fork(9), first.fork(9)]
    new = [bandit.decide() for bandit in loads]
    assert nameless(new[0]) == nameless(new[1]) == nameless(lost[0])  # the same choice under another id
    assert len({one.id for one in [kept, *lost, *new]}) == 4 + len(new)
    for bandit, own in zip(loads[:3], new, strict=False):
        assert [bandit.reward(one.id, 1.0).value for one in lost] == ["unknown"] * 3
        assert bandit.reward(own.id, 0.0) and bandit.reward(kept.id, 1.0) and bandit.version == 2
    again = bandits.Bandit.load(loads[0].save(saved))
    assert again.reward(new[0].id, 0.0) == "duplicate" and again.decide().id not in {one.id for one in new}


def test_a_log_that_a_saved_bandit_began_brings_back_what_came_after(tmp_path: pathlib.Path) -> None:
    saved, log = coins().save(tmp_path / "b.credo"), tmp_path / "log.jsonl"
    log.write_text(json.dumps({"kind": "begin", "of": "another", "epoch": "x"}) + "\n")
    said: list[bandits.ArmDecision] = []
    for start in range(3):
        bandit = bandits.Bandit.load(saved, log=log)
        assert bandit.counts.learned == bandit.counts.decisions == len(said) == 2 * start
        for _ in range(2):
            said.append(bandit.decide())
            assert bandit.reward(said[-1].id, 1.0)
        bandit.close()
    assert len({one.id for one in said}) == 6 and len({one.id.split("-")[0] for one in said}) == 1
    copy = bandits.Bandit.load(saved, seed=4, log=tmp_path / "copy.jsonl")
    own = copy.decide().id
    copy.close()
    with contextlib.closing(bandits.Bandit.load(saved, seed=4, log=tmp_path / "copy.jsonl")) as again:
        assert again.reward(own, 1.0)
    with contextlib.closing(bandits.Bandit.load(saved, seed=5, log=tmp_path / "copy.jsonl")) as other:
        assert other.counts.decisions == 0
    for _ in range(2):
        with contextlib.closing(coins(log=log)) as new:
            new.decide()  # a new bandit goes on with the log
    with pytest.raises(credo.DataError, match="another bandit went on with the log"):
        bandits.Bandit.load(saved, log=log)
    assert coins(log=log, replay=True).counts.decisions == 1


def test_ids_with_a_mark_in_the_log_go_on_as_they_would_have(tmp_path: pathlib.Path) -> None:
    log = tmp_path / "log.jsonl"
    bandit = coins(log=log)
    bandit.decide()
    saved = bandit.save(tmp_path / "b.credo")
    bandit.decide()
    assert bandits.Bandit.load(saved, log=shutil.copy(log, tmp_path / "c")).decide() == bandit.decide()


@pytest.mark.parametrize("missing", ["drop", 0.5])
def test_a_refused_reward_may_be_corrected(missing: Any, tmp_path: pathlib.Path) -> None:
    log = tmp_path / "log.jsonl"
    bandit, clean = linear(log=log, window=3, on_missing=missing), linear(window=3, on_missing=missing)
    for one in (bandit, clean):
        one.decide({"age": 1.0}, id="a")
        one.decide({"age": 2.0}, id="b")
    assert [bandit.reward("a", value).value for value in (1e300, 1e300, 1.5, 1.5, 1e300)] == (
        ["refused", "refused", "learned", "duplicate", "conflict"]
    )
    clean.reward("a", 1.5)
    assert bandit.reward("b", 1e300) == "refused" and bandit.explain("b").status == "refused"
    for left, right in zip(jax.tree.leaves(bandit.belief), jax.tree.leaves(clean.belief), strict=True):
        if left.dtype.kind == "f":  # a refused step is counted as a step
            np.testing.assert_array_equal(left, right)
    assert bandit.counts.pending == 1 and bandit.counts.learned == 1 and bandit.counts.refused == 3
    twin = linear(log=shutil.copy(log, tmp_path / "c"), replay=True, window=3, on_missing=missing)
    loaded = bandits.Bandit.load(bandit.save(tmp_path / "b.credo"))
    for other in (bandit, twin, loaded):
        assert other.counts.pending == 1 and [other.reward("a", value).value for value in (1.5, 2.0)] == (
            ["duplicate", "conflict"]
        )
    doubled = tmp_path / "doubled.jsonl"  # lines that somebody copied twice are learned once
    doubled.write_text("".join(line * (1 + ('"value": 1.5' in line)) for line in log.open()))
    again = linear(log=doubled, replay=True, window=3, on_missing=missing)
    assert again.version == bandit.version and again.counts.learned == 1
    # one that is never corrected was not silent: no default reward is learned for it
    assert twin.reward("b", 2.5)
    for _ in range(3):
        bandit.decide({"age": 0.0})
    assert bandit.counts.dropped == 1 and bandit.counts.imputed == 0 and bandit.reward("b", 1.0) == "expired"
    again = linear(log=shutil.copy(log, tmp_path / "d"), replay=True, window=3, on_missing=missing)
    assert again.counts._replace(duplicate=0, conflict=0, expired=0) == (
        bandit.counts._replace(duplicate=0, conflict=0, expired=0)
    )
    np.testing.assert_array_equal(bandits.Log.read(log).rewards[:2], [1.5, np.nan])


def test_a_correction_in_a_batch_is_learned_as_in_a_loop() -> None:
    one, other = linear(), linear()
    ids = ["a", "b", "a", "a", "b", "nobody", "a"]
    values = [1e300, 2.0, 1.0, 1.0, 3.0, 1.0, 1e300]
    for bandit in (one, other):
        bandit.decide_batch(XS[:2], ids=["a", "b"])
    loop = [one.reward(id, value) for id, value in zip(ids, values, strict=True)]
    assert other.reward_batch(ids, values) == loop
    assert [answer.value for answer in loop] == (
        ["refused", "learned", "learned", "duplicate", "conflict", "unknown", "conflict"]
    )
    assert one.counts == other.counts and one.version == other.version


def test_an_arm_whose_reward_may_be_corrected_keeps_its_slot() -> None:
    bandit = coins()
    id = bandit.decide(arms=["a"]).id
    assert bandit.reward(id, -1.0) == "refused"
    bandit.remove_arm("a")
    bandit.add_arm("d")  # the free slot
    with pytest.raises(credo.CredoError, match="1 that were removed wait for rewards"):
        bandit.add_arm("e")
    assert bandit.reward(id, 1.0)
    bandit.add_arm("e")


def test_content_is_the_same_however_it_is_written() -> None:
    same = [{"a": 1, "b": None}, {"b": float("nan"), "a": 1.0}, json.loads('{"b": null, "a": 1.0}')]
    assert len({content_of(one, ["x", "y"]) for one in same} | {content_of(same[0], ("y", "x"))}) == 1
    assert content_of(np.array([1.0, 2.0], np.float32), None) == content_of([1, 2], None)
    unlike = [{"a": 2.0}, {"a": True}, {"a": "1.0"}, {"a": 1.0, "b": 0.0}, [1.0], None, {"a": 10**400}]
    assert len({content_of(one, None) for one in unlike} | {content_of({"a": 1.0}, ["x"])}) == len(unlike) + 1


def test_content_of_many_numbers_is_that_of_the_numbers() -> None:
    table = np.random.default_rng(0).integers(-9, 9, (30, 10)) / 4.0
    same = [
        table,
        table.astype(np.float32),
        jnp.asarray(table),
        table.tolist(),
        tuple(map(tuple, table.tolist())),
    ]
    assert len({content_of(one, None) for one in same}) == 1
    whole = np.arange(300)
    assert content_of(whole, None) == content_of([float(number) for number in whole], None)
    other, flag = table.copy(), table.tolist()
    other[7, 3], flag[7][3] = 99.0, True
    unlike = [table, other, table.T, table.ravel(), flag, flag[:-1], [*flag[:-1], [1.0]], table[:25]]
    assert len({content_of(one, None) for one in unlike}) == len(unlike)


def test_a_repeated_request_is_known_after_a_crash_and_another_one_is_not(tmp_path: pathlib.Path) -> None:
    bandit = linear(log=tmp_path / "log.jsonl")
    decision = bandit.decide({"age": 3, "kind": "x"}, ["red", "blue"], id="mine")
    bandit.close()
    for other in (linear(log=tmp_path / "log.jsonl", replay=True), _reloaded(bandit, tmp_path)):
        assert other.decide({"kind": "x", "age": 3.0}, ["blue", "red"], id="mine") == decision
        for context, arms in (({"kind": "y", "age": 3}, ["blue", "red"]), ({"kind": "x", "age": 3}, None)):
            with pytest.raises(credo.CredoError, match="the decision 'mine' was taken for others"):
                other.decide(context, arms, id="mine")
        assert other.counts.decisions == 1


def _reloaded(bandit: bandits.Bandit, folder: pathlib.Path) -> bandits.Bandit:
    return bandits.Bandit.load(bandit.save(folder / "b.credo"))


def test_a_clock_that_jumps_ahead_and_returns_disables_no_timeout(tmp_path: pathlib.Path) -> None:
    clock = Clock()
    bandit = coins(timeout=10.0, clock=clock)
    for jump in (YEAR, -YEAR, -3.0, YEAR):
        clock.time += jump
        first, second = bandit.decide(), bandit.decide()
        clock.time += 9.0
        assert bandit.reward(first.id, 1.0)
        clock.time += 2.0
        assert bandit.reward(second.id, 1.0) == "expired"
        bandit = bandits.Bandit.load(bandit.save(tmp_path / "b.credo"), clock=clock)
    bandit.tick(bandit.decide().expires)  # somebody says that it is later than the clock does
    late = bandit.decide()
    clock.time += 9.0
    assert bandit.reward(late.id, 1.0)
    # a bandit that rests is older by the time that the clock tells
    waiting, other = bandit.decide(), bandit.decide()
    bandit.save(tmp_path / "b.credo")
    clock.time += 9.0
    bandit = bandits.Bandit.load(tmp_path / "b.credo", clock=clock)
    assert bandit.reward(waiting.id, 1.0)
    clock.time += 2.0
    assert bandits.Bandit.load(tmp_path / "b.credo", clock=clock).reward(other.id, 1.0) == "expired"


def test_no_step_of_the_systems_clock_moves_the_time_of_a_bandit(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wall, passed = Clock(), Clock()
    wall.time, passed.time = 50 * YEAR, 100.0
    monkeypatch.setattr(time, "time", wall)
    monkeypatch.setattr(time, "monotonic", passed)
    bandit = coins(timeout=10.0)
    assert bandit.decide().expires == 50 * YEAR + 10.0
    bandit.tick(bandit._engine.now() + 20.0)
    kept = bandit.decide()
    for jump in (YEAR, -YEAR, -YEAR):
        wall.time += jump
        passed.time += 1.0
        assert bandit.tick() == 0
    bandit.save(tmp_path / "b.credo")
    wall.time += 5.0  # a rest
    passed.time = 0.0  # a new boot
    other = bandits.Bandit.load(tmp_path / "b.credo")
    assert other._engine.now() == pytest.approx(50 * YEAR + 20.0 + 3.0 + 5.0, abs=1e-3)
    assert other.reward(kept.id, 1.0)
    late = other.decide()
    wall.time += YEAR
    passed.time += 11.0
    assert other.reward(late.id, 1.0) == "expired"
    assert Time.restore(Time(None).to_dict(), None).now() == pytest.approx(wall.time)


class Disk:
    """A disk that says when it is flushed, and may be slow or broken."""

    def __init__(self) -> None:
        self.flushes, self.broken, self.slow, self.real = 0, False, 0.0, os.fsync

    def __call__(self, file: int) -> None:
        if self.broken:
            raise OSError(5, "Input/output error")
        time.sleep(self.slow)
        self.flushes += 1
        self.real(file)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    """The disk of a test."""
    disk = Disk()
    monkeypatch.setattr(os, "fsync", disk)
    return disk


def test_everything_is_on_the_disk_before_it_is_answered(tmp_path: pathlib.Path, disk: Disk) -> None:
    bandit = linear(log=tmp_path / "log.jsonl", timeout=60.0, on_missing=0.0)
    log = bandits.Log(("red",), np.zeros(2, int), np.ones(2), np.ones(2), contexts=XS[:2])
    acts: list[Any] = [
        lambda: bandit.decide(XS[0], id="a"),
        lambda: bandit.decide_batch(XS[:3], ids=["b", "c", "d"]),
        lambda: bandit.reward("a", 1.0),
        lambda: bandit.reward_batch(["b", "c"], [1.0, 2.0]),
        lambda: bandit.reward_batch(["d", "d"], [1e300, 2.0]),
        lambda: bandit.forbid("red"),
        lambda: bandit.allow("red"),
        lambda: bandit.warm_start(log),
        lambda: (bandit.decide(XS[0]), bandit.tick(bandit._engine.now() + 61.0)),
    ]
    counts = []
    for act in acts:
        before = disk.flushes
        act()
        counts.append(disk.flushes - before)
    assert counts == [1] * (len(acts) - 1) + [2]
    before = disk.flushes
    assert bandit.reward("a", 1.0) == "expired" and disk.flushes == before  # there is nothing to write


def test_a_disk_that_fails_is_believed_no_more(tmp_path: pathlib.Path, disk: Disk) -> None:
    log = tmp_path / "log.jsonl"
    bandit = coins(log=log)
    id = bandit.decide().id
    disk.broken = True
    with pytest.raises(credo.DataError, match=r"cannot write the log .*: Input/output error"):
        bandit.reward(id, 1.0)
    disk.broken = False
    for act in (lambda: bandit.reward(id, 1.0), bandit.decide, lambda: bandit.forbid("a")):
        with pytest.raises(credo.DataError, match="an earlier flush failed"):
            act()
    bandit.close()
    assert coins(log=log, replay=True).reward(id, 1.0) == "duplicate"  # the line was there after all


def test_a_log_may_be_where_no_disk_is() -> None:
    bandit, beside = coins(log=os.devnull), coins(log=os.devnull)  # a device belongs to nobody
    for one in (bandit, beside):
        assert one.reward(one.decide().id, 1.0)


def test_threads_that_wait_together_share_a_flush(tmp_path: pathlib.Path, disk: Disk) -> None:
    journal = Journal(tmp_path / "rows.jsonl", "journal")
    before, disk.slow = disk.flushes, 0.05
    barrier, there = threading.Barrier(12), []

    def write(number: int) -> None:
        barrier.wait()
        journal.append([b"%d" % number])
        journal.sync()
        there.append((number, disk.flushes))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(number for number, _ in there) == list(range(12))
    assert 1 <= disk.flushes - before <= 6 and all(flushes > before for _, flushes in there)
    disk.slow, before = 0.0, disk.flushes
    with journal.together():
        for number in range(5):
            journal.append([b"%d" % number])
            journal.sync()
        assert disk.flushes == before
    assert disk.flushes == before + 1
    journal.sync()
    assert disk.flushes == before + 1 and len(list(journal.since(None))) == 17
