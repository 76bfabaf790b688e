"""Networks for streams: linear, multi-layer perceptron and convolutional.

A network is a record and a function: `net(params, x) -> eta` for one row. `net.init(key, shape)` draws
parameters, with zero biases and He or LeCun scaled weights. `net.prior_var(params, scale)` gives the weights
of each layer the prior variance scale / fan-in, and its biases the variance scale. The prior spread of the
outputs is then comparable for all widths.
"""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

import jax
import jax.numpy as jnp

from credo.core.errors import CredoError, require_choice, require_integer
from credo.core.keys import as_key
from credo.core.records import record, static_field
from credo.core.types import Array, ArrayLike, Key, PyTree
from credo.linalg.jacobians import OuterRows
from credo.linalg.matrices import identity

__all__ = ["CNN", "MLP", "Activation", "BlendedMLP", "Linear"]

Layers: TypeAlias = list[dict[str, Array]]
"""Parameters: one dict a layer, with the weights "w" and the biases "b"."""

Activation: TypeAlias = Literal["relu", "tanh", "gelu", "silu", "elu", "sin"]
"""The non-linearities."""

_ACTIVATIONS = {
    "relu": jax.nn.relu,
    "tanh": jnp.tanh,
    "gelu": jax.nn.gelu,
    "silu": jax.nn.silu,
    "elu": jax.nn.elu,
    "sin": jnp.sin,
}


class _Network:
    """The common base of the networks: layers are dicts {"w", "b"}."""

    def prior_var(self, params: PyTree, scale: float = 1.0) -> PyTree:
        """Prior variances, one number a leaf: `scale` / fan-in for weights, `scale` for biases."""

        def of(path: tuple[object, ...], leaf: Array) -> float:
            fan_in = 1 if leaf.ndim == 1 else math.prod(leaf.shape[:-1])
            return scale / fan_in

        return jax.tree_util.tree_map_with_path(of, params)


def _dense(key: Array, fan_in: int, fan_out: int, gain: float) -> dict[str, Array]:
    # fenced, so that a program that draws a whole network has the bits of one draw after the other
    draws = jax.lax.optimization_barrier(jax.random.normal(key, (fan_in, fan_out), jnp.float32))
    weights = draws * (gain / math.sqrt(fan_in))
    return {"w": weights, "b": jnp.zeros(fan_out, jnp.float32)}


def _gain(activation: str) -> float:
    if activation in ("relu", "gelu", "silu", "elu"):
        return math.sqrt(2.0)
    return 1.0


@record
class MLP(_Network):
    """A multi-layer perceptron: dense layers with a non-linearity between them, for flattened x of any shape.

    Arguments:
        outputs: the number C of outputs.
        hidden: the widths of the hidden layers; without any the network is linear.
        activation: relu, tanh, gelu, silu, elu or sin.

    Raises:
        CredoError: a number is below 1, or there is no such non-linearity.

    Example:
        >>> net = MLP(outputs=10, hidden=(50, 50))
        >>> params = net.init(jax.random.key(0), (28, 28))
        >>> net(params, jnp.ones((28, 28))).shape
        (10,)
    """

    outputs: int = static_field(default=1)
    hidden: tuple[int, ...] = static_field(default=(50,))
    activation: Activation = static_field(default="relu")

    def __post_init__(self) -> None:
        require_integer("outputs", self.outputs, 1)
        if not isinstance(self.hidden, tuple | list):
            raise CredoError.must_be("hidden", "a tuple of widths", self.hidden)
        for width in self.hidden:
            require_integer("hidden", width, 1)
        require_choice("activation", self.activation, _ACTIVATIONS)

    def init(self, key: Key, shape: tuple[int, ...]) -> Layers:
        """Parameters for inputs of the given shape: weights N(0, gain^2 / fan-in) and biases 0.

        gain^2 is 2 for relu-like non-linearities (He), and 1 for others and for the last layer (LeCun). All
        parameters of a linear model are 0.
        """
        widths = [math.prod(shape), *self.hidden, self.outputs]
        keys = jax.random.split(as_key(key), len(widths) - 1)
        gains = [_gain(self.activation)] * len(self.hidden) + [1.0 if self.hidden else 0.0]
        return [_dense(k, a, b, g) for k, a, b, g in zip(keys, widths[:-1], widths[1:], gains, strict=True)]

    def bend(self, h: Array) -> Array:
        """The non-linearity."""
        return _ACTIVATIONS[self.activation](h)

    def __call__(self, params: Layers, x: Array) -> Array:
        """The outputs (C,) for one row x."""
        act = self.bend
        h = jnp.asarray(x, params[0]["w"].dtype).reshape(-1)
        _fit(h.shape[0], params[0]["w"].shape[0])
        for layer in params[:-1]:
            h = act(h @ layer["w"] + layer["b"])
        return h @ params[-1]["w"] + params[-1]["b"]

    def linearize(self, params: Layers, x: Array) -> tuple[Array, OuterRows]:
        """The outputs (C,) for one row x and their Jacobian (C, P) as outer products. Cost: P + C times the
        widths.
        """
        act = self.bend
        first = jnp.asarray(x, params[0]["w"].dtype).reshape(-1)
        _fit(first.shape[0], params[0]["w"].shape[0])

        def outputs(nudges: list[Array]) -> tuple[Array, list[Array]]:
            h = first
            inputs = list[Array]()
            for layer, nudge in zip(params, nudges, strict=True):
                h = h if not inputs else act(h)
                inputs.append(h)
                h = h @ layer["w"] + layer["b"] + nudge
            return h, inputs

        still = [jnp.zeros_like(layer["b"]) for layer in params]
        eta, pullback, inputs = jax.vjp(outputs, still, has_aux=True)
        (deltas,) = jax.vmap(pullback)(identity(eta.shape[0], eta.dtype))
        ones = jnp.ones(1, eta.dtype)
        augmented = [jnp.concatenate([ones, h.astype(eta.dtype)])[None, :] for h in inputs]
        hidden = tuple(d[None] for d in deltas[:-1])
        last = jnp.ones((1, eta.shape[0]), eta.dtype)
        return eta, OuterRows(tuple(augmented), (*hidden, last))


@record
class BlendedMLP(MLP):
    """A multi-layer perceptron with a blend of two non-linearities: (1 - share) g(h) + share g'(h).

    The share is a leaf, so that networks with either non-linearity are members of one stacked bank.

    Arguments:
        outputs, hidden, activation: see `MLP`.
        other: the second non-linearity.
        share: its share, from 0 to 1.

    Raises:
        CredoError: a number is below 1, or there is no such non-linearity.

    Example:
        >>> net, x = BlendedMLP(1, (4,), "elu", "tanh", share=1.0), jnp.ones(3)
        >>> params = net.init(0, (3,))
        >>> bool(jnp.all(net(params, x) == MLP(1, (4,), "tanh")(params, x)))
        True
    """

    other: Activation = static_field(default="tanh")
    share: ArrayLike = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require_choice("other", self.other, _ACTIVATIONS)

    def bend(self, h: Array) -> Array:
        """The blend of the two non-linearities."""
        share = jnp.asarray(self.share, h.dtype)
        return (1 - share) * _ACTIVATIONS[self.activation](h) + share * _ACTIVATIONS[self.other](h)


@record
class Linear(_Network):
    """A linear model with a bias that starts at zero: eta = x w + b.

    Raises:
        CredoError: `outputs` is below 1.

    Example:
        >>> net = Linear(outputs=3)
        >>> net(net.init(jax.random.key(0), (4,)), jnp.ones(4)).shape
        (3,)
    """

    outputs: int = static_field(default=1)

    def __post_init__(self) -> None:
        require_integer("outputs", self.outputs, 1)

    def init(self, key: Key, shape: tuple[int, ...]) -> Layers:
        """Zeros, which are the prior mean."""
        return MLP(self.outputs, ()).init(key, shape)

    def __call__(self, params: Layers, x: Array) -> Array:
        """The outputs (C,) for one row x."""
        return MLP(self.outputs, ())(params, x)

    def linearize(self, params: Layers, x: Array) -> tuple[Array, OuterRows]:
        """The outputs (C,) for one row x and their Jacobian (C, P) as outer products."""
        return MLP(self.outputs, ()).linearize(params, x)


@record
class CNN(_Network):
    """A small convolutional network for images (H, W) or (H, W, channels).

    It applies a 5x5 convolution of the same size, a non-linearity and average pooling by 2, twice; then a
    dense layer, a non-linearity and a dense layer. On 28 x 28 images the defaults have P = 57,722 parameters.

    Arguments:
        outputs: the number C of outputs.
        channels: the channels of the two convolutions.
        dense: the width of the hidden dense layer.
        activation: relu, tanh, gelu, silu, elu or sin.

    Raises:
        CredoError: a number is below 1, there are not two numbers of channels, or there is no such
            non-linearity.

    Example:
        >>> net = CNN(outputs=10)
        >>> net(net.init(0, (28, 28)), jnp.ones((28, 28))).shape
        (10,)
    """

    outputs: int = static_field(default=10)
    channels: tuple[int, int] = static_field(default=(16, 16))
    dense: int = static_field(default=64)
    activation: Activation = static_field(default="relu")

    def __post_init__(self) -> None:
        require_integer("outputs", self.outputs, 1)
        if not isinstance(self.channels, tuple | list) or len(self.channels) != 2:
            raise CredoError.must_be("channels", "a pair of numbers of channels", self.channels)
        for count in self.channels:
            require_integer("channels", count, 1)
        require_integer("dense", self.dense, 1)
        require_choice("activation", self.activation, _ACTIVATIONS)

    def init(self, key: Key, shape: tuple[int, ...]) -> Layers:
        """Parameters for images of the given shape.

        Raises:
            CredoError: the shape is not that of an image of at least 8 x 8 pixels.
        """
        if len(shape) not in (2, 3) or min(shape[:2]) < 8:
            raise CredoError(
                f"CNN needs images (H, W) or (H, W, channels) of at least 8 x 8; got shape {shape}."
            )
        first, second, third, fourth = jax.random.split(as_key(key), 4)
        depth = shape[2] if len(shape) == 3 else 1
        gain = _gain(self.activation)
        flat = math.prod(size // 4 for size in shape[:2]) * self.channels[1]

        def kernel(k: Array, inputs: int, outputs: int) -> dict[str, Array]:
            layer = _dense(k, 25 * inputs, outputs, gain)
            return {"w": layer["w"].reshape(5, 5, inputs, outputs), "b": layer["b"]}

        return [
            kernel(first, depth, self.channels[0]),
            kernel(second, self.channels[0], self.channels[1]),
            _dense(third, flat, self.dense, gain),
            _dense(fourth, self.dense, self.outputs, 1.0),
        ]

    def __call__(self, params: Layers, x: Array) -> Array:
        """The outputs (C,) for one image x."""
        act = _ACTIVATIONS[self.activation]
        image = jnp.asarray(x, params[0]["w"].dtype)
        image = image[:, :, None] if image.ndim == 2 else image
        for layer in params[:2]:
            image = act(_convolve(image, layer["w"]) + layer["b"].reshape(1, 1, -1))
            height, width, depth = image.shape
            image = image[: height // 2 * 2, : width // 2 * 2]
            image = image.reshape(height // 2, 2, width // 2, 2, depth).mean(axis=(1, 3))
        h = image.reshape(-1)
        _fit(h.shape[0], params[2]["w"].shape[0])
        h = act(h @ params[2]["w"] + params[2]["b"])
        return h @ params[3]["w"] + params[3]["b"]


def _convolve(image: Array, kernel: Array) -> Array:
    """A same-size 5x5 convolution of (H, W, channels), as one product of patches with the kernel.

    XLA's convolution is three times slower where its Jacobian is taken inside a scan on a CPU.
    """
    height, width, depth = image.shape
    padded = jnp.pad(image, ((2, 2), (2, 2), (0, 0)))
    shifts = [padded[i : i + height, j : j + width] for i in range(5) for j in range(5)]
    patches = jnp.concatenate(shifts, axis=-1).reshape(height * width, 25 * depth)
    return (patches @ kernel.reshape(25 * depth, -1)).reshape(height, width, -1)


def _fit(got: int, needed: int) -> None:
    if got != needed:
        raise CredoError(f"x has {got} features where the network was made for {needed}.")
