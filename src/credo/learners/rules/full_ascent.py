"""Plain gradient steps of a full covariance S = W W', in the coordinates in which S is the identity.

There a precision is I + X, and only X has to be decomposed: a low-rank X by a small Gram matrix (cost k P^2),
a dense one by its eigenvalues (cost P^3).
"""

from __future__ import annotations

import jax.numpy as jnp

from credo.core.types import Array
from credo.learners.rules.retraction import Retraction, grown_root, retract_matrix
from credo.linalg.matrices import eigh, inverse, precision, solve

__all__ = ["ascend_moments", "ascend_naturals"]


def ascend_naturals(
    root: Array,
    mean: Array,
    slope: Array,
    factor: Array,
    prior_root: Array | None,
    rate: Array,
    retraction: Retraction,
) -> tuple[Array, Array]:
    """A plain gradient step in (L mu, -L / 2): the new mean and root of S.

    L <- L - 2 a (S u mu' + mu u' S) - 2 a S N S and mu <- inv(L_new) (L mu + a S u), with N = -B' B, plus
    L - L0 where a prior is given. Cost: (k + 2) P^2 without a prior, else P^3: from the second iteration on,
    L - L0 has doubled its rank at every step.
    """
    white_slope = slope @ root  # W' u
    along = white_slope @ root.T  # S u
    sides = jnp.stack([along @ root, mean @ root])  # W' S u and W' mu
    rows = (factor @ root) @ root.T @ root  # B S W
    first = -2.0 * rate
    if prior_root is None and rows.shape[0] + 2 < root.shape[0]:
        arms = jnp.concatenate([sides, rows], axis=0)
        signs = jnp.zeros((arms.shape[0], arms.shape[0]), root.dtype)
        signs = signs.at[jnp.array([0, 1]), jnp.array([1, 0])].set(first)
        signs = signs + jnp.diag(jnp.where(jnp.arange(arms.shape[0]) < 2, 0.0, -first))
        # X = A' D A with orthonormal Q = T A, T = gamma^-1/2 V': X = Q' (T^-1' D T^-1) Q
        values, vectors = eigh(arms @ arms.T)
        # directions that rounding made of nothing: scaled down in Q, and exactly made up for in X
        machine = precision(root.dtype)
        floor = values[-1] * arms.shape[0] * machine.eps + machine.tiny
        lengths = jnp.sqrt(jnp.maximum(values, floor))
        inner = (vectors * lengths[None, :]).T @ signs @ (vectors * lengths[None, :])
        shrink, turn = retract_matrix(inner, retraction)
        basis = turn.T @ (vectors / lengths[None, :]).T  # rows of Q are basis @ arms
        axes = basis @ arms
        # A W^-1 mu needs no inverse: W' S u, W' mu and W' S B' give u' S mu, mu' mu and B S mu
        heights = basis @ jnp.concatenate(
            [jnp.stack([along @ mean, mean @ mean]), factor @ root @ root.T @ mean]
        )
        natural = axes @ (rate * (along @ root)) + heights
        spread = ((1.0 / shrink - 1.0) * natural) @ axes
        new_mean = mean + root @ (rate * (along @ root) + spread)
        new_root = root + (root @ axes.T) @ (((1.0 / jnp.sqrt(shrink)) - 1.0)[:, None] * axes)
        return new_mean, new_root
    inside = -rows.T @ rows
    if prior_root is not None:
        gram = root.T @ root
        ratio = solve(prior_root, root)  # W0^-1 W
        inside = inside + gram @ gram - gram @ (ratio.T @ ratio) @ gram
    change = first * (jnp.outer(sides[0], sides[1]) + jnp.outer(sides[1], sides[0]) + inside)
    shrink, turn = retract_matrix(change, retraction)
    natural = turn.T @ (solve(root, mean) + rate * sides[0])
    new_axes = root @ turn
    return new_axes @ (natural / shrink), new_axes / jnp.sqrt(shrink)[None, :]


def ascend_moments(
    root: Array,
    mean: Array,
    slope: Array,
    factor: Array,
    prior_root: Array | None,
    rate: Array,
    retraction: Retraction,
) -> tuple[Array, Array]:
    """A plain gradient step in (mu, S): mu + a u and S + a N / 2. Cost: P^3."""
    white = solve(root, factor.T)  # W^-1 B'
    change = -white @ white.T
    if prior_root is not None:
        inverted = inverse(root)
        ratio = solve(prior_root, inverted.T)  # W0^-1 W^-T
        here = inverted @ inverted.T
        change = change + here @ here - ratio.T @ ratio
    return mean + rate * slope, grown_root(root, 0.5 * rate * change, retraction)
