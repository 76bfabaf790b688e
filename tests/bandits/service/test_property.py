"""Any order of decisions, rewards, ids, ends of windows, arms and files, against a model made of dicts."""

from __future__ import annotations

import pathlib
import tempfile
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.bandits.service.worlds import COINS, Clock

import credo
from credo import bandits

WINDOW, TIMEOUT, SLOTS = 5, 10.0, 4
NAMES = st.sampled_from(["a", "b", "c", "d", "e"])
NUMBERS = st.integers(0, 12)


class BanditMachine(RuleBasedStateMachine):
    """A bandit of coins, and what it must be: counts of heads and tails by slot, and a list of decisions."""

    @initialize(missing=st.sampled_from(["drop", 0.0, 1.0]), seed=st.integers(0, 3))
    def start(self, missing: Any, seed: int) -> None:
        self.clock = Clock()
        self.bandit = bandits.Bandit(
            COINS,
            ["a", "b"],
            window=WINDOW,
            timeout=TIMEOUT,
            on_missing=missing,
            seed=seed,
            clock=self.clock,
        )
        self.missing, self.seed = missing, seed
        self.slots: list[str | None] = ["a", "b", None, None]
        self.used = [False] * SLOTS
        self.forbidden: set[str] = set()
        self.heads, self.tails = np.ones(SLOTS), np.ones(SLOTS)
        self.window: list[dict[str, Any]] = []
        self.gone: list[str] = []
        self.ids: list[str] = []
        self.counts = dict.fromkeys(bandits.service.Counts._fields, 0)
        self.version = 0

    def learn(self, slot: int, value: float) -> None:
        self.heads[slot] += value
        self.tails[slot] += 1 - value
        self.version += 1

    def expire(self, room: int = 0) -> None:
        while self.window and (
            self.window[0]["expires"] <= self.clock.time or len(self.window) + room > WINDOW
        ):
            old = self.window.pop(0)
            self.gone = [*self.gone, old["decision"].id][-WINDOW:]
            if old["status"] is not None:
                continue
            if old["part"]:
                self.counts["summed"] += 1
                self.learn(old["slot"], 0.0)
            elif self.missing == "drop":
                self.counts["dropped"] += 1
            else:
                self.counts["imputed"] += 1
                self.learn(old["slot"], self.missing)

    def find(self, id: str) -> dict[str, Any] | None:
        return next((one for one in self.window if one["decision"].id == id), None)

    @rule(own=st.none() | NUMBERS)
    def decide(self, own: int | None) -> None:
        id = None if own is None else f"mine{own}"
        self.expire()
        known = None if id is None else self.find(id)
        if known is not None:
            assert self.bandit.decide(id=id) == known["decision"]
            return
        allowed = [name for name in self.slots if name is not None and name not in self.forbidden]
        if id in self.gone or not allowed:
            with pytest.raises(credo.CredoError):
                self.bandit.decide(id=id)
            return
        self.expire(room=1)
        decision = self.bandit.decide(id=id)
        assert decision.arm in allowed and decision.version == self.version
        assert id is None or decision.id == id
        assert decision.id not in self.gone and self.find(decision.id) is None
        assert decision.expires == self.clock.time + TIMEOUT
        assert decision.propensity == decision.pmf[decision.arm] > 0
        assert sum(decision.pmf.values()) == pytest.approx(1.0)
        assert {name for name, p in decision.pmf.items() if p == 0} == self.forbidden & set(decision.pmf)
        for slot, name in enumerate(self.slots):
            if name is not None:
                mean = self.heads[slot] / (self.heads[slot] + self.tails[slot])
                assert decision.mean[name] == pytest.approx(mean, rel=1e-12)
        slot = self.slots.index(decision.arm)
        entry = {"decision": decision, "slot": slot, "status": None, "part": False}
        self.window.append(entry | {"expires": decision.expires})
        self.ids.append(decision.id)
        self.counts["decisions"] += 1

    @rule(which=st.integers(-8, 40), value=st.sampled_from([0.0, 1.0]))
    def reward(self, which: int, value: float) -> None:
        id = self.ids[which] if -len(self.ids) <= which < len(self.ids) else f"unknown{which}"
        self.expire()
        entry = self.find(id)
        if entry is None:
            status = "expired" if id in self.gone else "unknown"
        elif entry["status"] is not None:
            status = "duplicate" if entry["reward"] == value else "conflict"
        else:
            status = entry["status"] = "learned"
            entry["reward"] = value
            self.learn(entry["slot"], value)
        self.counts[status] += 1
        assert self.bandit.reward(id, value) == status

    @rule(which=st.integers(-8, 40))
    def part(self, which: int) -> None:
        id = self.ids[which] if -len(self.ids) <= which < len(self.ids) else f"unknown{which}"
        self.expire()
        entry = self.find(id)
        if entry is None:
            status = "expired" if id in self.gone else "unknown"
        elif entry["part"]:
            status = "duplicate"
        else:
            status = "added" if entry["status"] is None else "conflict"
            entry["part"] = status == "added"
        self.counts[status] += 1
        assert self.bandit.reward(id, 0.0, part="x") == status

    @rule(name=NAMES, value=st.sampled_from([None, 0.0, 1.0]))
    def observe(self, name: str, value: float | None) -> None:
        if name not in self.slots:
            with pytest.raises(credo.CredoError):
                self.bandit.observe(None, name, value)
            self.expire()
            return
        self.expire()
        self.expire(room=1)
        seen = self.bandit.observe(None, name, value, propensity=0.5)
        slot, status = self.slots.index(name), None if value is None else "learned"
        assert seen.status == status
        entry = {"decision": seen, "slot": slot, "status": status, "part": False, "reward": value}
        self.window.append(entry | {"expires": self.clock.time + TIMEOUT})
        self.ids.append(seen.id)
        self.counts["observed"] += 1
        if value is not None:
            self.counts["learned"] += 1
            self.learn(slot, value)

    @rule(seconds=st.sampled_from([1.0, 5.0, 11.0]))
    def wait(self, seconds: float) -> None:
        self.clock.time += seconds
        lost = sum(one["expires"] <= self.clock.time and one["status"] is None for one in self.window)
        self.expire()
        assert self.bandit.tick() == lost

    @rule(name=NAMES)
    def add(self, name: str) -> None:
        waiting = {one["slot"] for one in self.window if one["status"] is None}
        free = [slot for slot in range(SLOTS) if self.slots[slot] is None and slot not in waiting]
        new = [slot for slot in free if not self.used[slot]] or free
        if name in self.slots or not new:
            with pytest.raises(credo.CredoError):
                self.bandit.add_arm(name)
            return
        self.bandit.add_arm(name)
        self.slots[new[0]] = name
        self.version += self.used[new[0]]
        if self.used[new[0]]:
            self.heads[new[0]] = self.tails[new[0]] = 1.0

    @rule(name=NAMES, how=st.sampled_from(["remove_arm", "forbid", "allow"]))
    def change(self, name: str, how: str) -> None:
        if name not in self.slots:
            with pytest.raises(credo.CredoError):
                getattr(self.bandit, how)(name)
            return
        getattr(self.bandit, how)(name)
        if how == "forbid":
            self.forbidden.add(name)
            return
        self.forbidden.discard(name)
        if how == "remove_arm":
            slot = self.slots.index(name)
            self.slots[slot], self.used[slot] = None, True

    @rule()
    def reload(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = self.bandit.save(pathlib.Path(folder, "b.credo"))
            self.bandit = bandits.Bandit.load(path, clock=self.clock)

    @invariant()
    def agrees(self) -> None:
        if not hasattr(self, "bandit"):
            return
        pending = sum(one["status"] is None for one in self.window)
        assert self.bandit.counts == bandits.service.Counts(**{**self.counts, "pending": pending})
        assert self.bandit.version == self.version
        assert self.bandit.arms == tuple(name for name in self.slots if name is not None)
        assert self.bandit.forbidden == self.forbidden


TestAnyOrder = BanditMachine.TestCase
TestAnyOrder.settings = settings(max_examples=25, stateful_step_count=40, deadline=None)
