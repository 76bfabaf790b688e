"""Dropout as an uncertainty: a network that is trained, and asked, with random hidden units left out."""

from __future__ import annotations

from typing import Any, Generic

import jax
import jax.numpy as jnp

from credo.adapt.nested import Around, B
from credo.adapt.wrapper import Proposal, Wrapper
from credo.core.errors import CredoError, require_integer
from credo.core.keys import as_key
from credo.core.records import record, replace, static_field
from credo.core.trees import as_like
from credo.core.types import Array, ArrayLike, Key, PyTree
from credo.learners import Learner
from credo.likelihoods import DrawnExpectation, Expectation
from credo.models import MLP

__all__ = ["Dropout", "DropoutBelief", "DropoutNetwork"]


@record
class DropoutNetwork:
    """A perceptron whose hidden units can be left out at random.

    With a key, each hidden unit is 0 with probability `rate`, and the others are divided by 1 - rate, so that
    the mean of what the next layer sees stays the same. Without one it is the perceptron itself.

    Arguments:
        network: the perceptron.
        rate: the probability of leaving out a unit, in [0, 1).
        key: the raw data of the key; None leaves nothing out.

    Example:
        >>> import credo
        >>> net = DropoutNetwork(credo.MLP(outputs=2, hidden=(8,)), 0.5)
        >>> params = net.network.init(0, (3,))
        >>> bool(jnp.all(net(params, jnp.ones(3)) == net.network(params, jnp.ones(3))))
        True
    """

    network: MLP
    rate: ArrayLike = 0.1
    key: Array | None = None

    def __post_init__(self) -> None:
        if isinstance(self.rate, int | float) and not 0 <= self.rate < 1:
            raise CredoError(f"rate must be in [0, 1); got {self.rate}.", field="rate")

    def __call__(self, params: Any, x: PyTree) -> Array:
        """The outputs (C,) for one row x."""
        if self.key is None:
            return self.network(params, x)
        keys = jax.random.split(jax.random.wrap_key_data(self.key), len(params))

        # a hidden unit is left out where the row of weights that leads on from it is 0
        def thin(layer: dict[str, Array], key: Array) -> dict[str, Array]:
            weights = layer["w"]
            share = 1.0 - as_like(self.rate, weights)
            kept = jax.random.bernoulli(key, share, (weights.shape[0],)).astype(weights.dtype) / share
            return {**layer, "w": weights * kept[:, None]}

        return self.network([params[0], *map(thin, params[1:], keys[1:])], x)


@record
class DropoutBelief(Around[B], Generic[B]):
    """The belief inside, and the clock.

    Attributes:
        belief: the belief of the learner inside.
        t: how many times `predict` has been called.

    Example:
        >>> import credo
        >>> from credo_papers import baselines
        >>> belief = baselines.dropout_agent(arms=2, inputs=3).init(0)
        >>> belief.belief.belief.mean.shape
        (302,)
    """

    belief: B
    t: Array


@record
class Dropout(Wrapper[DropoutBelief[B], B], Generic[B]):
    """A learner of a `DropoutNetwork` that leaves out units in training, and asks several thinned networks.

    Source: Gal & Ghahramani 2016 (arXiv 1506.02142); as a bandit baseline Riquelme, Tucker & Snoek 2018
    (arXiv 1802.09127). Every update draws one mask, and `expect` draws `masks` of them from `seed` and the
    clock: the distribution of the expected rewards is the distribution of those networks. Forecasts leave
    nothing out. The spread of the masks does not shrink with data, so that it is a baseline and no posterior.

    Arguments:
        learner: a learner, usually `sgd` or `replay`, of a model whose `apply` is a `DropoutNetwork`.
        masks: how many networks are asked.
        seed: where the masks come from.

    Raises:
        CredoError: there is no `DropoutNetwork` inside, or `masks` is below 1.

    Example:
        >>> import credo
        >>> net = DropoutNetwork(credo.MLP(outputs=1, hidden=(8,)), 0.5)
        >>> learner = Dropout(credo.sgd(credo.Model(net, credo.Normal(0.1))), masks=5)
        >>> learner.expect(learner.init(net.network.init(0, (3,))), jnp.ones(3)).values.shape
        (5, 1)
    """

    masks: int = static_field(default=16)
    seed: int = static_field(default=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.learner, Learner) and not any(map(_drops, _nodes(self.learner))):
            raise CredoError(
                "learner must have a model whose apply is a DropoutNetwork; got one without.", field="learner"
            )
        require_integer("masks", self.masks, 1)

    def wrap(self, prior: B) -> DropoutBelief[B]:
        """The belief inside, at the start of the clock."""
        return DropoutBelief(prior, jnp.zeros((), jnp.int32))

    def _thinned(self, key: Array) -> Learner[B]:
        data = jax.random.key_data(key)

        def put(node: Any) -> Any:
            if _drops(node):
                return replace(node, key=data)
            return node

        learner: Learner[B] = jax.tree.map(put, self.learner, is_leaf=_drops)
        return learner

    def propose(
        self, belief: DropoutBelief[B], x: PyTree, y: PyTree, weight: ArrayLike, key: Key | None
    ) -> Proposal[DropoutBelief[B]]:
        """Learn with a mask of this step."""
        own = jax.random.fold_in(as_key(self.seed if key is None else key), belief.t)
        inner, info = self._thinned(own).measurement_update(belief.belief, x, y, weight, key)
        return Proposal(replace(belief, belief=inner), info.log_evidence, info.ok)

    def expectation(self, belief: DropoutBelief[B], x: PyTree) -> Expectation:
        """The distribution of what thinned networks expect."""
        keys = jax.random.split(jax.random.fold_in(jax.random.key(self.seed + 1), belief.t), self.masks)
        values = jax.vmap(lambda key: self._thinned(key).expectation(belief.belief, x).mean)(keys)
        return DrawnExpectation(values, jnp.full(self.masks, -jnp.log(float(self.masks)), values.dtype))


def _drops(node: object) -> bool:
    return isinstance(node, DropoutNetwork)


def _nodes(learner: object) -> list[object]:
    return jax.tree.leaves(learner, is_leaf=_drops)
