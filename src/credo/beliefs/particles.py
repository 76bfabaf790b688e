"""A belief that is represented by weighted particles, and what they are drawn from before any data.

The same source gives the particles of every regime that begins.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

import jax
import jax.numpy as jnp

from credo.beliefs.gaussian import Anchor
from credo.core.errors import CredoError
from credo.core.fields import field
from credo.core.keys import as_key
from credo.core.records import record, replace, static_field
from credo.core.trees import Unravel, ravel
from credo.core.types import Array, PyTree
from credo.covariances import Covariance, Diagonal
from credo.covariances.divergence import log_normal

__all__ = [
    "FunctionSource",
    "NormalSource",
    "Particles",
    "Source",
    "ValuesSource",
    "fresh_particles",
    "moments",
    "thinned",
]


@runtime_checkable
class Source(Protocol):
    """The protocol of priors of particles. To write your own, make a record with these two functions.

    Example:
        >>> import credo, jax, jax.numpy as jnp
        >>> @credo.record
        ... class Box:
        ...     def draw(self, key, count):
        ...         return jax.random.uniform(key, (count, 1))
        ...     def log_prob(self, value):
        ...         return jnp.where((value[0] >= 0) & (value[0] <= 1), 0.0, -jnp.inf)
        >>> learner = credo.particle_filter(credo.Model(lambda z, x: z, credo.Normal(1.0)), particles=50)
        >>> float(learner.init(jnp.zeros(1), prior=Box()).mean[0]) > 0.3
        True
    """

    def draw(self, key: Array, count: int) -> Array:
        """Independent draws (count, P)."""
        ...

    def log_prob(self, value: Array) -> Array:
        """The log density at one value (P,)."""
        ...


@record
class NormalSource:
    """Particles from N(mean, cov).

    Attributes:
        mean: the mean (P,).
        cov: the covariance, of some family.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> source = NormalSource(jnp.zeros(2), credo.Diagonal().init(jnp.ones(2)))
        >>> source.draw(jax.random.key(0), 5).shape
        (5, 2)
    """

    mean: Array
    cov: Covariance

    def draw(self, key: Array, count: int) -> Array:
        """Independent draws (count, P)."""
        return self.mean[None, :] + self.cov.sample(key, (count,))

    def log_prob(self, value: Array) -> Array:
        """log N(value | mean, cov), a scalar."""
        return log_normal(value - self.mean, self.cov)


@record
class FunctionSource:
    """Particles from a function of a key.

    Attributes:
        function: `function(key)`, the parameter tree of one particle.
        density: `density(params)`, its log density; None if nobody asks for it.
        unravel: how a vector becomes the parameter tree.

    Example:
        >>> import jax.numpy as jnp
        >>> _, unravel = ravel(jnp.zeros(2))
        >>> source = FunctionSource(lambda key: jax.random.exponential(key, (2,)), None, unravel)
        >>> bool(jnp.all(source.draw(jax.random.key(0), 5) > 0))
        True
    """

    function: Callable[[Array], PyTree] = static_field()
    density: Callable[[PyTree], Array] | None = static_field()
    unravel: Unravel = static_field()

    def draw(self, key: Array, count: int) -> Array:
        """Independent draws (count, P)."""
        return jax.vmap(lambda one: ravel(self.function(one))[0])(jax.random.split(key, count))

    def log_prob(self, value: Array) -> Array:
        """The log density, a scalar.

        Raises:
            CredoError: the density is not known.
        """
        if self.density is None:
            raise CredoError("prior needs a log density here: init(..., prior=(draw, log_prob)).")
        return self.density(self.unravel(value))


@record
class ValuesSource:
    """Particles that are drawn, with replacement, from given values.

    Attributes:
        values: the values (M, P).

    Example:
        >>> import jax.numpy as jnp
        >>> ValuesSource(jnp.arange(3.0)[:, None]).draw(jax.random.key(0), 5).shape
        (5, 1)
    """

    values: Array

    def draw(self, key: Array, count: int) -> Array:
        """Draws (count, P) with replacement."""
        return self.values[jax.random.randint(key, (count,), 0, self.values.shape[0])]

    def log_prob(self, value: Array) -> Array:
        """Values have no density.

        Raises:
            CredoError: always.
        """
        raise CredoError("particles that were given as values have no prior density: init(..., prior=...).")


MOVE, LEARN, RENEW, RESET, MERGE, FORECAST = range(6)
"""The purposes of the keys of a step."""


@record
class Particles:
    """N weighted values of the parameters, which is the belief of `credo.particle_filter` and its kin.

    Attributes:
        values: the particles as vectors (N, P).
        log_weights: log weights (N,), whose exponentials sum to one; -inf is a particle without weight.
        key: the key data from which draws are made; step t folds in t.
        t: how many times `predict` has been called.
        unravel: how a vector becomes the parameter tree.
        source: the prior, from which new particles are drawn when a regime begins; None if the particles
            themselves are all that is known of it.
        anchor: the prior's mean and covariance, kept only for dynamics that return to it.
        parents: the values before the latest move (N, P), for learners that look back.
        step: the length of the latest time step, for the same learners; 0 before the first one.
        log_density: the log density of the belief at each particle (N,), for learners that carry it along.
        state: whatever else a method keeps.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> learner = credo.particle_filter(credo.Model(lambda z, x: z @ x, credo.Normal(0.1)), particles=500)
        >>> belief = learner.init(jnp.zeros(3), var=4.0, key=0)
        >>> belief.values.shape, round(float(belief.ess)), bool(jnp.all(jnp.abs(belief.sd - 2.0) < 0.3))
        ((500, 3), 500, True)
    """

    values: Array
    log_weights: Array = field("log weights")
    key: Array
    t: Array
    unravel: Unravel = static_field()
    source: Source | None = None
    anchor: Anchor | None = None
    parents: Array | None = None
    step: Array | None = None
    log_density: Array | None = None
    state: PyTree = None

    @property
    def weights(self) -> Array:
        """The weights (N,), which sum to one."""
        return jnp.exp(self.log_weights)

    @property
    def ess(self) -> Array:
        """The effective sample size 1 / sum w^2 (Kong 1992), from 1 to N."""
        return 1.0 / jnp.sum(self.weights**2)

    @property
    def members(self) -> PyTree:
        """The particles as parameter trees with a leading axis N."""
        return self.unravel(self.values)

    @property
    def mean(self) -> Array:
        """The weighted mean (P,)."""
        return self.weights @ self.values

    @property
    def cov(self) -> Array:
        """The weighted covariance (P, P), which divides by 1 as the covariance of a distribution does."""
        gaps = self.values - self.mean[None, :]
        return gaps.T @ (self.weights[:, None] * gaps)

    @property
    def var(self) -> Array:
        """The weighted variances (P,)."""
        return self.weights @ (self.values - self.mean[None, :]) ** 2

    @property
    def sd(self) -> Array:
        """The weighted standard deviations (P,)."""
        return jnp.sqrt(self.var)

    @property
    def params(self) -> PyTree:
        """The mean as a parameter tree."""
        return self.unravel(self.mean)

    @property
    def size(self) -> int:
        """The number P of parameters."""
        return self.unravel.size

    def step_key(self, purpose: int) -> Array:
        """The key of the present time step for one purpose."""
        return jax.random.fold_in(jax.random.fold_in(as_key(self.key), self.t), purpose)

    def equal(self, values: Array) -> Particles:
        """The belief in which these values (N, P) have equal weights."""
        count = values.shape[0]
        weights = jnp.full(count, -jnp.log(jnp.asarray(count, values.dtype)), values.dtype)
        return replace(self, values=values, log_weights=weights)


def fresh_particles(prior: Particles, t: Array) -> Particles:
    """The prior at time t, with particles drawn again from its source, if it has one, by a key of t."""
    source = prior.source
    if source is None:
        return prior
    if prior.values.ndim > 2:
        inner: Particles = jax.vmap(lambda one: fresh_particles(one, t))(prior)
        return inner
    values = source.draw(replace(prior, t=t).step_key(RENEW), prior.values.shape[0])
    belief = prior.equal(values.astype(prior.values.dtype))
    if prior.log_density is not None:
        belief = replace(belief, log_density=jax.vmap(source.log_prob)(belief.values))
    if prior.parents is not None:
        belief = replace(belief, parents=belief.values)
    if prior.step is not None:
        belief = replace(belief, step=jnp.zeros_like(prior.step))
    return belief


def moments(belief: Particles) -> Anchor:
    """The weighted mean and variances of a set, as a prior to return to."""
    return Anchor(belief.mean, Diagonal().init(belief.var))


def thinned(beliefs: Particles, weights: Array) -> Particles:
    """N particles of K sets of N, drawn systematically by the sets' weights (K,), which sum to one.

    Particles keep the log density, and whatever else a method keeps of each, that they had in their own set.
    """
    sets, count = beliefs.values.shape[:2]
    first: Particles = jax.tree.map(lambda leaf: leaf[0], beliefs)
    shares = (weights[:, None] * jnp.exp(beliefs.log_weights)).reshape(-1)
    ends = jnp.cumsum(shares)
    shift = jax.random.uniform(first.step_key(MERGE), (), ends.dtype)
    points = (jnp.arange(count, dtype=ends.dtype) + shift) / count
    places = jnp.minimum(jnp.searchsorted(ends, points * ends[-1], side="right"), sets * count - 1)

    def pick(leaf: Array) -> Array:
        return leaf.reshape(sets * count, *leaf.shape[2:])[places]

    def kept(leaf: Array) -> Array:
        each = leaf.ndim > 1 and leaf.shape[1] == count
        if each:
            return pick(leaf)
        return leaf[jnp.argmax(weights)]

    values = pick(beliefs.values)
    density = beliefs.log_density
    one = replace(
        first.equal(values),
        log_density=None if density is None else pick(density),
        state=jax.tree.map(kept, beliefs.state),
    )
    if first.parents is None:
        return one
    # Sets that began at different times have no latest move in common: the particles are taken as they are.
    return replace(one, parents=values, step=None if first.step is None else jnp.zeros_like(first.step))
