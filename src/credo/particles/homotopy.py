"""The flow of Daum & Huang: a normal prior becomes the posterior as the likelihood is raised from 0 to 1.

Between l0 and l1 the linearised model is frozen. In coordinates u with prior N(0, I), information B'B and
slope g, the exact flow of Daum, Huang & Noushin (2010)

    du/dl = A u + b,   A = -B' inv(I + l B B') B / 2,   b = (I + 2 l A) ((I + l A) g + A 0)

has a solution without steps: u -> mu(l1) + F (u - mu(l0)), where mu(l) = l inv(I + l B'B) g and F is
sqrt((1 + l0 c) / (1 + l1 c)) on the eigenvalues c of B'B. With one step from 0 to 1 this is a Kalman update.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.types import Array
from credo.linalg.matrices import eigh, symmetric
from credo.particles.conditioning import Conditioned, Evidence, condition_on

__all__ = ["flow", "journey", "stations"]


def stations(steps: int, straight: bool) -> np.ndarray:
    """The values of l, from 0 to 1: each step is 1.2 times the one before it (Li & Coates 2017).

    A straight flow, as for an affine model with normal noise, needs no more than one step.
    """
    lengths = np.ones(1) if straight else 1.2 ** np.arange(steps)
    return np.concatenate([np.zeros(1), np.cumsum(lengths / lengths.sum())])


def flow(conditioned: Conditioned, u: Array, start: Array, stop: Array) -> tuple[Array, Array]:
    """Points u (n, P) after the flow between two values of l, and log |det|. Cost min(m, P)^3 + n m P."""
    rows = conditioned.thin
    values, vectors = eigh(symmetric(rows @ rows.T))
    spread = jnp.maximum(values, 0.0)
    turned = vectors.T @ rows

    def mean(at: Array) -> Array:
        slope = conditioned.slope
        return at * (slope - at * ((turned @ slope) / (1.0 + at * spread)) @ turned)

    ratio = (1.0 + start * spread) / (1.0 + stop * spread)
    # (F - 1) / c, which has no division by c
    pull = -(stop - start) / ((1.0 + stop * spread) * (jnp.sqrt(ratio) + 1.0))
    gaps = u - mean(start)[None, :]
    moved = gaps + ((gaps @ turned.T) * pull[None, :]) @ turned
    return moved + mean(stop)[None, :], 0.5 * jnp.sum(jnp.log(ratio))


def journey(
    evidence: Evidence, centre: Array, root: Array, at: Array, u: Array, grid: np.ndarray
) -> tuple[Array, Array, Array]:
    """Flow from prior to posterior: `at` and `u` (n, k) afterwards, and the log determinant of the map of u.

    The model is linearised anew before each step, at the point `at` (k,), which flows along: the map depends
    on it and not on `u`. The prior is that of z = centre + L u.
    """
    levels = jnp.asarray(grid, centre.dtype)

    def step(state: tuple[Array, Array], ends: tuple[Array, Array]) -> tuple[tuple[Array, Array], Array]:
        at, u = state
        conditioned = condition_on(evidence.local(centre + root @ at, root), at)
        moved, log_det = flow(conditioned, jnp.concatenate([at[None, :], u]), *ends)
        return (moved[0], moved[1:]), log_det

    (at, u), log_dets = jax.lax.scan(step, (at, u), (levels[:-1], levels[1:]))
    return at, u, jnp.sum(log_dets)
