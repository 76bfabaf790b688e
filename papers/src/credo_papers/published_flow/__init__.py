"""The particle flow Bayes rule as it was published: Chen, Dai & Song, ICML 2019, and the code of the paper.

For an observation o all particles follow dx/dt = f(X, o, x, t), with log densities d log q / dt = -div f.
`PublishedOperator` has the network of the published code: a deep-set embedding of the particles, the context
layer, concat-squash layers, an adaptive interval, one step of the 3/8 Runge-Kutta rule, the exact divergence,
and gradients by the adjoint. `LinearSequences` and `ModelSequences` are the tasks of Algorithm 1, whose loss
goes through a chain of updates. `credo.flows.train` trains the one on the other.
"""

from credo_papers.published_flow.embedding import encode_rows, mean_embedding
from credo_papers.published_flow.learner import PublishedFlow, pfbr
from credo_papers.published_flow.loss import absorbed_loss, propagated_loss, static_loss
from credo_papers.published_flow.models import ModelSequences
from credo_papers.published_flow.ode import runge_kutta, solve
from credo_papers.published_flow.operator import PublishedMap, PublishedOperator
from credo_papers.published_flow.priors import DirichletMixtures, NormalMixture, normal_prior
from credo_papers.published_flow.sequences import LinearSequences, SequenceTasks
from credo_papers.published_flow.velocity import divergence, velocity

__all__ = [
    "DirichletMixtures",
    "LinearSequences",
    "ModelSequences",
    "NormalMixture",
    "PublishedFlow",
    "PublishedMap",
    "PublishedOperator",
    "SequenceTasks",
    "absorbed_loss",
    "divergence",
    "encode_rows",
    "mean_embedding",
    "normal_prior",
    "pfbr",
    "propagated_loss",
    "runge_kutta",
    "solve",
    "static_loss",
    "velocity",
]
