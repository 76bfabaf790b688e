"""Processes that were forked: refused where they would wait for ever, allowed where they would not."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

if not hasattr(os, "fork"):
    pytest.skip("there is no fork here", allow_module_level=True)

WORK = """
import os, warnings
import numpy as np
import credo
from credo import bandits
from credo.sessions import Session

warnings.simplefilter("ignore")
ROWS = [{"a": float(i % 5), "y": 2.0 * (i % 5)} for i in range(20)]
X, Y = np.array([[row["a"]] for row in ROWS]), np.array([row["y"] for row in ROWS])

def session():
    session = Session.from_rows(ROWS, "y", model="linear")
    session.learn(ROWS)
    return session

def attempt(what, work):
    try:
        work()
        print(what, "worked", flush=True)
    except credo.CredoError as error:
        print(what, "refused" if "spawn" in str(error) else error, flush=True)

def in_child(parts):
    if not (child := os.fork()):
        for what, work in parts.items():
            attempt(what, work)
        os._exit(0)
    os.waitpid(child, 0)

"""

BEFORE = 'in_child({"before": session})\n'

AFTER = """
learned, fitted = session(), credo.OnlineRegressor("linear").fit(X, Y)
river = credo.RiverRegressor("linear")
coin = credo.BetaBernoulli()
belief = coin.init()
for row in ROWS:
    river.learn_one({"a": row["a"]}, row["y"])
model = credo.Model(credo.Linear(2), credo.Normal(0.5))
bandit = bandits.Bandit(bandits.Agent(credo.bong(model, credo.Full()), arms=2), ["left", "right"], features=2)
choice = bandit.decide({"a": 1.0})
packed = credo.pack(coin, belief)
in_child({
    "session": session,
    "learn": lambda: learned.learn(ROWS),
    "predict": lambda: learned.predict(ROWS),
    "scikit-learn": lambda: fitted.partial_fit(X, Y),
    "regressor": lambda: credo.OnlineRegressor("linear").fit(X, Y),
    "river": lambda: river.learn_one({"a": 1.0}, 2.0),
    "step": lambda: coin.step(belief, None, 1),
    "packed": lambda: packed.step(None, 1),
    "evaluate": lambda: credo.evaluate(coin, belief, (None, np.ones(3, int))),
    "decide": lambda: bandit.decide({"a": 1.0}),
    "reward": lambda: bandit.reward(choice.id, 1.0),
    "network": lambda: credo.MLP(1, (3,)).init(0, (2,)),
})
attempt("parent", lambda: learned.learn(ROWS))
"""


@pytest.mark.slow
def test_a_child_is_refused_in_a_sentence_if_it_was_forked_after_jax_computed() -> None:
    """A child that waited would be ended by the time limit."""
    words = [sys.executable, "-c", WORK + BEFORE + AFTER]
    done = subprocess.run(words, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    first, *children, last = done.stdout.splitlines()
    assert (first, last) == ("before worked", "parent worked")
    assert [line.split()[-1] for line in children] == ["refused"] * 12, children
