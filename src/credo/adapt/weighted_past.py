"""A belief made anew from weighted past observations (CPV; Bayes augmented with memory)."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from credo.adapt.hypotheses import floating
from credo.adapt.wrapped import Around
from credo.core.errors import CredoError, require_integer, require_interval, require_positive
from credo.core.keys import as_key
from credo.core.records import record, replace, static_field
from credo.core.trees import as_like, select
from credo.learners import Info, Learner
from credo.likelihoods import Predictive

__all__ = ["Memory", "WeightedPast"]


@record
class Memory(Around):
    """The latest N observations with weights, and what they make of the prior.

    Attributes:
        belief: the prior, updated with every remembered observation by its weight.
        prior: the belief before any data.
        xs, ys: the remembered observations, with a leading axis N; the newest is last.
        logits: of their weights (N,); the weight is sigmoid(logit).
        filled: how many there are.
        t: how many times `predict` has been called.
    """

    belief: Any
    prior: Any
    xs: Any
    ys: Any
    logits: jax.Array
    filled: jax.Array
    t: jax.Array

    @property
    def weights(self) -> jax.Array:
        """The weights (N,); 0 where there is no observation yet."""
        size = self.logits.shape[0]
        return jnp.where(
            jnp.arange(size, dtype=jnp.int32) >= size - self.filled, jax.nn.sigmoid(self.logits), 0.0
        )


@record
class WeightedPast(Learner):
    """A learner that remembers N observations and weighs each by whether it still holds.

    The belief is prior x prod_i p(y_i | x_i, theta)^(w_i). When y arrives, the weights climb the log density
    log p(y | x, w) - penalty * sum_i (1 - w_i) by gradient steps on their logits; then y joins with weight
    `entry`. Source: Nassar et al. 2022 (BAM, arXiv 2206.06650); BONE's CPV-weighted.

    Arguments:
        learner: any differentiable learner that needs no key; its own dynamics are not used, since time is in
            the weights.
        memory: how many observations N to remember.
        rate, iterations: of the gradient steps; 0 iterations keep all weights at `entry`.
        entry: the weight of a new observation, in (0, 1).
        penalty: at least 0: nats that leaving out one observation costs, a prior against forgetting.

    Exact given the weights for conjugate and linear-Gaussian learners; what falls out of memory is
    forgotten. The weights are point estimates, made with y itself. Cost: N inner updates and their gradient
    an iteration, and N more.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> inner = credo.extended_kalman(credo.Model(lambda w, x: x @ w, credo.Normal(0.1)))
        >>> learner = WeightedPast(inner, memory=4)
        >>> belief = learner.init(jnp.zeros(2), example=(jnp.zeros(2), jnp.zeros(())))
        >>> belief, info = learner.step(belief, jnp.ones(2), jnp.asarray(1.0))
        >>> bool(info.ok)
        True
    """

    learner: Learner
    memory: int = static_field(default=20)
    rate: Any = 1.0
    iterations: int = static_field(default=5)
    entry: Any = 0.95
    penalty: Any = 0.5

    def __post_init__(self) -> None:
        if isinstance(self.memory, int):
            require_integer("memory", self.memory, 1)
            require_integer("iterations", self.iterations, 0)
        require_positive("rate", self.rate)
        require_interval("entry", self.entry, 0.0, 1.0, closed=False)

    def init(self, params: Any = None, *, var: Any = 1.0, example: Any = None, **given: Any) -> Memory:
        """The inner learner's first belief, and an empty memory.

        Arguments:
            params, var, given: as for the inner learner.
            example: a pair (x, y) of the shapes and dtypes of the stream; x may be None.
        """
        if not isinstance(example, tuple) or len(example) != 2:
            raise CredoError("init needs example=(x, y), one row of the stream, to lay out the memory.")
        prior = self.learner.init(params, var=var, **given)
        xs, ys = jax.tree.map(
            lambda leaf: jnp.zeros((self.memory, *jnp.shape(leaf)), jnp.asarray(leaf).dtype), example
        )
        logits, zero = jnp.zeros(self.memory, floating(prior)), jnp.zeros((), jnp.int32)
        return Memory(prior, prior, xs, ys, logits, zero, zero)

    def time_update(self, belief: Memory, dt: Any) -> Memory:
        inner = replace(belief.belief, t=belief.belief.t + 1)
        return replace(belief, belief=inner, t=belief.t + 1)

    def predictive(
        self, belief: Memory, x: Any, method: str | None, samples: int | None, key: Any
    ) -> Predictive:
        return self.learner.predictive(belief.belief, x, method, samples, key)

    def _believe(self, belief: Memory, logits: jax.Array) -> Any:
        """The prior with the remembered observations, weighed."""
        weights = replace(belief, logits=logits).weights

        def take(inner: Any, row: Any) -> tuple[Any, None]:
            x, y, weight = row
            return self.learner.measurement_update(inner, x, y, weight, None)[0], None

        start = replace(belief.prior, t=belief.belief.t)
        return jax.lax.scan(take, start, (belief.xs, belief.ys, weights))[0]

    def measurement_update(
        self, belief: Memory, x: Any, y: Any, weight: Any, key: Any
    ) -> tuple[Memory, Info]:
        before = self.learner.predictive(belief.belief, x, None, None, key).log_prob(y)
        _, told = self.learner.measurement_update(belief.belief, x, y, weight, key)

        def score(logits: jax.Array) -> jax.Array:
            predicted = self.learner.predictive(self._believe(belief, logits), x, None, None, key)
            cost = as_like(self.penalty, logits) * jnp.sum(
                jnp.where(belief.weights > 0, 1 - jax.nn.sigmoid(logits), 0.0)
            )
            return predicted.log_prob(y).astype(logits.dtype) - cost

        def climb(_: int, logits: jax.Array) -> jax.Array:
            slope = jax.grad(score)(logits)
            moved = logits + as_like(self.rate, logits) * jnp.where(jnp.isfinite(slope), slope, 0.0)
            return jnp.clip(moved, -10.0, 10.0)

        logits = (
            jax.lax.fori_loop(0, self.iterations, climb, belief.logits) if self.iterations else belief.logits
        )
        entry = as_like(self.entry, logits)

        def push(rows: jax.Array, row: Any) -> jax.Array:
            return jnp.concatenate([rows[1:], jnp.asarray(row, rows.dtype)[None]])

        new = replace(
            belief,
            xs=jax.tree.map(push, belief.xs, x),
            ys=jax.tree.map(push, belief.ys, y),
            logits=push(logits, jnp.log(entry) - jnp.log1p(-entry)),
            filled=jnp.minimum(belief.filled + 1, self.memory),
        )
        new = replace(new, belief=self._believe(new, new.logits))
        ok = told.ok & jnp.isfinite(before)
        used = ok & jnp.any(jnp.asarray(weight) != 0)
        return select(used, new, belief), Info(jnp.where(used, told.log_evidence, 0.0), ok, new.weights)

    def draws(self, belief: Memory, key: Any, shape: tuple[int, ...]) -> Any:
        return self.learner.draws(belief.belief, as_key(key), shape)
