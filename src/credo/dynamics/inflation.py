"""Dynamics that forget: covariance inflation, and shrink-and-perturb."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import jax
import jax.numpy as jnp

from credo.beliefs import Anchor
from credo.core.errors import require_choice, require_interval, require_nonnegative
from credo.core.records import record, static_field
from credo.core.trees import Unravel, as_like
from credo.core.types import Array, ArrayLike
from credo.covariances import Covariance, Diagonal
from credo.dynamics.base import Dynamics, follow
from credo.dynamics.bound import variances_of
from credo.dynamics.linear import accumulated, duration

__all__ = ["Inflation", "ShrinkPerturb"]

InflationKind: TypeAlias = Literal["simple", "hybrid", "bayesian"]
"""What happens to the mean and to the prior when the covariance grows; see `Inflation`."""


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
        return variances_of(mean, prior) if self.anchored else None

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
