"""Curvatures at the mean of the belief: LIN-HESS and LIN-EF."""

from __future__ import annotations

from typing import ClassVar

import jax.numpy as jnp

from credo.core.records import record, replace, static_field
from credo.core.types import Array
from credo.covariances import Readable
from credo.learners.curvatures.base import Curvature, Local, Site
from credo.linalg.jacobians import OuterRows
from credo.models.model import MANY

__all__ = ["LinearizedEmpiricalFisher", "LinearizedGaussNewton"]


@record
class LinearizedGaussNewton(Curvature):
    """LIN-HESS: the generalised Gauss-Newton Hessian -J' V J of the model linearised at the mean.

    There is one row for each output. It is exact for linear-Gaussian models, where the update is Kalman's.

    A step of BONG from there may overshoot where the log-likelihood bends: a classifier that is sure and
    wrong has almost no curvature, so that the step is as long as the prior is wide, and a network then runs
    away. With `step_control` such a step, and no other, is shortened until the linearised posterior is higher
    than where it started (a damped Gauss-Newton step; Bell & Cathey 1993, Skoglund et al. 2015).

    Cost: C reverse passes.

    Arguments:
        step_control: whether a step that overshoots is shortened; False takes every step as it is.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> learner = credo.bong(model, credo.Full(), credo.LinearizedGaussNewton())
        >>> belief, info = learner.step(learner.init(jnp.zeros(2)), jnp.ones(2), 1.0, key=0)
        >>> bool(info.ok)
        True
    """

    step_control: bool = static_field(default=True)

    linear: ClassVar[bool] = True

    def local(self, site: Site, mean: Array, cov: Readable, iteration: Array | int = 0) -> Local:
        """J = d eta / d theta, e = d log p / d eta, A A' = V.

        If there are many classes, J is (I - 1 p') J and A is diagonal: e sums to 0, so that J' e and
        J' A A' J stay the same, and no product of C x C matrices is needed.
        """
        eta, rows = site.model.linearize(mean, site.unravel, site.x, layered=cov.layered)
        rows = cov.admit(rows)
        objective = site.objective
        centre = site.likelihood.centre(eta) if eta.shape[0] >= MANY and isinstance(rows, OuterRows) else None
        if centre is not None and isinstance(rows, OuterRows):
            score = site.likelihood.score(eta, site.y)
            local = Local(rows.centre(centre), score, jnp.sqrt(centre), eta).weighted(site.weight)
            objective = replace(objective, plain=False)
        else:
            local = objective.local(eta, rows)
        exact = site.likelihood.quadratic or not self.step_control
        if exact:
            return local
        return replace(local, objective=objective)


@record
class LinearizedEmpiricalFisher(Curvature):
    """LIN-EF: the gradient g at the mean and the empirical Fisher -g g', with one row an observation.

    It is not consistent: the empirical Fisher is far from the Hessian when residuals are large, so means and
    variances can settle at wrong values. On a linear regression with each of three prior means 3 sd off, the
    belief ends 5.1 away, from 5.2, at 0.05 times the right sd. The curvature is provided because it is cheap,
    and because published methods use it.

    Cost: one reverse pass.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> learner = credo.bong(model, credo.Full(), credo.LinearizedEmpiricalFisher())
        >>> belief, info = learner.step(learner.init(jnp.zeros(2)), jnp.ones(2), 1.0, key=0)
        >>> bool(info.ok)
        True
    """

    def local(self, site: Site, mean: Array, cov: Readable, iteration: Array | int = 0) -> Local:
        """J = the gradients, one row an observation; e = 1, A = I."""
        eta, rows = site.model.gradient_rows(mean, site.unravel, site.x, site.y, site.likelihood)
        ones = jnp.ones(rows.shape[0], rows.dtype)
        return Local(cov.admit(rows), ones, ones, eta).weighted(site.weight)
