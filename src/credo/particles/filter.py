"""The particle filter: propose, weigh, and resample where the weights have become uneven."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import jax

from credo.beliefs import Particles
from credo.core.errors import CredoError, require_choice, require_integer, require_interval
from credo.core.records import record, replace, static_field
from credo.core.trees import as_like, select
from credo.core.types import Array, ArrayLike, PyTree
from credo.dynamics import Dynamics, Static
from credo.models.model import Model
from credo.particles.base import ParticleLearner
from credo.particles.density import smooth
from credo.particles.guided import Adapted, BootstrapProposal, Guided, Proposal
from credo.particles.moves import Move
from credo.particles.resampling import Resampling, effective_size, resample

__all__ = ["ParticleFilter", "ProposalName", "particle_filter"]

ProposalName: TypeAlias = Literal["bootstrap", "guided", "adapted"]
"""The proposals that have a name."""


@record
class ParticleFilter(ParticleLearner):
    """Sequential importance resampling.

    Every update weighs the particles that a proposal gives, and resamples them where the effective sample
    size falls below a share of N. The evidence is the estimate log sum_n W_n w_n, whose exponential is
    unbiased over a whole stream.

    Arguments:
        model: a `Model`, of which only `log_prob` is needed; `joint(model)` for mini-batches.
        particles: the number N, at least 2.
        dynamics: how a particle moves between observations. With `Static()` the particles of the prior only
            lose weight; see the methods that move particles.
        proposal: how particles are proposed; see `credo.particles.Proposal`.
        resampling: "systematic", "stratified", "residual" or "multinomial".
        threshold: the share of N, in [0, 1], below which the effective sample size leads to resampling: 1
            resamples always, 0 never.
        move: how particles move after resampling (`KernelDraw()`, `Metropolis()`); None leaves copies.

    Raises:
        CredoError: one of the settings is not allowed.

    Cost of a step: N evaluations of the model, and N log N. Exact as N grows, with an error of order
    1 / sqrt(N).

    Example:
        >>> import credo, jax.numpy as jnp
        >>> model = credo.Model(lambda z, x: z, credo.Normal(0.1))
        >>> learner = ParticleFilter(model, particles=500, dynamics=credo.RandomWalk(0.01))
        >>> belief, trace = credo.run(learner, learner.init(jnp.zeros(1)), None, jnp.full((20, 1), 0.7))
        >>> round(float(belief.mean[0]), 1)
        0.7
    """

    model: Model
    particles: int = static_field(default=256)
    dynamics: Dynamics = Static()
    proposal: Proposal = BootstrapProposal()
    resampling: Resampling = static_field(default="systematic")
    threshold: ArrayLike = 0.5
    move: Move | None = None

    def __post_init__(self) -> None:
        require_integer("particles", self.particles, 2)
        require_choice("resampling", self.resampling, get_args(Resampling))
        require_interval("threshold", self.threshold, 0.0, 1.0)

    @property
    def looks_back(self) -> bool:  # type: ignore[override]
        """Whether the proposal starts from the particles before the latest move."""
        return self.proposal.looks_back

    def begin(self, belief: Particles) -> Particles:
        """The first belief, with what the proposal keeps."""
        return self.proposal.begin(self, belief)

    def assimilate(
        self, belief: Particles, x: PyTree, y: PyTree, weight: Array, key: Array
    ) -> tuple[Particles, Array]:
        first, second, third = jax.random.split(key, 3)
        proposed, log_joint, log_evidence = self.proposal.propose(self, belief, x, y, weight, first)
        log_weights = log_joint - jax.nn.logsumexp(log_joint)
        weighted = replace(proposed, log_weights=log_weights)
        uneven = effective_size(log_weights) < as_like(self.threshold, log_weights) * self.particles
        uneven |= as_like(self.threshold, log_weights) >= 1
        ancestors = resample(second, log_weights, self.particles, self.resampling)
        rested = chosen(weighted, ancestors)
        if self.move is not None:

            def log_likelihood(values: Array) -> Array:
                return self.log_likelihood(values, belief.unravel, x, y, weight)

            prior = smooth(belief.values, belief.log_weights)
            rested = replace(rested, values=self.move.move(third, rested.values, prior, log_likelihood))
        return select(uneven, rested, weighted), log_evidence


def chosen(belief: Particles, ancestors: Array) -> Particles:
    """The equally weighted descendants of these particles (N,), with all that belongs to each of them."""
    picked = belief.equal(belief.values[ancestors])
    density = belief.log_density
    state = jax.tree.map(lambda leaf: leaf[ancestors], belief.state)
    return replace(picked, log_density=None if density is None else density[ancestors], state=state)


def particle_filter(
    model: Model,
    particles: int = 256,
    dynamics: Dynamics | None = None,
    *,
    proposal: ProposalName | Proposal = "bootstrap",
    resampling: Resampling = "systematic",
    threshold: ArrayLike = 0.5,
    move: Move | None = None,
) -> ParticleFilter:
    """A particle filter: the belief is a weighted set of parameters (Gordon, Salmond & Smith 1993).

    Arguments:
        model: a `Model`, of which only `log_prob` is needed.
        particles: the number N, at least 2.
        dynamics: a `Transition`, or any other dynamics; None stands still.
        proposal: "bootstrap", which proposes what the dynamics say; "guided", which looks at the observation;
            "adapted", which also resamples with a look ahead; or a `Proposal`.
        resampling, threshold, move: as for `ParticleFilter`.

    Returns:
        The learner.

    Raises:
        CredoError: one of the settings is not allowed.

    Example:
        >>> import credo, jax, jax.numpy as jnp
        >>> def move(z, key, dt):
        ...     return 0.5 * z + 25 * z / (1 + z**2) + jax.random.normal(key, z.shape)
        >>> model = credo.Model(lambda z, x: z**2 / 20, credo.Normal(1.0))
        >>> learner = credo.particle_filter(model, 500, credo.Transition(move))
        >>> belief, info = learner.step(learner.init(jnp.zeros(1), key=0), None, 4.0)
        >>> bool(info.ok)
        True
    """
    if isinstance(proposal, str):
        require_choice("proposal", proposal, list(_PROPOSALS))
        proposal = _PROPOSALS[proposal]
    if not isinstance(proposal, Proposal):
        raise CredoError(
            f"proposal must be one of {', '.join(map(repr, _PROPOSALS))} or a credo.particles.Proposal; got "
            f"{proposal!r}.",
            field="proposal",
        )
    return ParticleFilter(
        model, particles, Static() if dynamics is None else dynamics, proposal, resampling, threshold, move
    )


_PROPOSALS: dict[str, Proposal] = {"bootstrap": BootstrapProposal(), "guided": Guided(), "adapted": Adapted()}
"""Each named proposal."""
