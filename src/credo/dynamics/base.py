"""The dynamics protocol, and parameters that stand still."""

from __future__ import annotations

from typing import Any

import jax

from credo.beliefs import Anchor
from credo.core.records import record
from credo.covariances import Covariance

__all__ = ["Dynamics", "Static"]


class Dynamics:
    """How N(mean, cov) moves in a time step `dt`."""

    anchored: bool = False
    """Whether the prior is pulled back to, so that beliefs must carry it."""

    def move(
        self, mean: jax.Array, cov: Covariance | None, anchor: Anchor | None, t: jax.Array, dt: Any
    ) -> tuple[jax.Array, Covariance | None]:
        """The mean (P,) and covariance after a step.

        Arguments:
            mean: the mean (P,).
            cov: the covariance, or None for point beliefs, of which only the mean moves.
            anchor: the prior, where `anchored`.
            t: how many steps were made before this one.
            dt: the length of the step; None means 1.
        """
        raise NotImplementedError


@record
class Static(Dynamics):
    """Parameters do not move: theta_t = theta_{t-1}."""

    def move(
        self, mean: jax.Array, cov: Covariance | None, anchor: Anchor | None, t: jax.Array, dt: Any
    ) -> tuple[jax.Array, Covariance | None]:
        """The same mean and covariance, bit by bit."""
        return mean, cov
