"""Neural-linear learning with a limited memory: a belief about the last layer, and features that learn."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from credo.beliefs import Gaussian, Point
from credo.beliefs.widening import widen_belief
from credo.core.errors import CredoError, require_integer
from credo.core.names import ForecastName
from credo.core.records import record, replace, static_field
from credo.core.subarrays import corners, put
from credo.core.trees import all_finite, select
from credo.core.types import Array, ArrayLike, Key, PyTree
from credo.covariances.full import FullCovariance
from credo.learners import GradientLearner, Info, Learner, RecursiveLearner, last_layer_ekf
from credo.learners.base import SampledFunction
from credo.likelihoods import Expectation, Predictive
from credo_papers.baselines.matching import match_predictions

__all__ = ["NeuralLinear", "NeuralLinearBelief"]


@record
class NeuralLinearBelief:
    """The belief of a `NeuralLinear` learner.

    Attributes:
        network: the network in training, with its memory.
        features: the parameters (P,) whose hidden layers are the features now.
        last: the belief about the last layer on these features.
        prior: its belief before any data, whose covariance is the prior of every match.
        t: how many times `predict` has been called.

    Example:
        >>> from credo_papers import baselines
        >>> belief = baselines.neural_linear_agent(arms=2, inputs=3, hidden=(8,)).init(0).belief
        >>> belief.last.mean.shape, belief.network.buffer.weight.shape
        ((18,), (100,))
    """

    network: Point
    features: Array
    last: Gaussian
    prior: Gaussian
    t: Array


@record
class NeuralLinear(Learner[NeuralLinearBelief]):
    """Bayesian regression on the last hidden layer of a network that is trained on a limited memory.

    Every observation is learned by the last layer's Kalman filter, on fixed features, and enters the memory,
    from which the network is trained by gradient steps. Every `every` steps the trained network gives new
    features. The belief about the last layer would then be about other numbers, so it is replaced by the one
    that predicts on the memory what the old one predicted, with the same covariance (`match_predictions`);
    about what the memory is silent, it is the prior around the network's own last layer.

    Sources: Riquelme, Tucker & Snoek 2018 (arXiv 1802.09127) for neural-linear bandits; Nabati, Zahavy &
    Mannor 2021 (arXiv 2102.03799) for the limited memory and likelihood matching.

    Arguments:
        network: a `replay` learner, whose `capacity` is the memory, at least 2, of a model whose parameters
            are a list of layers, the last of them linear.
        every: after how many steps the features are renewed.

    Raises:
        CredoError: the learner is none of that kind, or a number is out of range.

    `init` needs `example`, one observation (x, y). Exact given the features, with normal noise, between
    renewals. Cost of a step: D^2 for the D parameters of the last layer, `steps` times the memory of
    gradients, and N D^2 + N^2 D for a memory of N every `every` steps (under `jax.vmap` in all of them).

    Example:
        >>> import credo
        >>> net = credo.MLP(outputs=1, hidden=(8,))
        >>> learner = NeuralLinear(credo.replay(credo.Model(net, credo.Normal(0.1)), capacity=4), every=2)
        >>> belief = learner.init(net.init(0, (3,)), example=(jnp.ones(3), 1.0))
        >>> belief, info = learner.step(belief, jnp.ones(3), 1.0)
        >>> belief.last.mean.shape
        (9,)
    """

    network: GradientLearner
    every: int = static_field(default=50)

    def __post_init__(self) -> None:
        if type(self.network) is object:  # what JAX puts in place of a tree
            return
        if not isinstance(self.network, GradientLearner) or self.network.capacity < 2:
            raise CredoError(
                "network must be a learner with a memory, such as credo.replay(model, capacity=100); got "
                f"{self.network!r}.",
                field="network",
            )
        require_integer("every", self.every, 1)

    def init(self, params: PyTree = None, *, var: PyTree = 1.0, example: PyTree = None) -> NeuralLinearBelief:
        """The network as given, and the prior of its last layer.

        Arguments:
            params: the parameters of the network, whose last layer is the prior mean.
            var: the prior variance of the last layer: a number, or one for each of its D parameters.
            example: one observation (x, y), which gives the memory its shapes.
        """
        point = self.network.init(params, example=example)
        learner = self._on(point.mean, point)
        last = learner.init(var=var)
        return NeuralLinearBelief(point, point.mean, last, last, jnp.zeros((), jnp.int32))

    def _on(self, features: Array, point: Point) -> RecursiveLearner:
        """The learner of the last layer on the features of a network (P,)."""
        return last_layer_ekf(self.network.model, point.unravel(features))

    def time_update(self, belief: NeuralLinearBelief, dt: ArrayLike | None) -> NeuralLinearBelief:
        point = self.network.time_update(belief.network, dt)
        last = replace(belief.last, t=belief.last.t + 1)
        return replace(belief, network=point, last=last, t=belief.t + 1)

    def measurement_update(
        self, belief: NeuralLinearBelief, x: PyTree, y: PyTree, weight: ArrayLike, key: Key | None
    ) -> tuple[NeuralLinearBelief, Info]:
        learner = self._on(belief.features, belief.network)
        last, info = learner.measurement_update(belief.last, x, y, weight, key)
        point, trained = self.network.measurement_update(belief.network, x, y, weight, key)
        learned = replace(belief, last=last, network=point)
        due = belief.t % self.every == 0
        new = jax.lax.cond(due, self.renew, lambda same: same, learned)
        ok = info.ok & trained.ok & all_finite(new)
        used = ok & jnp.any(jnp.asarray(weight) != 0)
        return select(used, new, belief), Info(jnp.where(used, info.log_evidence, 0.0), ok)

    def renew(self, belief: NeuralLinearBelief) -> NeuralLinearBelief:
        """The belief on the features of the network as it is trained now.

        Arguments:
            belief: a belief of this learner.

        Returns:
            The belief with new features; its predictions on the memory are those of before.
        """
        point = belief.network
        buffer = belief.network.buffer
        assert buffer is not None
        there = (buffer.weight > 0).astype(belief.last.mean.dtype)
        old = self._on(belief.features, point)
        new = self._on(point.mean, point)
        start = new.init(var=1.0)  # the new network's own last layer; its variance is not used
        outputs, rows = _rows(old, belief.last, buffer.x, there)
        prior_outputs, new_rows = _rows(new, start, buffer.x, there)
        cov = belief.last.cov
        prior = belief.prior.cov
        assert isinstance(cov, FullCovariance) and isinstance(prior, FullCovariance)
        mean, root = match_predictions(
            outputs, rows @ cov.as_root(), new_rows, start.mean, prior.as_root(), prior_outputs
        )
        last = replace(belief.last, mean=mean, cov=cov.with_root(root))
        return replace(belief, features=point.mean, last=last)

    def predictive(
        self,
        belief: NeuralLinearBelief,
        x: PyTree,
        method: ForecastName | None,
        samples: int | None,
        key: Key | None,
    ) -> Predictive:
        return self._on(belief.features, belief.network).predictive(belief.last, x, method, samples, key)

    def scaled_predictive(self, belief: NeuralLinearBelief, x: PyTree, scale: ArrayLike | None) -> Predictive:
        return self._on(belief.features, belief.network).scaled_predictive(belief.last, x, scale)

    def expectation(self, belief: NeuralLinearBelief, x: PyTree) -> Expectation:
        return self._on(belief.features, belief.network).expectation(belief.last, x)

    def function_draw(self, belief: NeuralLinearBelief, key: Key) -> SampledFunction:
        return self._on(belief.features, belief.network).function_draw(belief.last, key)

    def draws(self, belief: NeuralLinearBelief, key: Key, shape: tuple[int, ...]) -> PyTree:
        """Parameters of the last layer; those of the features are `belief.features`."""
        return self._on(belief.features, belief.network).draws(belief.last, key, shape)


@widen_belief.register
def _(belief: NeuralLinearBelief, prior: NeuralLinearBelief) -> NeuralLinearBelief:
    places = corners(belief.network.unravel, prior.network.unravel)
    return NeuralLinearBelief(
        widen_belief(belief.network, prior.network),
        put(belief.features, prior.features, places),
        widen_belief(belief.last, prior.last),
        widen_belief(belief.prior, prior.prior),
        belief.t,
    )


def _rows(learner: RecursiveLearner, belief: Gaussian, xs: PyTree, there: Array) -> tuple[Array, Array]:
    """The outputs (N,) of a belief's mean on the memory, and their Jacobian (N, D); 0 if nothing is."""

    def one(x: PyTree) -> tuple[Array, Array]:
        def outputs(vector: Array) -> Array:
            return learner.model.outputs(vector, belief.unravel, x).reshape(-1)

        jacobian: Any = jax.jacrev(outputs)(belief.mean)
        return outputs(belief.mean), jacobian

    outputs, rows = jax.vmap(one)(xs)
    each = jnp.repeat(there, outputs.shape[1])
    return outputs.reshape(-1) * each, rows.reshape(-1, rows.shape[-1]) * each[:, None]
