"""One belief that is pulled back to the prior as far as the latest observation asks for it (RL[1]-OUPR*)."""

from __future__ import annotations

from typing import Generic

import jax
import jax.numpy as jnp

from credo.adapt.changepoints.hazards import ConstantHazard, Hazard, HazardLike, as_hazard
from credo.adapt.nested import Around, B, floating, renewed
from credo.adapt.priors import descend
from credo.adapt.questions import Answer, Question, weighted
from credo.adapt.wrapper import Proposal, Wrapper
from credo.core.errors import CredoError, require_interval
from credo.core.fields import field
from credo.core.records import record, replace
from credo.core.trees import as_like, select
from credo.core.types import Array, ArrayLike, Key, PyTree
from credo.dynamics import OrnsteinUhlenbeck
from credo.learners import Learner

__all__ = ["Resettable", "SoftReset"]


@record
class Resettable(Around[B], Generic[B]):
    """A belief that may go back to its prior.

    Attributes:
        belief: the belief if nothing has changed.
        prior: the belief before any data.
        run_length: the steps since the last full reset; -1 before any observation.
        retention: the share that was kept at the latest update, from 1 (all) to 0 (a full reset).
        change: P(change before the next observation) on a predicted belief, and otherwise 0.
        t: how many times `predict` has been called.

    Example:
        >>> import credo
        >>> belief = SoftReset(credo.BetaBernoulli()).init()
        >>> int(belief.run_length), float(belief.retention)
        (-1, 1.0)
    """

    belief: B
    prior: B
    run_length: Array = field("run length")
    retention: Array = field("share")
    change: Array = field("share")
    t: Array


@record
class SoftReset(Wrapper[Resettable[B], B], Generic[B]):
    """A learner that goes back to its prior in proportion to the odds that the world changed.

    With p_r = p(y | x, belief), p_0 = p(y | x, prior) and n = sigmoid(log p_r - log p_0 + log((1 - H) / H)),
    the belief N(m, S) becomes N(n m + (1 - n) m0, n^2 S + (1 - n^2) S0) where n exceeds `floor`, else the
    prior. Then it learns y. Source: Duran-Martin et al. 2024 (BONE, arXiv 2411.10153), RL[1]-OUPR*. Their
    code pulls the mean to zero and the covariance to a constant; here both go to the prior, and the
    observation is learned after a full reset, too.

    Arguments:
        learner: a learner with a Gaussian or conjugate belief.
        hazard: P(change) before an observation: a number, a function of the run length, or a hazard that does
            not count.
        floor: a share in [0, 1]; where less than this would be kept, nothing is.

    Raises:
        CredoError: the hazard is learned, or a number is outside its range.

    The method is a heuristic: it uses y twice, to choose n and to learn. The forecast is the mixture (1 - H)
        p_r + H p_0,
    whose density is the evidence. Cost: one inner update, two forecasts, and the family's move to its prior
    (P^3 for `Full()`, P^2 for `Full("dense")`).

    Example:
        >>> import credo, jax.numpy as jnp
        >>> learner = SoftReset(credo.extended_kalman(credo.Model(lambda w, x: x @ w, credo.Normal(0.1))))
        >>> belief, info = learner.step(learner.init(jnp.zeros(2)), jnp.ones(2), 1.0)
        >>> bool(info.ok)
        True
    """

    hazard: HazardLike = 0.05
    floor: ArrayLike = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        hazard = as_hazard(self.hazard)
        object.__setattr__(self, "hazard", hazard)
        if hazard.counts:
            raise CredoError("hazard must not be learned here: there is one hypothesis; use RunLength.")
        if isinstance(hazard, ConstantHazard):
            require_interval("hazard", hazard.hazard, 0.0, 1.0)
        require_interval("floor", self.floor, 0.0, 1.0)

    @property
    def _hazard(self) -> Hazard:
        return as_hazard(self.hazard)

    def wrap(self, prior: B) -> Resettable[B]:
        """The inner learner's first belief, which is also what it goes back to."""
        whole = jnp.zeros((), jnp.int32)
        kind = floating(prior)
        return Resettable(prior, prior, whole - 1, jnp.ones((), kind), jnp.zeros((), kind), whole)

    def advance(self, belief: Resettable[B], dt: ArrayLike | None) -> Resettable[B]:
        """Advance the belief by a step of time, in which the world may change."""
        kind = belief.change.dtype
        length = jnp.maximum(belief.run_length, 0).astype(kind)
        t = jnp.maximum(belief.t, 1).astype(kind)
        change = self._hazard.probability(length, jnp.zeros((), kind), t)
        if dt is not None:
            change = 1.0 - (1.0 - change) ** as_like(dt, change)
        change = jnp.where(belief.run_length < 0, 0.0, change)
        return replace(belief, belief=self.learner.time_update(belief.belief, dt), change=change)

    def ask(self, belief: Resettable[B], x: PyTree, question: Question) -> Answer:
        answers = jax.vmap(lambda inner: question(self.learner, inner, x))(_both(belief))
        return weighted(answers, jnp.log(jnp.stack([1.0 - belief.change, belief.change])))

    def pick(self, belief: Resettable[B], key: Array) -> tuple[Learner[B], B]:
        return self.learner, select(jax.random.bernoulli(key, belief.change), _fresh(belief), belief.belief)

    def propose(
        self, belief: Resettable[B], x: PyTree, y: PyTree, weight: ArrayLike, key: Key | None
    ) -> Proposal[Resettable[B]]:
        """Go back to the prior as far as y suggests, then learn y."""
        fresh = _fresh(belief)
        # The scores are those of the inner learner's own update, whatever its curvature.
        _, infos = jax.vmap(lambda one: self.learner.measurement_update(one, x, y, weight, key))(
            _both(belief)
        )
        scores = jnp.where(infos.ok, infos.log_evidence, -jnp.inf).astype(belief.change.dtype)
        stay = jnp.log1p(-belief.change)
        leave = jnp.log(belief.change)
        logs = jnp.stack([stay, leave]) + scores
        log_evidence = jnp.logaddexp(logs[0], logs[1])
        keep = jnp.where(jnp.isfinite(log_evidence), jax.nn.softmax(logs)[0], 1.0)
        full = keep <= as_like(self.floor, keep)
        pull = OrnsteinUhlenbeck(jnp.where(full, 1.0, keep))
        blended = descend(pull, belief.belief, belief.prior, None)
        blended = select(keep == 1, belief.belief, blended)
        start = select(full, fresh, blended)
        learned, info = self.learner.measurement_update(start, x, y, weight, key)
        new = replace(
            belief,
            belief=learned,
            run_length=jnp.where(full, 0, belief.run_length + 1),
            retention=jnp.where(full, 0.0, keep),
            change=jnp.zeros_like(belief.change),
        )
        return Proposal(new, log_evidence, info.ok & jnp.isfinite(log_evidence), 1.0 - keep)


def _fresh(belief: Resettable[B]) -> B:
    """The prior at the present time."""
    return renewed(belief.prior, belief.belief.t)


def _both(belief: Resettable[B]) -> B:
    """The belief and the prior, as one belief with a leading axis."""
    both: B = jax.tree.map(lambda a, b: jnp.stack([a, b]), belief.belief, _fresh(belief))
    return both
