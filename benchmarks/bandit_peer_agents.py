"""The bandit packages as agents: each decides for a context, and learns the reward of the arm that it chose.

A package is imported when its first agent is built, so that those which are installed run without the others.
Packages that lack an intercept get a 1 at the end of the context.
"""

# No environment of this repository has them all.
# pyright: reportMissingImports=false

from __future__ import annotations

import functools
import importlib
import importlib.metadata
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias

import numpy as np

__all__ = ["PACKAGES", "Build", "PeerAgent", "peer", "version"]

PACKAGES = {
    "VW": "vowpalwabbit",
    "River": "river",
    "MABWiser": "mabwiser",
    "contextualbandits": "contextualbandits",
    "bayesianbandits": "bayesianbandits",
    "pybandits": "pybandits",
}
"""The package of each peer, by the first word of its agents' names."""


class PeerAgent(Protocol):
    """What all agents of other packages do here."""

    def decide(self, x: np.ndarray) -> int:
        """Choose an arm for a context (d,)."""
        ...

    def learn(self, x: np.ndarray, arm: int, reward: float) -> None:
        """Learn the reward of the arm that was chosen for this context."""
        ...


Build: TypeAlias = Callable[[int, int, int], PeerAgent]
"""Makes an agent from the numbers of arms and inputs, and a seed."""


def version(name: str) -> str:
    """The package of an agent and its version, or why it cannot run."""
    package = PACKAGES[name.split()[0]]
    try:
        importlib.import_module(package)
        return f"{package} {importlib.metadata.version(package)}"
    except Exception as error:  # a package that cannot be imported is a result, too
        return f"{package} cannot run: {type(error).__name__}: {str(error).splitlines()[0][:90]}"


def peer(name: str, **settings: Any) -> Build:
    """An agent of another package.

    Arguments:
        name: "VW", "VW by arm number", or the package and the policy, such as "MABWiser LinUCB".
        settings: what its class takes; for VW, `options` of the command line, and the reward `best` that
            costs 0.
    """
    return functools.partial(_CLASSES[name], settings)


class VowpalWabbit:
    """VW with features for every action (`--cb_explore_adf`): arms are drawn from the pmf that it returns.

    The context is one namespace and the name of the arm another, and `options` says how they interact.
    A cost is `best` minus the reward.
    """

    def __init__(self, settings: Mapping[str, Any], arms: int, inputs: int, seed: int) -> None:
        workspace = importlib.import_module("vowpalwabbit").Workspace
        self.model = workspace(f"--cb_explore_adf {settings['options']} --random_seed {seed + 1} --quiet")
        self.rng = np.random.default_rng(seed)
        self.lines = [f"|a a{arm}" for arm in range(arms)]
        self.best: float = settings["best"]
        self.context = ""
        self.propensity = 1.0

    def decide(self, x: np.ndarray) -> int:
        """Draw an arm from the pmf."""
        self.context = "shared |s " + _pairs(x)
        pmf = self.model.predict("\n".join([self.context, *self.lines]))
        arm = _draw(pmf, self.rng)
        self.propensity = pmf[arm]
        return arm

    def learn(self, x: np.ndarray, arm: int, reward: float) -> None:
        """Learn the cost; the text of the context is that of the decision."""
        lines = [self.context, *self.lines]
        lines[1 + arm] = f"0:{self.best - reward:.7g}:{self.propensity:.7g} {lines[1 + arm]}"
        self.model.learn("\n".join(lines))


class VowpalWabbitByNumber:
    """VW with arms by number (`--cb_explore K`): a model for each arm, and less text than with features."""

    def __init__(self, settings: Mapping[str, Any], arms: int, inputs: int, seed: int) -> None:
        workspace = importlib.import_module("vowpalwabbit").Workspace
        self.model = workspace(f"--cb_explore {arms} {settings['options']} --random_seed {seed + 1} --quiet")
        self.rng = np.random.default_rng(seed)
        self.best: float = settings["best"]
        self.context = ""
        self.propensity = 1.0

    def decide(self, x: np.ndarray) -> int:
        """Draw an arm from the pmf."""
        self.context = "| " + _pairs(x)
        pmf = self.model.predict(self.context)
        arm = _draw(pmf, self.rng)
        self.propensity = pmf[arm]
        return arm

    def learn(self, x: np.ndarray, arm: int, reward: float) -> None:
        """Learn the cost; the text of the context is that of the decision."""
        self.model.learn(f"{arm + 1}:{self.best - reward:.7g}:{self.propensity:.7g} {self.context}")


def _pairs(x: np.ndarray) -> str:
    """A context as VW reads it, without its zeros."""
    return " ".join(f"{place}:{value:.6g}" for place, value in enumerate(x.tolist()) if value)


def _draw(pmf: list[float], rng: np.random.Generator) -> int:
    steps = np.cumsum(pmf)
    return min(int(np.searchsorted(steps, rng.random() * steps[-1], side="right")), len(pmf) - 1)


class River:
    """River's `LinUCBDisjoint`: its bound is the mean and one standard deviation of the forecast."""

    def __init__(self, settings: Mapping[str, Any], arms: int, inputs: int, seed: int) -> None:
        self.policy = importlib.import_module("river.bandit").LinUCBDisjoint(seed=seed, **settings)
        self.arms = list(range(arms))

    def decide(self, x: np.ndarray) -> int:
        """The arm of the highest bound."""
        return int(self.policy.pull(self.arms, context=_named(x)))

    def learn(self, x: np.ndarray, arm: int, reward: float) -> None:
        """Learn in the arm's regression."""
        self.policy.update(arm, _named(x), reward)


class RiverWithoutContext:
    """River's Thompson sampling, which sees no context: what is lost without one."""

    def __init__(self, settings: Mapping[str, Any], arms: int, inputs: int, seed: int) -> None:
        bandit = importlib.import_module("river.bandit")
        proba = importlib.import_module("river.proba")
        self.policy = bandit.ThompsonSampling(reward_obj=proba.Beta(), seed=seed, **settings)
        self.arms = list(range(arms))

    def decide(self, x: np.ndarray) -> int:
        """The arm of the highest draw."""
        return int(self.policy.pull(self.arms))

    def learn(self, x: np.ndarray, arm: int, reward: float) -> None:
        """Count the reward."""
        self.policy.update(arm, reward)


def _named(x: np.ndarray) -> dict[int, float]:
    return dict(enumerate([*x.tolist(), 1.0]))


class MabWiser:
    """MABWiser's linear policies. It refuses to predict before it was fitted: the first arm is random."""

    def __init__(self, settings: Mapping[str, Any], arms: int, inputs: int, seed: int) -> None:
        module = importlib.import_module("mabwiser.mab")
        own = dict(settings)
        policy = getattr(module.LearningPolicy, own.pop("policy"))(**own)
        self.model = module.MAB(list(range(arms)), policy, seed=seed)
        self.first: int | None = int(np.random.default_rng(seed).integers(arms))

    def decide(self, x: np.ndarray) -> int:
        """The arm that the policy prefers."""
        if self.first is None:
            return int(self.model.predict(_row(x)))
        return self.first

    def learn(self, x: np.ndarray, arm: int, reward: float) -> None:
        """Learn one row."""
        learn = self.model.partial_fit if self.first is None else self.model.fit
        learn([arm], [reward], _row(x))
        self.first = None


class BayesianBandits:
    """bayesianbandits' `ContextualAgent` with a linear regression for each arm."""

    def __init__(self, settings: Mapping[str, Any], arms: int, inputs: int, seed: int) -> None:
        module = importlib.import_module("bayesianbandits")
        own = dict(settings)
        learner = getattr(module, own.pop("learner"))
        policy = getattr(module, own.pop("policy"))
        alpha = {"alpha": own.pop("width")} if "width" in own else {}
        each = [module.Arm(arm, learner=learner(**own)) for arm in range(arms)]
        self.agent = module.ContextualAgent(each, policy(**alpha), random_seed=seed)

    def decide(self, x: np.ndarray) -> int:
        """The arm that the policy prefers."""
        return int(self.agent.pull(_row(x))[0])

    def learn(self, x: np.ndarray, arm: int, reward: float) -> None:
        """Learn one row."""
        self.agent.select_for_update(arm).update(_row(x), np.array([reward]))


class ContextualBandits:
    """contextualbandits' policies; the bootstraps have logistic regressions by stochastic gradients."""

    def __init__(self, settings: Mapping[str, Any], arms: int, inputs: int, seed: int) -> None:
        module = importlib.import_module("contextualbandits.online")
        own = dict(settings)
        policy = own.pop("policy")
        if policy.startswith("Bootstrapped"):
            base = importlib.import_module("sklearn.linear_model").SGDClassifier(loss="log_loss")
            own = {"base_algorithm": base, "batch_train": True, "njobs_arms": 1} | own
        # Its random_state must be above 0.
        self.policy = getattr(module, policy)(nchoices=arms, random_state=seed + 1, **own)

    def decide(self, x: np.ndarray) -> int:
        """The arm that the policy prefers."""
        return int(self.policy.predict(x[None].astype(float))[0])

    def learn(self, x: np.ndarray, arm: int, reward: float) -> None:
        """Learn one row."""
        self.policy.partial_fit(x[None].astype(float), np.array([arm]), np.array([reward]))


class PyBandits:
    """pybandits' Thompson sampling with a variational posterior for each arm, which learns in batches.

    An update compiles anew and optimises for seconds, whatever the number of its rows.
    """

    def __init__(self, settings: Mapping[str, Any], arms: int, inputs: int, seed: int) -> None:
        own = dict(settings)
        self.batch: int = own.pop("batch")
        kind = getattr(importlib.import_module("pybandits.cmab"), own.pop("kind"))
        self.names = [f"a{arm}" for arm in range(arms)]
        self.model = kind.cold_start(action_ids=self.names, n_features=inputs, random_seed=seed, **own)
        self.rows: list[tuple[np.ndarray, str, float]] = []

    def decide(self, x: np.ndarray) -> int:
        """The arm of the highest draw."""
        return self.names.index(self.model.predict(context=x[None])[0][0])

    def learn(self, x: np.ndarray, arm: int, reward: float) -> None:
        """Keep the row, and learn when a batch is full."""
        self.rows.append((x, self.names[arm], reward))
        if len(self.rows) == self.batch:
            xs, arms, rewards = zip(*self.rows, strict=True)
            self.model.update(actions=list(arms), rewards=list(rewards), context=np.stack(xs))
            self.rows = []


def _row(x: np.ndarray) -> np.ndarray:
    return np.append(x.astype(float), 1.0)[None]


_CLASSES: dict[str, Callable[[Mapping[str, Any], int, int, int], PeerAgent]] = {
    "VW": VowpalWabbit,
    "VW by arm number": VowpalWabbitByNumber,
    "River LinUCB": River,
    "River Thompson without context": RiverWithoutContext,
    "MABWiser": MabWiser,
    "bayesianbandits": BayesianBandits,
    "contextualbandits": ContextualBandits,
    "pybandits": PyBandits,
}
