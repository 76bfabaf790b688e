"""A family, a curvature and a rule of one's own: nine methods, one method, one method."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.learners.reference import arrays, regression, stream

import credo
from credo.core.errors import CredoError
from credo.core.records import record, static_field
from credo.covariances import Covariance, Family, Readable, collapse_mixture, inverse_of
from credo.learners import Curvature, Local, Measure, Rule, Site, Step
from credo.learners.rules import Ascent, ascend
from credo.linalg.jacobians import Crossed, Rows, as_rows


@record
class OneVariance(Covariance):
    """S = v I."""

    var: jax.Array
    count: int = static_field()

    @property
    def size(self) -> int:
        return self.count

    def couple(self, rows: jax.Array | Rows) -> tuple[Crossed, jax.Array]:
        return as_rows(rows).couple_diagonal(self.diag())

    def color(self, deviates: jax.Array) -> jax.Array:
        return jnp.sqrt(self.var) * deviates

    def diag(self) -> jax.Array:
        return jnp.full(self.count, self.var)

    def condition(self, factor: jax.Array | Rows) -> OneVariance:
        return self.add_precision(as_rows(factor).squares())

    def add_precision(self, precision: jax.Array) -> OneVariance:
        return OneVariance(1.0 / (1.0 / self.var + jnp.mean(precision)), self.count)

    def affine(self, scale: jax.Array, noise: jax.Array) -> OneVariance:
        return OneVariance(jnp.mean(scale**2) * self.var + jnp.mean(noise), self.count)

    def scale(self, factor: jax.Array) -> OneVariance:
        return OneVariance(factor * self.var, self.count)

    def linear(self, transition: jax.Array, noise: jax.Array) -> OneVariance:
        return OneVariance((self.var * jnp.sum(transition**2) + jnp.trace(noise)) / self.count, self.count)


@record
class One(Family):
    """Keep one variance for all parameters."""

    def init(self, var: jax.Array, *, random: float = 0.0) -> OneVariance:
        return OneVariance(jnp.mean(var), var.shape[0])

    def from_dense(self, matrix: jax.Array) -> OneVariance:
        return OneVariance(jnp.trace(matrix) / matrix.shape[0], matrix.shape[0])


@record
class Gradient(Curvature):
    """The gradient at the mean, and no Hessian."""

    def local(self, site: Site, mean: jax.Array, cov: Readable, iteration: jax.Array | int = 0) -> Local:
        slope = jax.grad(site.log_likelihood)(mean)
        one = jnp.ones(1, mean.dtype)
        return Local(as_rows(slope[None, :]), one, 0.0 * one, site.outputs(mean))


@record
class Half(Rule):
    """BONG with half of what an observation says."""

    def update(self, mean: jax.Array, cov: Covariance, measure: Measure, t: jax.Array) -> Step:
        local = measure(mean, cov, 0)
        part = local.weighted(jnp.asarray(0.5, mean.dtype))
        shift, new_cov = cov.absorb(part.rows, part.residual, part.root)
        return Step(mean + shift, new_cov, local, cov.push(local.rows))


def learned(learner: credo.RecursiveLearner) -> Any:
    xs, ys = arrays(*stream(3, 8))
    return credo.run(learner, learner.init(jnp.zeros(3), var=0.5), xs, ys, key=jax.random.key(0))


@pytest.mark.table
@pytest.mark.parametrize("curvature", ["lin-hess", "lin-ef", "mc-ef", "mc-hess"])
def test_a_family_of_nine_methods_learns_with_every_curvature(curvature: Any) -> None:
    belief, trace = learned(credo.bong(regression(), One(), curvature, dynamics=credo.RandomWalk(1e-3)))
    assert bool(trace.ok.all()) and float(belief.sd[0]) < np.sqrt(0.5)


@pytest.mark.table
@pytest.mark.parametrize("family", [credo.Full(), credo.Diagonal(), credo.LowRank(2), One()])
def test_a_rule_of_ones_own_takes_every_family(family: Any) -> None:
    belief, _ = learned(credo.RecursiveLearner(regression(), family, rule=Half()))
    weighted = credo.bong(regression(), family)
    xs, ys = arrays(*stream(3, 8))
    same = weighted.init(jnp.zeros(3), var=0.5)
    for x, y in zip(xs, ys, strict=True):
        same, _ = weighted.step(same, x, y, weight=0.5)
    np.testing.assert_allclose(belief.mean, same.mean, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("rule", [credo.bong, credo.blr, credo.bog])
def test_a_curvature_of_ones_own_takes_every_rule(rule: Any) -> None:
    _, trace = learned(rule(regression(), credo.Full(), Gradient()))
    assert bool(trace.ok.any())


def test_a_rule_without_a_step_for_the_family_says_so() -> None:
    for rule, message in (
        (credo.blr, "'blr' has no iterate for a OneVariance"),
        (credo.bog, "'bog' and 'bbb' have no plain gradient step for a OneVariance"),
    ):
        with pytest.raises(CredoError, match=message):
            learned(rule(regression(), One()))
    cov = One().init(jnp.ones(3))
    with pytest.raises(CredoError, match="the prior's precision, and OneVariance has none"):
        inverse_of(cov)
    with pytest.raises(CredoError, match="cannot become one belief with a OneVariance"):
        collapse_mixture(cov, jnp.ones(1), jnp.zeros((1, 3)))


def test_a_family_registers_its_step_beside_the_rule() -> None:
    @ascend.register
    def _(cov: OneVariance, mean: jax.Array, step: Ascent) -> tuple[jax.Array, OneVariance]:
        return mean + step.rate * step.slope, cov

    belief, trace = learned(credo.bog(regression(), One(), learning_rate=0.01))
    assert bool(trace.ok.all()) and float(jnp.abs(belief.mean).max()) > 0
