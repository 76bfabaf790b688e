"""Guard rails around a policy: bounds, forbidden arms and a holdout, which act on its probabilities."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from credo.bandits.policies.base import Policy
from credo.core.errors import CredoError, require_integer, require_interval
from credo.core.records import record, static_field
from credo.core.types import Array, ArrayLike, Key
from credo.likelihoods import Expectation

__all__ = ["Guarded", "nearest_between"]


@record
class Guarded(Policy):
    """A policy within bounds: floors, caps, forbidden arms, and a share of decisions kept for a baseline.

    The probabilities of the policy and of the baseline are mixed, (1 - holdout) p + holdout q, and replaced
    by the nearest ones (least squares) between the bounds. So the probability on record stays exact.

    If the arms that are allowed at a step cannot meet the bounds, floors are lowered, or caps are raised,
    in proportion, just enough.

    Arguments:
        policy: any policy.
        floors: the least probability of an allowed arm: a number, or one an arm (K,).
        caps: the largest probability of an arm: a number, or one an arm (K,).
        forbidden: the arms that are never chosen.
        holdout: the share of decisions that the baseline makes, in [0, 1].
        baseline: the arm that the baseline chooses; None chooses any allowed arm with the same probability,
            as does a baseline that is not allowed.
        floor: the least probability of all allowed arms; `floors` may ask for more.

    Raises:
        CredoError: a number is outside [0, 1], floors are above caps or sum to more than 1, caps sum to less
            than 1, the baseline is forbidden, an arm does not exist, or all arms are forbidden.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> from credo.bandits.policies import Greedy
        >>> from credo.likelihoods import LatentExpectation
        >>> distribution = LatentExpectation(credo.Normal(1.0), jnp.array([[0.0], [1.0], [2.0]]), jnp.eye(3))
        >>> [round(p, 3) for p in Guarded(Greedy(), floors=0.1, caps=0.75).pmf(distribution).tolist()]
        [0.125, 0.125, 0.75]
        >>> policy = Guarded(Greedy(), forbidden=(2,), holdout=0.2, baseline=0)
        >>> [round(p, 3) for p in policy.pmf(distribution).tolist()]
        [0.2, 0.8, 0.0]
    """

    policy: Policy
    floors: ArrayLike = 0.0
    caps: ArrayLike = 1.0
    forbidden: tuple[int, ...] = static_field(default=())
    holdout: ArrayLike = 0.0
    baseline: int | None = static_field(default=None)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("floors", "caps", "holdout"):
            require_interval(name, getattr(self, name), 0.0, 1.0)
        for arm in self.forbidden:
            require_integer("forbidden", arm, 0)
        if self.baseline is not None:
            require_integer("baseline", self.baseline, 0)
            if self.baseline in self.forbidden:
                raise CredoError(f"baseline must not be forbidden; got {self.baseline}.", field="baseline")
        for bound in (self.floors, self.caps):
            if np.ndim(bound) == 1:
                self.require_possible(np.shape(bound)[0])

    def require_possible(self, arms: int) -> None:
        """Refuse bounds that no probabilities of so many arms can meet. Traced bounds pass.

        Arguments:
            arms: how many arms K there are.

        Raises:
            CredoError: the sentence says what is impossible.
        """
        for name, indices in (("forbidden", self.forbidden), ("baseline", (self.baseline or 0,))):
            if max(indices, default=0) >= arms:
                raise CredoError(f"{name} must be in 0..{arms - 1}; got {max(indices)}.", field=name)
        free = np.setdiff1d(np.arange(arms), np.asarray(self.forbidden, int))
        if free.size == 0:
            raise CredoError("forbidden must leave at least one arm; all are forbidden.", field="forbidden")
        for name in ("floors", "caps"):
            shape = np.shape(getattr(self, name))
            if shape not in ((), (arms,)):
                allowed = f"a number or {arms} numbers, one an arm"
                raise CredoError(f"{name} must be {allowed}; got an array of shape {shape}.", field=name)
        if any(isinstance(bound, Tracer) for bound in (self.floors, self.caps, self.floor)):
            return
        low = np.broadcast_to(np.maximum(self.floors, self.floor), arms).astype(float)[free]
        high = np.broadcast_to(np.asarray(self.caps), arms).astype(float)[free]
        if np.any(low > high):
            arm = int(np.argmax(low > high))
            found = f"{low[arm]:g} and {high[arm]:g} for arm {free[arm]}"
            raise CredoError(f"floors must not be above `caps`; got {found}.", field="floors")
        if low.sum() > 1 + 1e-6:
            raise CredoError(f"floors must sum to at most 1; they sum to {low.sum():g}.", field="floors")
        if high.sum() < 1 - 1e-6:
            raise CredoError(f"caps must sum to at least 1; they sum to {high.sum():g}.", field="caps")

    def pmf(
        self, expectation: Expectation, allowed: Array | None = None, t: ArrayLike = 0, key: Key = 0
    ) -> Array:
        """The probability of each arm, within the bounds.

        Arguments:
            expectation: the distribution of the K expected rewards.
            allowed: whether each arm may be chosen (K,); None allows all.
            t: how many decisions or updates have been made.
            key: the key of whatever the policy draws to find its probabilities.

        Returns:
            Probabilities (K,), which sum to 1, with 0 if an arm is forbidden or not allowed. Where no arm
            is left, all are 0.

        Raises:
            CredoError: no probabilities of K arms can meet the bounds.
        """
        arms = expectation.size
        self.require_possible(arms)
        allowed = jnp.ones(arms, bool) if allowed is None else jnp.asarray(allowed, bool)
        allowed = allowed & ~jnp.isin(jnp.arange(arms), jnp.asarray(self.forbidden, int))
        wanted = super().pmf(expectation, allowed, t, key)
        low = jnp.maximum(jnp.asarray(self.floors, wanted.dtype), jnp.asarray(self.floor, wanted.dtype))
        low = jnp.where(allowed, low, 0.0)
        high = jnp.where(allowed, jnp.asarray(self.caps, wanted.dtype), 0.0)
        low = low / jnp.maximum(jnp.sum(low), 1.0)
        total = jnp.sum(high)
        high = high / jnp.where(total > 0, jnp.minimum(total, 1.0), 1.0)
        return jnp.where(total > 0, nearest_between(wanted, low, jnp.maximum(high, low)), 0.0)

    def probabilities(self, expectation: Expectation, allowed: Array, t: Array, key: Array) -> Array:
        """The mixture of policy and baseline."""
        wanted = self.policy.pmf(expectation, allowed, t, key)
        uniform = allowed.astype(wanted.dtype) / jnp.maximum(jnp.sum(allowed), 1).astype(wanted.dtype)
        base = uniform
        if self.baseline is not None:
            only = jnp.arange(wanted.shape[0]) == self.baseline
            base = jnp.where(allowed[self.baseline], only.astype(wanted.dtype), uniform)
        holdout = jnp.asarray(self.holdout, wanted.dtype)
        return (1.0 - holdout) * wanted + holdout * base


def nearest_between(wanted: Array, low: Array, high: Array) -> Array:
    """The probabilities (K,) nearest to those wanted (least squares) that lie between bounds and sum to 1.

    They are clip(wanted + tau, low, high) with one water level tau, where sum(low) <= 1 <= sum(high). The sum
    is piecewise linear in tau with 2 K known corners, so tau is exact: between the corners around 1, by
    interpolation. Clipping and dividing by the sum would break the bounds again. Between two corners the sum
    rises by as many as have left their low bound and not met their high one: one sort of the corners, and no
    K x K table.
    """

    found = jnp.concatenate([low - wanted, high - wanted])
    order = jnp.argsort(found)
    corners = found[order]
    moving = jnp.cumsum(jnp.where(order < wanted.shape[0], 1, -1))
    rises = moving[:-1].astype(wanted.dtype) * jnp.diff(corners)
    sums = jnp.sum(low) + jnp.concatenate([jnp.zeros(1, wanted.dtype), jnp.cumsum(rises)])
    below = jnp.sum(sums < 1.0) - 1
    start = jnp.clip(below, 0, corners.shape[0] - 2)
    rise = sums[start + 1] - sums[start]
    share = jnp.where(rise > 0, (1.0 - sums[start]) / jnp.where(rise > 0, rise, 1.0), 0.0)
    level = corners[start] + jnp.clip(share, 0.0, 1.0) * (corners[start + 1] - corners[start])
    return jnp.clip(wanted + level, low, high)
