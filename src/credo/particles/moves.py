"""Markov moves of particles that leave a target in place, and so undo the copies that resampling makes.

A target is a function of all particles (N, P) that gives their log densities (N,), each a function of its own
particle alone. Moves act in coordinates in which the set is about white, so that a step of one size suits all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TypeAlias

import jax
import jax.numpy as jnp

from credo.core.errors import require_integer, require_positive
from credo.core.records import record, static_field
from credo.core.types import Array, ArrayLike

__all__ = ["Langevin", "Move", "RandomWalkMetropolis", "Target", "gradients"]

Target: TypeAlias = Callable[[Array], Array]
"""The log densities (N,) of particles (N, P), up to a constant."""


class Move(ABC):
    """How particles move after resampling, with a target that stays invariant."""

    @abstractmethod
    def walk(self, key: Array, values: Array, target: Target) -> tuple[Array, Array]:
        """Move every particle.

        Arguments:
            key: the key of the draws.
            values: the particles (N, P), in coordinates in which the set is about white.
            target: the log density that the moves leave in place.

        Returns:
            The particles (N, P), and the share of proposals that was accepted.
        """


@record
class RandomWalkMetropolis(Move):
    """Random-walk Metropolis: z' = z + s e, accepted with probability min(1, p(z') / p(z)).

    Arguments:
        steps: how many proposals each particle gets.
        scale: s in standard deviations of the set; None for 2.38 / sqrt(P) (Roberts, Gelman & Gilks 1997).

    Raises:
        CredoError: `steps` is below 1, or `scale` is not above 0.

    Cost of a step: the target at N particles. Exact: any scale leaves the target in place.

    Example:
        >>> values = jnp.zeros((4, 2))
        >>> moved, share = RandomWalkMetropolis(3).walk(jax.random.key(0), values, lambda z: -(z**2).sum(1))
        >>> moved.shape
        (4, 2)
    """

    steps: int = static_field(default=5)
    scale: ArrayLike | None = None

    def __post_init__(self) -> None:
        require_integer("steps", self.steps, 1)
        if self.scale is not None:
            require_positive("scale", self.scale)

    def walk(self, key: Array, values: Array, target: Target) -> tuple[Array, Array]:
        """Move every particle `steps` times."""
        size = values.shape[1]
        scale = jnp.asarray(2.38 / size**0.5 if self.scale is None else self.scale).astype(values.dtype)

        def propose(values: Array, key: Array) -> Array:
            return values + scale * jax.random.normal(key, values.shape, values.dtype)

        def step(state: tuple[Array, Array], key: Array) -> tuple[tuple[Array, Array], Array]:
            first, second = jax.random.split(key)
            values, heights = state
            proposed = propose(values, first)
            new = target(proposed)
            taken = _accepted(second, new - heights)
            return (jnp.where(taken[:, None], proposed, values), jnp.where(taken, new, heights)), taken

        start = (values, target(values))
        (moved, _), taken = jax.lax.scan(step, start, jax.random.split(key, self.steps))
        return moved, jnp.mean(taken.astype(values.dtype))


@record
class Langevin(Move):
    """The Metropolis-adjusted Langevin algorithm: z' = z + s^2 / 2 grad log p(z) + s e, accepted or not.

    Arguments:
        steps: how many proposals each particle gets.
        scale: s in standard deviations of the set; None for 1.65 / P^(1/6) (Roberts & Rosenthal 1998).

    Raises:
        CredoError: `steps` is below 1, or `scale` is not above 0.

    Cost of a step: the target and its gradient at N particles. Exact: any scale leaves the target in place.

    Example:
        >>> values = jnp.zeros((4, 2))
        >>> moved, share = Langevin(3).walk(jax.random.key(0), values, lambda z: -(z**2).sum(1))
        >>> moved.shape
        (4, 2)
    """

    steps: int = static_field(default=5)
    scale: ArrayLike | None = None

    def __post_init__(self) -> None:
        require_integer("steps", self.steps, 1)
        if self.scale is not None:
            require_positive("scale", self.scale)

    def walk(self, key: Array, values: Array, target: Target) -> tuple[Array, Array]:
        """Move every particle `steps` times."""
        size = values.shape[1]
        scale = jnp.asarray(1.65 / size ** (1 / 6) if self.scale is None else self.scale)
        scale = scale.astype(values.dtype)

        def mean(values: Array, slopes: Array) -> Array:
            return values + 0.5 * scale**2 * slopes

        def step(state: tuple[Array, Array, Array], key: Array) -> tuple[tuple[Array, Array, Array], Array]:
            first, second = jax.random.split(key)
            values, heights, slopes = state
            noise = jax.random.normal(first, values.shape, values.dtype)
            proposed = mean(values, slopes) + scale * noise
            new, new_slopes = gradients(target, proposed)
            back = (values - mean(proposed, new_slopes)) / scale
            taken = _accepted(second, new - heights + 0.5 * jnp.sum(noise**2 - back**2, axis=1))
            keep = taken[:, None]
            state = (
                jnp.where(keep, proposed, values),
                jnp.where(taken, new, heights),
                jnp.where(keep, new_slopes, slopes),
            )
            return state, taken

        start = (values, *gradients(target, values))
        (moved, _, _), taken = jax.lax.scan(step, start, jax.random.split(key, self.steps))
        return moved, jnp.mean(taken.astype(values.dtype))


def gradients(target: Target, values: Array) -> tuple[Array, Array]:
    """The log densities (N,) of particles (N, P), and their gradients (N, P)."""
    heights, pullback = jax.vjp(target, values)
    (slopes,) = pullback(jnp.ones_like(heights))
    return heights, slopes


def _accepted(key: Array, log_ratio: Array) -> Array:
    """Which proposals are taken: with probability min(1, ratio); never where the ratio is NaN."""
    return jnp.log(jax.random.uniform(key, log_ratio.shape, log_ratio.dtype)) < log_ratio
