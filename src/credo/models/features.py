"""Random features: a linear model of fixed, random, smooth functions of the inputs."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp

from credo.core.errors import CredoError, require_integer, require_positive
from credo.core.keys import as_key
from credo.core.records import record, static_field
from credo.core.types import Array, ArrayLike, Key

__all__ = ["RandomFeatures"]


@record
class RandomFeatures:
    """Fourier features: eta_c(x) = b_c + sum_f w_fc sqrt(2 / F) cos(omega_f' x / length + phase_f).

    With weights w ~ N(0, v) this is, for many features, a Gaussian process of variance v with the kernel
    exp(-|x - x'|^2 / (2 length^2)) (Rahimi and Recht 2007): smooth functions, learned exactly by a linear
    filter, with a variance that grows back to v away from the data, for at most F directions. `draw` draws
    the frequencies.

    Attributes:
        frequencies: omega (F, d), standard normal.
        phases: (F,), uniform on [0, 2 pi).
        length: the length scale, in units of the inputs: a number, or one an input (d,).
        outputs: the number C of outputs.

    Raises:
        CredoError: (later) x has another number of inputs than the frequencies.

    Example:
        >>> import credo
        >>> net = RandomFeatures.draw(0, inputs=2, features=100)
        >>> learner = credo.extended_kalman(credo.Model(net, credo.Normal(0.01)))
        >>> belief = learner.init(net.init())
        >>> belief.size, round(float(learner.expect(belief, jnp.ones(2)).var[0]), 1)
        (101, 2.1)
    """

    frequencies: Array
    phases: Array
    length: ArrayLike = 1.0
    outputs: int = static_field(default=1)

    @staticmethod
    def draw(
        key: Key, inputs: int, features: int = 200, length: ArrayLike = 1.0, outputs: int = 1
    ) -> RandomFeatures:
        """Random features for a number of inputs.

        Arguments:
            key: the key of the frequencies and phases.
            inputs: d.
            features: F.
            length: the length scale.
            outputs: C.

        Raises:
            CredoError: a number is out of range.
        """
        require_integer("inputs", inputs, 1)
        require_integer("features", features, 1)
        require_integer("outputs", outputs, 1)
        require_positive("length", length)
        first, second = jax.random.split(as_key(key))
        frequencies = jax.random.normal(first, (features, inputs))
        phases = jax.random.uniform(second, (features,), maxval=2 * math.pi)
        return RandomFeatures(frequencies, phases, length, outputs)

    def init(self) -> Array:
        """The weights (F + 1, C) of the prior mean, zero; the last row is that of the constant."""
        return jnp.zeros((self.phases.shape[0] + 1, self.outputs), self.phases.dtype)

    def features(self, x: Array) -> Array:
        """The features of one row x, and a constant (F + 1,).

        Raises:
            CredoError: x has another number of inputs.
        """
        row = jnp.asarray(x, self.frequencies.dtype).reshape(-1)
        if row.shape[0] != self.frequencies.shape[1]:
            raise CredoError(
                f"x has {row.shape[0]} inputs where the features were drawn for {self.frequencies.shape[1]}."
            )
        scaled = row / jnp.asarray(self.length, row.dtype)
        waves = jnp.cos(self.frequencies @ scaled + self.phases)
        return jnp.concatenate([waves * math.sqrt(2.0 / waves.shape[0]), jnp.ones(1, row.dtype)])

    def __call__(self, params: Array, x: Array) -> Array:
        """The outputs (C,) for one row x."""
        return self.features(x) @ params
