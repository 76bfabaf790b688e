"""A belief rebuilt at every step from weighted past observations (CPV; Bayes augmented with memory)."""

from __future__ import annotations

from typing import Generic

import jax
import jax.numpy as jnp
import numpy as np

from credo.adapt.nested import Around, B, at_time, floating, renewed
from credo.adapt.wrapper import Proposal, Wrapper
from credo.core.errors import (
    CredoError,
    require_integer,
    require_interval,
    require_nonnegative,
    require_positive,
)
from credo.core.fields import field
from credo.core.records import record, replace, static_field
from credo.core.trees import as_like, blank_row
from credo.core.types import Array, ArrayLike, Key, PyTree

__all__ = ["Memory", "WeightedPast"]


@record
class Memory(Around[B], Generic[B]):
    """The latest N observations with weights, and the prior updated with them.

    Attributes:
        belief: the prior, updated with every remembered observation by its weight.
        prior: the belief before any data.
        xs, ys: the remembered observations, with a leading axis N; the newest is last.
        logits: the logits of their weights (N,); a weight is sigmoid(logit).
        filled: the number of remembered observations.
        t: how many times `predict` has been called.

    Example:
        >>> import credo
        >>> belief = WeightedPast(credo.BetaBernoulli(), memory=3).init(example=(None, jnp.zeros(())))
        >>> belief.weights.tolist()
        [0.0, 0.0, 0.0]
    """

    belief: B
    prior: B
    xs: PyTree = field(raw=True)
    ys: PyTree = field("observations")
    logits: Array = field(raw=True)
    filled: Array = field("nonnegative")
    t: Array

    def init_arguments(self) -> dict[str, PyTree]:
        """The arguments of `init` that such a belief began from: an observation, by its shapes."""
        return {"example": blank_row((self.xs, self.ys), np.ndim(self.logits))}

    @property
    def weights(self) -> Array:
        """The weights (N,); 0 if there is no observation yet."""
        size = self.logits.shape[0]
        return jnp.where(
            jnp.arange(size, dtype=jnp.int32) >= size - self.filled, jax.nn.sigmoid(self.logits), 0.0
        )


@record
class WeightedPast(Wrapper[Memory[B], B], Generic[B]):
    """A learner that remembers N observations and weighs each by whether it is still valid.

    The belief is prior x prod_i p(y_i | x_i, theta)^(w_i). When y arrives, the weights climb the log density
    log p(y | x, w) - penalty * sum_i (1 - w_i) by gradient steps on their logits; then y joins with weight
    `entry`. Source: Nassar et al. 2022 (BAM, arXiv 2206.06650); BONE's CPV-weighted.

    Arguments:
        learner: any differentiable learner that needs no key. Its own dynamics are not used, since the
            weights account for time.
        memory: how many observations N to remember.
        learning_rate, iterations: the rate and number of the gradient steps; 0 iterations keep all weights at
            `entry`.
        entry: the weight of a new observation, in (0, 1).
        penalty: the cost in nats of leaving out one observation, at least 0, as a prior against forgetting.

    Raises:
        CredoError: a number is outside its range, or `init` lacks `example`.

    Given the weights, the belief is exact for conjugate and linear-Gaussian learners. Observations that fall
    out of the memory are forgotten. The weights are point estimates, made with y itself.

    Cost: N inner updates and their gradient for each iteration, and N more.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> inner = credo.extended_kalman(credo.Model(lambda w, x: x @ w, credo.Normal(0.1)))
        >>> learner = WeightedPast(inner, memory=4)
        >>> belief = learner.init(jnp.zeros(2), example=(jnp.zeros(2), jnp.zeros(())))
        >>> belief, info = learner.step(belief, jnp.ones(2), jnp.asarray(1.0))
        >>> bool(info.ok)
        True
    """

    memory: int = static_field(default=20)
    learning_rate: ArrayLike = 1.0
    iterations: int = static_field(default=5)
    entry: ArrayLike = 0.95
    penalty: ArrayLike = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.memory, int):
            require_integer("memory", self.memory, 1)
            require_integer("iterations", self.iterations, 0)
        require_positive("learning_rate", self.learning_rate)
        require_nonnegative("penalty", self.penalty)
        require_interval("entry", self.entry, 0.0, 1.0, closed=False)

    def init(
        self,
        params: PyTree = None,
        *,
        var: PyTree = None,
        example: tuple[PyTree, PyTree] | None = None,
        **others: PyTree,
    ) -> Memory[B]:
        """The inner learner's first belief, and an empty memory.

        Arguments:
            params, var, others: as for the inner learner.
            example: a pair (x, y) of the shapes and dtypes of the stream; x may be None.

        Raises:
            CredoError: there is no `example`.
        """
        if not isinstance(example, tuple) or len(example) != 2:
            raise CredoError("init needs example=(x, y), one row of the stream, to lay out the memory.")
        empty = super().init(params, var=var, **others)
        xs, ys = jax.tree.map(
            lambda leaf: jnp.zeros((self.memory, *jnp.shape(leaf)), jnp.asarray(leaf).dtype), example
        )
        return replace(empty, xs=xs, ys=ys)

    def wrap(self, prior: B) -> Memory[B]:
        """A memory that is laid out for no observations."""
        logits = jnp.zeros(self.memory, floating(prior))
        zero = jnp.zeros((), jnp.int32)
        return Memory(prior, prior, None, None, logits, zero, zero)

    def advance(self, belief: Memory[B], dt: ArrayLike | None) -> Memory[B]:
        """Advance the clock. Nothing moves, since the weights account for time."""
        return replace(belief, belief=at_time(belief.belief, belief.belief.t + 1))

    def _believe(self, belief: Memory[B], logits: Array) -> B:
        """The prior updated with the remembered observations, by their weights."""
        weights = replace(belief, logits=logits).weights

        def take(inner: B, row: tuple[PyTree, PyTree, Array]) -> tuple[B, None]:
            x, y, weight = row
            return self.learner.measurement_update(inner, x, y, weight, None)[0], None

        start = renewed(belief.prior, belief.belief.t)
        return jax.lax.scan(take, start, (belief.xs, belief.ys, weights))[0]

    def _reweigh(self, belief: Memory[B], x: PyTree, y: PyTree, key: Key | None) -> Array:
        """The logits after some gradient steps on the log density of y."""

        def score(logits: Array) -> Array:
            predicted = self.learner.predictive(self._believe(belief, logits), x, None, None, key)
            cost = as_like(self.penalty, logits) * jnp.sum(
                jnp.where(belief.weights > 0, 1 - jax.nn.sigmoid(logits), 0.0)
            )
            return predicted.log_prob(y).astype(logits.dtype) - cost

        def climb(_: int, logits: Array) -> Array:
            slope: Array = jax.grad(score)(logits)
            rate = as_like(self.learning_rate, logits)
            return jnp.clip(logits + rate * jnp.where(jnp.isfinite(slope), slope, 0.0), -10.0, 10.0)

        logits: Array = jax.lax.fori_loop(0, self.iterations, climb, belief.logits)
        return logits

    def propose(
        self, belief: Memory[B], x: PyTree, y: PyTree, weight: ArrayLike, key: Key | None
    ) -> Proposal[Memory[B]]:
        """Weigh the past by how well it predicts y, then remember y."""
        before = self.learner.predictive(belief.belief, x, None, None, key).log_prob(y)
        _, info = self.learner.measurement_update(belief.belief, x, y, weight, key)
        logits = self._reweigh(belief, x, y, key) if self.iterations else belief.logits
        entry = as_like(self.entry, logits)

        def push(rows: Array, row: ArrayLike) -> Array:
            return jnp.concatenate([rows[1:], jnp.asarray(row, rows.dtype)[None]])

        new = replace(
            belief,
            xs=jax.tree.map(push, belief.xs, x),
            ys=jax.tree.map(push, belief.ys, y),
            logits=push(logits, jnp.log(entry) - jnp.log1p(-entry)),
            filled=jnp.minimum(belief.filled + 1, self.memory),
        )
        new = replace(new, belief=self._believe(new, new.logits))
        return Proposal(new, info.log_evidence, info.ok & jnp.isfinite(before), new.weights)
