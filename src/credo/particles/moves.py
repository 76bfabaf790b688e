"""Moves of particles after resampling, so that the copies of one particle part.

`KernelDraw` redraws them from a kernel estimate, which widens the set. `Metropolis` moves them by steps that
leave a target in place: the smoothed predicted set times the likelihood.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Literal, TypeAlias, get_args

import jax
import jax.numpy as jnp

from credo.core.errors import require_choice, require_integer, require_positive
from credo.core.records import record, static_field
from credo.core.types import Array, ArrayLike
from credo.particles.density import SmoothDensity, bandwidths

__all__ = ["KernelDraw", "Metropolis", "Move", "Target", "gradients"]

Target: TypeAlias = Callable[[Array], Array]
"""The log densities (N,) of particles (N, P), up to a constant, each a function of its own particle alone."""

Steps: TypeAlias = Literal["random-walk", "langevin"]
"""The way in which a Metropolis step is proposed."""


class Move(ABC):
    """A move of particles after resampling. A subclass is a record and writes `move`.

    Example:
        >>> isinstance(KernelDraw(), Move)
        True
    """

    @abstractmethod
    def move(self, key: Array, values: Array, prior: SmoothDensity, log_likelihood: Target) -> Array:
        """Move every particle.

        Arguments:
            key: the key of the draws.
            values: the particles after resampling (N, P), equally weighted.
            prior: the smoothed set before the observation.
            log_likelihood: the log-likelihood (N,) of particles (N, P).

        Returns:
            The particles (N, P), equally weighted.
        """


@record
class KernelDraw(Move):
    """Draw every particle again from the kernel estimate of the resampled set, with Silverman's bandwidths.

    Every draw adds the square of the bandwidth to the variance of the set. Source: the one-pass filter of
    Balakrishnan & Madigan 2006 (Bayesian Analysis 1(2)), with a kernel in place of their shrinkage.

    Cost: N P.

    Example:
        >>> import jax.numpy as jnp
        >>> from credo.particles.density import smooth
        >>> values = jnp.linspace(-1.0, 1.0, 50)[:, None]
        >>> prior = smooth(values, jnp.full(50, -jnp.log(50.0)))
        >>> moved = KernelDraw().move(jax.random.key(0), values, prior, lambda z: z[:, 0])
        >>> bool(moved.var() > values.var())
        True
    """

    def move(self, key: Array, values: Array, prior: SmoothDensity, log_likelihood: Target) -> Array:
        """The particles plus normal noise."""
        return values + bandwidths(values)[None, :] * jax.random.normal(key, values.shape, values.dtype)


@record
class Metropolis(Move):
    """Metropolis steps, in coordinates in which the predicted set is white.

    A step proposes u' = u + s^2 / 2 b(u) + s e with e ~ N(0, I), where b = 0 for a random walk and the
    gradient of log p for Langevin steps (MALA), and takes it with probability
    min(1, p(u') q(u | u') / (p(u) q(u' | u))). The target p is the smoothed predicted set times the
    likelihood, and steps of any scale leave it in place.

    Arguments:
        steps: how many steps every particle makes.
        kind: "random-walk" or "langevin".
        scale: s, in standard deviations of the predicted set; None for 2.38 / sqrt(P) (random walk; Roberts,
            Gelman & Gilks 1997) or 1.65 / P^(1/6) (Langevin; Roberts & Rosenthal 1998).

    Raises:
        CredoError: `steps` is below 1, `kind` has another value, or `scale` is not above 0.

    Cost of a step: the likelihood at N particles and N^2 P for the prior; with gradients about three times as
    much.

    Example:
        >>> walk = Metropolis(3)
        >>> moved, taken = walk.walk(jax.random.key(0), jnp.zeros((4, 2)), lambda u: -(u**2).sum(1))
        >>> moved.shape
        (4, 2)
    """

    steps: int = static_field(default=3)
    kind: Steps = static_field(default="random-walk")
    scale: ArrayLike | None = None

    def __post_init__(self) -> None:
        require_integer("steps", self.steps, 1)
        require_choice("kind", self.kind, get_args(Steps))
        if self.scale is not None:
            require_positive("scale", self.scale)

    def move(self, key: Array, values: Array, prior: SmoothDensity, log_likelihood: Target) -> Array:
        """Move every particle `steps` times, with the posterior as the target."""

        def target(u: Array) -> Array:
            return prior.log_density(u) + log_likelihood(prior.color(u))

        moved, _ = self.walk(key, prior.whiten(values), target)
        return prior.color(moved)

    def walk(self, key: Array, u: Array, target: Target) -> tuple[Array, Array]:
        """Move points (N, P) `steps` times under any target.

        Returns:
            The points (N, P), and the share of steps that was taken.
        """
        scale = self._scale(u)

        def look(u: Array) -> tuple[Array, Array]:
            if self.kind == "langevin":
                return gradients(target, u)
            return (target(u), jnp.zeros_like(u))

        def step(state: tuple[Array, Array, Array], key: Array) -> tuple[tuple[Array, Array, Array], Array]:
            first, second = jax.random.split(key)
            u, height, slope = state
            noise = jax.random.normal(first, u.shape, u.dtype)
            proposed = u + 0.5 * scale**2 * slope + scale * noise
            new_height, new_slope = look(proposed)
            # the noise that would lead back
            back = -noise - 0.5 * scale * (slope + new_slope)
            log_ratio = new_height - height + 0.5 * jnp.sum(noise**2 - back**2, axis=1)
            # a comparison with NaN is false: such a step is not taken
            taken = jnp.log(jax.random.uniform(second, log_ratio.shape, u.dtype)) < log_ratio
            state = (
                jnp.where(taken[:, None], proposed, u),
                jnp.where(taken, new_height, height),
                jnp.where(taken[:, None], new_slope, slope),
            )
            return state, taken

        (moved, _, _), taken = jax.lax.scan(step, (u, *look(u)), jax.random.split(key, self.steps))
        return moved, jnp.mean(taken.astype(u.dtype))

    def _scale(self, u: Array) -> Array:
        size = u.shape[1]
        known = 2.38 / size**0.5 if self.kind == "random-walk" else 1.65 / size ** (1 / 6)
        return jnp.asarray(known if self.scale is None else self.scale).astype(u.dtype)


def gradients(target: Target, values: Array) -> tuple[Array, Array]:
    """The log densities (N,) of particles (N, P), and their gradients (N, P)."""
    heights, pullback = jax.vjp(target, values)
    (slopes,) = pullback(jnp.ones_like(heights))
    return heights, slopes
