"""Beliefs about classes whose columns are normal: their frequencies, means and variances."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from credo.core.fields import field
from credo.core.records import record
from credo.core.trees import as_like
from credo.core.types import Array, ArrayLike

__all__ = ["ClassNormals", "ClassParameters"]


@record
class ClassParameters:
    """Classes with known parameters: y ~ Categorical(p), and column j of a row of class c is N(m_cj, v_cj).

    Attributes:
        p: the probability of each class (C,).
        mean: the means of the columns in each class (C, D).
        var: their variances (C, D).

    Example:
        >>> import credo
        >>> learner = credo.GaussianClasses(3, credo.Categorical(2))
        >>> learner.sample(learner.init(), 0, (5,)).var.shape
        (5, 2, 3)
    """

    p: Array
    mean: Array
    var: Array


@record
class ClassNormals:
    """C classes with D normal columns: p ~ Dirichlet(counts), and a normal-inverse-gamma for each column.

    In class c, column j has a mean m and a variance v,

        m | v ~ N(mean_cj, v / rows_cj),    v ~ InverseGamma(shape_cj, scale_cj),

    independently of all others. If classes share the variances, shape and scale have one row, and the
    means of a column are independent given its one variance.

    Attributes:
        counts: the rows of each class that the belief is worth (C,), above 0.
        mean: where the means are (C, D).
        rows: how many rows each mean is worth (C, D), above 0.
        shape: half the rows that each variance is worth (C, D), or (1, D) for shared ones; above 0.
        scale: the scale of each variance, shaped as `shape`; scale / shape is the typical variance.
        t: how many times `predict` has been called.

    Example:
        >>> import credo
        >>> belief = credo.GaussianClasses(3, credo.Categorical(2)).init()
        >>> belief.mean.shape, belief.probs.tolist()
        ((2, 3), [0.5, 0.5])
    """

    counts: Array = field("positive")
    mean: Array
    rows: Array = field("positive")
    shape: Array = field("positive")
    scale: Array = field("positive")
    t: Array

    @property
    def probs(self) -> Array:
        """E[p] (C,)."""
        return self.counts / jnp.sum(self.counts)

    @property
    def params(self) -> Array:
        """E[m] (C, D)."""
        return self.mean

    @property
    def size(self) -> int:
        """The number of means C D."""
        count: int = self.mean.shape[-2] * self.mean.shape[-1]
        return count

    @property
    def var(self) -> Array:
        """The typical variances scale / shape, shaped as those."""
        return self.scale / self.shape

    @property
    def tied(self) -> bool:
        """Whether all classes share the variance of a column."""
        return self.shape.shape[-2] < self.mean.shape[-2]

    def toward(self, prior: ClassNormals, share: ArrayLike) -> ClassNormals:
        """The distribution proportional to q^share prior^(1 - share), by natural parameters.

        With f the share, k the rows, m the mean, b the scale, and 0 for those of the prior,

            k' = f k + (1 - f) k0,    m' = m + (1 - f) k0 / k' (m0 - m),
            b' = f b + (1 - f) b0 + f k (1 - f) k0 / (2 k') (m0 - m)^2,

        while counts and shapes are blended as k is; b' sums the last term over classes that share a variance.
        No term is below 0, so that nothing cancels, and f = 1 gives the belief back bit by bit.

        Arguments:
            prior: a belief of the same shapes.
            share: the share f of the evidence that is kept, in [0, 1].

        Returns:
            The belief between both, with the clock of this one.
        """
        keep = as_like(share, self.mean)
        lose = 1 - keep
        rows = keep * self.rows + lose * prior.rows
        gap = prior.mean - self.mean
        pull = lose * prior.rows / rows
        between = 0.5 * keep * self.rows * pull * gap**2
        if self.tied:
            between = jnp.sum(between, axis=-2, keepdims=True)
        return ClassNormals(
            keep * self.counts + lose * prior.counts,
            self.mean + pull * gap,
            rows,
            keep * self.shape + lose * prior.shape,
            keep * self.scale + lose * prior.scale + between,
            self.t,
        )

    def sample(self, key: Array, shape: tuple[int, ...] = ()) -> ClassParameters:
        """Draws of all parameters, with leading axes `shape`; exact."""
        first, second, third = jax.random.split(key, 3)
        kind = self.mean.dtype
        table = (*shape, *self.mean.shape)
        gamma = jax.random.gamma(first, self.shape, (*shape, *self.shape.shape), kind)
        var = jnp.broadcast_to(jnp.broadcast_to(self.scale, gamma.shape) / gamma, table)
        sd = jnp.sqrt(var / jnp.broadcast_to(self.rows, table))
        mean = jnp.broadcast_to(self.mean, table) + sd * jax.random.normal(second, table, kind)
        return ClassParameters(jax.random.dirichlet(third, self.counts, shape, kind), mean, var)
