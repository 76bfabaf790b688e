"""The likelihood protocol, and likelihoods made of one user function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.errors import CredoError
from credo.core.records import record, static_field
from credo.likelihoods.predictive import MixturePredictive, Predictive, integration_nodes
from credo.linalg.matrices import psd_root

__all__ = ["Likelihood", "LikelihoodBase"]


class LikelihoodBase:
    """What every likelihood answers to; only `log_prob` is required, the rest has autodiff defaults.

    Below eta is the vector (C,) of a model's outputs for one row, and y that row's observation.
    """

    discrete: bool = False
    """Whether y takes whole-number values (so that quantiles are searched among them)."""

    def log_prob(self, eta: jax.Array, y: Any) -> jax.Array:
        """log p(y | eta), a scalar."""
        raise NotImplementedError

    def score(self, eta: jax.Array, y: Any) -> jax.Array:
        """d log p(y | eta) / d eta, (C,)."""
        return jax.grad(self.log_prob)(eta, y)

    def fisher_root(self, eta: jax.Array, y: Any) -> jax.Array:
        """A factor A (C, K) of the negative Hessian V = A A' of log p in eta, projected to be positive semi-
        definite.
        """
        return psd_root(-jax.hessian(self.log_prob)(eta, y))

    def mean(self, eta: jax.Array) -> jax.Array:
        """E[y | eta], (C,)."""
        raise CredoError(f"{self!r} has no mean(eta); give one with Likelihood(log_prob, mean=...).")

    def variance(self, eta: jax.Array) -> jax.Array:
        """Var[y | eta], (C,)."""
        raise CredoError(
            f"{self!r} has no variance(eta); give one with Likelihood(log_prob, mean=..., var=...)."
        )

    def sample(self, eta: jax.Array, key: jax.Array) -> jax.Array:
        """One draw of y given eta."""
        raise CredoError(f"{self!r} has no sample(eta, key); give one with Likelihood(log_prob, sample=...).")

    def cdf(self, eta: jax.Array, y: jax.Array) -> jax.Array:
        """P(Y <= y | eta) for a scalar y."""
        raise CredoError(f"{self!r} has no cdf(eta, y); give one with Likelihood(log_prob, cdf=...).")

    def observed(self, y: Any) -> jax.Array:
        """Whether y holds no NaN: a boolean scalar."""
        flags = [
            jnp.all(~jnp.isnan(leaf))
            for leaf in jax.tree.leaves(y)
            if jnp.issubdtype(leaf.dtype, jnp.floating)
        ]
        return jnp.all(jnp.stack(flags)) if flags else jnp.asarray(True)

    def rows(self, y: Any) -> int:
        """How many observations y stands for: 1, unless rows are joined."""
        return 1

    def check(self, size: int) -> None:
        """Refuse a model with `size` outputs that this likelihood cannot have."""

    def init_noise(self, dtype: Any) -> Any:
        """The prior of the noise, where the noise is learned along with the parameters; None elsewhere."""
        return None

    def given_noise(self, noise: Any) -> LikelihoodBase:
        """The likelihood in units of its noise, where the noise is learned."""
        return self

    def plugin(self, eta: jax.Array, noise: Any = None) -> Predictive:
        """The predictive p(y | eta) at one value of eta (C,)."""
        return MixturePredictive(self, eta[None, :], jnp.zeros(1, eta.dtype))

    def linearized(self, eta: jax.Array, cov: jax.Array, noise: Any = None) -> Predictive:
        """The predictive for eta ~ N(eta, cov): Gauss-Hermite for one output, fixed quasi-random nodes for
        several.
        """
        nodes, log_weights = integration_nodes(eta.shape[0], eta.dtype)
        return MixturePredictive(self, eta[None, :] + nodes @ psd_root(cov).T, log_weights)

    def mixture(self, etas: jax.Array, noise: Any = None) -> Predictive:
        """The equal mixture over values (M, C) of eta, such as Monte Carlo draws."""
        weights = jnp.full(etas.shape[0], -np.log(etas.shape[0]), etas.dtype)
        return MixturePredictive(self, etas, weights)


@record
class Likelihood(LikelihoodBase):
    """A likelihood from one function.

    Arguments:
        log_prob: `log_prob(eta, y)`, a scalar; eta is a scalar where the model has one output, else (C,). Its
            gradient and (PSD-projected, observed) Hessian in eta are taken by automatic differentiation.
        mean, var, sample, cdf: optional functions of `eta` (and of `key`, `y`); what needs a missing one says
            so.
        discrete: whether y takes whole-number values.

    Example:
        >>> poisson = Likelihood(lambda eta, y: y * eta - jnp.exp(eta))
        >>> poisson.score(jnp.zeros(1), jnp.asarray(3.0))
        Array([2.], dtype=float32)
    """

    log_prob_function: Callable = static_field()
    mean_function: Callable | None = static_field(default=None)
    var_function: Callable | None = static_field(default=None)
    sample_function: Callable | None = static_field(default=None)
    cdf_function: Callable | None = static_field(default=None)
    discrete: bool = static_field(default=False)

    def __init__(
        self,
        log_prob: Callable | None = None,
        *,
        mean: Callable | None = None,
        var: Callable | None = None,
        sample: Callable | None = None,
        cdf: Callable | None = None,
        discrete: bool = False,
        **fields: Any,
    ) -> None:
        given = {
            "log_prob_function": log_prob,
            "mean_function": mean,
            "var_function": var,
            "sample_function": sample,
            "cdf_function": cdf,
            "discrete": discrete,
        } | fields
        if not callable(given["log_prob_function"]):
            raise CredoError(f"log_prob must be a function of (eta, y); got {given['log_prob_function']!r}.")
        for name, value in given.items():
            object.__setattr__(self, name, value)

    def log_prob(self, eta: jax.Array, y: Any) -> jax.Array:
        """log p(y | eta), a scalar."""
        value = self.log_prob_function(_scalar_if_one(eta), jax.tree.map(_scalar_if_one, y))
        if jnp.size(value) != 1:
            raise CredoError(
                f"log_prob must return a scalar; got shape {jnp.shape(value)} for eta of shape {eta.shape}."
            )
        return jnp.reshape(value, ())

    def mean(self, eta: jax.Array) -> jax.Array:
        """E[y | eta], (C,)."""
        if self.mean_function is None:
            return super().mean(eta)
        return jnp.reshape(self.mean_function(_scalar_if_one(eta)), (-1,))

    def variance(self, eta: jax.Array) -> jax.Array:
        """Var[y | eta], (C,)."""
        return (
            super().variance(eta)
            if self.var_function is None
            else jnp.reshape(self.var_function(_scalar_if_one(eta)), (-1,))
        )

    def sample(self, eta: jax.Array, key: jax.Array) -> jax.Array:
        """One draw of y given eta."""
        if self.sample_function is None:
            return super().sample(eta, key)
        return self.sample_function(_scalar_if_one(eta), key)

    def cdf(self, eta: jax.Array, y: jax.Array) -> jax.Array:
        """P(Y <= y | eta)."""
        return super().cdf(eta, y) if self.cdf_function is None else self.cdf_function(_scalar_if_one(eta), y)


def _scalar_if_one(value: Any) -> jax.Array:
    array = jnp.asarray(value)
    return array.reshape(()) if array.size == 1 else array
