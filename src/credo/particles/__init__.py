"""Particles: beliefs that are weighted values of the parameters, and the learners that keep them.

All have the five verbs of every learner, so `credo.run`, `credo.evaluate`, `credo.save`, the wrappers of
`credo.adapt` and the agents of `credo.bandits` take them. They need only the `log_prob` of a likelihood, and
follow nonlinear dynamics (`credo.Transition`).

Some weigh particles, so that what they propose is corrected: `particle_filter` and what is built on it.
Others move equally trusted particles, by the moments of the set (`gaussian_map`, `daum_huang`) or along
gradients (`svgd`, `fokker_planck`). `KernelBayes` and `KernelFilter` weigh simulated or measured examples
instead of a likelihood. `MirrorDescent`, `Langevin`, `NonparametricVariational` and `svi` are for parameters
that stand still: without `total` their belief is the posterior of the rows so far, with `total=n` they seek
the posterior of all n rows of a stream of known length. `learned_filter` and `train_proposal` make a network
the proposal of a filter.
"""

from credo.particles.base import ParticleLearner
from credo.particles.density import SmoothDensity, bandwidths, log_gaussian, log_kde, smooth
from credo.particles.exact_flow import DaumHuang, FlowProposal, daum_huang
from credo.particles.filter import ParticleFilter, particle_filter
from credo.particles.guided import Adapted, BootstrapProposal, Guided, Proposal
from credo.particles.kernel_bayes import (
    KernelBayes,
    KernelFilter,
    gaussian_gram,
    herd,
    kernel_bayes_weights,
    median_distance,
)
from credo.particles.kernel_proposal import KernelProposal, liu_west, one_pass_smc
from credo.particles.langevin import Langevin
from credo.particles.learned import (
    LearnedProposal,
    ProposalNetwork,
    ProposalTraining,
    learned_filter,
    train_proposal,
)
from credo.particles.linear_outputs import GaussianMap, gaussian_map
from credo.particles.mirror_descent import MirrorDescent
from credo.particles.moves import KernelDraw, Metropolis, Move
from credo.particles.resampling import effective_size, optimal_resample, resample
from credo.particles.stochastic_variational import PriorShare, WholeStream, svi
from credo.particles.tempering import TemperedFilter, tempered_smc
from credo.particles.transport import FokkerPlanckLearner, SteinLearner, fokker_planck, svgd
from credo.particles.variational import NonparametricVariational

__all__ = [
    "Adapted",
    "BootstrapProposal",
    "DaumHuang",
    "FlowProposal",
    "FokkerPlanckLearner",
    "GaussianMap",
    "Guided",
    "KernelBayes",
    "KernelDraw",
    "KernelFilter",
    "KernelProposal",
    "Langevin",
    "LearnedProposal",
    "Metropolis",
    "MirrorDescent",
    "Move",
    "NonparametricVariational",
    "ParticleFilter",
    "ParticleLearner",
    "PriorShare",
    "Proposal",
    "ProposalNetwork",
    "ProposalTraining",
    "SmoothDensity",
    "SteinLearner",
    "TemperedFilter",
    "WholeStream",
    "bandwidths",
    "daum_huang",
    "effective_size",
    "fokker_planck",
    "gaussian_gram",
    "gaussian_map",
    "herd",
    "kernel_bayes_weights",
    "learned_filter",
    "liu_west",
    "log_gaussian",
    "log_kde",
    "median_distance",
    "one_pass_smc",
    "optimal_resample",
    "particle_filter",
    "resample",
    "smooth",
    "svgd",
    "svi",
    "tempered_smc",
    "train_proposal",
]
