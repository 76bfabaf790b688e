"""Particles: beliefs that are weighted values of the parameters, and the learners that keep them.

All have the five verbs of every learner, so `credo.run`, `credo.evaluate`, `credo.save`, the wrappers of
`credo.adapt` and the agents of `credo.bandits` take them. They need only the `log_prob` of a likelihood, and
follow nonlinear dynamics (`credo.Transition`).

Some weigh particles, so that what they propose is corrected: `particle_filter` and what is built on it.
Others move equally trusted particles, by the moments of the set (`gaussian_map`, `daum_huang`) or along
gradients (`svgd`, `fokker_planck`).
"""

from credo.particles.affine_map import GaussianMap, gaussian_map
from credo.particles.base import ParticleLearner
from credo.particles.density import bandwidths, log_gaussian, log_kde
from credo.particles.exact_flow import DaumHuang, FlowProposal, daum_huang
from credo.particles.filter import ParticleFilter, particle_filter
from credo.particles.guided import Adapted, Guided
from credo.particles.kernel_proposal import KernelProposal, liu_west
from credo.particles.moves import KernelDraw, Metropolis, Move
from credo.particles.one_pass import one_pass_smc
from credo.particles.probability_flow import FokkerPlanckLearner, fokker_planck
from credo.particles.proposals import Bootstrap, Proposal
from credo.particles.resampling import effective_size, optimal_resample, resample
from credo.particles.smoothing import SmoothDensity, smooth
from credo.particles.stein import SteinLearner, svgd
from credo.particles.tempering import TemperedFilter, tempered_smc

__all__ = [
    "Adapted",
    "Bootstrap",
    "DaumHuang",
    "FlowProposal",
    "FokkerPlanckLearner",
    "GaussianMap",
    "Guided",
    "KernelDraw",
    "KernelProposal",
    "Metropolis",
    "Move",
    "ParticleFilter",
    "ParticleLearner",
    "Proposal",
    "SmoothDensity",
    "SteinLearner",
    "TemperedFilter",
    "bandwidths",
    "daum_huang",
    "effective_size",
    "fokker_planck",
    "gaussian_map",
    "liu_west",
    "log_gaussian",
    "log_kde",
    "one_pass_smc",
    "optimal_resample",
    "particle_filter",
    "resample",
    "smooth",
    "svgd",
    "tempered_smc",
]
