"""The base of all likelihoods, and likelihoods made of one user function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.beliefs.conjugate import InverseGamma
from credo.core.errors import CredoError
from credo.core.inputs import of_numbers
from credo.core.records import record, static_field
from credo.core.types import Array, ArrayLike, DTypeLike, PyTree
from credo.likelihoods.mixture import MixturePredictive, integration_nodes
from credo.likelihoods.predictive import Predictive
from credo.linalg.matrices import psd_root, spread_root

__all__ = ["Likelihood", "LikelihoodBase"]

METHODS = {
    "cdf": ("eta", "y"),
    "fisher_root": ("eta", "y"),
    "information_root": ("eta", "y"),
    "log_prob": ("eta", "y"),
    "mean": ("eta",),
    "sample": ("eta",),
    "score": ("eta", "y"),
    "variance": ("eta",),
}
"""The arguments of each method that are numbers; it refuses one that no array can hold."""


class LikelihoodBase:
    """The base of every likelihood p(y | eta). Extend it if closed forms are known.

    Only `log_prob` is required. Score and curvature have defaults by automatic differentiation. Where a
    forecast needs a `mean`, `variance`, `sample` or `cdf` that is not written, it raises an error that says
    so. Everything must be traceable. Below, eta is the vector (C,) of a model's outputs for one row, and y is
    the observation of that row. A subclass is a `credo.record`, so that its hyper-parameters are leaves.

    Example:
        Waiting times y > 0, exponential with log-rate eta: -d2 log p / d eta2 = y exp(eta), expected value 1.

        >>> import credo
        >>> @credo.record
        ... class Exponential(LikelihoodBase):
        ...     def log_prob(self, eta: Array, y: PyTree) -> Array:
        ...         return eta[0] - y * jnp.exp(eta[0])
        ...     def fisher_root(self, eta: Array, y: PyTree) -> Array:
        ...         return jnp.ones((1, 1), eta.dtype)
        ...     def mean(self, eta: Array) -> Array:
        ...         return jnp.exp(-eta)
        ...     def variance(self, eta: Array) -> Array:
        ...         return jnp.exp(-2 * eta)
        >>> learner = credo.extended_kalman(credo.Model(lambda w, x: w * x, Exponential()))
        >>> belief, info = learner.step(learner.init(jnp.zeros(())), 1.0, 3.0)
        >>> round(float(belief.params), 3), round(float(learner.forecast(belief, 0.0).mean), 3)
        (-1.0, 1.0)
    """

    def __init_subclass__(cls, **words: Any) -> None:
        super().__init_subclass__(**words)
        _refuse_what_is_no_number(cls)

    discrete: bool = False
    """Whether y takes whole-number values, so that quantiles are searched among them."""

    quadratic: bool = False
    """Whether log p is quadratic in eta, so that a Newton step never overshoots."""

    def log_prob(self, eta: Array, y: PyTree) -> Array:
        """log p(y | eta), a scalar.

        Raises:
            CredoError: the subclass does not write it.
        """
        raise self._missing("log_prob(eta, y)", "")

    def score(self, eta: Array, y: PyTree) -> Array:
        """d log p(y | eta) / d eta, (C,)."""
        slope: Array = jax.grad(self.log_prob)(eta, y)
        return slope

    def fisher_root(self, eta: Array, y: PyTree) -> Array:
        """A factor A (C, K) of the negative Hessian V = A A' of log p in eta.

        V is projected on the positive semi-definite matrices.
        """
        return psd_root(-jax.hessian(self.log_prob)(eta, y))

    def information_root(self, eta: Array, y: PyTree) -> Array | None:
        """A factor of what an observation adds to the precision, if that is less than what bounds its step.

        Where the V of `fisher_root` is steeper than the Fisher information, so that one step does not
        overshoot, a belief that counts V ends too certain. `BONGRule` then moves the mean by V, and counts
        the information alone. None, the default, says that they are the same.
        """
        return None

    def centre(self, eta: Array) -> Array | None:
        """Weights p (C,), which sum to 1, where V = (I - 1 p')' diag(p) (I - 1 p'); None for any other V.

        The likelihood is then blind to a common shift of all outputs, and with rows (I - 1 p') J its root is
        the diagonal sqrt(p).
        """
        return None

    def mean(self, eta: Array) -> Array:
        """E[y | eta], (C,).

        Raises:
            CredoError: the likelihood has no mean of its own.
        """
        raise self._missing("mean(eta)", "mean=...")

    def variance(self, eta: Array) -> Array:
        """Var[y | eta], (C,).

        Raises:
            CredoError: the likelihood has no variance of its own.
        """
        raise self._missing("variance(eta)", "mean=..., var=...")

    def sample(self, eta: Array, key: Array) -> Array:
        """One draw of y given eta.

        Raises:
            CredoError: the likelihood has no draws of its own.
        """
        raise self._missing("sample(eta, key)", "sample=...")

    def cdf(self, eta: Array, y: Array) -> Array:
        """P(Y <= y | eta) for a scalar y.

        Raises:
            CredoError: the likelihood has no distribution function of its own.
        """
        raise self._missing("cdf(eta, y)", "cdf=...")

    def _missing(self, method: str, keyword: str) -> CredoError:
        """The refusal of a method that nobody wrote: a subclass writes it, a `Likelihood` takes it."""
        if isinstance(self, Likelihood):
            return CredoError(f"{self!r} has no {method}; give one with Likelihood(log_prob, {keyword}).")
        return CredoError(f"{self!r} has no {method}; write this method in {type(self).__name__}.")

    def observed(self, y: PyTree) -> Array:
        """Whether y holds no NaN: a boolean scalar."""
        flags = [
            jnp.all(~jnp.isnan(leaf))
            for leaf in jax.tree.leaves(y)
            if jnp.issubdtype(leaf.dtype, jnp.floating)
        ]
        if flags:
            return jnp.all(jnp.stack(flags))
        return jnp.asarray(True)

    def seen(self, y: PyTree) -> Array | None:
        """Which outputs of y are observed (C,), where some may be observed without the others.

        None, the default, says that y is observed or missing as a whole. Where a likelihood returns booleans,
        its `log_prob`, `score` and `fisher_root` take y with NaN in the other outputs, and are those of the
        observed outputs alone; so is the `log_prob` of its predictives.
        """
        return None

    def rows(self, y: PyTree) -> int:
        """The number of observations that y stands for, which is 1 unless rows are joined."""
        return 1

    def check(self, size: int) -> None:
        """Refuse a model whose number of outputs, `size`, does not fit this likelihood."""

    def init_noise(self, dtype: DTypeLike) -> InverseGamma | None:
        """The prior of the noise, where the noise is learned along with the parameters; None elsewhere."""
        return None

    def given_noise(self, noise: InverseGamma | None) -> LikelihoodBase:
        """The likelihood in units of its noise, where the noise is learned."""
        return self

    def plugin(self, eta: Array, noise: InverseGamma | None = None) -> Predictive:
        """The predictive p(y | eta) at one value of eta (C,)."""
        return MixturePredictive(self, eta[None, :], jnp.zeros(1, eta.dtype))

    def linearized(self, eta: Array, cov: Array, noise: InverseGamma | None = None) -> Predictive:
        """The predictive for eta ~ N(eta, cov).

        One output takes equally spaced nodes, and several outputs take fixed quasi-random nodes.
        """
        gaps, log_weights = self.nodes(cov)
        return MixturePredictive(self, eta[None, :] + gaps, log_weights)

    def nodes(self, cov: Array) -> tuple[Array, Array]:
        """Nodes (n, C) and log weights (n,) that integrate over N(0, cov)."""
        points, log_weights = integration_nodes(cov.shape[0], cov.dtype)
        return points @ spread_root(cov).T, log_weights

    def scaled(
        self, eta: Array, cov: Array, scale: ArrayLike, noise: InverseGamma | None = None
    ) -> Predictive:
        """The predictive for eta ~ N(eta, scale cov), where scale is at least 0."""
        return self.linearized(eta, jnp.asarray(scale, cov.dtype) * cov, noise)

    def mixture(self, etas: Array, noise: InverseGamma | None = None) -> Predictive:
        """The equal mixture over values (M, C) of eta, such as Monte Carlo draws."""
        weights = jnp.full(etas.shape[0], -np.log(etas.shape[0]), etas.dtype)
        return MixturePredictive(self, etas, weights)


def _refuse_what_is_no_number(kind: type[LikelihoodBase]) -> None:
    """Have the methods that a class writes refuse a number that no array can hold."""
    for name in METHODS.keys() & kind.__dict__.keys():
        setattr(kind, name, of_numbers(kind.__dict__[name], *METHODS[name]))


_refuse_what_is_no_number(LikelihoodBase)


@record
class Likelihood(LikelihoodBase):
    """A likelihood from one function.

    Arguments:
        log_prob: `log_prob(eta, y)`, a scalar; eta is a scalar where the model has one output, else (C,). Its
            gradient and (PSD-projected, observed) Hessian in eta are taken by automatic differentiation.
        fisher: `fisher(eta)`, the expected negative Hessian (C, C), positive semi-definite, in place of the
            observed one. It is the better choice where the Hessian is indefinite, as for a mean and a spread.
        mean, var, sample, cdf: optional functions of `eta` (and of `key` or `y`). Where one is needed and
            missing, the error says so.
        discrete: whether y takes whole-number values.

    Raises:
        CredoError: `log_prob` is not a function, or (later) does not return a scalar.

    Example:
        >>> poisson = Likelihood(lambda eta, y: y * eta - jnp.exp(eta))
        >>> poisson.score(jnp.zeros(1), jnp.asarray(3.0))
        Array([2.], dtype=float32)
    """

    log_prob_function: Callable[[Array, PyTree], ArrayLike] = static_field()
    mean_function: Callable[[Array], ArrayLike] | None = static_field(default=None)
    var_function: Callable[[Array], ArrayLike] | None = static_field(default=None)
    sample_function: Callable[[Array, Array], Array] | None = static_field(default=None)
    cdf_function: Callable[[Array, Array], Array] | None = static_field(default=None)
    discrete: bool = static_field(default=False)
    fisher_function: Callable[[Array], ArrayLike] | None = static_field(default=None)

    def __init__(
        self,
        log_prob: Callable[[Array, PyTree], ArrayLike] | None = None,
        *,
        fisher: Callable[[Array], ArrayLike] | None = None,
        mean: Callable[[Array], ArrayLike] | None = None,
        var: Callable[[Array], ArrayLike] | None = None,
        sample: Callable[[Array, Array], Array] | None = None,
        cdf: Callable[[Array, Array], Array] | None = None,
        discrete: bool = False,
        **fields: Any,
    ) -> None:
        values: dict[str, object] = {
            "log_prob_function": log_prob,
            "mean_function": mean,
            "var_function": var,
            "sample_function": sample,
            "cdf_function": cdf,
            "discrete": discrete,
            "fisher_function": fisher,
        } | fields
        if not callable(values["log_prob_function"]):
            raise CredoError(f"log_prob must be a function of (eta, y); got {values['log_prob_function']!r}.")
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def log_prob(self, eta: Array, y: PyTree) -> Array:
        """log p(y | eta), a scalar.

        Raises:
            CredoError: the user's function does not return a scalar.
        """
        value = self.log_prob_function(_scalar_if_one(eta), jax.tree.map(_scalar_if_one, y))
        if jnp.size(value) != 1:
            raise CredoError(
                f"log_prob must return a scalar; got shape {jnp.shape(value)} for eta of shape {eta.shape}."
            )
        return jnp.reshape(value, ())

    def fisher_root(self, eta: Array, y: PyTree) -> Array:
        """A factor of the Fisher information where it is given, else of the observed Hessian."""
        if self.fisher_function is None:
            return super().fisher_root(eta, y)
        size = eta.shape[0]
        return psd_root(
            jnp.reshape(jnp.asarray(self.fisher_function(_scalar_if_one(eta)), eta.dtype), (size, size))
        )

    def mean(self, eta: Array) -> Array:
        """E[y | eta], (C,)."""
        if self.mean_function is None:
            return super().mean(eta)
        return jnp.reshape(self.mean_function(_scalar_if_one(eta)), (-1,))

    def variance(self, eta: Array) -> Array:
        """Var[y | eta], (C,)."""
        if self.var_function is None:
            return super().variance(eta)
        return jnp.reshape(self.var_function(_scalar_if_one(eta)), (-1,))

    def sample(self, eta: Array, key: Array) -> Array:
        """One draw of y given eta."""
        if self.sample_function is None:
            return super().sample(eta, key)
        return self.sample_function(_scalar_if_one(eta), key)

    def cdf(self, eta: Array, y: Array) -> Array:
        """P(Y <= y | eta)."""
        if self.cdf_function is None:
            return super().cdf(eta, y)
        return self.cdf_function(_scalar_if_one(eta), y)


def _scalar_if_one(value: ArrayLike) -> Array:
    array = jnp.asarray(value)
    if array.size == 1:
        return array.reshape(())
    return array
