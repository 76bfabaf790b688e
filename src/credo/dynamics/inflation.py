"""Dynamics that forget: covariance inflation, shrink-and-perturb, and variances within the prior's."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import jax
import jax.numpy as jnp

from credo.beliefs import Anchor
from credo.core.errors import require_choice, require_integer, require_interval, require_nonnegative
from credo.core.records import record, static_field
from credo.core.trees import Unravel, as_like
from credo.core.types import Array, ArrayLike
from credo.covariances import Covariance, Diagonal, DiagonalCovariance
from credo.dynamics.base import Dynamics, follow
from credo.dynamics.linear import accumulated, duration

__all__ = ["Inflation", "PriorBound", "ShrinkPerturb"]


def variances_of(mean: Array, prior: Covariance | None) -> Anchor:
    """The prior with its variances alone, which is all that some dynamics need: P numbers instead of P^2."""
    return Anchor(mean, None if prior is None else DiagonalCovariance(prior.diag()))


@record
class PriorBound(Dynamics):
    """Other dynamics, limited so that no parameter becomes less certain than under the prior.

    With S the covariance that the other dynamics give, and s0 the variances of the prior, the covariance is
    D S D with D = diag(min(1, sqrt(s0 / diag S))). Variances above the prior's become the prior's, and all
    correlations stay. Without such a bound, `RandomWalk` and `Inflation(rate, "simple")` widen forever what
    the data do not determine, such as the weights of a column that never moves, until the arithmetic fails.

    Two steps of dt/2 give the variances of one step of dt. With a simple inflation they give the same
    covariance; with a random walk the covariances differ to second order in q dt / s0 where the bound holds.

    Arguments:
        dynamics: the other dynamics.

    Cost: that of the other dynamics, and for the bound P^2 for `Full`, P for `Diagonal`, P R^2 for `LowRank`.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> learner = credo.extended_kalman(model, dynamics=PriorBound(credo.RandomWalk(0.5)))
        >>> belief, _ = learner.update(learner.init(jnp.zeros(2)), jnp.array([1.0, 0.0]), 1.0)
        >>> print(belief.var.round(2), learner.predict(belief).var.round(2))
        [0.09 1.  ] [0.59 1.  ]
    """

    dynamics: Dynamics
    anchored = True
    gaussian = False

    @property
    def timeless(self) -> bool:  # type: ignore[override]
        """Whether a step of the other dynamics has no length."""
        return self.dynamics.timeless

    def anchor(self, mean: Array, prior: Covariance | None) -> Anchor | None:
        """The prior's mean and variances, or what the other dynamics need of it."""
        return self.dynamics.anchor(mean, prior) or variances_of(mean, prior)

    def move(
        self, mean: Array, cov: Covariance | None, anchor: Anchor | None, t: Array, dt: ArrayLike | None
    ) -> tuple[Array, Covariance | None]:
        """The belief that the other dynamics give, with variances of at most the prior's."""
        step = self.dynamics.affine(mean, dt)
        if cov is not None and step is not None:
            assert anchor is not None and anchor.cov is not None
            mean, _ = self.dynamics.move(mean, None, anchor, t, dt)
            return mean, cov.affine_within(*step, anchor.cov.diag())
        mean, moved = self.dynamics.move(mean, cov, anchor, t, dt)
        if moved is None:
            return mean, None
        assert anchor is not None and anchor.cov is not None
        ratio = anchor.cov.diag() / moved.diag()
        return mean, moved.rescale(jnp.sqrt(jnp.minimum(ratio, 1.0)))

    def propagate(
        self,
        values: Array,
        log_weights: Array,
        key: Array,
        anchor: Anchor | None,
        t: Array,
        dt: ArrayLike | None,
        unravel: Unravel,
    ) -> Array:
        """The particles that the other dynamics give, drawn together if they are wider than the prior."""
        moved = self.dynamics.propagate(values, log_weights, key, anchor, t, dt, unravel)
        assert anchor is not None and anchor.cov is not None
        weights = jnp.exp(log_weights)
        mean = weights @ moved
        var = weights @ (moved - mean[None, :]) ** 2
        return follow(moved, log_weights, mean, jnp.minimum(var, anchor.cov.diag()))


InflationKind: TypeAlias = Literal["simple", "hybrid", "bayesian"]
"""The treatment of the mean and of the prior when the covariance grows; see `Inflation`."""


@record
class Inflation(Dynamics):
    """Multiplicative inflation: in each unit of time the past loses weight by a factor 1 / (1 + alpha).

    With c = (1 + alpha)^dt, and N(mu0, inv(L0)) the prior:

    - "simple": L / c. The mean stays (discounting, or exponential forgetting with factor 1/c).
    - "hybrid": (L + (c - 1) L0) / c. The mean stays, and the covariance never exceeds the prior's.
    - "bayesian": the tempered posterior q^(1/c) p0^(1 - 1/c), so the mean also returns to the prior's.

    Source: Chang et al. 2023 (LOFI), appendix on inflation. The prior is treated as diagonal, which is exact
    unless `init` was given a dense one. "hybrid" and "bayesian" cost P^3 for `Full`.

    "simple" has no bound: in a direction of which the data say nothing, such as the weight of a column that
    never moves, the variance grows by c at every step until the arithmetic fails. On any but short streams,
    use `PriorBound(Inflation(rate, "simple"))`.

    Arguments:
        rate: alpha, per unit of time, at least 0; 0 forgets nothing.
        kind: "simple", "hybrid" or "bayesian".

    Raises:
        CredoError: the rate is below 0, or there is no such kind.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> learner = credo.extended_kalman(model, dynamics=Inflation(3.0, "simple"))
        >>> print(learner.predict(learner.init(jnp.zeros(2))).var)
        [4. 4.]
    """

    gaussian = False
    rate: ArrayLike = 1e-3
    kind: InflationKind = static_field(default="bayesian")

    def __post_init__(self) -> None:
        require_nonnegative("rate", self.rate)
        require_choice("kind", self.kind, get_args(InflationKind))

    @property
    def anchored(self) -> bool:  # type: ignore[override]
        """Whether the prior is needed."""
        return self.kind != "simple"

    def anchor(self, mean: Array, prior: Covariance | None) -> Anchor | None:
        """The prior's mean and variances, where the prior is needed."""
        if self.anchored:
            return variances_of(mean, prior)
        return None

    def move(
        self, mean: Array, cov: Covariance | None, anchor: Anchor | None, t: Array, dt: ArrayLike | None
    ) -> tuple[Array, Covariance | None]:
        """The inflated belief.

        A point belief moves only for "bayesian", as if it had the covariance of the prior.
        """
        growth = (1.0 + as_like(self.rate, mean)) ** duration(dt, mean)
        if self.kind == "simple":
            return mean, None if cov is None else cov.scale(growth)
        assert anchor is not None
        if cov is None:
            return (
                mean + (1.0 - 1.0 / growth) * (anchor.mean - mean) if self.kind == "bayesian" else mean
            ), None
        assert anchor.cov is not None
        widened = cov.scale(growth)
        prior_precision = (1.0 - 1.0 / growth) / anchor.cov.diag()
        widened = widened.add_precision(prior_precision)
        if self.kind == "bayesian":
            mean = mean + widened.mv(prior_precision * (anchor.mean - mean))
        return mean, widened

    def propagate(
        self,
        values: Array,
        log_weights: Array,
        key: Array,
        anchor: Anchor | None,
        t: Array,
        dt: ArrayLike | None,
        unravel: Unravel,
    ) -> Array:
        """The particles, stretched to the mean and the variances that `move` gives to their moments.

        Forgetting is no noise that each particle could draw: it acts on the whole set.
        """
        weights = jnp.exp(log_weights)
        mean = weights @ values
        var = weights @ (values - mean[None, :]) ** 2
        mean, cov = self.move(mean, Diagonal().init(var), anchor, t, dt)
        assert cov is not None
        return follow(values, log_weights, mean, cov.diag())


@record
class ShrinkPerturb(Dynamics):
    """Shrink the mean and perturb it with fresh noise (Ash & Adams 2020), and widen the covariance to match.

    theta_t = shrink theta_{t-1} + sd e: the *mean* receives a random draw of e, which restores the plasticity
    of networks. The covariance becomes shrink^2 cov + sd^2 I, because the parameters are now less well known.

    Arguments:
        shrink: the factor for a unit of time, in [0, 1].
        sd: the standard deviation of the noise in a unit of time, at least 0.
        seed: the seed of the draws; step t uses fold_in(key(seed), t).

    Raises:
        CredoError: `shrink` is outside [0, 1], or `sd` is below 0.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> learner = credo.extended_kalman(model, dynamics=ShrinkPerturb(0.5, sd=0.0))
        >>> belief = learner.predict(learner.init(jnp.ones(1)))
        >>> belief.mean, belief.var
        (Array([0.5], dtype=float32), Array([0.25], dtype=float32))
    """

    shrink: ArrayLike = 0.999
    sd: ArrayLike = 1e-3
    seed: int = static_field(default=0)

    def __post_init__(self) -> None:
        require_interval("shrink", self.shrink, 0.0, 1.0)
        require_nonnegative("sd", self.sd)
        require_integer("seed", self.seed, 0)

    def move(
        self, mean: Array, cov: Covariance | None, anchor: Anchor | None, t: Array, dt: ArrayLike | None
    ) -> tuple[Array, Covariance | None]:
        """shrink^dt mean + noise; shrink^2dt cov + the variance of that noise."""
        step = duration(dt, mean)
        shrink = as_like(self.shrink, mean)
        factor = shrink**step
        noise_var = as_like(self.sd, mean) ** 2 * accumulated(shrink, step)
        draw = jax.random.normal(jax.random.fold_in(jax.random.key(self.seed), t), mean.shape, mean.dtype)
        shaken = factor * mean + jnp.sqrt(noise_var) * draw
        return shaken, None if cov is None else cov.affine(factor, noise_var)
