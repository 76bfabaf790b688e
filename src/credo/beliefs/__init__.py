"""Beliefs: what is known about the parameters.

`Gaussian(mean, cov)` over a parameter tree with any covariance family; `Ensemble` of parameter vectors;
`Particles` with weights;
`Point` for learners that keep no uncertainty; conjugate beliefs `Beta`, `Gamma`, `Dirichlet` over one unknown
number or vector, and `ClassNormals` over classes with normal columns; `InverseGamma` over a noise variance.
All are records: they can be vmapped, compared and saved.
"""

from credo.beliefs.class_normals import ClassNormals, ClassParameters
from credo.beliefs.conjugate import Beta, Dirichlet, Gamma, InverseGamma
from credo.beliefs.gaussian import Anchor, Ensemble, Gaussian, Point
from credo.beliefs.particles import FunctionSource, NormalSource, Particles, Source, ValuesSource
from credo.beliefs.widening import embed, widen_belief

__all__ = [
    "Anchor",
    "Beta",
    "ClassNormals",
    "ClassParameters",
    "Dirichlet",
    "Ensemble",
    "FunctionSource",
    "Gamma",
    "Gaussian",
    "InverseGamma",
    "NormalSource",
    "Particles",
    "Point",
    "Source",
    "ValuesSource",
    "embed",
    "widen_belief",
]
