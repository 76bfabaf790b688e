"""One belief that is pulled back to the prior as far as the latest observation asks for it (RL[1]-OUPR*)."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from credo.adapt.hazards import ConstantHazard, as_hazard
from credo.adapt.hypotheses import floating
from credo.adapt.priors import descend
from credo.adapt.wrapped import Around
from credo.core.errors import CredoError, require_interval
from credo.core.keys import as_key
from credo.core.records import record, replace
from credo.core.trees import as_like, select
from credo.dynamics import OrnsteinUhlenbeck
from credo.learners import Info, Learner
from credo.likelihoods import Predictive, WeightedPredictive

__all__ = ["Resettable", "SoftReset"]


@record
class Resettable(Around):
    """A belief that may go back to its prior.

    Attributes:
        belief: what is believed if nothing changed.
        prior: the belief before any data.
        run_length: steps since the last full reset.
        retention: how much was kept at the latest update: 1 all, 0 a full reset.
        change: on a predicted belief, P(change before the next observation); else 0.
        t: how many times `predict` has been called.
    """

    belief: Any
    prior: Any
    run_length: jax.Array
    retention: jax.Array
    change: jax.Array
    t: jax.Array


@record
class SoftReset(Learner):
    """A learner that goes back to its prior in proportion to the odds that the world changed.

    With p_r = p(y | x, belief), p_0 = p(y | x, prior) and n = sigmoid(log p_r - log p_0 + log((1 - H) / H)),
    the belief N(m, S) becomes N(n m + (1 - n) m0, n^2 S + (1 - n^2) S0) where n exceeds `floor`, else the
    prior; then it learns y. Source: Duran-Martin et al. 2024 (BONE, arXiv 2411.10153), RL[1]-OUPR*. Their
    code pulls the mean to zero and the covariance to a constant; here both go to the prior, and the
    observation is learned after a full reset, too.

    Arguments:
        learner: a learner with a Gaussian or conjugate belief.
        hazard: P(change) before an observation: a number, a function of the run length, or a hazard that does
            not count.
        floor: in [0, 1]; where less than this would be kept, nothing is.

    A heuristic: it uses y twice, to choose n and to learn. The forecast is the mixture (1 - H) p_r + H p_0,
    whose density is the evidence. Cost: one inner update, two forecasts, and the family's move to its prior
    (P^3 for `Full()`, P^2 for `Full("dense")`).

    Example:
        >>> import credo, jax.numpy as jnp
        >>> learner = SoftReset(credo.extended_kalman(credo.Model(lambda w, x: x @ w, credo.Normal(0.1))))
        >>> belief, info = learner.step(learner.init(jnp.zeros(2)), jnp.ones(2), 1.0)
        >>> bool(info.ok)
        True
    """

    learner: Learner
    hazard: Any = 0.05
    floor: Any = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "hazard", as_hazard(self.hazard))
        if self.hazard.counts:
            raise CredoError("hazard must not be learned here: there is one hypothesis; use RunLength.")
        if isinstance(self.hazard, ConstantHazard):
            require_interval("hazard", self.hazard.rate, 0.0, 1.0)
        require_interval("floor", self.floor, 0.0, 1.0)

    def init(self, params: Any = None, *, var: Any = 1.0, **given: Any) -> Resettable:
        """The inner learner's first belief."""
        prior = self.learner.init(params, var=var, **given)
        whole, kind = jnp.zeros((), jnp.int32), floating(prior)
        return Resettable(prior, prior, whole - 1, jnp.ones((), kind), jnp.zeros((), kind), whole)

    def time_update(self, belief: Resettable, dt: Any) -> Resettable:
        kind = belief.change.dtype
        length = jnp.maximum(belief.run_length, 0).astype(kind)
        t = jnp.maximum(belief.t, 1).astype(kind)
        change = self.hazard.probability(length, jnp.zeros((), kind), t)
        if dt is not None:
            change = 1.0 - (1.0 - change) ** as_like(dt, change)
        change = jnp.where(belief.run_length < 0, 0.0, change)
        moved = self.learner.time_update(belief.belief, dt)
        return replace(belief, belief=moved, change=change, t=belief.t + 1)

    def predictive(
        self, belief: Resettable, x: Any, method: str | None, samples: int | None, key: Any
    ) -> Predictive:
        both = jax.tree.map(lambda a, b: jnp.stack([a, b]), belief.belief, self._fresh(belief))
        parts = jax.vmap(lambda one: self.learner.predictive(one, x, method, samples, key))(both)
        return WeightedPredictive(parts, jnp.log(jnp.stack([1.0 - belief.change, belief.change])))

    def _fresh(self, belief: Resettable) -> Any:
        return replace(belief.prior, t=belief.belief.t)

    def measurement_update(
        self, belief: Resettable, x: Any, y: Any, weight: Any, key: Any
    ) -> tuple[Resettable, Info]:
        fresh = self._fresh(belief)
        both = jax.tree.map(lambda a, b: jnp.stack([a, b]), belief.belief, fresh)
        # The scores are those of the inner learner's own update, whatever its curvature.
        _, told = jax.vmap(lambda one: self.learner.measurement_update(one, x, y, weight, key))(both)
        scores = jnp.where(told.ok, told.log_evidence, -jnp.inf).astype(belief.change.dtype)
        stay, leave = jnp.log1p(-belief.change), jnp.log(belief.change)
        logs = jnp.stack([stay, leave]) + scores
        log_evidence = jnp.logaddexp(logs[0], logs[1])
        keep = jnp.where(jnp.isfinite(log_evidence), jax.nn.softmax(logs)[0], 1.0)
        full = keep <= as_like(self.floor, keep)
        blended = descend(OrnsteinUhlenbeck(jnp.where(full, 1.0, keep)), belief.belief, belief.prior, None)
        blended = select(keep == 1, belief.belief, blended)
        start = select(full, fresh, blended)
        learned, info = self.learner.measurement_update(start, x, y, weight, key)
        ok = info.ok & jnp.isfinite(log_evidence)
        new = replace(
            belief,
            belief=learned,
            run_length=jnp.where(full, 0, belief.run_length + 1),
            retention=jnp.where(full, 0.0, keep),
            change=jnp.zeros_like(belief.change),
        )
        used = ok & jnp.any(jnp.asarray(weight) != 0)
        return select(used, new, belief), Info(jnp.where(used, log_evidence, 0.0), ok, 1.0 - keep)

    def draws(self, belief: Resettable, key: Any, shape: tuple[int, ...]) -> Any:
        return self.learner.draws(belief.belief, as_key(key), shape)
