"""Gaussian beliefs over a parameter tree, and point beliefs."""

from __future__ import annotations

from typing import Any

import jax

from credo.core.records import record, static_field
from credo.core.trees import Unravel
from credo.covariances import Covariance

__all__ = ["Anchor", "Gaussian", "Point"]


@record
class Anchor:
    """The prior that dynamics pull back to: its mean (P,) and covariance."""

    mean: jax.Array
    cov: Covariance | None


@record
class Gaussian:
    """theta ~ N(mean, cov).

    Attributes:
        mean: the mean, laid out as a vector (P,).
        cov: its covariance, of some family.
        t: how many times `predict` has been called.
        unravel: how the vector becomes the parameter tree.
        anchor: the prior, kept only for dynamics that return to it.
        noise: what is known of the noise variance, where it is learned; `cov` is then in units of it.
    """

    mean: jax.Array
    cov: Covariance
    t: jax.Array
    unravel: Unravel = static_field()
    anchor: Anchor | None = None
    noise: Any = None

    @property
    def params(self) -> Any:
        """The mean as a parameter tree."""
        return self.unravel(self.mean)

    @property
    def size(self) -> int:
        """The number P of parameters."""
        return self.unravel.size

    @property
    def var(self) -> jax.Array:
        """The variances (P,)."""
        return self.cov.diag()

    @property
    def sd(self) -> jax.Array:
        """The standard deviations (P,)."""
        return self.cov.sd


@record
class Point:
    """One value of the parameters, no uncertainty: the belief of gradient learners.

    Attributes:
        mean: the parameters as a vector (P,).
        state: the optimiser's state.
        buffer: the latest observations (replay), or None.
        t: how many times `predict` has been called.
        unravel: how the vector becomes the parameter tree.
        anchor: the initial parameters, kept only for dynamics that return to them.
    """

    mean: jax.Array
    state: Any
    buffer: Any
    t: jax.Array
    unravel: Unravel = static_field()
    anchor: Anchor | None = None

    @property
    def params(self) -> Any:
        """The parameter tree."""
        return self.unravel(self.mean)

    @property
    def size(self) -> int:
        """The number P of parameters."""
        return self.unravel.size
