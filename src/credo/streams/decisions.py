"""Decisions along a stream: what is done for each row before its label comes, and what that costs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, get_args

import jax
import jax.numpy as jnp

from credo.core.errors import CredoError, require_choice, require_integer, require_interval
from credo.core.records import record, static_field
from credo.core.types import Array, ArrayLike, PyTree
from credo.learners.decide import Loss, LossName, decide
from credo.likelihoods import Predictive, PredictiveRows

__all__ = ["Decision", "as_decision"]

DecisionRule: TypeAlias = Callable[[Predictive, Any, Array | None], ArrayLike]
"""`rule(forecast, belief, key)`, an action."""


@record
class Decision:
    """A decision for every row of a stream: the loss that judges it, and how it is taken.

    Arguments:
        loss: "squared", "absolute", "zero-one", "pinball", or a function `loss(action, y)`, a scalar.
        actions: the candidate actions (A, ...) of a loss function; by default a classifier's classes.
        level: the quantile of "pinball", in (0, 1).
        samples: how many draws of y estimate the expected loss of a function over a number.
        rule: your own decision rule in place of `credo.decide`: `rule(forecast, belief, key)`, an action. The
            belief is the one before the row; the key is None if `evaluate` was given none.

    Raises:
        CredoError: the loss has another name, the level is not in (0, 1), or samples is below 1.

    Example:
        >>> import credo
        >>> decision = Decision("pinball", level=0.9)
        >>> action = decision.take(credo.Normal(1.0).plugin(jnp.zeros(1)), None, None)
        >>> round(float(action), 3), round(float(decision.cost(action, jnp.asarray(2.0))), 3)
        (1.282, 0.647)
    """

    loss: LossName | Loss = static_field(default="squared")
    actions: ArrayLike | None = None
    level: ArrayLike = 0.5
    samples: int = static_field(default=1000)
    rule: DecisionRule | None = static_field(default=None)

    def __post_init__(self) -> None:
        if not callable(self.loss):
            require_choice("loss", self.loss, get_args(LossName))
        require_interval("level", self.level, 0.0, 1.0, closed=False)
        require_integer("samples", self.samples, 1)
        if self.rule is not None and not callable(self.rule):
            raise CredoError(f"rule must be a function of (forecast, belief, key); got {self.rule!r}.")

    def take(self, forecast: Predictive, belief: PyTree, key: Array | None) -> Array:
        """The action for one row, or for each row of a joint model.

        Arguments:
            forecast: the forecast of the row.
            belief: the belief before the row.
            key: the key of draws; None if there is none.
        """
        if isinstance(forecast, PredictiveRows):
            count = jax.tree.leaves(forecast.rows)[0].shape[0]
            keys = None if key is None else jax.random.split(key, count)
            actions: Array = jax.vmap(lambda row, one: self.take(row, belief, one))(forecast.rows, keys)
            return actions
        if self.rule is not None:
            return jnp.asarray(self.rule(forecast, belief, key))
        return decide(
            forecast, self.loss, actions=self.actions, level=self.level, samples=self.samples, key=key
        )

    def cost(self, action: Array, y: Array) -> Array:
        """The loss of an action when y comes, a scalar; the sum over outputs if there are several.

        Arguments:
            action: what `take` gave.
            y: what came: a whole number for a classifier.
        """
        if callable(self.loss):
            return jnp.reshape(self.loss(action, y), ())
        same = jnp.asarray(y).astype(action.dtype)
        if self.loss == "zero-one":
            return jnp.any(action != same).astype(jnp.result_type(float))
        gap = same - action
        if self.loss == "squared":
            return jnp.sum(gap**2)
        if self.loss == "absolute":
            return jnp.sum(jnp.abs(gap))
        level = jnp.asarray(self.level, gap.dtype)
        return jnp.sum(jnp.maximum(level * gap, (level - 1.0) * gap))


def as_decision(loss: LossName | Loss | Decision | None) -> Decision | None:
    """The decision that `evaluate(loss=...)` asks for; a name or a function stands for `Decision(loss)`."""
    if loss is None or isinstance(loss, Decision):
        return loss
    return Decision(loss)
