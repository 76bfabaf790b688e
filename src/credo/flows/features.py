"""What an operator sees of an update: numbers that no affine map of the state changes."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from credo.core.types import Array
from credo.flows.frames import Frame, LogLikelihood

__all__ = ["axis_features", "embedding_inputs", "moved_inputs", "strength"]


def axis_features(frame: Frame) -> Array:
    """The linearised likelihood and the higher moments of the set, axis by axis (5 d + 1,).

    They are log(1 + lambda), the innovation gamma / sqrt(1 + lambda), the third and fourth moments of the
    set, the covariance of each squared axis with the log-likelihood, and its standard deviation. Large values
    are compressed.
    """
    units, weights = frame.units, frame.weights
    level = frame.log_likelihoods - weights @ frame.log_likelihoods
    parts = [
        jnp.log1p(frame.precisions),
        jnp.arcsinh(frame.shift * frame.scales),
        jnp.arcsinh(weights @ units**3),
        jnp.arcsinh(weights @ units**4 - 3),
        jnp.arcsinh((weights * level) @ (units**2 - 1)),
        jnp.log1p(jnp.sqrt(weights @ level**2))[None],
    ]
    return jnp.concatenate(parts)


def embedding_inputs(frame: Frame) -> Array:
    """What is embedded of every particle (N, 2 d + 1): place, bend of the gradient, log-likelihood."""
    level = frame.log_likelihoods - frame.weights @ frame.log_likelihoods
    # compressed in one piece: XLA would take them apart, and be slow at it
    steep = jnp.concatenate([frame.bend * frame.scales[None, :], level[:, None]], axis=1)
    return jnp.concatenate([frame.units, jnp.arcsinh(steep)], axis=1)


def moved_inputs(
    frame: Frame, units: Array, target: Array, scales: Array, log_likelihood: LogLikelihood
) -> Array:
    """What is embedded of every particle (N, 2 d + 1) on its way: place, rest of the score, log-likelihood.

    The rest is what is left of the posterior's score, for a set whose prior is a normal law, by the
    coordinates `units` (N, d) after some steps, less that of the law which the base, of mean `target` and
    standard deviations `scales` (d,), makes of a standard normal one. It is zero where the base is right.
    """
    places = target[None, :] + units * scales[None, :]
    log_likelihoods, gradients = jax.vmap(jax.value_and_grad(log_likelihood))(frame.outside(places))
    level = log_likelihoods - frame.weights @ log_likelihoods
    rest = (gradients @ frame.root - places) * scales[None, :] + units
    return jnp.concatenate([units, jnp.arcsinh(rest), jnp.arcsinh(level)[:, None]], axis=1)


def strength(frame: Frame) -> Array:
    """How much an observation says, v / (1 + v): v is the log-likelihood's variance plus sum(lambda)."""
    level = frame.log_likelihoods - frame.weights @ frame.log_likelihoods
    amount = frame.weights @ level**2 + jnp.sum(frame.precisions)
    return amount / (1 + amount)
