"""Gaussian processes over the latest rows, with exact forecasts, evidences and draws of functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import get_args

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.errors import (
    CredoError,
    require_choice,
    require_integer,
    require_nonnegative,
    require_positive,
)
from credo.core.keys import as_key
from credo.core.names import ForecastName
from credo.core.records import record, replace, static_field
from credo.core.trees import as_like
from credo.core.types import Array, ArrayLike, Key, PyTree
from credo.learners.base import Info, Learner, accept, clean, usable
from credo.learners.conjugate import closed_form
from credo.learners.kernels import KernelName
from credo.learners.process_belief import ProcessBelief, ProcessFunction, input_rows
from credo.likelihoods import Expectation, LatentExpectation, Normal, Predictive
from credo.linalg.entries import identity
from credo.linalg.matrices import precision
from credo.linalg.normals import scaled_root

__all__ = ["GaussianProcess"]


@record
class GaussianProcess(Learner[ProcessBelief]):
    """A Gaussian process, given the latest M rows: exact regression with functions in place of parameters.

    y_i = f(x_i) + e_i,    e_i ~ N(0, noise_var / weight_i),    f ~ GP(0, k),
    k(x, z) = offset_var + signal_var r(|(x - z) / length|),

    with r the Matern kernel of order 5/2, or exp(-d^2 / 2). With K the kernel of the M rows, N the diagonal
    of their noise and k(x) = (k(x, x_i))_i, the function at x is

        f(x) | past ~ N(k(x)' inv(K + N) y,   k(x, x) - k(x)' inv(K + N) k(x)).

    Source: Rasmussen & Williams 2006, Gaussian Processes for Machine Learning, algorithm 2.1.

    Arguments:
        columns: the number D of inputs.
        length: the length scale of every column, or of each (D,), above 0.
        signal_var: the variance of the function around its level, above 0.
        noise_var: the variance of the noise, above 0.
        offset_var: the variance of the level, at least 0.
        kernel: "matern", for functions that can be differentiated twice, or "squared-exponential".
        size: the number M of rows that are remembered, at least 1.

    Raises:
        CredoError: a number is out of its range, or (later) a row has another number of inputs.

    Forecasts, evidences and `expect` are exact until more than M rows came; then the oldest are forgotten.
    `dt` has no part in it. The belief carries the numbers of the kernel, and `condition` has the same rows
    believed under others: `log_evidence` says how well those fit. `sample` draws the function at the M rows.
    `sample_function` draws a function of all x, from 256 waves of the prior that are corrected by the rows
    (Wilson et al. 2020): exact at the rows, and nearly elsewhere.

    Cost: M^3 for a row, and M D + M^2 for a forecast; 2 M^2 numbers.

    Example:
        >>> import credo
        >>> learner = credo.GaussianProcess(1, length=0.5, noise_var=1e-4, size=20)
        >>> xs = jnp.linspace(-1, 1, 9)[:, None]
        >>> belief, _ = credo.run(learner, learner.init(), xs, jnp.sin(3 * xs[:, 0]))
        >>> round(float(learner.forecast(belief, jnp.asarray([0.3])).mean), 2)
        0.78
    """

    columns: int = static_field()
    length: ArrayLike = 1.0
    signal_var: ArrayLike = 1.0
    noise_var: ArrayLike = 0.01
    offset_var: ArrayLike = 1.0
    kernel: KernelName = static_field(default="matern")
    size: int = static_field(default=64)

    def __post_init__(self) -> None:
        require_integer("columns", self.columns, 1)
        require_integer("size", self.size, 1)
        require_choice("kernel", self.kernel, get_args(KernelName))
        for name in ("length", "signal_var", "noise_var"):
            require_positive(name, getattr(self, name))
        require_nonnegative("offset_var", self.offset_var)

    def init(self, params: PyTree = None, *, var: PyTree = 1.0) -> ProcessBelief:
        """A belief without rows. The arguments are ignored."""
        rows = jnp.zeros((self.size, self.columns), float)
        kind = rows.dtype
        empty = jnp.zeros(self.size, rows.dtype)
        if np.shape(self.length) not in [(), (self.columns,)]:
            raise CredoError(
                f"length must be a number or ({self.columns},); got shape {np.shape(self.length)}.",
                field="length",
            )
        length = jnp.broadcast_to(jnp.asarray(self.length, kind), (self.columns,))
        signal, offset, noise = (
            jnp.asarray(one, kind) for one in (self.signal_var, self.offset_var, self.noise_var)
        )
        start = jnp.zeros((), jnp.int32)
        root = jnp.asarray(identity(self.size, kind))
        return ProcessBelief(length, signal, offset, noise, rows, empty, empty, root, empty, start, start)

    def condition(self, belief: ProcessBelief) -> ProcessBelief:
        """The belief that its rows give under its kernel, if either was replaced.

        Arguments:
            belief: a belief whose `rows`, `targets`, `shares` or numbers of the kernel were replaced.

        Returns:
            The belief with the `root` and `dual` that follow from them.
        """
        return belief.conditioned(self.kernel)

    def log_evidence(self, belief: ProcessBelief) -> Array:
        """log N(y | 0, K + N) of the rows, with the noise of each as its weight makes it.

        Arguments:
            belief: a belief with the `root` of its rows.

        Returns:
            The log density of the targets.
        """
        targets = jnp.where(belief.there, belief.targets, 0.0)
        count = jnp.sum(belief.there.astype(targets.dtype))
        logs = jnp.sum(jnp.log(jnp.diagonal(belief.root)))
        return logs - 0.5 * (targets @ belief.dual + count * math.log(2.0 * math.pi))

    def time_update(self, belief: ProcessBelief, dt: ArrayLike | None) -> ProcessBelief:
        return replace(belief, t=belief.t + 1)

    def joint(self, belief: ProcessBelief, rows: Array) -> tuple[Array, Array]:
        """The means (R,) and the covariance (R, R) of the function at some rows.

        Arguments:
            belief: any belief.
            rows: the rows (R, D).

        Returns:
            The means, and the covariance.
        """
        rows = input_rows(rows, belief.rows)
        cross = belief.cross(self.kernel, rows)
        whitened = cross @ belief.root.T
        return cross @ belief.dual, belief.kernel(self.kernel, rows, rows) - whitened @ whitened.T

    def _moments(self, belief: ProcessBelief, x: PyTree) -> tuple[Array, Array]:
        """The mean and the variance of the function at one row (D,)."""
        cross = belief.cross(self.kernel, input_rows(x, belief.rows)[:1])[0]
        whitened = belief.root @ cross
        prior = belief.offset_var + belief.signal_var
        # no variance is below what rounding leaves of its prior
        var = jnp.maximum(prior - whitened @ whitened, precision(cross.dtype).eps * prior)
        return cross @ belief.dual, var

    def predictive(
        self,
        belief: ProcessBelief,
        x: PyTree,
        method: ForecastName | None,
        samples: int | None,
        key: Key | None,
    ) -> Predictive:
        closed_form(method)
        mean, var = self._moments(belief, x)
        return Normal(belief.noise_var).linearized(mean[None], var[None, None])

    def measurement_update(
        self, belief: ProcessBelief, x: PyTree, y: PyTree, weight: ArrayLike, key: Key | None
    ) -> tuple[ProcessBelief, Info]:
        if jnp.size(y) != 1:
            raise CredoError(f"y must be one number; got shape {jnp.shape(y)}.", field="y")
        target = as_like(y, belief.targets).reshape(())
        size = belief.targets.shape[0]
        observed, used = usable(~jnp.isnan(target), weight, belief.targets.dtype)
        row = input_rows(clean(x), belief.rows)[0]
        target = jnp.where(observed & jnp.isfinite(target), target, 0.0)
        log_evidence = self.predictive(belief, row, None, None, key).log_prob(target)
        here = jnp.arange(size, dtype=belief.written.dtype) == belief.written % size
        new = replace(
            belief,
            rows=jnp.where(here[:, None], row[None, :], belief.rows),
            targets=jnp.where(here, target, belief.targets),
            shares=jnp.where(here, used, belief.shares),
            written=belief.written + 1,
        )
        return accept(belief, self.condition(new), log_evidence, observed, x, y, used)

    def expectation(self, belief: ProcessBelief, x: PyTree) -> Expectation:
        """The joint distribution of the function at one row (D,) or several (R, D)."""
        rows = input_rows(x, belief.rows)
        if rows.shape[0] == 1:
            mean, var = self._moments(belief, x)
            return LatentExpectation(Normal(belief.noise_var), mean[None, None], var[None, None])
        mean, cov = self.joint(belief, rows)
        return LatentExpectation(Normal(belief.noise_var), mean[:, None], cov, correlated=True)

    def draws(self, belief: ProcessBelief, key: Key, shape: tuple[int, ...]) -> Array:
        """The function at the M rows (*shape, M), and at the origin if there is none."""
        mean, cov = self.joint(belief, belief.rows)
        normals = jax.random.normal(as_key(key), (*shape, mean.shape[0]), mean.dtype)
        moves = normals @ scaled_root(cov).T
        return moves + jnp.broadcast_to(mean, moves.shape)

    def function_draw(self, belief: ProcessBelief, key: Key) -> Callable[[PyTree], Array]:
        return ProcessFunction.draw(belief, self.kernel, as_key(key))
