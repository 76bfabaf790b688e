"""The exact flows of Daum and Huang: for the whole set (EDH), or for each particle (LEDH).

A normal prior becomes the posterior as the likelihood is raised from 0 to 1.
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

from credo.beliefs import Particles
from credo.core.errors import require_integer
from credo.core.records import record, replace, static_field
from credo.core.types import Array, ArrayLike, PyTree
from credo.dynamics import Dynamics, Static
from credo.linalg.matrices import eigh, symmetric
from credo.models.model import Model
from credo.particles.base import ParticleLearner
from credo.particles.conditioning import Conditioned, Evidence, condition_on
from credo.particles.filter import ParticleFilter
from credo.particles.guided import Observed, Proposal, distribution_of, is_straight
from credo.particles.linear_outputs import MomentLearner, linear_outputs, predicted_moments

__all__ = ["DaumHuang", "FlowProposal", "daum_huang"]


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

    The model is linearised again before each step, at the point `at` (k,), which flows along: the map depends
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


@record
class DaumHuang(MomentLearner):
    """Particles that flow from prior to posterior while the likelihood is raised from 0 to 1.

    The flow solves the Fokker-Planck equation of the homotopy p(z) p(y | z)^l for a normal prior with the
    predicted moments and a linear model. "EDH" linearises along the flow of the mean, which moves all
    particles alike; "LEDH" at every particle (Ding & Coates 2012). No weights change, so what the
    linearisation leaves out is not corrected; see `FlowProposal`.

    Arguments:
        model: a `Model`; `joint(model)` for mini-batches.
        particles: the number N, at least 2.
        dynamics: how a particle moves between observations.
        local: whether each particle has its own linearisation (LEDH), or all share one (EDH).
        steps: how many steps the flow takes; an affine model with normal noise needs one, and takes one.

    Raises:
        CredoError: there are fewer than 2 particles or 1 step.

    Unless `weighted`, approximate where the model is not affine: on a bimodal model the ranks of simulated
    truths were 0.25 from uniform (EDH) and 0.27 (LEDH), and 0.02 with weights; with heavy-tailed noise they
    were 0.07 (LEDH, p = 0.001).

    Cost of a step of the flow: a Jacobian and C^3, for each particle where `local`; and N C P. For an affine
    model with normal noise both are a Kalman update of the predicted moments.

    Example:
        >>> import credo
        >>> model = credo.Model(lambda z, x: jnp.sin(z), credo.Normal(0.1))
        >>> learner = DaumHuang(model, particles=50, local=True)
        >>> belief, info = learner.step(learner.init(jnp.zeros(1)), None, jnp.full(1, 0.8))
        >>> round(float(jnp.sin(belief.mean[0])), 1)
        0.5
    """

    model: Model
    particles: int = static_field(default=256)
    dynamics: Dynamics = Static()
    local: bool = static_field(default=False)
    steps: int = static_field(default=10)

    def __post_init__(self) -> None:
        super().__post_init__()
        require_integer("steps", self.steps, 1)

    def assimilate(
        self, belief: Particles, x: PyTree, y: PyTree, weight: Array, key: Array
    ) -> tuple[Particles, Array]:
        around = predicted_moments(self, belief)
        evidence = Evidence(self.model, belief.unravel, x, y, weight)
        grid = stations(self.steps, is_straight(self, belief, x))
        white = around.whiten(belief.values)
        if self.local:

            def one(u: Array) -> Array:
                return journey(evidence, around.mean, around.root, u, u[None, :], grid)[0]

            u = jax.vmap(one)(white)
        else:
            start = jnp.zeros_like(around.mean)
            _, u, _ = journey(evidence, around.mean, around.root, start, white, grid)
        outputs = linear_outputs(self, belief, x, around)
        return replace(belief, values=around.color(u)), self.log_evidence(outputs, y, weight)


@record
class FlowProposal(Proposal):
    """Propose by the flow of Daum and Huang, and weigh by the density that the flow gives: PF-PF.

    A particle is drawn from the dynamics and flows from z0 to z1 by a map that depends on the particles
    before the move alone, so that it can be inverted. Its weight is
    W p(y | z1) p(z1 | z_{t-1}) |det dz1/dz0| / p(z0 | z_{t-1}) (Li & Coates 2017), which corrects whatever
    the flow leaves out.

    With `local`, the model is linearised along the flow of each particle's mean c, and the prior of the flow
    is the particle's own, p(z_t | z_{t-1}); for a linear-Gaussian model that is the fully adapted proposal.
    Otherwise one flow with the predicted moments of the set moves all particles.

    Arguments:
        local: whether each particle has its own flow (LEDH), or all share one (EDH).
        steps: how many steps the flow takes; an affine model with normal noise needs one, and takes one.

    Raises:
        CredoError: `steps` is below 1; or (later) the noise of the dynamics is not normal and known.

    Cost of a step of the flow: a Jacobian and C^3, for each particle where `local`; and N C P. Exact as N
    grows.

    Example:
        >>> import credo
        >>> model = credo.Model(lambda z, x: jnp.sin(z), credo.Normal(0.1))
        >>> walk = credo.RandomWalk(0.1)
        >>> learner = credo.particle_filter(model, 50, walk, proposal=FlowProposal())
        >>> belief, info = learner.step(learner.init(jnp.zeros(1)), None, jnp.full(1, 0.8))
        >>> bool(info.ok)
        True
    """

    local: bool = static_field(default=True)
    steps: int = static_field(default=10)
    looks_back = True

    def __post_init__(self) -> None:
        require_integer("steps", self.steps, 1)

    def propose(
        self, learner: ParticleLearner, belief: Particles, x: PyTree, y: PyTree, weight: Array, key: Array
    ) -> tuple[Particles, Array, Array]:
        """The particles after the flow, with their weights."""
        observed = Observed(learner, belief, x, y, weight)
        grid = stations(self.steps, is_straight(learner, belief, x))
        values, log_ratios = (self._local if self.local else self._shared)(observed, key, grid)
        return observed.weigh(values, belief.log_weights + log_ratios)

    def _local(self, observed: Observed, key: Array, grid: np.ndarray) -> tuple[Array, Array]:
        belief = observed.belief
        assert belief.parents is not None

        def one(parent: Array, key: Array) -> tuple[Array, Array]:
            centre, root = distribution_of(observed.learner, belief, parent)
            before = jax.random.normal(key, (1, root.shape[1]), parent.dtype)
            start = jnp.zeros(root.shape[1], parent.dtype)
            _, after, log_det = journey(observed.evidence, centre, root, start, before, grid)
            return centre + root @ after[0], log_det + 0.5 * jnp.sum(before**2 - after**2)

        return jax.vmap(one)(belief.parents, jax.random.split(key, belief.values.shape[0]))

    def _shared(self, observed: Observed, key: Array, grid: np.ndarray) -> tuple[Array, Array]:
        learner = observed.learner
        belief = observed.belief
        assert belief.parents is not None and belief.step is not None
        around = predicted_moments(learner, belief)
        start = jnp.zeros_like(around.mean)
        white = around.whiten(belief.values)
        _, u, log_det = journey(observed.evidence, around.mean, around.root, start, white, grid)
        values = around.color(u)
        moved = belief.step > 0
        dt = None if learner.dynamics.timeless else jnp.where(moved, belief.step, 1.0)

        def log_move(later: Array, parent: Array) -> Array:
            before = jnp.maximum(belief.t - 1, 0)
            return learner.dynamics.log_transition(later, parent, belief.anchor, before, dt, belief.unravel)

        log_moves = jax.vmap(log_move)
        ratios = log_moves(values, belief.parents) - log_moves(belief.values, belief.parents) + log_det
        # where no time has passed, the particles of the prior are weighed as they are
        return jnp.where(moved, values, belief.values), jnp.where(moved, ratios, 0.0)


def daum_huang(
    model: Model,
    particles: int = 256,
    dynamics: Dynamics | None = None,
    *,
    local: bool = False,
    weighted: bool = False,
    steps: int = 10,
    threshold: ArrayLike = 0.5,
) -> DaumHuang | ParticleFilter:
    """The flow of Daum and Huang, without weights or as the proposal of a particle filter.

    Arguments:
        model, particles: as for `DaumHuang`.
        dynamics: a `Transition`, or any other dynamics; None stands still.
        local: whether each particle has its own linearisation (LEDH), or all share one (EDH).
        weighted: whether particles are weighed by the density that the flow gives them; see `FlowProposal`.
        steps: how many steps the flow takes.
        threshold: the share of N below which the effective sample size leads to resampling, where weighted.

    Returns:
        The learner.

    Example:
        >>> import credo
        >>> model = credo.Model(lambda z, x: z, credo.Normal(0.1))
        >>> type(daum_huang(model)).__name__, type(daum_huang(model, weighted=True)).__name__
        ('DaumHuang', 'ParticleFilter')
    """
    dynamics = Static() if dynamics is None else dynamics
    if weighted:
        return ParticleFilter(model, particles, dynamics, FlowProposal(local, steps), threshold=threshold)
    return DaumHuang(model, particles, dynamics, local, steps)
