"""The learned Bayes rule: a map of particles from the prior to the posterior, for any likelihood."""

from __future__ import annotations

import math
from typing import Literal, Protocol, TypeAlias, runtime_checkable

import jax
import jax.numpy as jnp

from credo.core.errors import CredoError, require_choice, require_integer, require_interval
from credo.core.keys import as_key
from credo.core.records import record, replace, static_field
from credo.core.types import Array, Key, PyTree
from credo.flows.fields import FlowStep, Residual, pack_size, unpack
from credo.flows.frames import (
    Frame,
    LogLikelihood,
    axis_features,
    embedding_inputs,
    moved_inputs,
    posterior_frame,
    strength,
)

__all__ = ["Base", "FlowOperator", "Gradients", "Map", "Operator"]

Base: TypeAlias = Literal["affine"]
"""The map that is corrected: that of the linearised posterior."""

MAGNIFIER = 5.0
"""The factor of the averages that tell a set from a reweighted one, which differ by a tenth or so."""

Gradients: TypeAlias = Literal["start", "along"]
"""The points for gradients of the log-likelihood: before the first step, or before every step."""


@runtime_checkable
class FlowOperator(Protocol):
    """An operator as training and the learner see it: sizes, parameters, and a map for every update.

    Attributes:
        dim: the dimension d of the state.
        params: the parameters, or None before training.
    """

    @property
    def dim(self) -> int: ...

    @property
    def params(self) -> PyTree: ...

    def start(self, key: Key) -> PyTree:
        """Parameters to begin training from."""
        ...

    def transport(
        self,
        params: PyTree,
        values: Array,
        log_weights: Array,
        log_likelihood: LogLikelihood,
        x: PyTree,
        y: PyTree,
    ) -> FlowMap:
        """The map of one update.

        Arguments:
            params: the parameters.
            values: the predicted particles (N, d).
            log_weights: their log weights (N,), which sum to one.
            log_likelihood: log p(y | value, x).
            x, y: the observation itself.
        """
        ...


class FlowMap(Protocol):
    """The map of one update."""

    def forward(self, points: Array) -> Array:
        """The images of points (K, d)."""
        ...

    def forward_density(self, points: Array) -> tuple[Array, Array]:
        """The images of points (K, d), and log |det| of the Jacobian at each (K,)."""
        ...

    def backward(self, points: Array) -> tuple[Array, Array]:
        """The preimages of points (K, d), and log |det| of the *forward* Jacobian there (K,)."""
        ...


@record
class Map:
    """The map of one update by `Operator`: x = mean + root u, u -> target + scales R(u), R of a few steps.

    `target` and `scales` (d,) are the mean and the standard deviations of the base; 0 and 1 without one.
    """

    frame: Frame
    steps: tuple[FlowStep, ...]
    target: Array
    scales: Array

    def forward(self, points: Array) -> Array:
        """The images of points (K, d)."""
        units = self.frame.inside(points)
        for step in self.steps[:-1]:
            units = step.forward(units)
        return self._end(units)

    def _end(self, units: Array) -> Array:
        """Points (K, d) of the state from those before the last step, whose affine part joins the base."""
        last = self.steps[-1]
        out = self.scales[:, None] * self.frame.root.T
        middle = self.frame.mean + self.target @ self.frame.root.T + last.shift @ out
        return middle[None, :] + last.bent(units) @ (last.matrix @ out)

    def forward_density(self, points: Array) -> tuple[Array, Array]:
        """The images of points (K, d), and log |det| of the Jacobian at each (K,)."""
        units = self.frame.inside(points)
        total = jnp.broadcast_to(jnp.sum(jnp.log(self.scales)), units.shape[:1])
        for step in self.steps[:-1]:
            total = total + step.log_det(units)
            units = step.forward(units)
        return self._end(units), total + self.steps[-1].log_det(units)

    def backward(self, points: Array) -> tuple[Array, Array]:
        """The preimages of points (K, d), and log |det| of the forward Jacobian there (K,)."""
        units = (self.frame.inside(points) - self.target[None, :]) / self.scales[None, :]
        total = jnp.broadcast_to(jnp.sum(jnp.log(self.scales)), units.shape[:1])
        for step in reversed(self.steps):
            units = step.backward(units)
            total = total + step.log_det(units)
        return self.frame.outside(units), total


@record
class Operator:
    """A learned Bayes rule, affine-equivariant, which needs no more than log p(y | x).

    It works in the coordinates u of a `Frame`, in which the set has mean 0 and covariance I and the
    linearised likelihood is diagonal. There the base takes the set to the linearised posterior (which is
    Kalman's where the likelihood is linear and normal), and a residual of a few steps

        u -> M (u + U tanh(W u + b)) + k

    bends it. A hypernetwork gives M, U, W, b and k from the context: the linearised likelihood, the higher
    moments of the set, and an embedding of the particles with their log-likelihoods and gradients. The
    log-determinant is that of these steps, exactly.

    With `gradients="along"` every step after the first sees the set where the steps before have taken it,
    with new log-likelihoods and gradients there. The map depends on the set, and not on the single point that
    it moves, so its determinant and its inverse stay exact.

    With `reweighted` a step also sees how far the set is from where importance weights put it: learned
    functions of the particles before the update, averaged with weights p(y | x), less their average over the
    set as it is now. These tell what gradients do not, such as the mass of a mode.

    Attributes:
        dim: the dimension d of the state.
        base: "affine", or None to learn the whole map.
        width: the number w of hidden units of a step.
        hidden: the width of the hypernetwork's two layers.
        embedding: the length of the embedding of the set; 0 for none.
        steps: the number of steps.
        iterations: how often the likelihood is linearised.
        damping: how much of the linearisation before, in [0, 1], stays in each further one. Where the prior
            is wide beside the posterior, linearisations without damping may overshoot in turns.
        gradients: "start", or "along" the flow, for which there must be two steps and an embedding.
        reweighted: whether steps see the set as the likelihood reweighs it, for which there must be an
            embedding.
        residual: "bounded", where hidden units bend the set by a Lipschitz constant below one; or "convex",
            where they may be steep, as particles need that pass from one mode to another.
        proportionate: whether steps do the less, the less an observation says, so that one that says nothing
            moves nothing; for parameters that stand still, where small errors add up.
        params: the parameters, which training sets; None before.

    Raises:
        CredoError: a size is out of its range, or `base` or `gradients` is unknown.

    Cost of an update: one gradient of log p(y | x) a particle, or one for each step "along" the flow,
    N d (d + w) for the map, d^3 for the frame; with the density N d^2 (d / 3 + w) more.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> operator = Operator(dim=2, width=4, hidden=8).begin(key=0)
        >>> set = jax.random.normal(jax.random.key(0), (50, 2))
        >>> log_weights = jnp.full(50, -jnp.log(50.0))
        >>> bayes = operator.transport(
        ...     operator.params, set, log_weights, lambda z: -jnp.sum((z - 1.0) ** 2) / 2, None, jnp.ones(2)
        ... )
        >>> bool(jnp.all(jnp.abs(jnp.mean(bayes.forward(set), axis=0) - 0.5) < 0.2))
        True
    """

    dim: int = static_field()
    base: Base | None = static_field(default="affine")
    width: int = static_field(default=16)
    hidden: int = static_field(default=64)
    embedding: int = static_field(default=32)
    steps: int = static_field(default=1)
    iterations: int = static_field(default=1)
    gradients: Gradients = static_field(default="start")
    damping: float = static_field(default=0.5)
    reweighted: bool = static_field(default=False)
    residual: Residual = static_field(default="bounded")
    proportionate: bool = static_field(default=False)
    params: PyTree = None

    def __post_init__(self) -> None:
        require_integer("dim", self.dim, 1)
        if self.base is not None:
            require_choice("base", self.base, ["affine"])
        for name in ("width", "hidden", "steps", "iterations"):
            require_integer(name, getattr(self, name), 1)
        require_integer("embedding", self.embedding, 0)
        require_interval("damping", self.damping, 0.0, 1.0)
        require_choice("gradients", self.gradients, ["start", "along"])
        if self.gradients == "along" and (self.steps < 2 or self.embedding == 0):
            raise CredoError(
                "gradients along the flow need at least two steps and an embedding; got "
                f"steps={self.steps}, embedding={self.embedding}.",
                field="gradients",
            )
        require_choice("residual", self.residual, ["bounded", "convex"])
        if self.reweighted and self.embedding == 0:
            raise CredoError(
                "embedding must be at least 1 for a set that is reweighted; got 0.", field="embedding"
            )

    def begin(self, *, key: Key = 0) -> Operator:
        """The operator with the parameters from which training begins: the base alone, or the identity."""
        return replace(self, params=self.start(key))

    def start(self, key: Key) -> PyTree:
        """Parameters (float32) to begin training from, with which the residual is the identity."""
        keys = jax.random.split(as_key(key), 4)
        inputs = 2 * self.dim + 1
        size = 5 * self.dim + 1 + self.embedding * (1 + self.reweighted)
        code = pack_size(self.dim, self.width, self.residual)
        wide = self.dim * self.width
        bias = jnp.zeros((self.steps, code), jnp.float32)
        inner = jax.random.normal(keys[3], (self.steps, wide), jnp.float32) / math.sqrt(self.dim)
        bias = bias.at[:, code - wide - self.width : code - self.width].set(inner)
        params = {
            "first": _layer(keys[0], size, self.hidden),
            "second": _layer(keys[1], self.hidden, self.hidden),
            "code": {
                "weights": jnp.zeros((self.hidden, self.steps * code), jnp.float32),
                "bias": bias.reshape(-1),
            },
        }
        if self.embedding:
            params["embedding"] = _layer(keys[2], inputs, self.embedding)
        if self.gradients == "along":
            params["along"] = _layer(jax.random.fold_in(keys[2], 1), inputs, self.embedding)
        if self.reweighted:
            params["reweighted"] = _layer(jax.random.fold_in(keys[2], 2), self.dim, self.embedding)
        return params

    def transport(
        self,
        params: PyTree,
        values: Array,
        log_weights: Array,
        log_likelihood: LogLikelihood,
        x: PyTree,
        y: PyTree,
    ) -> Map:
        """The map of one update.

        Arguments:
            params: the parameters.
            values: the predicted particles (N, d).
            log_weights: their log weights (N,), which sum to one.
            log_likelihood: log p(y | value, x).
            x, y: not used: all that an update needs to know of them is in the log-likelihood.

        Raises:
            CredoError: the particles have another dimension.
        """
        if values.shape[1] != self.dim:
            raise CredoError(
                f"dim must be that of the particles, {values.shape[1]}; the operator has {self.dim}.",
                field="dim",
            )
        frame = posterior_frame(values, log_weights, log_likelihood, self.iterations, self.damping)
        params = jax.tree.map(lambda leaf: leaf.astype(values.dtype), params)
        blank = Map(frame, (), frame.target, frame.scales)
        if self.base is None:
            blank = replace(blank, target=jnp.zeros_like(frame.mean), scales=jnp.ones_like(frame.mean))
        axes = axis_features(frame)
        hidden = self._hidden(params, axes, frame, "embedding", embedding_inputs(frame), frame.units)
        if self.gradients == "start":
            codes = _affine(params["code"], hidden).reshape(self.steps, -1)
            return replace(blank, steps=tuple(self._step(code, frame) for code in codes))
        steps: tuple[FlowStep, ...] = ()
        units = frame.units
        for layer in _portions(params["code"], self.steps):
            if steps:
                units = steps[-1].forward(units)
                rows = moved_inputs(frame, units, blank.target, blank.scales, log_likelihood)
                places = blank.target[None, :] + units * blank.scales[None, :]
                hidden = self._hidden(params, axes, frame, "along", rows, places)
            steps += (self._step(_affine(layer, hidden)[0], frame),)
        return replace(blank, steps=steps)

    def _step(self, code: Array, frame: Frame) -> FlowStep:
        """The step that the hypernetwork's numbers stand for."""
        innovation = frame.shift * frame.scales
        share = jnp.ones((), code.dtype)
        if self.proportionate:
            share = strength(frame)
            innovation = innovation if self.base is None else share * innovation
        return unpack(code, self.dim, self.width, innovation, self.residual, share)

    def _hidden(
        self, params: PyTree, axes: Array, frame: Frame, layer: str, rows: Array, places: Array
    ) -> Array:
        """The hypernetwork's last hidden layer (1, hidden), from the axes and an embedding of the set."""
        if self.embedding:
            axes = jnp.concatenate([axes, frame.weights @ jnp.tanh(_affine(params[layer], rows))])
        if self.reweighted:
            weights = jax.nn.softmax(jnp.log(frame.weights) + frame.log_likelihoods)
            before, now = (
                jnp.tanh(_affine(params["reweighted"], points)) for points in (frame.units, places)
            )
            axes = jnp.concatenate([axes, MAGNIFIER * (weights @ before - frame.weights @ now)])
        hidden = jax.nn.silu(_affine(params["first"], axes[None, :]))
        return jax.nn.silu(_affine(params["second"], hidden))


def _layer(key: Array, inputs: int, outputs: int) -> PyTree:
    weights = jax.random.normal(key, (inputs, outputs), jnp.float32) / math.sqrt(inputs)
    return {"weights": weights, "bias": jnp.zeros(outputs, jnp.float32)}


def _affine(layer: PyTree, rows: Array) -> Array:
    product: Array = rows @ layer["weights"] + layer["bias"][None, :]
    return product


def _portions(layer: PyTree, count: int) -> list[PyTree]:
    """The layers of the parts (hidden, size / count) of a layer's outputs."""
    parts = zip(jnp.split(layer["weights"], count, axis=1), jnp.split(layer["bias"], count), strict=True)
    return [{"weights": weights, "bias": bias} for weights, bias in parts]
