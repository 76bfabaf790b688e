"""Operators and proposals that are trained for a problem before methods are compared.

What was trained is kept as a finished piece, so that an interrupted experiment does not train again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

import credo
from credo.core.types import Array, PyTree
from credo.flows import Operator, Plan, SimulatedTasks, Tasks, pfbr, train
from credo.particles.learned import learned_filter, train_proposal
from credo_papers import published_flow
from credo_papers.engine.any_learner import AnyLearner
from credo_papers.engine.cell_folder import Cells
from credo_papers.engine.plain_data import Arrays, Json
from credo_papers.engine.portions import Progress
from credo_papers.pfbr.pfbr_problem import Build, Problem
from credo_papers.published_flow import PublishedOperator

__all__ = ["Flows", "simulated", "train_methods"]

VERSION = 1
"""Of the code behind what was trained."""


@dataclass(frozen=True)
class Flows:
    """The flows to train.

    Arguments:
        tasks: makes the tasks of our operator, from one without training.
        steps: of gradient descent, by the name of the method.
        operator: settings of our operator.
        sequences: the tasks of the published operator, if it is trained: one training after the other,
            of equal length, each of which goes on with the parameters of the one before.
        density: what `credo.pfbr` takes as the density, or None.
        plan: how our operator is trained, but for the number of steps.
    """

    tasks: Callable[[Operator], Tasks[Any]]
    steps: Mapping[str, int]
    operator: Mapping[str, Any]
    sequences: tuple[Tasks[Any], ...] = ()
    density: str | None = None
    plan: Plan = field(default_factory=Plan)


def simulated(
    problem: Problem,
    particles: int,
    length: int,
    steps: Mapping[str, int],
    operator: Mapping[str, Any] | None = None,
    inputs: Callable[[Array, Array], PyTree] | None = None,
) -> Flows:
    """Return what is trained on sequences that are simulated from the problem itself.

    Arguments:
        problem: what learners are told; its likelihood can be sampled.
        particles: the number of particles in training.
        length: the observations of a sequence.
        steps: of gradient descent, by the name of the method.
        operator: settings of the operator.
        inputs: `inputs(key, t)`, the x of a step; None for none.
    """

    def tasks(blank: Operator) -> Tasks[Any]:
        learner = pfbr(problem.model, blank, particles, problem.dynamics)
        start = problem.begin(learner, jax.random.key(0))
        return SimulatedTasks(learner, start, length=length, inputs=inputs)

    return Flows(tasks, steps, {} if operator is None else operator)


def train_methods(
    name: str, problem: Problem, flows: Flows, seed: int, cells: Cells | None, progress: Progress
) -> tuple[Problem, dict[str, float]]:
    """Return the problem with everything trained for it, and the processor seconds of each training.

    Arguments:
        name: the name of the problem, for the files.
        problem: what learners are told.
        flows: what to train.
        seed: the seed of the training.
        cells: where finished pieces are kept; None keeps none.
        progress: is called before each training.
    """
    cells = Cells() if cells is None else cells
    builds: dict[str, Build] = {}
    seconds: dict[str, float] = {}
    training: dict[str, Json] = {}
    methods = list(flows.steps.items())

    def trained(number: int) -> tuple[dict[str, Json], float, Build]:
        method, steps = methods[number]
        progress(number / len(methods), f"training {method}, {name}")
        settings: dict[str, Json] = {"method": method, "steps": steps, "seed": seed, "version": VERSION}
        settings["operator"] = dict(flows.operator)
        settings["plan"] = repr(flows.plan)
        blank, compute, build = _maker(method)(method, problem, flows, steps, seed)

        def leaves() -> Arrays:
            begin = time.process_time()
            arrays = {str(k): np.asarray(leaf) for k, leaf in enumerate(jax.tree.leaves(compute()))}
            return arrays | {"seconds": np.asarray(time.process_time() - begin)}

        stored = cells.get(f"{name}-trained-{method}", settings, leaves)
        taken = float(stored.pop("seconds"))
        values = [jnp.asarray(stored[str(k)]) for k in range(len(stored))]
        return settings, taken, build(jax.tree.unflatten(jax.tree.structure(blank), values))

    for (method, _), found in zip(methods, cells.each(trained, range(len(methods))), strict=True):
        training[method], seconds[method], builds[method] = found
    return replace(problem, trained=builds, training=training), seconds


_Parts: TypeAlias = tuple[PyTree, Callable[[], PyTree], Callable[[PyTree], Build]]
"""Parameters before training, a function that trains them, and what is built with them."""


def _maker(method: str) -> Callable[[str, Problem, Flows, int, int], _Parts]:
    if method.startswith("AESMC"):
        return _proposal
    if method.endswith("published"):
        return _published
    return _operator


def _published(method: str, problem: Problem, flows: Flows, steps: int, seed: int) -> _Parts:
    operator = PublishedOperator(dim=problem.size, observation=problem.size, gradient="direct")

    def compute() -> PyTree:
        assert flows.sequences
        trained = operator.begin(key=seed)
        share = steps // len(flows.sequences)
        # the published decay of the weights; tasks by the batch and a cosine make the training short
        plan = Plan(
            steps=share,
            batch=32,
            pool=128,
            weight_decay=1e-5,
            clip=10.0,
            every=min(50, share),
            sequences=0,
            leap=1e4,
        )
        for number, tasks in enumerate(flows.sequences):
            trained = train(tasks, trained, plan=plan, key=jax.random.fold_in(jax.random.key(seed), number))
        return trained.params

    def build(params: PyTree) -> Build:
        trained = credo.replace(operator, params=params)
        return lambda problem, count: published_flow.pfbr(problem.model, trained, count, problem.dynamics)

    return operator.begin(key=seed).params, compute, build


def _operator(method: str, problem: Problem, flows: Flows, steps: int, seed: int) -> _Parts:
    base = None if "no base" in method else "affine"
    operator = Operator(dim=problem.size, base=base, **flows.operator)  # type: ignore[arg-type]
    blank = operator.begin(key=seed)

    def compute() -> PyTree:
        tasks = flows.tasks(blank)
        plan = credo.replace(flows.plan, steps=steps, every=min(flows.plan.every, steps))
        return train(tasks, operator, plan=plan, key=seed).params

    def build(params: PyTree) -> Build:
        trained = credo.replace(operator, params=params)

        def learner(problem: Problem, particles: int) -> AnyLearner:
            # what was trained, and no other map in its place
            return pfbr(
                problem.model,
                trained,
                particles,
                problem.dynamics,
                density=flows.density,  # type: ignore[arg-type]
                fallback=False,
            )

        return learner

    return blank.params, compute, build


def _proposal(method: str, problem: Problem, flows: Flows, steps: int, seed: int) -> _Parts:
    network = "gru" if method.endswith("gru") else "mlp"

    def blank(particles: int) -> Any:
        return learned_filter(
            problem.model,
            problem.dynamics,
            example=(None, jnp.zeros(problem.size)),
            size=problem.size,
            particles=particles,
            network=network,  # type: ignore[arg-type]
            key=seed,
        )

    def compute() -> PyTree:
        # few particles give the clearer gradient, see `train_proposal`
        learner = blank(8)
        prior = learner.init(
            jnp.zeros(problem.size) + problem.mean, var=jnp.zeros(problem.size) + problem.var
        )
        return train_proposal(learner, prior, steps=steps, batch=16, key=seed).learner.proposal

    def build(proposal: PyTree) -> Build:
        return lambda problem, particles: credo.replace(blank(particles), proposal=proposal)

    return blank(2).proposal, compute, build
