"""The programs of a bandit are kept: a second process compiles nothing, and answers with the same bits."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

DOOR = """
import jax, numpy as np

traced, compiled = [], []
def hear(event, _, **more):
    if event.endswith("jaxpr_trace_duration"):
        traced.append(more["fun_name"])
    if event.endswith("backend_compile_duration"):
        compiled.append(more["fun_name"])

jax.monitoring.register_event_duration_secs_listener(hear)
import credo
from credo import bandits

rng = np.random.default_rng(0)
net, answers = credo.Linear(), []
for inputs, policy in ((2, bandits.Thompson(floor=0.01)), (70, bandits.UCB(0.5))):
    learner = credo.extended_kalman(credo.Model(net, credo.Normal(0.1)))
    agent = bandits.Agent(learner, 3, "arms", policy)
    bandit = bandits.Bandit(agent, params=net.init(0, (inputs,)))
    traced.clear(), compiled.clear()
    xs = rng.normal(size=(8, inputs)).round(2)
    for x in xs[:3]:
        bandit.reward(bandit.decide(x).id, x[0])
    batch = bandit.decide_batch(xs)
    bandit.reward_batch([one.id for one in batch], xs[:, 0])
    answers += [bandit.decide(xs[0]), bandit.explain(batch[0].id).best]
    print(sorted({name.strip("_") for name in traced}), sorted({name.strip("_") for name in compiled}))
print(answers)
"""


@pytest.mark.slow
def test_a_second_process_compiles_nothing_and_gives_the_same_answers(tmp_path: Path) -> None:
    def run() -> list[str]:
        choice = {"CREDO_PROGRAMS": "1", "JAX_COMPILATION_CACHE_DIR": str(tmp_path / "jax")}
        command = [sys.executable, "-c", DOOR]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | choice)
        return done.stdout.strip().split("\n")

    first, second = run(), run()
    assert first[-1] == second[-1]
    small, large = first[:2]
    for name in ("decide", "reward", "decide_rows", "reward_rows", "ask"):
        assert f"'jit({name}_" in small
    for name in ("decide", "reward_arm", "put_arm", "put_arm_anew"):  # of an arm in large arrays
        assert f"'jit({name}_" in large
    for line in second[:2]:
        assert not any(name in line for name in ("decide", "reward", "put_arm", "ask", "choice", "learn"))
