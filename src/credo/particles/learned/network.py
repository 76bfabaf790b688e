"""The network of a learned proposal: dense layers with a linear path beside them, and a gated memory."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import jax
import jax.numpy as jnp

from credo.core.errors import require_choice, require_integer
from credo.core.records import record, static_field
from credo.core.types import Array, PyTree
from credo.models.networks import MLP

__all__ = ["NetworkName", "ProposalNetwork"]

NetworkName: TypeAlias = Literal["mlp", "gru"]
"""What a proposal looks at: the latest observation, or a memory of all."""

LIMIT = 4.0
"""How far, in log standard deviations, a proposal may go from the dynamics."""


@record
class ProposalNetwork:
    """A network from a parent and an observation to the mean and log sd of a proposal, both relative.

    With the law N(c, diag(r^2)) of the dynamics, the proposal is N(c + r m, diag(r e^l)^2), where (m, l) are
    the network's outputs. They start at 0, so an untrained proposal is the dynamics, as in the bootstrap
    filter. A linear path beside the dense layers makes the optimal proposal of a linear-Gaussian model easy.

    Arguments:
        kind: "mlp" sees the parent and the present observation; "gru" also a memory h_t = GRU(h_{t-1}, y_t)
            (Cho et al. 2014).
        size: the number P of parameters.
        seen: the number of features of an observation, with its inputs.
        hidden: the widths of the dense layers.
        memory: the width of h, for "gru".

    Raises:
        CredoError: a number is below 1, or there is no such kind.

    Example:
        >>> network = ProposalNetwork("mlp", 2, 3, hidden=(8,))
        >>> mean, log_sd = network(network.init(jax.random.key(0)), jnp.ones((5, 2)), jnp.ones(3), None)
        >>> mean.shape, float(jnp.abs(log_sd).max())
        ((5, 2), 0.0)
    """

    kind: NetworkName = static_field()
    size: int = static_field()
    seen: int = static_field()
    hidden: tuple[int, ...] = static_field(default=(64, 64))
    memory: int = static_field(default=32)

    def __post_init__(self) -> None:
        require_choice("network", self.kind, ["mlp", "gru"])
        require_integer("memory", self.memory, 1)
        for width in (self.size, self.seen, *self.hidden):
            require_integer("hidden", width, 1)

    @property
    def layers(self) -> MLP:
        """The dense layers."""
        return MLP(2 * self.size, self.hidden, "tanh")

    @property
    def inputs(self) -> int:
        """How many numbers the dense layers see."""
        return self.size + self.seen + (self.memory if self.kind == "gru" else 0)

    def init(self, key: Array) -> dict[str, PyTree]:
        """Parameters, with outputs of 0."""
        first, second, third = jax.random.split(key, 3)
        layers = self.layers.init(first, (self.inputs,))
        layers[-1] = jax.tree.map(jnp.zeros_like, layers[-1])
        linear = jnp.zeros((self.inputs, 2 * self.size))
        params: dict[str, Any] = {"layers": layers, "linear": linear}
        if self.kind == "gru":
            scale = 1.0 / jnp.sqrt(float(self.memory))
            params["in"] = jax.random.normal(second, (self.seen, 3 * self.memory)) / jnp.sqrt(
                float(self.seen)
            )
            params["out"] = scale * jax.random.normal(third, (self.memory, 3 * self.memory))
            params["bias"] = jnp.zeros(3 * self.memory)
        return params

    def remember(self, params: dict[str, PyTree], memory: Array, seen: Array) -> Array:
        """The memory h (H,) after an observation with these features."""
        reset_in, update_in, new_in = jnp.split(seen @ params["in"] + params["bias"], 3)
        reset_out, update_out, new_out = jnp.split(memory @ params["out"], 3)
        reset, update = jax.nn.sigmoid(reset_in + reset_out), jax.nn.sigmoid(update_in + update_out)
        new: Array = (1.0 - update) * jnp.tanh(new_in + reset * new_out) + update * memory
        return new

    def __call__(
        self, params: dict[str, PyTree], parents: Array, seen: Array, memory: Array | None
    ) -> tuple[Array, Array]:
        """The relative means and log standard deviations (N, P) for parents (N, P)."""
        shared = seen if memory is None else jnp.concatenate([seen, memory])
        rows = jnp.broadcast_to(shared, (parents.shape[0], shared.shape[0]))
        inputs = jnp.concatenate([parents, rows], axis=1)
        layers = self.layers
        outputs = jax.vmap(lambda row: layers(params["layers"], row))(inputs) + inputs @ params["linear"]
        mean, log_sd = jnp.split(outputs, 2, axis=1)
        return mean, LIMIT * jnp.tanh(log_sd / LIMIT)
