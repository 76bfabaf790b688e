"""Learners: model x dynamics x belief family x update rule, behind five verbs.

    init(params, *, var=1.0)                    -> belief
    predict(belief, dt=None)                    -> belief
    forecast(belief, x)                         -> Predictive
    update(belief, x, y, *, weight=1, key=None) -> (belief, Info)
    sample(belief, key, shape=())               -> params

An update combines three independent choices: the *curvature* (what is measured at the data: a gradient and a
factor of the expected Hessian), the *family* (what is kept of it: `credo.covariances`) and the *rule* (how
far to go). The named methods in `credo.learners.methods` each make these choices in one line. `Rule` and
`Curvature` are the base classes for your own rules and curvatures.
"""

from credo.learners.base import Info, Learner
from credo.learners.conjugate import BetaBernoulli, DirichletCategorical, GammaPoisson
from credo.learners.curvatures import (
    Curvature,
    LinearizedEmpiricalFisher,
    LinearizedGaussNewton,
    Local,
    MonteCarloEmpiricalFisher,
    MonteCarloHessian,
    Site,
)
from credo.learners.decide import decide
from credo.learners.ensemble import EnsembleLearner
from credo.learners.gaussian_classes import GaussianClasses
from credo.learners.gaussian_process import GaussianProcess
from credo.learners.gradient import GradientLearner, adam, replay, sgd
from credo.learners.methods import (
    bbb,
    blr,
    bog,
    bong,
    enkf,
    etkf,
    extended_kalman,
    fd_ekf,
    iterated_ekf,
    ivon,
    kalman,
    last_layer_ekf,
    lofi,
    lofi_spherical,
    lrvga,
    normal_inverse_gamma,
    ogd,
    rvga,
    slang,
    subspace_ekf,
    vd_ekf,
    vogn,
    von,
)
from credo.learners.neighbours import NearestNeighbours
from credo.learners.recursive import RecursiveLearner
from credo.learners.rules import BBBRule, BLRRule, BOGRule, BONGRule, Measure, Rule, Schedule, Step
from credo.learners.sharding import shard, unshard

__all__ = [
    "BBBRule",
    "BLRRule",
    "BOGRule",
    "BONGRule",
    "BetaBernoulli",
    "Curvature",
    "DirichletCategorical",
    "EnsembleLearner",
    "GammaPoisson",
    "GaussianClasses",
    "GaussianProcess",
    "GradientLearner",
    "Info",
    "Learner",
    "LinearizedEmpiricalFisher",
    "LinearizedGaussNewton",
    "Local",
    "Measure",
    "MonteCarloEmpiricalFisher",
    "MonteCarloHessian",
    "NearestNeighbours",
    "RecursiveLearner",
    "Rule",
    "Schedule",
    "Site",
    "Step",
    "adam",
    "bbb",
    "blr",
    "bog",
    "bong",
    "decide",
    "enkf",
    "etkf",
    "extended_kalman",
    "fd_ekf",
    "iterated_ekf",
    "ivon",
    "kalman",
    "last_layer_ekf",
    "lofi",
    "lofi_spherical",
    "lrvga",
    "normal_inverse_gamma",
    "ogd",
    "replay",
    "rvga",
    "sgd",
    "shard",
    "slang",
    "subspace_ekf",
    "unshard",
    "vd_ekf",
    "vogn",
    "von",
]
