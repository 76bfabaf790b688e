"""The belief of a Gaussian process: its rows, the numbers of its kernel, and functions drawn from it."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from credo.beliefs.widening import widen_belief
from credo.core.errors import CredoError
from credo.core.fields import field
from credo.core.records import record, replace, static_field
from credo.core.subarrays import at_corner
from credo.core.trees import as_like
from credo.core.types import Array, PyTree
from credo.learners.kernels import KernelName, correlations
from credo.linalg.entries import identity
from credo.linalg.matrices import cholesky, solve_lower

__all__ = ["ProcessBelief", "ProcessFunction", "input_rows"]

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
