"""Dynamics by functions of one particle: nonlinear, and with any noise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from credo.beliefs import Anchor
from credo.core.errors import CredoError
from credo.core.records import record, static_field
from credo.core.trees import Unravel, as_like, ravel
from credo.core.types import Array, ArrayLike, PyTree
from credo.covariances import Covariance, Diagonal, RootCovariance
from credo.dynamics.base import Dynamics
from credo.dynamics.linear import duration
from credo.linalg.matrices import psd_root

__all__ = ["Transition", "finite_moves"]


def finite_moves(moved: Array, values: Array) -> Array:
    """Particles (N, P) after a move, where those that ran to infinity stay where they were.

    If none is finite, the function is at fault, and the set is returned as it is: the next update reports it.
    """
    sound = jnp.all(jnp.isfinite(moved), axis=1)
    return jnp.where((sound | ~jnp.any(sound))[:, None], moved, values)


@record
class Transition(Dynamics):
    """Dynamics by a function that moves one particle: z_t = move(z_{t-1}, key, dt).

    Ensembles and particles follow it. A Gaussian belief has no particles to move and refuses it. A particle
    that would not be finite after a step stays where it was.

    Arguments:
        move: `move(z, key, dt)`, the particle after a step of length dt, with noise drawn from the key. z is
            a parameter tree, and the result must be a tree like it.
        log_prob: `log_prob(later, z, dt)`, the log density of a move, for methods that weigh moves.
        settings: a tree of arrays. If it is given, the functions take it as their last argument, so that
            it can change from step to step; see `at` of `credo.run`.

    Raises:
        CredoError: `move` is not a function, or (later) does not return a tree like its first argument.

    Example:
        >>> import credo, jax, jax.numpy as jnp
        >>> def move(z, key, dt):
        ...     return jnp.sin(z) + 0.1 * jax.random.normal(key, z.shape)
        >>> model = credo.Model(lambda z, x: z, credo.Normal(0.1))
        >>> learner = credo.particle_filter(model, particles=100, dynamics=Transition(move))
        >>> belief = learner.predict(learner.init(jnp.full(1, 1.5), var=1e-6))
        >>> round(float(belief.mean[0]), 1), round(float(belief.sd[0]), 1)
        (1.0, 0.1)
    """

    move_function: Callable[..., PyTree] | None = static_field(default=None)
    log_prob_function: Callable[..., Array] | None = static_field(default=None)
    mean_function: Callable[..., PyTree] | None = static_field(default=None)
    cov: ArrayLike = 0.0
    settings: PyTree = None

    def __init__(
        self,
        move: Callable[..., PyTree] | None = None,
        log_prob: Callable[..., Array] | None = None,
        *,
        settings: PyTree = None,
        **fields: Any,
    ) -> None:
        values: dict[str, object] = {
            "move_function": move,
            "log_prob_function": log_prob,
            "mean_function": None,
            "cov": 0.0,
            "settings": settings,
        } | fields
        if not callable(values["move_function"]) and not callable(values["mean_function"]):
            raise CredoError(f"move must be a function of (z, key, dt); got {move!r}.", field="move")
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def gaussian(self) -> bool:  # type: ignore[override]
        """Whether the noise is normal and known here."""
        return self.mean_function is not None

    @classmethod
    def additive(cls, mean: Callable[..., PyTree], cov: ArrayLike, *, settings: PyTree = None) -> Transition:
        """Dynamics with additive Gaussian noise: z_t = mean(z_{t-1}, dt) + N(0, cov dt).

        Its density is known, so that guided and fully adapted filters can use it.

        Arguments:
            mean: `mean(z, dt)`, a tree like z.
            cov: the variance added in a unit of time: a number, one number a parameter (P,), or (P, P).
            settings: as for `Transition`.

        Example:
            >>> import credo
            >>> walk = Transition.additive(lambda z, dt: 0.9**dt * z, 0.19)
            >>> learner = credo.particle_filter(
            ...     credo.Model(lambda z, x: z, credo.Normal(0.1)), particles=100, dynamics=walk
            ... )
            >>> learner.predict(learner.init(jnp.zeros(1))).values.shape
            (100, 1)
        """
        if not callable(mean):
            raise CredoError(f"mean must be a function of (z, dt); got {mean!r}.", field="mean")
        return cls(settings=settings, mean_function=mean, cov=cov)

    def _call(self, name: str, function: Callable[..., PyTree], *arguments: object) -> PyTree:
        extra = () if self.settings is None else (self.settings,)
        try:
            return function(*arguments, *extra)
        except (TypeError, ValueError, IndexError) as error:
            if isinstance(error, CredoError):
                raise
            reason = str(error).splitlines()[0].rstrip(".")
            raise CredoError(f"{name} of the Transition fails: {reason}.", field=name) from error

    def _vector(self, name: str, tree: PyTree, like: Array, unravel: Unravel) -> Array:
        if jax.tree.structure(tree) != unravel.treedef or [jnp.shape(a) for a in jax.tree.leaves(tree)] != [
            *unravel.shapes
        ]:
            raise CredoError(
                f"{name} of the Transition must return a tree like z, with shapes {list(unravel.shapes)}; "
                f"got "
                f"{[jnp.shape(a) for a in jax.tree.leaves(tree)]}.",
                field=name,
            )
        return ravel(tree)[0].astype(like.dtype)

    def move(
        self, mean: Array, cov: Covariance | None, anchor: Anchor | None, t: Array, dt: ArrayLike | None
    ) -> tuple[Array, Covariance | None]:
        """A mean and a covariance are no particles.

        Raises:
            CredoError: always.
        """
        raise CredoError(
            "dynamics must act on a mean and a covariance for a Gaussian belief; a Transition moves the "
            "particles of credo.particle_filter or the members of credo.enkf.",
            field="dynamics",
        )

    def conditional(
        self, value: Array, anchor: Anchor | None, t: Array, dt: ArrayLike | None, unravel: Unravel
    ) -> tuple[Array, Covariance]:
        """The mean and covariance of the next value, for `Transition.additive`.

        Raises:
            CredoError: the transition is given by a function of a key.
        """
        if self.mean_function is None:
            raise CredoError(
                "dynamics must have Gaussian noise that is known here: use Transition.additive(mean, cov).",
                field="dynamics",
            )
        tree = self._call("mean", self.mean_function, unravel(value), 1.0 if dt is None else dt)
        noise = as_like(self.cov, value) * duration(dt, value)
        if noise.ndim == 2:
            cov: Covariance = RootCovariance(psd_root(noise))
        else:
            cov = Diagonal().init(jnp.broadcast_to(noise, value.shape))
        return self._vector("mean", tree, value, unravel), cov

    def propagate(
        self,
        values: Array,
        log_weights: Array,
        key: Array,
        anchor: Anchor | None,
        t: Array,
        dt: ArrayLike | None,
        unravel: Unravel,
    ) -> Array:
        """Every particle moves by the function, with a key of its own."""
        move = self.move_function
        if move is None:
            moved = super().propagate(values, log_weights, key, anchor, t, dt, unravel)
            return finite_moves(moved, values)
        duration(dt, values)

        def one(value: Array, own: Array) -> Array:
            tree = self._call("move", move, unravel(value), own, 1.0 if dt is None else dt)
            return self._vector("move", tree, value, unravel)

        return finite_moves(jax.vmap(one)(values, jax.random.split(key, values.shape[0])), values)

    def log_transition(
        self,
        later: Array,
        value: Array,
        anchor: Anchor | None,
        t: Array,
        dt: ArrayLike | None,
        unravel: Unravel,
    ) -> Array:
        """The log density of a move.

        Raises:
            CredoError: the density is not known.
        """
        if self.log_prob_function is not None:
            length = 1.0 if dt is None else dt
            density = self._call("log_prob", self.log_prob_function, unravel(later), unravel(value), length)
            return jnp.asarray(density, value.dtype).reshape(())
        if self.mean_function is None:
            raise CredoError(
                "dynamics must have a density here: use Transition(move, log_prob) or Transition.additive.",
                field="dynamics",
            )
        return super().log_transition(later, value, anchor, t, dt, unravel)
