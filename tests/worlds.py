"""The standard world of tests, and every public learner in it.

Rows 12, inputs 3, outputs 1 or 3: tests that share these shapes share compiled programs. Data are
NumPy's, because an eager call of JAX compiles a program for each new shape.

`LEARNERS` holds every public way to make a learner, by its public name. What a whole kind must do is tested
over it: `tests/streams/test_public_files.py`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import jax
import numpy as np

import credo
from credo import adapt, bandits, ekf, flows, particles
from credo.adapt import named
from credo.bandits import designs

__all__ = ["LEARNERS", "World", "begin", "world"]

ROWS, INPUTS = 12, 3
"""The size of the standard world."""

PARTICLES = 16
"""The particles of a filter, for tests that do not depend on their number."""

Build: TypeAlias = Callable[["World"], Any]


@dataclass(frozen=True)
class World:
    """A linear world with normal noise.

    Attributes:
        model: a linear model, whose parameters the learners find.
        params: the prior mean.
        xs: the inputs (rows, inputs).
        ys: the observations (rows,), or (rows, outputs) where there are several outputs.
    """

    model: credo.Model
    params: Any
    xs: np.ndarray
    ys: np.ndarray

    @property
    def outputs(self) -> int:
        """The number of outputs."""
        return 1 if self.ys.ndim == 1 else self.ys.shape[1]

    @property
    def inner(self) -> credo.RecursiveLearner:
        """The extended Kalman filter, which wrappers hold."""
        return credo.extended_kalman(self.model, form="dense")

    @property
    def size(self) -> int:
        """The number of parameters."""
        return (INPUTS + 1) * self.outputs


def world(outputs: int = 1) -> World:
    """The standard world with so many outputs."""
    rng = np.random.default_rng(0)
    xs = rng.normal(size=(ROWS, INPUTS))
    weights = rng.normal(size=(INPUTS, outputs))
    ys = xs @ weights + 0.3 * rng.normal(size=(ROWS, outputs))
    line = credo.models.Linear(outputs=outputs)
    model = credo.Model(line, credo.Normal(0.1))
    return World(model, line.init(0, (INPUTS,)), xs, ys[:, 0] if outputs == 1 else ys)


def _walks(at: World) -> list[Any]:
    """Two filters that differ in how far the parameters walk."""
    return [
        credo.extended_kalman(at.model, form="dense", dynamics=credo.RandomWalk(var)) for var in (0.0, 0.1)
    ]


def _kalman(at: World) -> Any:
    eye = np.eye(at.size)
    return credo.kalman(0.9 * eye, eye[: at.outputs], 0.1 * eye, np.eye(at.outputs))


def inner_product(params: Any, x: Any) -> Any:
    """A user's own function of the parameters."""
    return x @ params


def _polynomial() -> Any:
    inner = credo.extended_kalman(credo.Model(inner_product, credo.Normal(0.1)))
    return adapt.LocalPolynomial(inner, 1)


def _shared() -> Any:
    """A filter whose arms are the outputs of its model."""
    line = credo.models.Linear(outputs=2)
    return credo.extended_kalman(credo.Model(line, credo.Normal(0.1)))


def _members_of_auto() -> Any:
    """The bank of the default, without what watches it and what is stacked on it."""
    whole: Any = credo.auto(INPUTS)
    return whole.learner.learner


def _learned(at: World) -> Any:
    return particles.learned_filter(
        at.model, credo.RandomWalk(0.1), example=(at.xs[0], at.ys[0]), size=at.size, particles=PARTICLES
    )


def _flow(at: World) -> Any:
    return flows.Operator(dim=at.size, width=2, hidden=4).begin()


FILTERS: dict[str, Build] = {
    "credo.RecursiveLearner": lambda at: credo.RecursiveLearner(at.model, credo.Full("dense")),
    "credo.adam": lambda at: credo.adam(at.model),
    "credo.bbb": lambda at: credo.bbb(at.model, credo.Diagonal()),
    "credo.blr": lambda at: credo.blr(at.model, credo.Diagonal()),
    "credo.bog": lambda at: credo.bog(at.model, credo.Diagonal()),
    "credo.bong": lambda at: credo.bong(at.model, credo.Diagonal()),
    "credo.ekf.FisherLearner": lambda at: ekf.diag_fisher.learner(at.model, lr=1.0),
    "credo.ekf.dense_fisher.learner": lambda at: ekf.dense_fisher.learner(at.model, lr=1.0),
    "credo.enkf": lambda at: credo.enkf(at.model, PARTICLES),
    "credo.EnsembleLearner": lambda at: credo.EnsembleLearner(at.model, PARTICLES),
    "credo.etkf": lambda at: credo.etkf(at.model, PARTICLES),
    "credo.extended_kalman": lambda at: credo.extended_kalman(at.model),
    "credo.fd_ekf": lambda at: credo.fd_ekf(at.model),
    "credo.GradientLearner": lambda at: credo.GradientLearner(at.model),
    "credo.iterated_ekf": lambda at: credo.iterated_ekf(at.model),
    "credo.ivon": lambda at: credo.ivon(at.model, samples=4),
    "credo.last_layer_ekf": lambda at: credo.last_layer_ekf(at.model, at.params),
    "credo.lofi": lambda at: credo.lofi(at.model, 2),
    "credo.lofi_spherical": lambda at: credo.lofi_spherical(at.model, 2),
    "credo.lrvga": lambda at: credo.lrvga(at.model, 2),
    "credo.normal_inverse_gamma": lambda at: credo.normal_inverse_gamma(at.model),
    "credo.ogd": lambda at: credo.ogd(at.model),
    "credo.replay": lambda at: credo.replay(at.model),
    "credo.rvga": lambda at: credo.rvga(at.model, 4),
    "credo.sgd": lambda at: credo.sgd(at.model),
    "credo.slang": lambda at: credo.slang(at.model, 2, samples=4),
    "credo.subspace_ekf": lambda at: credo.subspace_ekf(at.model, at.params, np.eye(2, at.size)),
    "credo.vd_ekf": lambda at: credo.vd_ekf(at.model),
    "credo.vogn": lambda at: credo.vogn(at.model, samples=4),
    "credo.von": lambda at: credo.von(at.model, samples=4),
}
"""Learners of the parameters of a model."""

WRAPPERS: dict[str, Build] = {
    "credo.Calibrated": lambda at: credo.Calibrated(at.inner),
    "credo.ChangeProbability": lambda at: credo.ChangeProbability(at.inner, (1.0, 0.7), (0.0, -2.0)),
    "credo.ChangeTimes": lambda at: credo.ChangeTimes(at.inner, 0.1, 3),
    "credo.Experts": lambda at: credo.Experts(_walks(at)),
    "credo.GammaWeight": lambda at: credo.GammaWeight(at.inner, 2.0, 1.0),
    "credo.InverseWishartNoise": lambda at: credo.InverseWishartNoise(at.inner, 4.0),
    "credo.Monitored": lambda at: credo.Monitored(at.inner),
    "credo.OutlierIndicator": lambda at: credo.OutlierIndicator(at.inner),
    "credo.RunLength": lambda at: credo.RunLength(at.inner, 0.1, 3),
    "credo.SoftReset": lambda at: credo.SoftReset(at.inner, 0.1),
    "credo.Stacked": lambda at: credo.Stacked(credo.Experts(_walks(at))),
    "credo.Standardized": lambda at: credo.Standardized(at.inner),
    "credo.Stretched": lambda at: credo.Stretched(at.inner),
    "credo.StudentTNoise": lambda at: credo.StudentTNoise(at.inner, 4.0),
    "credo.WeightedPast": lambda at: credo.WeightedPast(at.inner, 4),
    "credo.WoLF": lambda at: credo.WoLF(at.inner, 2.0),
    "credo.adapt.LocalPolynomial": lambda at: credo.RunLength(_polynomial(), 0.1, 3),
    "credo.adapt.NoiseScaled": lambda at: adapt.NoiseScaled(at.inner, 0.1),
    "credo.adapt.bank": lambda at: adapt.bank(_walks(at)),
    "credo.adapt.named.bam": lambda at: named.bam(at.inner, 4),
    "credo.adapt.named.bocd": lambda at: named.bocd(at.inner, capacity=3),
    "credo.adapt.named.c_aci": lambda at: named.c_aci(at.inner),
    "credo.adapt.named.c_ou": lambda at: named.c_ou(at.inner),
    "credo.adapt.named.c_static": lambda at: named.c_static(at.inner),
    "credo.adapt.named.cpl_mci": lambda at: named.cpl_mci(at.inner, capacity=3),
    "credo.adapt.named.cpl_sub": lambda at: named.cpl_sub(at.inner, capacity=3),
    "credo.adapt.named.cpp_aci": lambda at: named.cpp_aci(at.inner),
    "credo.adapt.named.cpp_ou": lambda at: named.cpp_ou(at.inner),
    "credo.adapt.named.cpt_mmpr": lambda at: named.cpt_mmpr(at.inner, capacity=3),
    "credo.adapt.named.me_lssm": lambda at: named.me_lssm(_walks(at)),
    "credo.adapt.named.rl_mmpr": lambda at: named.rl_mmpr(at.inner, capacity=3),
    "credo.adapt.named.rl_oupr": lambda at: named.rl_oupr(at.inner),
    "credo.adapt.named.rl_pr": lambda at: named.rl_pr(at.inner, capacity=3),
    "credo.adapt.named.rlcc_pr": lambda at: named.rlcc_pr(at.inner, capacity=3),
    "credo.adapt.named.wolf_rl_pr": lambda at: named.wolf_rl_pr(at.inner, capacity=3),
}
"""Learners around another one."""

PARTICLE_FILTERS: dict[str, Build] = {
    "credo.ParticleFilter": lambda at: credo.ParticleFilter(at.model, PARTICLES),
    "credo.daum_huang": lambda at: credo.daum_huang(at.model, PARTICLES, steps=2),
    "credo.fokker_planck": lambda at: credo.fokker_planck(at.model, PARTICLES, steps=2),
    "credo.gaussian_map": lambda at: credo.gaussian_map(at.model, PARTICLES),
    "credo.liu_west": lambda at: credo.liu_west(at.model, PARTICLES),
    "credo.one_pass_smc": lambda at: credo.one_pass_smc(at.model, PARTICLES),
    "credo.particle_filter": lambda at: credo.particle_filter(
        at.model, PARTICLES, credo.RandomWalk(0.1), proposal="guided"
    ),
    "credo.particles.DaumHuang": lambda at: particles.DaumHuang(at.model, PARTICLES, steps=2),
    "credo.particles.FokkerPlanckLearner": lambda at: particles.FokkerPlanckLearner(
        at.model, PARTICLES, steps=2
    ),
    "credo.particles.GaussianMap": lambda at: particles.GaussianMap(at.model, PARTICLES),
    "credo.particles.KernelBayes": lambda at: particles.KernelBayes(at.model, PARTICLES),
    "credo.particles.KernelFilter": lambda at: particles.KernelFilter(
        at.model, PARTICLES, credo.RandomWalk(0.1), pairs=PARTICLES, horizon=2
    ),
    "credo.particles.Langevin": lambda at: particles.Langevin(at.model, PARTICLES, iterations=2),
    "credo.particles.MirrorDescent": lambda at: particles.MirrorDescent(at.model, PARTICLES),
    "credo.particles.NonparametricVariational": lambda at: particles.NonparametricVariational(
        at.model, PARTICLES, components=2, iterations=2
    ),
    "credo.particles.SteinLearner": lambda at: particles.SteinLearner(at.model, PARTICLES, steps=2),
    "credo.particles.TemperedFilter": lambda at: particles.TemperedFilter(at.model, PARTICLES),
    "credo.particles.learned_filter": _learned,
    "credo.particles.svi": lambda at: particles.svi(at.model, samples=4),
    "credo.svgd": lambda at: credo.svgd(at.model, PARTICLES, steps=2),
    "credo.tempered_smc": lambda at: credo.tempered_smc(at.model, PARTICLES),
}
"""Learners of particles, all of which also start from normal draws."""

OTHERS: dict[str, Build] = {
    "credo.BetaBernoulli": lambda at: credo.BetaBernoulli(),
    "credo.DirichletCategorical": lambda at: credo.DirichletCategorical(3),
    "credo.GammaPoisson": lambda at: credo.GammaPoisson(),
    "credo.GaussianClasses": lambda at: credo.GaussianClasses(INPUTS, credo.Categorical(3)),
    "credo.GaussianProcess": lambda at: credo.GaussianProcess(INPUTS, size=4),
    "credo.NearestNeighbours": lambda at: credo.NearestNeighbours(
        INPUTS, credo.Bernoulli(), size=4, neighbours=(2,)
    ),
    "credo.auto": lambda at: credo.auto(INPUTS),
    "credo.bandits.default_agent": lambda at: bandits.default_agent(3, INPUTS).agent.rewards,
    "credo.bandits.designs.ActionsDesign": lambda at: designs.ActionsDesign(at.inner, 2),
    "credo.bandits.designs.ArmsDesign": lambda at: designs.ArmsDesign(at.inner, 2),
    "credo.bandits.designs.OutputsDesign": lambda at: designs.OutputsDesign(_shared(), 2),
    "credo.bandits.designs.design_of": lambda at: designs.design_of("arms", at.inner, 2),
    "credo.flows.FlowFilter": lambda at: flows.FlowFilter(at.model, _flow(at), PARTICLES),
    "credo.kalman": _kalman,
    "credo.pfbr": lambda at: credo.pfbr(at.model, _flow(at), PARTICLES, guard=True),
    "credo.recipes.Auto": lambda at: _members_of_auto(),
}
"""Learners with other rows or another first belief than those of a linear model."""

LEARNERS: dict[str, Build] = {**FILTERS, **WRAPPERS, **PARTICLE_FILTERS, **OTHERS}
"""Every public learner, by the public name of what makes it."""

STARTS: dict[str, Callable[[Any], Any]] = {
    "credo.adapt.LocalPolynomial": lambda learner: learner.init(np.zeros(2)),
    "credo.auto": lambda learner: learner.init(),
    "credo.adapt.bank": lambda learner: jax.vmap(lambda one: one.init(world().params))(learner),
    "credo.bandits.default_agent": lambda learner: bandits.default_agent(3, INPUTS).init(),
    "credo.last_layer_ekf": lambda learner: learner.init(),
    "credo.recipes.Auto": lambda learner: learner.init(),
    "credo.subspace_ekf": lambda learner: learner.init(),
}
"""First beliefs of learners whose parameters are not those of the world."""


def begin(name: str, at: World) -> tuple[Any, Any]:
    """A learner of `LEARNERS` and its first belief, by its `init` with what it asks for."""
    learner = LEARNERS[name](at)
    if name in STARTS:
        return learner, STARTS[name](learner)
    asked = inspect.signature(learner.init).parameters
    known = {"example": (at.xs[0], at.ys[0]), "key": 0, "size": INPUTS}
    options = {option: value for option, value in known.items() if option in asked}
    return learner, learner.init(at.params, **options)
