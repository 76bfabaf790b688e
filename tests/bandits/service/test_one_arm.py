"""A reward costs what its arm costs: nothing that all arms have is copied for it, and no number changes."""

from __future__ import annotations

import pathlib
import re
import threading
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.tiers import few

import credo
from credo import bandits
from credo.bandits.default import DefaultAgent
from credo.bandits.service.belief_words import Copies, Held
from credo.core.errors import DataError
from credo.dynamics import Dynamics, RandomWalk, Static

pytestmark = pytest.mark.optimised

INPUTS = 40
"""With a bias 41 parameters an arm, whose covariances are large arrays from three arms on."""

XS = np.random.default_rng(3).normal(size=(60, INPUTS))


def experts(
    arms: int, units: bool = True, dynamics: Dynamics | None = None, beside: Dynamics | None = None
) -> DefaultAgent:
    """The default agent with linear models in place of its waves; `beside` is the dynamics of the second."""
    net, noise = credo.Linear(), credo.Normal(0.1)
    moves = (dynamics or Static(),) * 2 if beside is None else (Static(), beside)
    learners = [credo.extended_kalman(credo.Model(net, noise), dynamics=move) for move in moves]
    both = credo.Experts([bandits.designs.ArmsDesign(learner, arms) for learner in learners], switching=1e-3)
    policy = bandits.UCB(0.7)
    scaled = credo.adapt.NoiseScaled(both, 0.1, 5.0)
    agent = bandits.Agent(scaled, arms, "pairs", policy, "online", units="online" if units else None)
    start = net.init(0, (INPUTS,))
    return DefaultAgent(agent, lambda _: start, credo.adapt.Each([0.3, 1.0]), INPUTS)


def apart(arms: int) -> bandits.Agent:
    """A learner an arm, and nothing around them."""
    model = credo.Model(credo.Linear(), credo.Normal(0.1))
    return bandits.Agent(credo.extended_kalman(model), arms, "arms", bandits.Thompson(floor=0.02))


def service(kind: str = "experts", **options: Any) -> bandits.Bandit:
    """A bandit with three arms whose covariances are large arrays."""
    if kind in ("experts", "a walk beside"):
        beside = RandomWalk(1e-3) if kind == "a walk beside" else None
        return bandits.Bandit(experts(3, beside=beside), **options)
    return bandits.Bandit(apart(3), params=credo.Linear().init(0, (INPUTS,)), **options)


def teach(bandit: bandits.Bandit, steps: range) -> list[bandits.ArmDecision]:
    """Decide and learn."""
    decisions = []
    for step in steps:
        decisions.append(bandit.decide(XS[step], arms=[str(step % 3)] if step % 2 else None))
        bandit.reward(decisions[-1].id, float(XS[step, 0] + step % 3))
    return decisions


def same(first: Any, second: Any) -> bool:
    """Whether two trees have the same bits."""
    pairs = zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True)
    return all(np.array_equal(np.asarray(a), np.asarray(b), equal_nan=True) for a, b in pairs)


def alike(first: Any, second: Any, atol: float = 1e-7) -> bool:
    """Whether two trees differ by no more than what some processors round otherwise in another program."""
    pairs = zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True)
    return all(np.allclose(a, b, rtol=1e-6, atol=atol, equal_nan=True) for a, b in pairs)


def by_agent(bandit: bandits.Bandit, belief: Any, ids: list[str], values: list[float], first: int = 0) -> Any:
    """What `Agent.update` makes of rewards."""
    for step, (id, value) in enumerate(zip(ids, values, strict=True), first):
        entry = bandit._engine.window.get(id)
        assert entry is not None and entry.x is not None
        key = jax.random.fold_in(jax.random.fold_in(jax.random.key(0), 1), np.uint32(step))
        kind = jnp.result_type(float)
        row = np.asarray(entry.x, kind), entry.slot, np.asarray(value, kind)
        belief, _ = bandit.agent.update(belief, *row, weight=np.ones((), kind), key=key)
    return belief


@pytest.mark.parametrize("kind", few(["experts", "arms", "a walk beside"], "experts", "arms"))
def test_one_by_one_and_together_have_one_result_which_is_that_of_the_agent(kind: str) -> None:
    bandit, batch = service(kind), service(kind)
    before = bandit.belief
    ids = [bandit.decide(x).id for x in XS[:25]]
    assert [batch.decide(x).id for x in XS[:25]] == ids
    values = [float(x[0]) for x in XS[:25]]
    for id, value in zip(ids, values, strict=True):
        bandit.reward(id, value)
    batch.reward_batch(ids, values)
    expected = by_agent(bandit, before, ids, values)
    assert same(bandit.belief, batch.belief)
    assert alike(bandit.belief, expected, 5e-6 if kind == "a walk beside" else 1e-7)
    tell = bandit._engine.programs._tell
    assert tell is not None and tell.arm is not None


def test_an_expert_that_fails_returns_to_its_prior_with_all_arms() -> None:
    start = experts(3, units=False)
    belief = start.init(0)
    bank = belief.belief.belief
    arms = bank.beliefs.beliefs
    broken = credo.replace(arms, cov=credo.replace(arms.cov, root=arms.cov.root.at[1, 0].set(np.inf)))
    bank = credo.replace(bank, beliefs=credo.replace(bank.beliefs, beliefs=broken))
    inner = credo.replace(belief.belief, belief=bank)
    bandit = bandits.Bandit(start, belief=credo.replace(belief, belief=inner))
    for x in XS[:4]:
        bandit.reward(bandit.decide(x, arms=["1"]).id, 1.0)
    before = bandit.belief
    decision = bandit.decide(XS[4], arms=["0"])
    assert bandit.reward(decision.id, 0.5)
    after = bandit.belief
    assert same(after, by_agent(bandit, before, [decision.id], [0.5], 4))
    mean = np.asarray(after.belief.belief.beliefs.beliefs.mean)
    assert not mean[1, 1].any() and mean[0, 1].any()


def compiled(bandit: bandits.Bandit) -> tuple[str, str, str]:
    """The programs of the update of one arm, of a whole update, and of what writes an arm."""
    programs = bandit._engine.programs
    tell, held = programs._tell, bandit._engine.state.words
    assert tell is not None and tell.arm is not None
    learn, _, copies = tell.arm
    words = tell.write.own([XS[0], 1, 0.5, 1.0, 50])
    (_, parts, _), _ = learn(programs._setting, held.parts, words)
    patches, arrays = ((np.int32(1), parts),) * 2, copies._arrays(held)
    asked: list[tuple[Any, tuple[Any, ...]]] = [
        (learn, (programs._setting, held.parts, words)),
        (programs._learning(tell.layout).program, (programs._setting, held.parts, words)),
        (copies.writer(arrays, patches), (arrays, patches)),
    ]
    one, whole, write = (program.lower(*arguments).compile().as_text() for program, arguments in asked)
    return one, whole, write


def makes(text: str, shape: tuple[int, ...]) -> list[str]:
    """The operations of a compiled program that make an array of a shape, and not only name one."""
    size = ",".join(map(str, shape))
    found = re.findall(rf"= f\d+\[{size}\]\S* ([a-z-]+)\(", text)
    return [name for name in found if name not in ("parameter", "get-tuple-element", "bitcast")]


@pytest.mark.parametrize("kind", ["experts", "arms"])
def test_nothing_of_all_arms_is_written_for_the_reward_of_one(kind: str) -> None:
    bandit = service(kind)
    teach(bandit, range(15))
    shape = (3, INPUTS + 1, INPUTS + 1) if kind == "arms" else (2, 3, INPUTS + 1, INPUTS + 1)
    one, whole, write = compiled(bandit)
    assert makes(one, shape) == []
    assert makes(whole, shape) != []  # which shows that such an operation would be found
    # the two parts are written where the arrays lie
    assert "copy" not in makes(write, shape)
    assert "may-alias" in write or "must-alias" in write


class Counted:
    """A function that counts its calls."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function, self.calls = function, 0

    def __call__(self, *arguments: Any) -> Any:
        self.calls += 1
        return self.function(*arguments)


def test_a_decision_is_one_program_and_a_reward_two(monkeypatch: pytest.MonkeyPatch) -> None:
    bandit = service()
    teach(bandit, range(15))
    programs = bandit._engine.programs
    tell = programs._tell
    assert tell is not None and tell.arm is not None
    learn, read, copies = tell.arm
    ask = programs._ask[None, False]
    asked, learned, written = Counted(ask.program), Counted(learn), Counted(copies._writers[2, False])
    monkeypatch.setitem(programs._ask, (None, False), ask._replace(program=asked))
    monkeypatch.setattr(programs, "_tell", tell._replace(arm=(learned, read, copies)))
    copies._writers.clear()
    copies._writers[2, False] = written
    programs._whole.clear()
    teach(bandit, range(15, 25))
    assert (asked.calls, learned.calls, written.calls) == (10, 10, 10)
    assert list(copies._writers) == [(2, False)] and not programs._whole


def test_a_belief_that_somebody_holds_stays_as_it_was() -> None:
    bandit = service()
    teach(bandit, range(13))
    programs, state, belief = bandit._engine.programs, bandit._engine.state, bandit.belief
    numbers = [np.array(leaf) for leaf in jax.tree.leaves(belief)]
    for steps in (range(13, 14), range(14, 15), range(15, 18)):
        teach(bandit, steps)
        assert same(belief, numbers)
        assert same(programs.unpack(state.words), numbers)
    del state
    belief = bandit.belief  # of which the bandit does not know who holds it
    numbers = [np.array(leaf) for leaf in jax.tree.leaves(belief)]
    teach(bandit, range(18, 21))
    assert same(belief, numbers)
    fork = bandit.fork(1)
    at_fork = [np.array(leaf) for leaf in jax.tree.leaves(fork.belief)]
    teach(bandit, range(21, 24))
    assert same(fork.belief, at_fork)
    teach(fork, range(21, 24))
    teach(bandit, range(24, 28))
    assert int(fork.belief.t) == 24 and int(bandit.belief.t) == 28


def test_a_reward_that_cannot_be_written_changes_nothing(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bandit, other = service(log=tmp_path / "one"), service(log=tmp_path / "other")
    teach(bandit, range(13))
    teach(other, range(13))
    decision = bandit.decide(XS[13])
    assert other.decide(XS[13]).id == decision.id
    before, ledger = bandit.belief, bandit._engine.ledger

    def full(*_: Any, **__: Any) -> None:
        raise DataError("the disk is full.")

    for _ in range(3):
        with monkeypatch.context() as patch:
            patch.setattr(ledger, "rewards", full)
            with pytest.raises(DataError, match="full"):
                bandit.reward(decision.id, 1.0)
        assert same(bandit.belief, before)
    assert bandit.reward(decision.id, 1.0) and other.reward(decision.id, 1.0)
    teach(bandit, range(14, 20))
    teach(other, range(14, 20))
    assert same(bandit.belief, other.belief)


def test_a_replay_gives_the_same_bits(tmp_path: pathlib.Path) -> None:
    bandit = service(log=tmp_path / "log")
    teach(bandit, range(24))
    bandit.close()
    again = service(log=tmp_path / "log", replay=True)
    assert same(again.belief, bandit.belief)


def test_threads_decide_by_whole_beliefs_while_rewards_are_learned() -> None:
    bandit = service()
    teach(bandit, range(15))
    stop, wrong = threading.Event(), []

    def read() -> None:
        while not stop.is_set():
            try:
                bandit.decide(XS[0])
                assert np.isfinite(np.asarray(bandit.belief.belief.belief.log_weights)).all()
            except Exception as error:
                wrong.append(error)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for step in range(40):
        bandit.reward(bandit.decide(XS[step], arms=["0"], id=f"own {step}").id, float(XS[step, 0]))
    stop.set()
    for reader in readers:
        reader.join()
    assert not wrong
    alone = service()
    teach(alone, range(15))
    for step in range(40):
        alone.reward(alone.decide(XS[step], arms=["0"], id=f"own {step}").id, float(XS[step, 0]))
    assert same(alone.belief, bandit.belief)


def test_beliefs_that_time_moves_are_learned_as_a_whole() -> None:
    bandit = bandits.Bandit(experts(3, dynamics=RandomWalk(1e-3)))
    before = bandit.belief
    ids = [bandit.decide(x).id for x in XS[:14]]
    for id, x in zip(ids, XS, strict=False):
        bandit.reward(id, float(x[0]))
    tell = bandit._engine.programs._tell
    assert tell is not None and tell.arm is None
    assert same(bandit.belief, by_agent(bandit, before, ids, [float(x[0]) for x in XS[:14]]))


def test_arrays_are_given_away_once_nobody_holds_them() -> None:
    copies = Copies((0,), (0,))
    part = (jnp.ones((1, 2)),)
    first = Held((jnp.zeros(1), (jnp.zeros((3, 2)),)))
    second = copies.with_arm(first, jnp.zeros(1), (np.int32(0), part), private=False)
    third = copies.with_arm(second, jnp.zeros(1), (np.int32(1), part), private=False)
    old = second.parts[1][0]
    kept = copies.with_arm(third, jnp.zeros(1), (np.int32(2), part), private=False)
    assert not old.is_deleted() and kept.parts[1][0].tolist() == [[1.0, 1.0]] * 3
    del third
    last = copies.with_arm(kept, jnp.zeros(1), (np.int32(0), (2.0 * part[0],)), private=False)
    assert last.parts[1][0].tolist() == [[2.0, 2.0], [1.0, 1.0], [1.0, 1.0]]
    assert first.parts[1][0].tolist() == [[0.0, 0.0]] * 3
    assert second.parts[1][0].tolist() == [[1.0, 1.0], [0.0, 0.0], [0.0, 0.0]]
