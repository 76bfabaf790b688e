"""Likelihoods p(y | eta): how an observation depends on the outputs of a model.

`eta` is the natural parameter (mean, logit, logits, log-rate), a vector (C,) that the model produces for one
row. A learner needs two things from a likelihood: a factor A of the (expected) negative Hessian V = A A' in
the small eta-space, and the score e = d log p / d eta. They give grad l = J' e and the expected Hessian -J' V
J, with no inverse of a noise matrix and no epsilon. A user's own likelihood is one function,
`Likelihood(log_prob)`; the rest follows by automatic differentiation.

Predictives p(y | x, past) are defined here too. They integrate a likelihood over a distribution of eta. So
are expectations, the distributions of E[y | theta, x], in which the noise of y has no part.
"""

from credo.likelihoods.base import Likelihood, LikelihoodBase
from credo.likelihoods.categorical import Categorical, OpenCategorical
from credo.likelihoods.elliptical import NormalPredictive, StudentTPredictive
from credo.likelihoods.expectation import (
    ConjugateExpectation,
    DrawnExpectation,
    Expectation,
    LatentExpectation,
)
from credo.likelihoods.joint import Rows
from credo.likelihoods.mixture import MixturePredictive
from credo.likelihoods.negative_binomial import NegativeBinomial
from credo.likelihoods.normal import Normal
from credo.likelihoods.predictive import Predictive, PredictiveRows
from credo.likelihoods.rescaled import Rescaled, RescaledExpectation
from credo.likelihoods.scalar import Bernoulli, HeteroscedasticNormal, Poisson, StudentT
from credo.likelihoods.weighted import (
    Contaminated,
    Either,
    IndependentExpectation,
    WeightedExpectation,
    WeightedPredictive,
)

__all__ = [
    "Bernoulli",
    "Categorical",
    "ConjugateExpectation",
    "Contaminated",
    "DrawnExpectation",
    "Either",
    "Expectation",
    "HeteroscedasticNormal",
    "IndependentExpectation",
    "LatentExpectation",
    "Likelihood",
    "LikelihoodBase",
    "MixturePredictive",
    "NegativeBinomial",
    "Normal",
    "NormalPredictive",
    "OpenCategorical",
    "Poisson",
    "Predictive",
    "PredictiveRows",
    "Rescaled",
    "RescaledExpectation",
    "Rows",
    "StudentT",
    "StudentTPredictive",
    "WeightedExpectation",
    "WeightedPredictive",
]
