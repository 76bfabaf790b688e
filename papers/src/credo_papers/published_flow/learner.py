"""The published operator as a learner whose flow takes the state through time and through the observation."""

from __future__ import annotations

from typing import cast

import jax

from credo.beliefs import Particles
from credo.core.errors import CredoError, require_integer
from credo.core.records import record, replace, static_field
from credo.core.types import Array, ArrayLike, PyTree
from credo.dynamics import Dynamics, Static
from credo.flows.learner import DensityName, FlowFilter
from credo.flows.operator import FlowOperator
from credo.models.model import Model, as_model
from credo.particles.base import ParticleLearner
from credo.particles.density import bandwidths, log_kde

__all__ = ["PublishedFlow", "pfbr"]


@record
class PublishedFlow(ParticleLearner):
    """Particles that one deterministic flow takes from p(x_{m-1} | o_1:m-1) to p(x_m | o_1:m).

    So the published code treats a moving state: the operator has learned the transition, and no noise is
    drawn for an update. The dynamics say what is forecast before the observation comes, and move the
    particles where none comes.

    Arguments:
        model: a `Model`, of which only `log_prob` is needed.
        operator: an operator that was trained with a transition that it absorbs.
        particles: the number N, at least 2.
        dynamics: how a particle moves between observations.
        density: whether log q of the particles is carried along, by the operator's own account.

    Raises:
        CredoError: the operator has no parameters, or a setting is not allowed.

    Cost of an update: that of the operator, and N likelihoods; N^2 d more with the density.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> from credo_papers.published_flow import PublishedOperator
        >>> operator = PublishedOperator(dim=2, observation=2, hidden=8).begin()
        >>> model = credo.Model(lambda z, x: z, credo.Normal(1.0))
        >>> learner = PublishedFlow(model, operator, 50, credo.RandomWalk(0.1))
        >>> belief, info = learner.step(learner.init(jnp.zeros(2)), None, jnp.ones(2))
        >>> bool(info.ok)
        True
    """

    model: Model
    operator: FlowOperator = cast(FlowOperator, None)
    particles: int = static_field(default=256)
    dynamics: Dynamics = Static()
    density: bool = static_field(default=False)

    looks_back = True

    def __post_init__(self) -> None:
        as_model(self.model)
        require_integer("particles", self.particles, 2)
        if not isinstance(self.operator, FlowOperator) or self.operator.params is None:
            raise CredoError(
                "operator must be a trained operator, such as that of credo.flows.train or "
                f"credo.flows.load_operator; got {self.operator!r}.",
                field="operator",
            )

    def begin(self, belief: Particles) -> Particles:
        """The first belief, with the density of the prior if it is asked for."""
        if belief.size != self.operator.dim:
            raise CredoError(
                f"operator must have the dimension of the parameters, {belief.size}; it has "
                f"{self.operator.dim}.",
                field="operator",
            )
        if not self.density:
            return belief
        assert belief.source is not None
        logs = jax.vmap(belief.source.log_prob)(belief.values)
        return replace(belief, log_density=logs, state=logs)

    def time_update(self, belief: Particles, dt: ArrayLike | None) -> Particles:
        moved = super().time_update(belief, dt)
        if not self.density:
            return moved
        # The flow starts from the particles before the move; those after it have the density of Eq 18.
        width = bandwidths(moved.values, moved.log_weights)
        logs = log_kde(moved.values, moved.values, moved.log_weights, width)
        return replace(moved, log_density=logs, state=belief.log_density)

    def assimilate(
        self, belief: Particles, x: PyTree, y: PyTree, weight: Array, key: Array
    ) -> tuple[Particles, Array]:
        def log_likelihood(values: Array) -> Array:
            return self.log_likelihood(values, belief.unravel, x, y, weight)

        assert belief.parents is not None
        bayes = self.operator.transport(
            self.operator.params,
            belief.parents,
            belief.log_weights,
            lambda value: log_likelihood(value[None, :])[0],
            x,
            y,
        )
        log_evidence = jax.nn.logsumexp(belief.log_weights + log_likelihood(belief.values))
        if not self.density:
            return replace(belief, values=bayes.forward(belief.parents)), log_evidence
        values, log_det = bayes.forward_density(belief.parents)
        return replace(belief, values=values, log_density=belief.state - log_det), log_evidence


def pfbr(
    model: Model,
    operator: FlowOperator,
    particles: int = 256,
    dynamics: Dynamics | None = None,
    *,
    absorbed: bool | None = None,
    density: bool = False,
) -> PublishedFlow | FlowFilter:
    """The particle flow Bayes rule as published, as a learner.

    Arguments:
        model: a `Model`, of which only `log_prob` is needed.
        operator: a trained `PublishedOperator`.
        particles: the number N, at least 2.
        dynamics: a `Transition`, or any other dynamics; None stands still.
        absorbed: whether the operator has learned the transition, as in the published code, so that one
            update takes the state through time, too; by default where parameters move. Otherwise particles
            move first, as in the paper, and the learner is that of `credo.pfbr` with free noise.
        density: whether log q of the particles is carried along.

    Returns:
        The learner.

    Raises:
        CredoError: one of the settings is not allowed.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> from credo_papers.published_flow import PublishedOperator
        >>> operator = PublishedOperator(dim=2, observation=2, hidden=8).begin()
        >>> model = credo.Model(lambda z, x: z, credo.Normal(1.0))
        >>> learner = pfbr(model, operator, particles=50, density=True)
        >>> belief, info = learner.step(learner.init(jnp.zeros(2)), None, jnp.ones(2))
        >>> belief.log_density.shape
        (50,)
    """
    moves = Static() if dynamics is None else dynamics
    still = isinstance(moves, Static)
    if absorbed is None:
        absorbed = not still
    if absorbed:
        return PublishedFlow(model, operator, particles, moves, density)
    how: DensityName | None = None
    if density:
        how = "flow" if still else "kernel"
    return FlowFilter(model, operator, particles, moves, how, None, "free")
