"""The particle flow Bayes rule as it was published (Chen, Dai & Song 2019), as an operator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import jax
import jax.numpy as jnp

from credo.core.errors import CredoError, require_choice, require_integer, require_positive
from credo.core.keys import as_key
from credo.core.records import record, replace, static_field
from credo.core.types import Array, Key, PyTree
from credo.flows.frames import LogLikelihood
from credo_papers.published_flow.embedding import (
    Encoder,
    encode_rows,
    mean_embedding,
    rows_of,
    start_encoder,
    start_layer,
)
from credo_papers.published_flow.ode import Gradient, Method, solve
from credo_papers.published_flow.velocity import (
    TimeTerm,
    divergence,
    interval,
    jacobians,
    start_interval,
    start_velocity,
    velocity,
)

__all__ = ["Density", "PublishedMap", "PublishedOperator", "Signal"]

Signal: TypeAlias = Literal["observation", "gradient"]
"""The data that the velocity sees: the observation o, or grad_x log p(o | x) along the flow."""

Density: TypeAlias = Literal["divergence", "discrete"]
"""The log density that is carried along: the integral of the divergence by the same steps, as published, or
the log-determinant of the map that those steps compute."""

NEWTON = 12
"""The number of steps of Newton's method that invert a map."""


@dataclass(frozen=True)
class PublishedMap:
    """The flow of one update, from the beginning of its interval to the end.

    Attributes:
        flow: takes points (K, d) through the flow.
        flow_density: does, and integrates minus the divergence.
        returned: takes points back, by the same steps in the other direction.
        density: which density is carried along.
    """

    flow: Callable[[Array], Array]
    flow_density: Callable[[Array], tuple[Array, Array]]
    returned: Callable[[Array], Array]
    density: Density

    def forward(self, points: Array) -> Array:
        """The images of points (K, d)."""
        return self.flow(points)

    def forward_density(self, points: Array) -> tuple[Array, Array]:
        """The images of points (K, d), and log |det| of the Jacobian at each (K,), as `density` says."""
        if self.density == "divergence":
            return self.flow_density(points)
        new, slopes = jacobians(self.flow, points)
        return new, jnp.linalg.slogdet(jnp.swapaxes(slopes, 0, 1))[1]

    def backward(self, points: Array) -> tuple[Array, Array]:
        """The points that it takes to points (K, d), and log |det| of the forward Jacobian there (K,).

        The flow goes back by the same steps, and Newton's method removes their error.
        """

        def turn(guess: Array, _: None) -> tuple[Array, None]:
            out, slopes = jacobians(self.flow, guess)
            moves = jnp.linalg.solve(jnp.transpose(slopes, (1, 2, 0)), (points - out)[:, :, None])
            return guess + moves[:, :, 0], None

        origins, _ = jax.lax.scan(turn, self.returned(points), None, length=NEWTON)
        return origins, self.forward_density(origins)[1]


@record
class PublishedOperator:
    """The particle flow Bayes rule of Chen, Dai & Song (ICML 2019), with the network of their code.

    For an observation o all particles x of a set follow one flow,

        dx/dt = f(X, o, x, t),    d log q / dt = -div f(X, o, x, t),    t0 <= t <= t1,

    which sees the set X before the update through the embedding e = mean tanh(W x + b) alone. The velocity is
    a context layer and concat-squash layers, the interval depends on e and o, and the divergence is exact.

    Attributes:
        dim: the dimension d of the state.
        observation: how many numbers x and y have together; with an encoder, how many a row has.
        hidden: the width of all layers.
        layers: how many hidden layers of the velocity see the time.
        signal: what the velocity sees of the data, "observation" or "gradient".
        encoder: "none"; "mean" or "gru" where an observation is a batch of rows.
        adaptive: whether the interval is adaptive; otherwise it is [0, length].
        length: the longest interval.
        time_term: "published", or "corrected"; see `credo_papers.published_flow.velocity`.
        solver: "rk4" or "dopri5" (diffrax).
        steps: how many steps "rk4" takes; 1 as published.
        gradient: "adjoint" as published, or "direct".
        density: "divergence" as published, which a loss can exploit, or "discrete".
        tolerance: of "dopri5".
        params: the parameters, which training sets; None before.

    Raises:
        CredoError: a setting is out of its range, or two of them contradict each other.

    Cost of an update: 4 steps N hidden^2 layers, and d times that with the density.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> operator = PublishedOperator(dim=2, observation=2, hidden=16).begin(key=0)
        >>> set = jax.random.normal(jax.random.key(0), (50, 2))
        >>> bayes = operator.transport(
        ...     operator.params,
        ...     set,
        ...     jnp.full(50, -jnp.log(50.0)),
        ...     lambda z: -jnp.sum((z - 1.0) ** 2) / 2,
        ...     None,
        ...     jnp.ones(2),
        ... )
        >>> bayes.forward(set).shape, bayes.forward_density(set)[1].shape
        ((50, 2), (50,))
    """

    dim: int = static_field()
    observation: int = static_field()
    hidden: int = static_field(default=64)
    layers: int = static_field(default=3)
    signal: Signal = static_field(default="observation")
    encoder: Encoder = static_field(default="none")
    adaptive: bool = static_field(default=True)
    length: float = static_field(default=1.0)
    time_term: TimeTerm = static_field(default="published")
    solver: Method = static_field(default="rk4")
    steps: int = static_field(default=1)
    gradient: Gradient = static_field(default="adjoint")
    density: Density = static_field(default="divergence")
    tolerance: float = static_field(default=1e-5)
    params: PyTree = None

    def __post_init__(self) -> None:
        for name in ("dim", "observation", "hidden", "layers", "steps"):
            require_integer(name, getattr(self, name), 1)
        for name in ("length", "tolerance"):
            require_positive(name, getattr(self, name))
        choices = {
            "signal": Signal,
            "encoder": Encoder,
            "time_term": TimeTerm,
            "solver": Method,
            "gradient": Gradient,
            "density": Density,
        }
        for name, allowed in choices.items():
            require_choice(name, getattr(self, name), get_args(allowed))
        if self.density == "discrete" and (self.solver, self.gradient) != ("rk4", "direct"):
            raise CredoError(
                "density 'discrete' differentiates the steps themselves: it needs the solver 'rk4' and the "
                f"gradient 'direct'; got {self.solver!r} and {self.gradient!r}.",
                field="density",
            )
        if self.signal == "gradient" and self.encoder != "none":
            raise CredoError(
                f"encoder must be 'none' where the signal is the gradient; got {self.encoder!r}.",
                field="encoder",
            )

    def begin(self, *, key: Key = 0) -> PublishedOperator:
        """The operator with the parameters from which training begins."""
        return replace(self, params=self.start(key))

    @property
    def signal_size(self) -> int:
        """The length of what the velocity sees of the data."""
        if self.signal == "gradient":
            return self.dim
        if self.encoder == "none":
            return self.observation
        return self.hidden

    def start(self, key: Key) -> PyTree:
        """Parameters to begin training from, drawn as the published code draws them."""
        keys = jax.random.split(as_key(key), 4)
        params = {
            "embedding": start_layer(keys[0], self.dim, self.hidden),
            "velocity": start_velocity(keys[1], self.dim, self.signal_size, self.hidden, self.layers),
            "encoder": start_encoder(keys[2], self.encoder, self.observation, self.hidden),
        }
        if self.adaptive:
            params["interval"] = start_interval(keys[3], self.signal_size, self.hidden)
        return params

    def transport(
        self,
        params: PyTree,
        values: Array,
        log_weights: Array,
        log_likelihood: LogLikelihood,
        x: PyTree,
        y: PyTree,
    ) -> PublishedMap:
        """The flow of one update.

        Arguments:
            params: the parameters.
            values: the particles (N, d), which the flow sees as they are here, and does not differentiate.
            log_weights: their log weights (N,), which sum to one.
            log_likelihood: log p(y | value, x), which is used where the signal is its gradient.
            x, y: the observation.

        Raises:
            CredoError: the particles or the observation have another dimension.
        """
        if values.shape[1] != self.dim:
            raise CredoError(
                f"dim must be that of the particles; the operator has {self.dim}, they have "
                f"{values.shape[1]}.",
                field="dim",
            )
        params = jax.tree.map(lambda leaf: leaf.astype(values.dtype), params)
        values, weights = jax.lax.stop_gradient((values, jnp.exp(log_weights)))
        embedding = mean_embedding(params["embedding"], values, weights)
        slopes = jax.vmap(jax.grad(log_likelihood))
        if self.signal == "gradient":
            signal = (weights @ jax.lax.stop_gradient(slopes(values)))[None, :]
        else:
            signal = self._seen(params, x, y, values.dtype)[None, :]
        start = jnp.zeros((), values.dtype)
        end = jnp.asarray(self.length, values.dtype)
        if self.adaptive:
            start, end = interval(params["interval"], embedding, signal, self.length)

        def field(args: PyTree, t: Array, points: Array) -> Array:
            own, embedding, signal = args
            signal = slopes(points) if self.signal == "gradient" else signal
            return velocity(own, points, t, embedding, signal, self.time_term)

        def field_density(args: PyTree, t: Array, state: PyTree) -> PyTree:
            return divergence(lambda points: field(args, t, points), state[0])

        def solved(field: Callable[[PyTree, Array, PyTree], PyTree], state: PyTree, back: bool) -> PyTree:
            times = (end, start) if back else (start, end)
            return solve(
                field,
                (params["velocity"], embedding, signal),
                state,
                *times,
                method=self.solver,
                steps=self.steps,
                gradient=self.gradient,
                tolerance=self.tolerance,
            )

        return PublishedMap(
            lambda points: solved(field, points, False),
            lambda points: solved(field_density, (points, jnp.zeros_like(points[:, 0])), False),
            lambda points: solved(field, points, True),
            self.density,
        )

    def _seen(self, params: PyTree, x: PyTree, y: PyTree, dtype: jnp.dtype) -> Array:
        rows = rows_of(x, y, self.encoder, dtype)
        if rows.shape[-1] != self.observation:
            raise CredoError(
                f"observation must be how many numbers x and y have together; the operator has "
                f"{self.observation}, they have {rows.shape[-1]}.",
                field="observation",
            )
        return encode_rows(params["encoder"], self.encoder, rows)
