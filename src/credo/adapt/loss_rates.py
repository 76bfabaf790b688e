"""By how much losses count, if it is not known how large good ones are: in units of their running mean."""

from __future__ import annotations

import jax.numpy as jnp

from credo.core.errors import require_interval, require_positive
from credo.core.fields import field
from credo.core.records import record
from credo.core.trees import as_like
from credo.core.types import Array, ArrayLike, DTypeLike

__all__ = ["LossRate"]


@record
class LossRate:
    """A learning rate that follows the losses: eta_t = share / max(m_t, least), with their mean m_t so far.

        m_t = (rows first f^n + sum_s f^(n - s) l_s) / (rows f^n + sum_s f^(n - s)),        n = t - 1

    where l_s is the mean loss of the experts at row s by their weights before it. With squared errors and a
    share of 1/2, eta l is what minus the log density of a normal distribution adds up to if its variance is
    estimated from the errors of the mixture. It is the same for all experts, so that none gains by what it
    says of the noise. The mean is of the experts' losses, and an upper bound of the mixture's if the loss is
    convex.

    Arguments:
        share: the rate for a mean loss of 1, above 0.
        least: the mean loss below which the rate grows no further, above 0.
        first: the mean loss before any row, above 0.
        rows: how many rows `first` counts as, above 0.
        forgetting: by which f the past is multiplied at each row, above 0 and at most 1.

    Raises:
        CredoError: a number is not allowed.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> from credo.adapt import LossRate
        >>> def squared_error(predictive, y):
        ...     return jnp.sum((predictive.mean - y) ** 2)
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> walks = [credo.extended_kalman(model, dynamics=credo.RandomWalk(q)) for q in (0.0, 1e-2)]
        >>> learner = credo.Experts(walks, loss=squared_error, learning_rate=LossRate(0.5, rows=1.0))
        >>> belief, info = learner.step(learner.init(jnp.zeros(2)), jnp.ones(2), 1.0)
        >>> float(belief.losses.mean)  # the mean of 1, which was there first, and of 1, the squared error
        1.0
    """

    share: ArrayLike = 0.5
    least: ArrayLike = 1e-3
    first: ArrayLike = 1.0
    rows: ArrayLike = 10.0
    forgetting: ArrayLike = 1.0

    def __post_init__(self) -> None:
        for name in ("share", "least", "first", "rows"):
            require_positive(name, getattr(self, name))
        require_interval("forgetting", self.forgetting, 0.0, 1.0)
        require_positive("forgetting", self.forgetting)

    def begin(self, kind: DTypeLike) -> LossSums:
        """The sums before any row."""
        rows = jnp.asarray(self.rows, kind)
        return LossSums(rows * jnp.asarray(self.first, kind), rows)

    def at(self, losses: LossSums) -> Array:
        """The rate after these losses."""
        return as_like(self.share, losses.total) / jnp.maximum(losses.mean, as_like(self.least, losses.total))

    def after(self, losses: LossSums, loss: Array, weight: Array) -> LossSums:
        """The sums after a row, which counts by its weight; a loss that is not finite changes nothing."""
        keep = as_like(self.forgetting, losses.total) ** weight
        seen = jnp.isfinite(loss)
        added = weight * jnp.where(seen, loss, 0.0)
        total = keep * losses.total + added
        count = keep * losses.count + weight
        return LossSums(jnp.where(seen, total, losses.total), jnp.where(seen, count, losses.count))


@record
class LossSums:
    """Discounted sums of losses, each of which counts by the weight of its row.

    Attributes:
        total: the sum of the losses, with those before any row.
        count: how many they are.
    """

    total: Array
    count: Array = field("nonnegative")

    @property
    def mean(self) -> Array:
        """The mean loss."""
        return self.total / self.count
