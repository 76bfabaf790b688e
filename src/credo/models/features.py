"""Random features: a linear model of fixed, random functions of the inputs."""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

import jax
import jax.numpy as jnp

from credo.core.errors import CredoError, require_choice, require_integer, require_positive
from credo.core.keys import as_key
from credo.core.records import record, static_field
from credo.core.types import Array, ArrayLike, Key

__all__ = ["RandomFeatures"]

Activation: TypeAlias = Literal["cos", "relu"]
"""What becomes of a random projection."""

_ACTIVATIONS = {"cos": jnp.cos, "relu": jax.nn.relu}


@record
class RandomFeatures:
    """Random features: eta_c(x) = b_c + sum_f w_fc sqrt(2 / F) g(omega_f' x / length + phase_f).

    With g = cos and weights w ~ N(0, v) this is, for many features, a Gaussian process of variance v with the
    kernel exp(-|x - x'|^2 / (2 length^2)) (Rahimi and Recht 2007): smooth functions, learned exactly by a
    linear filter, with a variance that grows back to v away from the data, for at most F directions.
    With g = relu it is a network whose hidden layer stays as it was drawn, and a process with an arc-cosine
    kernel (Cho and Saul 2009), which suits many inputs, such as pixels. `draw` draws the frequencies.

    With `linear` = s the inputs are features, too, s x_j / length. A function that rises or falls in one
    direction is then found from fewer data than by waves alone.

    Attributes:
        frequencies: omega (F, d), standard normal.
        phases: (F,), uniform on [0, 2 pi) with cos, and standard normal with relu.
        length: the length scale, in units of the inputs: a number, or one an input (d,).
        outputs: the number C of outputs.
        linear: the factor s of the inputs among the features; None for none.
        activation: "cos" or "relu".

    Raises:
        CredoError: (later) x has another number of inputs than the frequencies.

    Example:
        >>> import credo
        >>> net = RandomFeatures.draw(0, inputs=2, features=100)
        >>> learner = credo.extended_kalman(credo.Model(net, credo.Normal(0.01)))
        >>> belief = learner.init(net.init())
        >>> belief.size, round(float(learner.expect(belief, jnp.ones(2)).var[0]), 1)
        (101, 2.0)
        >>> RandomFeatures.draw(0, inputs=2, features=100, linear=0.5, activation="relu").init().shape
        (103, 1)
    """

    frequencies: Array
    phases: Array
    length: ArrayLike = 1.0
    outputs: int = static_field(default=1)
    linear: ArrayLike | None = None
    activation: Activation = static_field(default="cos")

    @staticmethod
    def draw(
        key: Key,
        inputs: int,
        features: int = 200,
        length: ArrayLike = 1.0,
        outputs: int = 1,
        linear: ArrayLike | None = None,
        activation: Activation = "cos",
    ) -> RandomFeatures:
        """Draw random features for a number of inputs.

        Arguments:
            key: the key of the frequencies and phases.
            inputs: d.
            features: F.
            length: the length scale.
            outputs: C.
            linear: the factor of the inputs among the features, above 0; None for none.
            activation: "cos" or "relu".

        Raises:
            CredoError: a number is out of range.
        """
        require_integer("inputs", inputs, 1)
        require_integer("features", features, 1)
        require_integer("outputs", outputs, 1)
        require_positive("length", length)
        require_choice("activation", activation, ("cos", "relu"))
        if linear is not None:
            require_positive("linear", linear)
        first, second = jax.random.split(as_key(key))
        frequencies = jax.random.normal(first, (features, inputs))
        if activation == "cos":
            phases = jax.random.uniform(second, (features,), maxval=2 * math.pi)
        else:
            phases = jax.random.normal(second, (features,))
        return RandomFeatures(frequencies, phases, length, outputs, linear, activation)

    def init(self) -> Array:
        """The weights (F + 1, C) of the prior mean, zero; the last row is that of the constant.

        With linear features they are (F + d + 1, C).
        """
        size, inputs = self.frequencies.shape
        count = size + 1 + (0 if self.linear is None else inputs)
        return jnp.zeros((count, self.outputs), self.phases.dtype)

    def features(self, x: Array) -> Array:
        """The features of one row x, and a constant: (F + 1,), or (F + d + 1,) with linear features.

        Raises:
            CredoError: x has another number of inputs.
        """
        row = jnp.asarray(x, self.frequencies.dtype).reshape(-1)
        if row.shape[0] != self.frequencies.shape[1]:
            raise CredoError(
                f"x has {row.shape[0]} inputs where the features were drawn for {self.frequencies.shape[1]}."
            )
        scaled = row / jnp.asarray(self.length, row.dtype)
        waves = _ACTIVATIONS[self.activation](self.frequencies @ scaled + self.phases)
        parts = [waves * math.sqrt(2.0 / waves.shape[0]), jnp.ones(1, row.dtype)]
        if self.linear is not None:
            parts.insert(1, scaled * jnp.asarray(self.linear, row.dtype))
        return jnp.concatenate(parts)

    def __call__(self, params: Array, x: Array) -> Array:
        """The outputs (C,) for one row x."""
        return self.features(x) @ params
