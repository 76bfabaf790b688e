"""A simulated robot arm: inverse dynamics with 21 inputs, for when the measurements of a real one are not at
hand.

Seven rigid links in a vertical plane, joined by hinges, each with its mass at its end. A row is a random
motion: angles, velocities and accelerations of the joints (21 numbers); the target is the torque at the first
joint, tau = M(q) a + C(q, v) v + g(q), from the Lagrangian by automatic differentiation, plus noise.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

__all__ = ["JOINTS", "motions", "torque"]

JOINTS = 7
_LENGTHS = np.array([0.40, 0.35, 0.30, 0.25, 0.20, 0.15, 0.10])
_MASSES = np.array([3.0, 2.5, 2.0, 1.5, 1.0, 0.7, 0.5])
_GRAVITY = 9.81


def _positions(q: jax.Array) -> jax.Array:
    """The ends of the links (7, 2), for joint angles relative to the link before."""
    angles = jnp.cumsum(q)
    steps = jnp.asarray(_LENGTHS, q.dtype)[:, None] * jnp.stack([jnp.sin(angles), jnp.cos(angles)], axis=1)
    return jnp.cumsum(steps, axis=0)


def _lagrangian(q: jax.Array, v: jax.Array) -> jax.Array:
    """Kinetic minus potential energy."""
    place, speed = jax.jvp(_positions, (q,), (v,))
    masses = jnp.asarray(_MASSES, q.dtype)
    return jnp.sum(masses * (0.5 * jnp.sum(speed**2, axis=1) - _GRAVITY * place[:, 1]))


def torque(q: jax.Array, v: jax.Array, a: jax.Array) -> jax.Array:
    """The torques (7,) of a motion: d/dt dL/dv - dL/dq (Euler and Lagrange)."""

    def momentum(q: jax.Array, v: jax.Array) -> jax.Array:
        return jax.grad(_lagrangian, argnums=1)(q, v)

    _, change = jax.jvp(momentum, (q, v), (v, a))
    return change - jax.grad(_lagrangian)(q, v)


def motions(seed: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Inputs (n, 21) and torques of the first joint (n,), with noise of a twentieth of their spread.

    Args:
        seed: of the motions.
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
