"""The worlds of `bandit_peers.py`, the settings of the packages that were tried, and the chosen ones."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from bandit_peer_agents import Build, peer

from credo import bandits
from credo.bandits.environments import AnyEnvironment
from credo_papers.bandits import bandit_agents as agents
from credo_papers.bandits.bandit_mnist import FEATURES as DIGIT_FEATURES
from credo_papers.bandits.bandit_wheel import DIVISOR
from credo_papers.bandits.bandit_wheel import FEATURES as WHEEL_FEATURES

__all__ = ["DEFAULT", "TRIED", "WORLDS", "Chosen", "Settings", "World", "build_peer"]

Settings: TypeAlias = Mapping[str, Any]
"""What an agent of another package takes."""


@dataclass(frozen=True)
class Chosen:
    """A peer's settings in a world, and how many runs of how many steps there is time for.

    Attributes:
        settings: the best of `TRIED` on key 1000.
        seeds, steps: at most so many.
    """

    settings: Settings
    seeds: int = 10
    steps: int = 5000


@dataclass(frozen=True)
class World:
    """A world, and who plays there.

    Attributes:
        title: its name in the tables.
        environment: makes it.
        ours: our agents, as the experiments have them.
        peers: the agents of other packages.
        crossed: the highest order of products of inputs that VW is tried with here.
        scaled: whether inputs are standardised as they come.
        by_regret: whether regret counts instead of reward.
    """

    title: str
    environment: Callable[[], AnyEnvironment]
    ours: Mapping[str, agents.Build]
    peers: Mapping[str, Chosen]
    crossed: int
    scaled: bool = True
    by_regret: bool = False


LINEAR: dict[str, agents.Build] = {
    "credo, linear, UCB": agents.linear,
    "credo, linear, unknown noise, Thompson": agents.normal_inverse_gamma,
}
NETWORK: dict[str, agents.Build] = {"credo, network of rank 20, Thompson": agents.network}
FEATURES = "credo, random features, UCB"
SLOW = 3
"""How many runs there are of agents that take most of a millisecond a step."""

NETWORKS: Settings = {
    "kind": "CmabBernoulli",
    "batch": 250,
    "update_kwargs": {"num_steps": 2000, "optimizer_kwargs": {"step_size": 0.02}},
}
"""pybandits' own step size of .0003 leaves its posterior where it was."""

DEFAULT = "credo, default agent"


def _vw(explore: str, order: int, best: float, alone: bool) -> Settings:
    """Settings of VW.

    A cost is `best - reward`. With 1 costs lie between 0 and 1, and an arm that was never tried looks best;
    with 0 they lie between -1 and 0, and it looks worst.

    Arguments:
        explore: how it explores, and how fast it learns.
        order: products of how many inputs each arm sees.
        best: the reward that costs 0.
        alone: whether inputs also count for all arms alike.
    """
    crossed = " ".join(f"--interactions {'s' * degree}a" for degree in range(1, order + 1))
    return {"options": f"{explore} {crossed}{'' if alone else ' --ignore_linear s'}", "best": best}


EXPLORERS = (
    "--squarecb --gamma_scale 10",
    "--squarecb --gamma_scale 100",
    "--squarecb --gamma_scale 1000",
    "--squarecb --gamma_scale 100 -l 1",
    "--squarecb --gamma_scale 1000 -l 1",
    "--bag 5",
    "--bag 10 --greedify",
    "--softmax --lambda 20",
    "--softmax --lambda 50",
)
"""How VW was told to explore. `--cover`, `--epsilon`, `--rnd` and `--regcb` fell behind at first."""

REGRESSIONS: list[Settings] = [
    {"alpha": alpha, "beta": beta} for alpha in (0.1, 1.0, 10.0) for beta in (1.0, 10.0, 100.0)
]
"""Precisions of the weights and of the noise."""

TRIED: dict[str, Sequence[Settings]] = {
    "VW": [
        _vw(explore, order, best, alone)
        for order in (1, 2, 3)
        for best in (0.0, 1.0)
        for alone in (True, False)
        for explore in EXPLORERS
    ],
    "River LinUCB": REGRESSIONS,
    "MABWiser LinUCB": [{"alpha": width, "l2_lambda": 1.0} for width in (0.1, 0.25, 0.5, 1.0)],
    "MABWiser LinTS": [{"alpha": width, "l2_lambda": 1.0} for width in (0.1, 0.25, 0.5, 1.0)],
    "bayesianbandits NIG, Thompson": [{"lam": lam, "a": 2.0, "b": 0.2} for lam in (0.1, 1.0, 10.0)] + [{}],
    "bayesianbandits Normal, Thompson": [
        {"alpha": alpha, "beta": beta} for alpha in (1.0, 10.0) for beta in (10.0, 30.0)
    ],
    "contextualbandits LinUCB": [{"alpha": width, "lambda_": 1.0} for width in (0.1, 0.25, 0.5, 1.0)],
    "contextualbandits LinTS": [{"v_sq": 1.0}, {"v_sq": 0.06}, {"v_sq": 1e-4}],
    "contextualbandits BootstrappedUCB": [{"nsamples": 10}],
    "contextualbandits BootstrappedTS": [{"nsamples": 10}],
}
"""By the name of an agent."""


def build_peer(name: str, settings: Settings) -> Build:
    """The agent of another package with settings.

    Arguments:
        name: the package, and its policy where the package has several classes; for VW and pybandits the
            settings say what the further words stand for.
        settings: what it takes.
    """
    words = name.replace(",", "").split()
    kind = words[0]
    extra = {}
    if kind in ("MABWiser", "contextualbandits"):
        extra = {"policy": words[1]}
    elif kind == "bayesianbandits":
        learner = {"NIG": "NormalInverseGammaRegressor", "Normal": "NormalRegressor"}[words[1]]
        extra = {"learner": learner, "policy": {"Thompson": "ThompsonSampling"}[words[2]]}
    elif kind == "River" or name == "VW by arm number":
        kind = name
    return peer(kind, **extra, **settings)


STATLOG = {
    "VW SquareCB": Chosen(_vw("--squarecb --gamma_scale 1000 -l 1", 3, 0.0, True)),
    "VW bag": Chosen(_vw("--bag 10 --greedify", 2, 0.0, True)),
    "River LinUCB": Chosen({"alpha": 10.0, "beta": 10.0}),
    "River Thompson without context": Chosen({}),
    "MABWiser LinUCB": Chosen({"alpha": 0.25, "l2_lambda": 1.0}, SLOW),
    "MABWiser LinTS": Chosen({"alpha": 0.1, "l2_lambda": 1.0}, SLOW),
    "bayesianbandits NIG, Thompson": Chosen({"lam": 10.0, "a": 2.0, "b": 0.2}, SLOW),
    "contextualbandits LinUCB": Chosen({"alpha": 0.1, "lambda_": 1.0}, SLOW),
    "contextualbandits LinTS": Chosen({"v_sq": 1e-4}, SLOW),
    "contextualbandits BootstrappedUCB": Chosen({"nsamples": 10}, 1, 1000),
    "pybandits Bernoulli, Thompson": Chosen(NETWORKS, 1, 500),
}
COVERTYPE = {
    "VW SquareCB": Chosen(_vw("--squarecb --gamma_scale 1000", 1, 1.0, True)),
    "VW bag": Chosen(_vw("--bag 5", 2, 0.0, True)),
    "River LinUCB": Chosen({"alpha": 10.0, "beta": 100.0}),
    "MABWiser LinUCB": Chosen({"alpha": 0.25, "l2_lambda": 1.0}, SLOW),
    "MABWiser LinTS": Chosen({"alpha": 0.1, "l2_lambda": 1.0}, SLOW),
    "bayesianbandits NIG, Thompson": Chosen({"lam": 10.0, "a": 2.0, "b": 0.2}, SLOW),
    "contextualbandits LinUCB": Chosen({"alpha": 0.25, "lambda_": 1.0}, SLOW),
}
DIGITS = {
    "VW SquareCB": Chosen(_vw("--squarecb --gamma_scale 10", 1, 0.0, False)),
    "VW softmax": Chosen(_vw("--softmax --lambda 50", 1, 0.0, True)),
    "River LinUCB": Chosen({"alpha": 10.0, "beta": 10.0}, 1, 500),
    "bayesianbandits NIG, Thompson": Chosen({"lam": 10.0, "a": 2.0, "b": 0.2}, 1, 500),
    "MABWiser LinUCB": Chosen({"alpha": 0.25, "l2_lambda": 1.0}, 1, 100),
    "contextualbandits LinUCB": Chosen({"alpha": 0.25, "lambda_": 1.0}, 1, 100),
}
WHEEL = {
    "VW softmax": Chosen(_vw("--softmax --lambda 50", 3, 0.0, True)),
    "VW SquareCB": Chosen(_vw("--squarecb --gamma_scale 100", 1, 0.0, False)),
    "River LinUCB": Chosen({"alpha": 0.1, "beta": 10.0}),
    "MABWiser LinTS": Chosen({"alpha": 0.25, "l2_lambda": 1.0}, SLOW),
    "bayesianbandits NIG, Thompson": Chosen({}, SLOW),
    "contextualbandits LinUCB": Chosen({"alpha": 0.1, "lambda_": 1.0}, SLOW),
}
WORLDS = {
    "statlog": World(
        "statlog, 9 inputs, 7 arms",
        functools.partial(bandits.load_environment, "statlog"),
        {DEFAULT: agents.default, FEATURES: agents.random_features, **NETWORK, **LINEAR},
        STATLOG,
        3,
    ),
    "covertype": World(
        "covertype, 54 inputs, 7 arms",
        functools.partial(bandits.load_environment, "covertype"),
        {DEFAULT: agents.default, FEATURES: agents.random_features, **NETWORK, **LINEAR},
        COVERTYPE,
        2,
    ),
    "mnist": World(
        "MNIST-5000, 784 pixels, 10 arms",
        functools.partial(bandits.load_environment, "mnist", limit=5000),
        {
            DEFAULT: functools.partial(agents.default, scale=False),
            "credo, linear of rank 10, UCB": agents.linear_outputs,
            FEATURES: DIGIT_FEATURES,
        },
        DIGITS,
        1,
        scaled=False,
    ),
    "wheel": World(
        "the wheel, delta = 0.95, 2 inputs, 5 arms",
        functools.partial(bandits.load_environment, "wheel", delta=0.95, divisor=DIVISOR),
        {DEFAULT: agents.default, FEATURES: WHEEL_FEATURES, **LINEAR},
        WHEEL,
        3,
        by_regret=True,
    ),
}
