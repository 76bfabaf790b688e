"""Particles: beliefs that are weighted values of the parameters, and the learners that keep them.

All have the five verbs of every learner, so `credo.run`, `credo.evaluate`, `credo.save`, the wrappers of
`credo.adapt` and the agents of `credo.bandits` take them. They need only the `log_prob` of a likelihood, and
follow nonlinear dynamics (`credo.Transition`).
"""

from credo.particles.base import ParticleLearner
from credo.particles.filter import ParticleFilter, particle_filter
from credo.particles.proposals import Bootstrap, Proposal
from credo.particles.resampling import effective_size, optimal_resample, resample

__all__ = [
    "Bootstrap",
    "ParticleFilter",
    "ParticleLearner",
    "Proposal",
    "effective_size",
    "optimal_resample",
    "particle_filter",
    "resample",
]
