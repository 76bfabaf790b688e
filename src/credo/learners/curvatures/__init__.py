"""Curvatures: what is measured at the data.

| name | class | gradient and Hessian |
|---|---|---|
| LIN-HESS | `LinearizedGaussNewton` | at the mean; the generalised Gauss-Newton Hessian |
| LIN-EF | `LinearizedEmpiricalFisher` | at the mean; the outer product of the gradient |
| MC-HESS | `MonteCarloHessian` | means over draws from the belief |
| MC-EF | `MonteCarloEmpiricalFisher` | means over draws; outer products of the gradients |

`Curvature` is the base class for your own: it returns a `Local` model of the log-likelihood at a `Site`.
"""

from credo.learners.curvatures.base import (
    Curvature,
    LinearizedEmpiricalFisher,
    LinearizedGaussNewton,
    Local,
    Objective,
    Penalty,
    Site,
)
from credo.learners.curvatures.monte_carlo import MonteCarlo, MonteCarloEmpiricalFisher, MonteCarloHessian

__all__ = [
    "Curvature",
    "LinearizedEmpiricalFisher",
    "LinearizedGaussNewton",
    "Local",
    "MonteCarlo",
    "MonteCarloEmpiricalFisher",
    "MonteCarloHessian",
    "Objective",
    "Penalty",
    "Site",
]
