"""Gaussian processes over the latest rows, with exact forecasts, evidences and draws of functions.

The belief of a process has its rows and the numbers of its kernel. Kernels are correlations of a function at
two places, by their distance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias, get_args

import jax
import jax.numpy as jnp
import numpy as np

from credo.beliefs.widening import widen_belief
from credo.core.errors import (
    CredoError,
    require_choice,
    require_integer,
    require_nonnegative,
    require_positive,
)
from credo.core.fields import field
from credo.core.keys import as_key
from credo.core.names import ForecastName
from credo.core.records import record, replace, static_field
from credo.core.subarrays import at_corner
from credo.core.trees import as_like
from credo.core.types import Array, ArrayLike, Key, PyTree
from credo.learners.base import Info, Learner, accept, clean, usable
from credo.learners.conjugate import closed_form
from credo.likelihoods import Expectation, LatentExpectation, Normal, Predictive
from credo.linalg.matrices import cholesky, identity, precision, solve_lower
from credo.linalg.normals import scaled_root

__all__ = [
    "CORRELATIONS",
    "GaussianProcess",
    "KernelName",
    "ProcessBelief",
    "ProcessFunction",
    "correlations",
    "input_rows",
]

KernelName: TypeAlias = Literal["matern", "squared-exponential"]
"""The smoothness of a function: twice differentiable, or arbitrarily often."""

ROOT = math.sqrt(5.0)


@jax.custom_jvp
def matern(squares: Array) -> Array:
    """The Matern kernel of order 5/2, (1 + s + s^2 / 3) exp(-s) with s^2 = 5 d^2, of squared distances d^2.

    Source: Rasmussen & Williams 2006, Gaussian Processes for Machine Learning, equation 4.17. Its derivative
    by d^2 is -5/6 (1 + s) exp(-s), also at 0, where that of s is infinite.
    """
    s = ROOT * jnp.sqrt(squares)
    return (1.0 + s + (5.0 / 3.0) * squares) * jnp.exp(-s)


@matern.defjvp
def _matern_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    s = ROOT * jnp.sqrt(primals[0])
    fall = jnp.exp(-s)
    value = (1.0 + s + (5.0 / 3.0) * primals[0]) * fall
    return value, (-5.0 / 6.0) * (1.0 + s) * fall * tangents[0]


def squared_exponential(squares: Array) -> Array:
    """The kernel exp(-d^2 / 2) of squared distances d^2."""
    return jnp.exp(-0.5 * squares)


CORRELATIONS: Mapping[KernelName, Callable[[Array], Array]] = {
    "matern": matern,
    "squared-exponential": squared_exponential,
}
"""The kernels by their names."""


def correlations(kernel: KernelName, left: Array, right: Array, length: Array) -> Array:
    """The correlations (A, B) of a function at rows (A, D) and (B, D), with a length scale a column (D,).

    Rows are subtracted before they are squared, so that close rows keep their digits in single precision.
    """
    per = 1.0 / length[None, :]
    gaps = (left * per)[:, None, :] - (right * per)[None, :, :]
    return CORRELATIONS[kernel](jnp.sum(gaps * gaps, axis=-1))


FREQUENCIES = 256
"""The number of waves that a drawn function has beside what the data say."""


@record
class ProcessBelief:
    """The latest M rows, and the numbers of the kernel under which they are believed.

    Attributes:
        length: the length scale of each column (D,).
        signal_var: the variance of the function around its level.
        offset_var: the variance of its level.
        noise_var: the variance of the noise.
        rows: the inputs (M, D); row i is replaced by the one that comes M rows later.
        targets: the targets (M,).
        shares: the weights of the rows (M,); 0 if no row has come.
        root: W (M, M) with W (K + N) W' = I, for the kernel K of the rows and the noise N.
        dual: W' W y (M,).
        written: how many rows were taken in.
        t: how many times `predict` has been called.

    Example:
        >>> import credo
        >>> credo.GaussianProcess(2, size=10).init().rows.shape
        (10, 2)
    """

    length: Array = field("positive")
    signal_var: Array = field("positive")
    offset_var: Array = field("nonnegative")
    noise_var: Array = field("positive")
    rows: Array
    targets: Array
    shares: Array = field("nonnegative")
    root: Array
    dual: Array
    written: Array = field("nonnegative")
    t: Array

    @property
    def size(self) -> int:
        """The number of parameters: none, since rows are kept as they come."""
        return 0

    @property
    def there(self) -> Array:
        """Which of the M places hold a row (M,)."""
        return self.shares > 0

    @property
    def noise_vars(self) -> Array:
        """The variance of the noise of each row (M,), and 1 if there is none."""
        return jnp.where(self.there, self.noise_var / jnp.where(self.there, self.shares, 1.0), 1.0)

    def kernel(self, name: KernelName, left: Array, right: Array) -> Array:
        """The covariances (A, B) of the function at rows (A, D) and (B, D), before any data."""
        return self.offset_var + self.signal_var * correlations(name, left, right, self.length)

    def cross(self, name: KernelName, rows: Array) -> Array:
        """The covariances (R, M) of the function at rows (R, D) and at the rows of the belief; 0 for none."""
        return jnp.where(self.there[None, :], self.kernel(name, rows, self.rows), 0.0)

    def noisy_kernel(self, name: KernelName) -> Array:
        """K + N (M, M), with 1 on the diagonal and 0 beside it for places that hold no row."""
        pairs = self.there[:, None] & self.there[None, :]
        kernel = jnp.where(pairs, self.kernel(name, self.rows, self.rows), 0.0)
        return kernel + identity(kernel.shape[0], kernel.dtype) * self.noise_vars[:, None]

    def conditioned(self, name: KernelName) -> ProcessBelief:
        """The belief with the root and the dual that follow from its rows and numbers."""
        chol = cholesky(self.noisy_kernel(name))
        root = solve_lower(chol, jnp.asarray(identity(chol.shape[0], chol.dtype)))
        return replace(self, root=root, dual=root.T @ (root @ jnp.where(self.there, self.targets, 0.0)))


@record
class ProcessFunction:
    """A function x -> f(x) that was drawn from a process.

    f(x) = g(x) + k(x)' inv(K + N) (y - g(x_i) - e_i), for a draw g of the prior as a sum of waves and draws
    e_i of the noise (Matheron's rule; Wilson et al. 2020, "Efficiently sampling functions from Gaussian
    process posteriors").

    Attributes:
        belief: the rows and the numbers of the kernel.
        kernel: the name of the kernel.
        waves: the frequencies of the waves (F, D).
        heights: the heights (2, F) of their cosines and sines.
        level: the height of the level.
        dual: inv(K + N) (y - g - e), (M,).

    Example:
        >>> import credo
        >>> learner = credo.GaussianProcess(1, size=4, noise_var=1e-6)
        >>> belief, _ = credo.run(learner, learner.init(), jnp.ones((1, 1)), jnp.asarray([2.0]))
        >>> round(float(learner.sample_function(belief, 0)(jnp.ones(1))), 1)
        2.0
    """

    belief: ProcessBelief
    waves: Array
    heights: Array
    level: Array
    dual: Array
    kernel: KernelName = static_field(default="matern")

    @staticmethod
    def draw(belief: ProcessBelief, kernel: KernelName, key: Array) -> ProcessFunction:
        """One function."""
        first, second, third, fourth, fifth = jax.random.split(key, 5)
        kind = belief.rows.dtype
        count = FREQUENCIES
        waves = jax.random.normal(first, (count, belief.length.shape[0]), kind) / belief.length[None, :]
        if kernel == "matern":  # its frequencies are Student-t with 5 degrees of freedom
            gamma = jax.random.gamma(second, 2.5, (count, 1), kind)
            waves = waves * jnp.sqrt(2.5 / gamma)
        heights = jax.random.normal(third, (2, count), kind) * jnp.sqrt(belief.signal_var / count)
        level = jax.random.normal(fourth, (), kind) * jnp.sqrt(belief.offset_var)
        function = ProcessFunction(belief, waves, heights, level, jnp.zeros_like(belief.dual), kernel)
        noise = jnp.sqrt(belief.noise_vars) * jax.random.normal(fifth, belief.targets.shape, kind)
        gaps = belief.targets - jax.vmap(function._prior)(belief.rows) - noise
        gaps = jnp.where(belief.there, gaps, 0.0)
        return replace(function, dual=belief.root.T @ (belief.root @ gaps))

    def _prior(self, row: Array) -> Array:
        angles = self.waves @ row
        return self.level + self.heights[0] @ jnp.cos(angles) + self.heights[1] @ jnp.sin(angles)

    def __call__(self, x: PyTree) -> Array:
        """f(x) at one row x (D,): a scalar."""
        row = input_rows(x, self.belief.rows)[0]
        return self._prior(row) + self.belief.cross(self.kernel, row[None, :])[0] @ self.dual


def input_rows(x: PyTree, like: Array) -> Array:
    """One row of inputs (D,), or several, as rows (R, D) like those of a belief."""
    rows = as_like(x, like)
    if rows.ndim not in (1, 2) or rows.shape[-1] != like.shape[1]:
        raise CredoError(
            f"x must be one row of {like.shape[1]} inputs, or several; got shape {rows.shape}.", field="x"
        )
    return rows.reshape(-1, like.shape[1])


@widen_belief.register
def _(belief: ProcessBelief, prior: ProcessBelief) -> ProcessBelief:
    """More columns, which are 0 in the rows that are there."""
    if belief.targets.shape != prior.targets.shape:
        raise CredoError(
            f"a process is widened in its columns only; it remembers {belief.targets.shape[0]} rows, and the "
            f"wider one {prior.targets.shape[0]}.",
            field="belief",
        )
    rows = at_corner("rows", belief.rows, prior.rows)
    return replace(belief, rows=rows, length=at_corner("length", belief.length, prior.length))


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
