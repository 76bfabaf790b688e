"""The worlds of `pfbr-lorenz`: chaos with heavy-tailed noise, and a volatility that is never seen.

Lorenz-96 (Lorenz 1996), d = 10 variables on a ring, F = 8:

    dx_i/dt = (x_{i+1} - x_{i-2}) x_{i-1} - x_i + F

One step is 0.1 long, by one step of Runge-Kutta of order 4, and adds N(0, 0.3^2 I). All variables are
observed with noise 0.3 t(3). A sequence starts at x_0 ~ N(m, I), where m is a point of the attractor that
learners are told.

Stochastic volatility (Taylor 1982): h_t = 0.98 h_{t-1} + N(0, 0.2^2), y_t ~ N(0, exp(h_t - 1)).
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import credo
from credo.core.types import Array
from credo_papers.engine.purposes import SCORED
from credo_papers.pfbr.pfbr_problem import Problem, SampledRows

__all__ = [
    "DIM",
    "LENGTH",
    "LorenzRuns",
    "advance",
    "exact_volatility_scores",
    "lorenz_problem",
    "simulate_lorenz",
    "simulate_volatility",
    "volatility_problem",
]

DIM = 10
FORCING = 8.0
STEP = 0.1
NOISE = 0.3
SCALE = 0.3
FREEDOM = 3.0
LENGTH = 100
SPIN_UP = 200
PERSISTENCE = 0.98
SHOCK = 0.2
LEVEL = -1.0


class LorenzRuns(NamedTuple):
    """Sequences of Lorenz-96.

    Attributes:
        start: m (n, d).
        states: (n, T, d).
        observations: (n, T, d).
    """

    start: np.ndarray
    states: np.ndarray
    observations: np.ndarray


def _slope(x: Array) -> Array:
    return (jnp.roll(x, -1) - jnp.roll(x, 2)) * jnp.roll(x, 1) - x + FORCING


def advance(x: Array, dt: Array | float) -> Array:
    """Return the state (d,) after a step of length STEP dt, without noise."""
    h = STEP * dt
    first = _slope(x)
    second = _slope(x + 0.5 * h * first)
    third = _slope(x + 0.5 * h * second)
    fourth = _slope(x + h * third)
    return x + h / 6.0 * (first + 2.0 * second + 2.0 * third + fourth)


def _state(z: Array, x: object) -> Array:
    return z


def lorenz_problem() -> Problem:
    """Return the problem; each sequence has a prior mean of its own.

    Methods that linearise do so with the weight that each residual leaves to its observation: with the Fisher
    information they lose the state forever.
    """
    likelihood = SampledRows(credo.StudentT(FREEDOM, SCALE, "weighted"))
    dynamics = credo.Transition.additive(advance, NOISE**2)
    return Problem(credo.Model(_state, likelihood), DIM, dynamics)


def simulate_lorenz(seed: int, count: int, length: int = LENGTH, purpose: int = SCORED) -> LorenzRuns:
    """Return fresh sequences.

    Arguments:
        seed: the seed of the random numbers.
        count: how many.
        length: T.
        purpose: `SCORED` or `TUNING`.
    """

    def one(key: Array) -> tuple[Array, Array, Array]:
        first, second, third, fourth = jax.random.split(key, 4)

        def move(x: Array, noise: Array) -> tuple[Array, Array]:
            new = advance(x, 1.0) + NOISE * noise
            return new, new

        begin = FORCING + jax.random.normal(first, (DIM,))
        start, _ = jax.lax.scan(move, begin, jax.random.normal(second, (SPIN_UP, DIM)))
        noises = jax.random.normal(third, (length + 1, DIM))
        _, states = jax.lax.scan(move, start + noises[0], noises[1:])
        return start, states, states + SCALE * jax.random.t(fourth, FREEDOM, (length, DIM))

    keys = jax.random.split(jax.random.fold_in(jax.random.key(seed), purpose), count)
    return LorenzRuns(*(np.asarray(part) for part in jax.jit(jax.vmap(one))(keys)))


def volatility_problem() -> Problem:
    """Return the problem of the hidden volatility, which starts in its stationary distribution."""

    def log_prob(eta: Array, y: Array) -> Array:
        log_var = eta + LEVEL
        log_density: Array = -0.5 * (y**2 * jnp.exp(-log_var) + log_var + np.log(2.0 * np.pi))
        return log_density

    stationary = SHOCK**2 / (1.0 - PERSISTENCE**2)
    dynamics = credo.LinearGaussian(jnp.array([[PERSISTENCE]]), 0.0, SHOCK**2)
    return Problem(credo.Model(_state, credo.Likelihood(log_prob)), 1, dynamics, var=stationary)


def simulate_volatility(seed: int, count: int, length: int) -> np.ndarray:
    """Return observations (count, length) of the hidden volatility.

    Arguments:
        seed: the seed of the random numbers.
        count: how many sequences.
        length: T.
    """
    rng = np.random.default_rng([seed, SCORED, 96])
    h = SHOCK / np.sqrt(1.0 - PERSISTENCE**2) * rng.normal(size=count)
    rows = []
    for _ in range(length):
        h = PERSISTENCE * h + SHOCK * rng.normal(size=count)
        rows.append(np.exp(0.5 * (h + LEVEL)) * rng.normal(size=count))
    return np.stack(rows, axis=1).astype(np.float32)


def exact_volatility_scores(observations: np.ndarray, nodes: int = 400) -> np.ndarray:
    """Return log p(y_t | past) (count, T) by quadrature on a grid of the volatility, to about 1e-6.

    Arguments:
        observations: (count, T).
        nodes: how many points of the grid, from -6 to 6 stationary standard deviations.
    """
    sd = SHOCK / np.sqrt(1.0 - PERSISTENCE**2)
    grid = np.linspace(-6.0 * sd, 6.0 * sd, nodes)
    move = np.exp(-0.5 * ((grid[:, None] - PERSISTENCE * grid[None, :]) / SHOCK) ** 2)
    move /= move.sum(axis=0, keepdims=True)
    belief = np.exp(-0.5 * (grid / sd) ** 2)
    beliefs = np.tile(belief / belief.sum(), (len(observations), 1))
    scores = []
    for y in np.asarray(observations, np.float64).T:
        beliefs = beliefs @ move.T
        log_var = grid + LEVEL
        density = np.exp(-0.5 * y[:, None] ** 2 * np.exp(-log_var) - 0.5 * log_var) / np.sqrt(2.0 * np.pi)
        joint = beliefs * density
        total = joint.sum(axis=1, keepdims=True)
        scores.append(np.log(total[:, 0]))
        beliefs = joint / total
    return np.stack(scores, axis=1)
