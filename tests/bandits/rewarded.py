"""Every learner and wrapper, and the baselines, as a model of rewards, for the protocol test of agents."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from tests.adapt.robust_reference import METHODS
from tests.adapt.setups import WRAPPED, P
from tests.adapt.setups import XS as CONTEXTS
from tests.bandits.setups import ARMS
from tests.learners.reference import regression
from tests.learners.test_named import SPELLED
from tests.streams.setups import DYNAMICS, FAMILIES

import credo
from credo import bandits
from credo.bandits import designs, policies
from credo.bandits.designs import with_models
from credo.core.groups import each
from credo_papers import baselines

FULL = credo.extended_kalman(regression())


def _observing(likelihood: Any) -> Any:
    return credo.extended_kalman(credo.Model(regression().apply, likelihood))


LEARNERS: dict[str, Any] = {
    **{name: credo.bong(regression(), family) for name, family in FAMILIES.items()},
    **{f"low-rank, {name}": credo.bong(regression(), credo.LowRank(1), name) for name in ("lin-ef", "mc-ef")},
    "mc-hess": credo.bong(regression(), credo.Full(), "mc-hess"),
    "blr": credo.blr(regression(), credo.Full(), learning_rate=0.5),
    "bog": credo.bog(regression(), credo.Full(), learning_rate=0.1),
    "bbb": credo.bbb(regression(), credo.Full(), learning_rate=0.1),
    **{name: SPELLED[name][0] for name in ("slang", "ivon", "lrvga", "lofi-spherical")},
    "fd-ekf": credo.fd_ekf(regression()),
    "iterated": credo.iterated_ekf(regression()),
    "unknown noise": credo.normal_inverse_gamma(regression()),
    "unknown noise, low-rank": credo.bong(regression(credo.InverseGamma(2.0, 1.0)), credo.LowRank(1)),
    "etkf": credo.etkf(regression(), 4),
    "enkf": credo.enkf(regression(), 4),
    "particles": credo.particle_filter(regression(), 500, credo.RandomWalk(0.01)),
    "sgd": credo.sgd(regression()),
    "adam": credo.adam(regression()),
    "replay": credo.replay(regression(), capacity=3),
    "dense Fisher": credo.ekf.dense_fisher.learner(regression(), lr=1.0),
    "diagonal Fisher": credo.ekf.diag_fisher.learner(regression(), lr=1.0),
    "bootstrap": baselines.Bootstrap(credo.sgd(regression()), 3),
    "bootstrap, whole": baselines.Bootstrap(FULL, 3, "double", whole=True),
    "logistic": _observing(credo.Bernoulli()),
    "counts": _observing(credo.Poisson()),
    "Student-t": _observing(credo.StudentT(4.0, 0.1)),
    **{move: credo.extended_kalman(regression(), dynamics=DYNAMICS[move]) for move in ("ou", "perturb")},
}
"""Learners, in which the model of a design is put in the place of their own."""

WRAPPERS: dict[str, Any] = {
    **{name: wrapped for name, wrapped in WRAPPED.items() if "in run length" not in name},
    "robust in run length in experts": WRAPPED["robust in run length in experts"],
    "unlike experts": credo.Experts([FULL, credo.vd_ekf(regression())]),
    **{name: wrap(FULL) for name, wrap in METHODS.items() if name != "student-once"},
}
"""Wrappers around such learners."""

COUNTING: dict[str, Any] = {
    "Beta": credo.BetaBernoulli(),
    "Gamma": credo.GammaPoisson(),
    "Beta, changing": credo.RunLength(credo.BetaBernoulli(), 0.1, 2),
}
"""Learners without inputs, which have no model."""

PARTIAL = ("last layer", "random subspace", "svd subspace", "blocks", "dropout", "neural linear")
"""Learners of networks, or of a part of one."""

NAMES = [*LEARNERS, *WRAPPERS, *COUNTING, *PARTIAL]


def _designs() -> dict[str, list[str]]:
    """The designs in which each learner makes sense, beginning with another one for each next learner."""
    designs = {}
    for number, name in enumerate(NAMES):
        usual = ["arms"] if name in COUNTING else ["arms", "outputs", "actions"]
        # A wrapper around a design; those for outliers ask for a learner with a model just inside.
        whole = name in (*WRAPPED, "unlike experts", "Beta, changing") and "robust" not in name
        usual += ["pairs"] if whole else []
        turn = number % len(usual)
        designs[name] = usual[turn:] + usual[:turn]
    return designs


DESIGNS = _designs()


def agent_of(name: str, design: Any, policy: policies.Policy) -> tuple[bandits.Agent, Any, Any, Any]:
    """An agent with the learner of a name, its first belief, a context, and a reward above expectations."""
    outputs = ARMS if design in ("outputs", "pairs") else 1
    reward = {"logistic": 1.0, "counts": 30.0, "Gamma": 9.0}.get(name, 0.5)
    reward = 1.0 if name in ("Beta", "Beta, changing") else 3.0 if name in PARTIAL else reward
    x = CONTEXTS[:ARMS] if design == "actions" else None if name in COUNTING else CONTEXTS[0]
    params: Any = None
    if name in COUNTING:
        learner = COUNTING[name]
    elif name in PARTIAL:
        learner, params = _partial(name, outputs)
    else:
        net = credo.Linear(outputs)
        learner = with_models({**LEARNERS, **WRAPPERS}[name], lambda model: credo.replace(model, apply=net))
        params = _double(net.init(0, (P,)))
    if design == "pairs":
        learner = _around(learner, designs.ArmsDesign if name in COUNTING else designs.OutputsDesign)
    first = (CONTEXTS[0], jnp.zeros((), jnp.int32)) if outputs > 1 else CONTEXTS[0]
    options = {"example": (first, 0.0)} if name in ("replay", "memory", "neural linear") else {}
    agent = bandits.Agent(learner, ARMS, design, policy)
    return agent, agent.init(params, var=1.5, **options), x, jnp.asarray(reward)


def _around(wrapper: Any, design: Any) -> Any:
    """The wrapper around designs, where there was one around learners."""
    if isinstance(wrapper, credo.Experts):
        inside: Any = wrapper.learners
        return credo.replace(wrapper, learners=each(lambda one: design(one, ARMS), inside))
    return credo.replace(wrapper, learner=design(wrapper.learner, ARMS))


def _partial(name: str, outputs: int) -> tuple[Any, Any]:
    """A learner of (a part of) a network, and its prior mean where it has none of its own."""
    net = credo.MLP(outputs, (3,), "tanh")
    model, params = credo.Model(net, credo.Normal(0.09)), _double(net.init(0, (P,)))
    if name == "blocks":
        return credo.bong(model, credo.Blocks({"1": credo.Full(), "*": credo.Diagonal()})), params
    if name == "dropout":
        thinned = credo.replace(model, apply=baselines.DropoutNetwork(net, 0.2))
        return baselines.Dropout(credo.sgd(thinned), masks=3), params
    if name == "neural linear":
        return baselines.NeuralLinear(credo.replay(model, 0.01, capacity=3), every=1), params
    if name == "last layer":
        return credo.last_layer_ekf(model, params), None
    several = jax.tree.map(lambda *leaves: jnp.stack(leaves), *[net.init(key, (P,)) for key in range(3)])
    random = name == "random subspace"
    basis = credo.random_basis(params, 2, key=0) if random else credo.svd_basis(several, 2)
    return credo.subspace_ekf(model, params, basis), None


def _double(params: Any) -> Any:
    return jax.tree.map(lambda leaf: leaf.astype(jnp.float64), params)
