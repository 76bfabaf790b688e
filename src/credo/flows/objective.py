"""Losses that training minimises for one update, and scores of an operator on sequences unseen in training.

"elbo" is the evidence bound of the paper's Eq 20 for a single update, with the density of the discrete map:

    E_n[ log p(x_n) - log |det T'(x_n)| - log p(y | T x_n) - log p(T x_n) ]  >=  -log p(y),

with equality where T takes the prior p to the posterior. "likelihood" asks for the density that the map gives
to samples of the posterior, which misses no mode:

    -E_m[ log p(T^-1 x_m) - log |det T'(T^-1 x_m)| ]  >=  entropy of the posterior.

Both hardly see how much mass a mode has: an error e costs them about e^2. `mismatch` sees it without noise:
it compares the moved particles with the same particles before the move, weighted by the likelihood.
"""

from __future__ import annotations

from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import jax
import jax.numpy as jnp

from credo.core.platforms import over_rows
from credo.core.types import Array, PyTree
from credo.flows.densities import NormalDensity
from credo.flows.operator import FlowOperator
from credo.flows.tasks import Stage, Tasks
from credo.particles.density import bandwidths, log_gaussian, log_kde

__all__ = ["Loss", "mismatch", "stage_loss", "validate"]


Loss: TypeAlias = Literal["elbo", "likelihood"]
"""The loss that is minimised."""

WAVES = 128
"""The number of waves that `mismatch` looks at."""


@runtime_checkable
class Chain(Protocol):
    """Tasks whose stage is a chain of updates, and whose loss is their own."""

    def segment_loss(self, operator: FlowOperator, params: PyTree, stage: Any) -> tuple[Array, Array]:
        """The loss of a stage, and the particles (N, d) at its end."""
        ...


def stage_loss(
    operator: FlowOperator, params: PyTree, tasks: Tasks[Any], stage: Stage, loss: Loss, matching: float = 0.0
) -> tuple[Array, Array]:
    """The loss of one update, plus `matching` times the `mismatch`, and the particles after it (N, d)."""
    if isinstance(tasks, Chain):
        value, last = tasks.segment_loss(operator, params, stage)
        return value, jax.lax.stop_gradient(last)

    def log_likelihood(value: Array) -> Array:
        return tasks.log_likelihood(value, stage.x, stage.y)

    bayes = operator.transport(params, stage.values, stage.log_weights, log_likelihood, stage.x, stage.y)
    moved = bayes.forward(stage.values)
    new = jax.lax.stop_gradient(moved)
    extra = jnp.zeros((), new.dtype)
    if matching:
        extra = matching * mismatch(
            stage.values, moved, stage.log_weights, jax.vmap(log_likelihood)(stage.values)
        )
    if loss == "likelihood":
        origins, log_det = bayes.backward(stage.targets)
        return extra - jnp.mean(stage.prior.log_prob(origins) - log_det), new
    places, log_det = bayes.forward_density(stage.points)
    before = stage.prior.log_prob(stage.points)
    after = stage.prior.log_prob(places)
    gaps = before - log_det - jax.vmap(log_likelihood)(places) - after
    return extra + jnp.mean(gaps), new


def mismatch(values: Array, moved: Array, log_weights: Array, log_likelihoods: Array) -> Array:
    """A squared distance between moved particles and the posterior by importance weights.

        1/K sum_k | sum_n w_n exp(i f_k' v_n) - sum_n w_n p(y | x_n) / p(y) exp(i f_k' u_n) |^2

    with particles u before and v after the move (N, d), in coordinates in which u is white. The frequencies f
    are normal, with standard deviations between 1/2 and 4: a mixture of Gaussian kernels (MMD^2).
    """
    distribution: NormalDensity = NormalDensity.of(values, log_weights)
    first, second = jax.random.split(jax.random.key(0))
    pitch = 0.5 * 8.0 ** jax.random.uniform(second, (WAVES, 1), values.dtype)
    frequencies = pitch * jax.random.normal(first, (WAVES, values.shape[1]), values.dtype)
    units = jax.scipy.linalg.solve_triangular(distribution.root, frequencies.T, lower=True, trans=1)
    before, after = ((points - distribution.mean[None, :]) @ units for points in (values, moved))
    weights = jnp.exp(log_weights)
    posterior = jax.nn.softmax(log_weights + log_likelihoods)
    gaps = [weights @ wave(after) - posterior @ wave(before) for wave in (jnp.cos, jnp.sin)]
    return jnp.mean(gaps[0] ** 2 + gaps[1] ** 2)


def validate(
    operator: FlowOperator,
    params: PyTree,
    tasks: Tasks[Any],
    key: Array,
    *,
    sequences: int = 16,
    stages: int = 25,
    loss: Loss = "elbo",
) -> dict[str, Array]:
    """The mean loss and cross-entropies over fresh sequences, stage by stage.

    Arguments:
        operator, params: the operator.
        tasks: where the sequences come from.
        key: their key; with the same key two operators see the same sequences.
        sequences, stages: how many sequences, and how many updates of each.
        loss: the loss to report.

    Returns:
        Means over sequences, each with one number a stage (stages,): the loss; its floor, NaN if it is not
        known; and the cross-entropies from the posterior (its samples in the stages) to the kernel density
        estimate, "kde", and to the normal distribution of the particles, "gaussian".
    """

    def sequence(own: Array) -> dict[str, Array]:
        first, second = jax.random.split(own)

        def one(task: Any, key: Array) -> tuple[Any, dict[str, Array]]:
            keys = jax.random.split(key)
            seen, stage = tasks.observe(task, keys[0])
            value, new = stage_loss(operator, params, tasks, stage, loss)
            width = bandwidths(new, stage.log_weights)
            scores = {
                "loss": value,
                "floor": stage.floor,
                "kde": -jnp.mean(log_kde(stage.targets, new, stage.log_weights, width)),
                "gaussian": -jnp.mean(log_gaussian(stage.targets, new, stage.log_weights)),
            }
            return tasks.advance(seen, stage, new, keys[1]), scores

        return jax.lax.scan(one, tasks.begin(first), jax.random.split(second, stages))[1]

    table = over_rows(sequence, jax.random.split(key, sequences))
    return {name: jnp.mean(column, axis=0) for name, column in table.items()}
