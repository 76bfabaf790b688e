"""A simulated robot arm: inverse dynamics with 21 inputs, in place of the measurements of a real one.

Seven rigid links in a vertical plane are joined by hinges; each has its mass at its end. A row is a random
motion: angles, velocities and accelerations of the joints (21 numbers). The target is the torque at the first
joint, tau = M(q) a + C(q, v) v + g(q), which is the Lagrangian's by automatic differentiation, plus noise.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.types import Array

__all__ = ["JOINTS", "motions", "torque"]

JOINTS = 7
_LENGTHS = np.array([0.40, 0.35, 0.30, 0.25, 0.20, 0.15, 0.10])
_MASSES = np.array([3.0, 2.5, 2.0, 1.5, 1.0, 0.7, 0.5])
_GRAVITY = 9.81


def _positions(q: Array) -> Array:
    """The ends of the links (7, 2), for joint angles relative to the link before."""
    angles = jnp.cumsum(q)
    steps = jnp.asarray(_LENGTHS, q.dtype)[:, None] * jnp.stack([jnp.sin(angles), jnp.cos(angles)], axis=1)
    return jnp.cumsum(steps, axis=0)


def _lagrangian(q: Array, v: Array) -> Array:
    """Kinetic minus potential energy."""
    place, speed = jax.jvp(_positions, (q,), (v,))
    masses = jnp.asarray(_MASSES, q.dtype)
    energy: Array = jnp.sum(masses * (0.5 * jnp.sum(speed**2, axis=1) - _GRAVITY * place[:, 1]))
    return energy


def torque(q: Array, v: Array, a: Array) -> Array:
    """Return the torques (7,) of a motion, d/dt dL/dv - dL/dq (Euler and Lagrange).

    Arguments:
        q, v, a: angles, velocities and accelerations of the joints (7,) each.
    """

    def momentum(q: Array, v: Array) -> Array:
        slope: Array = jax.grad(_lagrangian, argnums=1)(q, v)
        return slope

    _, change = jax.jvp(momentum, (q, v), (v, a))
    force: Array = change - jax.grad(_lagrangian)(q, v)
    return force


def motions(seed: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return inputs (n, 21) and torques of the first joint (n,), with noise of a twentieth of their spread.

    Arguments:
        seed: the seed of the motions.
        count: n.

    Example:
        >>> x, y = motions(0, 5)
        >>> x.shape, y.shape
        ((5, 21), (5,))
    """
    rng = np.random.default_rng([seed, 21])
    q = rng.normal(0, 0.6, size=(count, JOINTS))
    v = rng.normal(0, 0.8, size=(count, JOINTS))
    a = rng.normal(0, 1.5, size=(count, JOINTS))
    tau = np.asarray(jax.jit(jax.vmap(torque))(*(jnp.asarray(part, jnp.float32) for part in (q, v, a))))[:, 0]
    noisy = tau + 0.05 * tau.std() * rng.normal(size=count)
    return np.concatenate([q, v, a], axis=1).astype(np.float32), noisy.astype(np.float32)
