"""Sequences for Algorithm 1 from any model, given by functions."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

from credo.core.errors import CredoError
from credo.core.records import record, static_field
from credo.core.types import Array, PyTree
from credo_papers.published_flow.loss import TransitionMode
from credo_papers.published_flow.priors import DirichletMixtures, NormalMixture
from credo_papers.published_flow.sequences import Restart, SequenceTasks

__all__ = ["ModelSequences"]


@record
class ModelSequences(SequenceTasks):
    """Sequences of any model, of a static state or of a moving one.

    Arguments:
        priors: the `NormalMixture` from which every task's state is drawn, or `DirichletMixtures`, which
            generate another one for each.
        simulate: `simulate(state, key) -> (x, y)`, an observation of a state (d,); several rows with a
            leading axis for an operator that embeds mini-batches.
        log_prob: `log_prob(state, x, y)`, its log density, a scalar.
        transition: `transition(state, key)`, the next state; None for a static one.
        log_transition: `log_transition(later, state)`, the log density of that, for a flow that absorbs it.
        mode: "absorbed" or "propagated", for a moving state.
        particles, length, segment, restart, targets, scored: as for `SequenceTasks`.

    Raises:
        CredoError: a setting is out of range, or a moving state lacks the density that its mode needs.

    Example:
        Two modes, as in the mixture experiment of the paper:

        >>> from credo_papers.published_flow import normal_prior
        >>> def simulate(z, key):
        ...     first, second = jax.random.split(key)
        ...     mean = jnp.where(jax.random.bernoulli(first), z[0], z[0] + z[1])
        ...     return None, mean + jax.random.normal(second)
        >>> def log_prob(z, x, y):
        ...     logs = -((y - jnp.stack([z[0], z[0] + z[1]])) ** 2) / 2
        ...     return jax.nn.logsumexp(logs) - jnp.log(2 * jnp.sqrt(2 * jnp.pi))
        >>> tasks = ModelSequences(normal_prior(jnp.zeros(2), jnp.eye(2)), simulate, log_prob, particles=16)
        >>> tasks.observe(tasks.begin(jax.random.key(0)), jax.random.key(1))[1].y.shape
        (25,)
    """

    priors: NormalMixture | DirichletMixtures
    simulate: Callable[[Array, Array], tuple[PyTree, PyTree]] = static_field()
    log_prob: Callable[[Array, PyTree, PyTree], Array] = static_field()
    transition: Callable[[Array, Array], Array] | None = static_field(default=None)
    log_transition: Callable[[Array, Array], Array] | None = static_field(default=None)
    mode: TransitionMode = static_field(default="absorbed")
    particles: int = static_field(default=256)
    length: int = static_field(default=25)
    segment: int | None = static_field(default=None)
    restart: Restart = static_field(default="particles")
    targets: int = static_field(default=1)
    scored: int | None = static_field(default=None)

    def __post_init__(self) -> None:
        self.check()
        if self.moving and self.mode == "absorbed" and self.log_transition is None:
            raise CredoError(
                "log_transition must be given where the flow absorbs the transition; or use the mode "
                "'propagated'.",
                field="log_transition",
            )

    @property
    def dim(self) -> int:
        return self.priors.dim

    @property
    def moving(self) -> bool:
        return self.transition is not None

    def prior(self, key: Array) -> NormalMixture:
        if isinstance(self.priors, DirichletMixtures):
            return self.priors.draw(key)
        return self.priors

    def emit(self, truth: Array, key: Array) -> tuple[Array, PyTree, PyTree]:
        keys = jax.random.split(key)
        truth = self.move(truth[None, :], keys[0])[0]
        return truth, *self.simulate(truth, keys[1])

    def move(self, values: Array, key: Array) -> Array:
        """Particles (N, d) after the transition."""
        if self.transition is None:
            return values
        return jax.vmap(self.transition)(values, jax.random.split(key, values.shape[0]))

    def log_forecast(self, points: Array, before: Array) -> Array:
        density = self.log_transition
        assert density is not None
        pairs = jax.vmap(lambda one: jax.vmap(lambda parent: density(one, parent))(before))(points)
        return jax.nn.logsumexp(pairs, axis=1) - jnp.log(jnp.asarray(before.shape[0], pairs.dtype))

    def log_likelihood(self, value: Array, x: PyTree, y: PyTree) -> Array:
        return self.log_prob(value, x, y)
