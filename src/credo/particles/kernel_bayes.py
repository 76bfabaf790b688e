"""The kernel Bayes rule, a posterior from joint draws of parameters and observations; and its kernel.

The kernel Monte Carlo filter samples the transitions, and knows the model of the observations by examples.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from credo.beliefs import Particles
from credo.beliefs.particles import RENEW
from credo.core.errors import CredoError, require_integer, require_nonnegative, require_positive
from credo.core.records import record, replace, static_field
from credo.core.trees import Unravel, as_like
from credo.core.types import Array, ArrayLike, PyTree
from credo.dynamics import Dynamics, Static
from credo.models.model import Model
from credo.particles.base import ParticleLearner, whole_evidence

__all__ = [
    "KernelBayes",
    "KernelFilter",
    "KernelLearner",
    "gaussian_gram",
    "herd",
    "kernel_bayes_weights",
    "median_distance",
    "squared_distances",
]

PAIRS = 8192
"""About how many pairs of points the median distance looks at; to sort all would cost the most."""


def squared_distances(left: Array, right: Array) -> Array:
    """||x_i - y_j||^2 (N, M), exactly, from differences of points (N, P) and (M, P). Cost: N M P."""
    return jnp.sum((left[:, None, :] - right[None, :, :]) ** 2, axis=-1)


def median_distance(values: Array) -> Array:
    """The median distance between two points of a set, the usual scale of a kernel (Gretton et al. 2012).

    Arguments:
        values: the points (N, P), N at least 2.

    Returns:
        The median over the pairs of different points, a scalar; 0 if most points are equal. Past 90 points
        it looks at the pairs of every k-th point with all others, some 8,000 pairs.

    Example:
        >>> float(median_distance(jnp.array([[0.0], [1.0], [3.0]])))
        2.0
    """
    count = values.shape[0]
    rows = np.arange(0, count, max(1, count * count // PAIRS))
    others = np.stack([np.delete(np.arange(count), row) for row in rows])
    gaps = squared_distances(values[rows], values)
    return jnp.median(jnp.sqrt(jnp.take_along_axis(gaps, jnp.asarray(others), axis=1)))


def gaussian_gram(left: Array, right: Array, scale: ArrayLike) -> Array:
    """The Gaussian kernel k(x, y) = exp(-||x - y||^2 / (2 scale^2)) between two sets of points.

    Arguments:
        left, right: the points, (N, P) and (M, P).
        scale: the length at which the kernel falls to exp(-1/2), above 0.

    Returns:
        The Gram matrix (N, M).

    Example:
        >>> gaussian_gram(jnp.zeros((1, 1)), jnp.zeros((1, 1)), 1.0)
        Array([[1.]], dtype=float32)
    """
    width = jnp.asarray(scale).astype(left.dtype)
    return jnp.exp(-squared_distances(left, right) / (2.0 * width**2))


def herd(embedding: Array, gram: Array, count: int) -> Array:
    """Points whose equal average is close to a kernel mean: kernel herding (Chen, Welling & Smola 2010).

    Point p + 1 maximises m(x) - 1/(p + 1) sum_{i <= p} k(x, x_i) over the candidates. Of p + 1 points, the
    error of the average is then of order 1/p at best, against 1/sqrt(p) of independent draws. The published
    code of the kernel Bayes filters lacks the division by p + 1, so its points repel each other more and
    more.

    Arguments:
        embedding: the kernel mean m at the candidates (M,).
        gram: the kernel between the candidates (M, M).
        count: how many points to take.

    Returns:
        The indices (count,) of the points among the candidates, which may repeat.

    Cost: count M, after the Gram matrix.

    Example:
        >>> herd(jnp.array([0.9, 0.1]), jnp.eye(2), 10).sum()
        Array(1, dtype=int32)
    """

    def take(total: Array, step: Array) -> tuple[Array, Array]:
        best = jnp.argmax(embedding - total / step)
        return total + gram[best], best.astype(jnp.int32)

    steps = jnp.arange(1, count + 1).astype(gram.dtype)
    return jax.lax.scan(take, jnp.zeros_like(embedding), steps)[1]


def kernel_bayes_weights(
    gram_x: Array,
    gram_y: Array,
    prior: Array,
    column: Array,
    *,
    prior_ridge: ArrayLike = 1e-2,
    ridge: ArrayLike = 1e-4,
    power: ArrayLike = 1.0,
) -> Array:
    """The weights of the kernel Bayes rule (Fukumizu, Song & Gretton 2013) on n training pairs (x_i, y_i).

        mu = inv(G_x + n eps I) m,    L = diag(mu),    w = L G_y inv((L G_y)^2 + delta I) L k_y

    The posterior's kernel mean is sum_i w_i k(., x_i). Here mu sums to about 1, so the eigenvalues of L G_y
    lie in [0, 1] whatever n is, and delta is the square of the eigenvalue below which directions are
    suppressed. Fukumizu et al. scale mu by n, and their delta is n^2 times ours. The weights are computed as
    the real part of inv(L G_y + i sqrt(delta) I) L k_y, which is the same without a squared condition number.

    Arguments:
        gram_x, gram_y: the kernels between the training pairs, (n, n) each.
        prior: m, the prior's kernel mean at the training points x_i, (n,).
        column: k_y, the kernel of the observation with the training points y_i, (n,).
        prior_ridge: eps, above 0.
        ridge: delta, above 0.
        power: what multiplies the log-likelihood. If it is not 1, the positive parts of w / mu stand for
            the likelihood and are raised to it.

    Returns:
        The weights (n,), which sum to 1. Some may be negative.

    Cost: n^3. Approximate: the error falls more slowly than that of importance weights, and depends on both
    ridges and on the scales of the kernels.

    Example:
        >>> x = jnp.linspace(-2.0, 2.0, 20)[:, None]
        >>> gram = gaussian_gram(x, x, 1.0)
        >>> column = gaussian_gram(x, jnp.ones((1, 1)), 1.0)[:, 0]
        >>> weights = kernel_bayes_weights(gram, gram, gram.mean(1), column)
        >>> round(float(weights.sum()), 3), bool(weights @ x[:, 0] > 0.7)
        (1.0, True)
    """
    count = prior.shape[0]
    eye = jnp.eye(count, dtype=prior.dtype)
    base: Array = jnp.linalg.solve(gram_x + count * as_like(prior_ridge, prior) * eye, prior)
    system = jax.lax.complex(base[:, None] * gram_y, jnp.sqrt(as_like(ridge, prior)) * eye)
    right = base * column
    weights: Array = jnp.real(jnp.linalg.solve(system, jax.lax.complex(right, jnp.zeros_like(right))))
    both = (weights > 0) & (base > 0)
    ratio = jnp.where(both, weights / jnp.where(both, base, 1.0), 0.0)
    exponent = as_like(power, weights)
    bent: Array = jnp.where(both, base * jnp.where(both, ratio, 1.0) ** exponent, 0.0)
    weights = jnp.where(exponent == 1, weights, bent)
    return weights / jnp.sum(weights)


class KernelLearner(ParticleLearner):
    """The base of the kernel Bayes rule and the kernel Monte Carlo filter: a posterior by weighted pairs."""

    prior_ridge: ArrayLike
    ridge: ArrayLike
    width: ArrayLike
    jitter: ArrayLike

    def __post_init__(self) -> None:
        require_integer("particles", self.particles, 2)
        for field in ("prior_ridge", "ridge", "width"):
            require_positive(field, getattr(self, field))
        require_nonnegative("jitter", self.jitter)

    def conclude(
        self, belief: Particles, pairs: tuple[Array, PyTree], x: PyTree, y: PyTree, weight: Array, key: Array
    ) -> tuple[Particles, Array]:
        """The belief and log evidence after herding from pairs, weighted by the kernel Bayes rule.

        The pairs are parameters (n, P), each with an observation; the evidence is that of their mixture.
        """
        values, ys = pairs
        left = _features(ys, values, weight)
        right = _features(jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], y), values, weight)
        seen = ~jnp.isnan(right)  # the others of this observation are compared with nothing
        left = jnp.where(seen, left, 0.0)
        right = jnp.where(seen, right, 0.0)
        width = as_like(self.width, values)
        scale = width * median_distance(values)
        scale_y = width * median_distance(left)
        weights = kernel_bayes_weights(
            gaussian_gram(values, values, scale),
            gaussian_gram(left, left, scale_y),
            gaussian_gram(values, belief.values, scale) @ belief.weights,
            gaussian_gram(left, right, scale_y)[:, 0],
            prior_ridge=self.prior_ridge,
            ridge=self.ridge,
            power=jnp.max(weight),
        )
        chosen = _herded(values, weights, key, count=self.particles, scale=scale, jitter=self.jitter)
        alike = jnp.all((weight == 0) | (weight == jnp.max(weight)))
        evidence = jnp.where(alike, whole_evidence(self, belief, x, y, weight), jnp.nan)
        return belief.equal(jnp.where(jnp.all(jnp.isfinite(weights)), chosen, jnp.nan)), evidence


@record
class KernelBayes(KernelLearner):
    """The kernel Bayes rule on particles: the posterior by regression in a reproducing kernel Hilbert space.

    Every update draws one observation for each predicted particle, y_i ~ p(y | z_i), weighs the particles by
    `kernel_bayes_weights` (Fukumizu, Song & Gretton 2013), and puts equally weighted particles in their place
    by herding. The likelihood is used through its draws alone; its `log_prob` serves the evidence that is
    reported. Kernels are Gaussian, with the median distance as their length.

    Use it where observations can be simulated and the state moves. The regression on N pairs has an error of
    its own in every step, and parameters that stand still add these errors up: after 20 observations of a
    mean its error was one to two posterior standard deviations (N = 256, two dimensions; a quarter of one
    where the state moves).

    Arguments:
        model: a `Model`, whose likelihood has `sample`; y must be real-valued, since a kernel compares it.
        particles: the number N, at least 2.
        dynamics: how a particle moves between observations.
        prior_ridge, ridge: the ridges eps and delta of `kernel_bayes_weights`, above 0.
        width: the length of the kernels in median distances, above 0.
        jitter: the noise of the copies among which herding chooses, in Silverman bandwidths, at least 0.

    Raises:
        CredoError: one of the settings is out of range.

    An update is refused (`ok=False`) where all particles are equal, and where rows of a joint model have
    different weights above 0, since the rule takes in an observation as a whole.

    Cost of a step: N model evaluations, a complex N x N system (N^3), and N^2 P. Approximate: with 100
    particles the ranks of 500 simulated truths were 0.05 from uniform on a linear world (p = 0.10), and 0.09
    on a bimodal one and with heavy-tailed noise.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> model = credo.Model(lambda z, x: z, credo.Normal(1.0))
        >>> learner = KernelBayes(model, particles=200)
        >>> belief, info = learner.step(learner.init(jnp.zeros(1)), None, 2.0)
        >>> bool(abs(belief.mean[0] - 1.0) < 0.3), bool(abs(belief.sd[0] - 0.71) < 0.2)
        (True, True)
    """

    model: Model
    particles: int = static_field(default=256)
    dynamics: Dynamics = Static()
    prior_ridge: ArrayLike = 1e-2
    ridge: ArrayLike = 1e-4
    width: ArrayLike = 1.0
    jitter: ArrayLike = 1.0

    def assimilate(
        self, belief: Particles, x: PyTree, y: PyTree, weight: Array, key: Array
    ) -> tuple[Particles, Array]:
        """The kernel Bayes rule with the predicted particles as its training points."""
        first, second = jax.random.split(key)
        ys = simulate(self.model, belief.values, belief.unravel, x, first)
        return self.conclude(belief, (belief.values, ys), x, y, weight, second)


def simulate(model: Model, values: Array, unravel: Unravel, x: PyTree, key: Array) -> PyTree:
    """One draw of y for every particle, with a leading axis N; for a joint model, one for each row."""

    def one(vector: Array, own: Array) -> PyTree:
        likelihood, etas = model.rows_of(model.outputs(vector, unravel, x), x)
        draws = jax.vmap(likelihood.sample)(etas, jax.random.split(own, etas.shape[0]))
        if model.batched:
            return draws
        return jax.tree.map(lambda leaf: leaf[0], draws)

    return jax.vmap(one)(values, jax.random.split(key, values.shape[0]))


def _features(ys: PyTree, like: Array, weight: Array) -> Array:
    """Observations (N, ...) as the vectors (N, D) that a kernel compares; rows of weight 0 become 0."""
    leaves = []
    for leaf in jax.tree.leaves(ys):
        rows = jnp.asarray(leaf).astype(like.dtype)
        if weight.ndim:
            used = (weight > 0).reshape((1, -1) + (1,) * (rows.ndim - 2))
            rows = jnp.where(used, rows, 0.0)
        leaves.append(rows.reshape(rows.shape[0], -1))
    return jnp.concatenate(leaves, axis=1)


def _herded(
    values: Array, weights: Array, key: Array, *, count: int, scale: ArrayLike, jitter: ArrayLike
) -> Array:
    """Equally weighted points (count, P) with the kernel mean sum_i w_i k(., x_i), chosen by herding.

    The weights sum to 1, and some may be negative. The candidates are the points themselves, and beside
    each a copy with noise of `jitter` times Silverman's bandwidth. Without the copies, the points of
    parameters that do not move would become fewer at every step. Herding takes a copy only where the kernel
    mean asks for it, so the noise does not add up. Cost: n (n + count) P.
    """
    size, width = values.shape
    positive = jnp.maximum(weights, 0.0)
    positive = positive / jnp.sum(positive)
    centre = positive @ values
    sd = jnp.sqrt(positive @ (values - centre[None, :]) ** 2)
    bandwidth = (4.0 / (width + 2.0) / size) ** (1.0 / (width + 4.0))
    noise = as_like(jitter, values) * bandwidth * sd[None, :]
    copies = values + noise * jax.random.normal(key, values.shape, values.dtype)
    candidates = jnp.concatenate([values, copies])
    gram = gaussian_gram(candidates, candidates, scale)
    return candidates[herd(gram[:, :size] @ weights, gram, count)]


@record
class KernelFilter(KernelLearner):
    """The kernel Monte Carlo filter (Kanagawa, Nishiyama, Gretton & Fukumizu 2016).

    The transition is known and is sampled; what observations say of a state is known by n examples (z_i, y_i)
    alone. Every step moves the particles by the dynamics, and takes their kernel mean at the examples,

        m(z_i) = sum_j W_j k(z_i, x_j).

    `kernel_bayes_weights` turns it into weights of the examples given the observation, and herding chooses N
    equally weighted particles. It does so in every step, so signed weights are never carried along. The
    published code herds without the division by p + 1 (`credo.particles.herd`), and passes the median
    distance where gamma = 1 / (2 median^2) belongs; neither is repeated here.

    Arguments:
        model: a `Model`. Without `examples`, its likelihood must have `sample`; y must be real-valued.
        particles: the number N of particles, at least 2.
        dynamics: how a particle moves between observations.
        examples: (states, observations), trees like the parameters and like y with a leading axis n, as an
            experiment measures them. None simulates them: states of runs of the dynamics from the prior, of
            lengths 0 to `horizon`, and their observations at the x of each step.
        pairs: the number n of simulated examples, at least 2.
        horizon: the length of the longest of those runs, at least 0.
        prior_ridge, ridge, width, jitter: as for `KernelBayes`.

    Raises:
        CredoError: one of the settings is out of range, or (in `init`) the examples do not fit.

    An update is refused (`ok=False`) where most examples are equal, and where rows of a joint model have
    different weights above 0.

    Cost of a step: a complex n x n system (n^3), and (N + n)^2 P. Approximate: states outside of the examples
    cannot be reached. With 100 particles and 500 examples the ranks of 500 simulated truths were 0.04 from
    uniform on a linear world (p = 0.13), 0.07 on a bimodal one (p < 0.001), and 0.08 with heavy-tailed noise.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> model = credo.Model(lambda z, x: z, credo.Normal(1.0))
        >>> learner = KernelFilter(model, particles=200, dynamics=credo.Decay(0.9, 0.2), pairs=200)
        >>> belief, info = learner.step(learner.init(jnp.zeros(1)), None, 2.0)
        >>> bool(info.ok), bool(abs(belief.mean[0] - 1.0) < 0.3)
        (True, True)
    """

    model: Model
    particles: int = static_field(default=256)
    dynamics: Dynamics = Static()
    examples: tuple[PyTree, PyTree] | None = None
    pairs: int = static_field(default=500)
    horizon: int = static_field(default=25)
    prior_ridge: ArrayLike = 1e-2
    ridge: ArrayLike = 1e-4
    width: ArrayLike = 1.0
    jitter: ArrayLike = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require_integer("pairs", self.pairs, 2)
        require_integer("horizon", self.horizon, 0)

    def begin(self, belief: Particles) -> Particles:
        """The first belief, with the states of the examples (n, P) as its `state`."""
        if self.examples is not None:
            return replace(belief, state=self._stated(belief))
        assert belief.source is not None
        key = belief.step_key(RENEW)
        values = belief.source.draw(key, self.pairs).astype(belief.values.dtype)
        log_weights = jnp.full(self.pairs, -jnp.log(float(self.pairs)), values.dtype)
        length = jnp.arange(self.pairs) % (self.horizon + 1)
        step = None if self.dynamics.timeless else 1.0

        def move(i: Array, values: Array) -> Array:
            moved = self.dynamics.propagate(
                values, log_weights, jax.random.fold_in(key, i), belief.anchor, i, step, belief.unravel
            )
            return jnp.where((i < length)[:, None], moved, values)

        return replace(belief, state=jax.lax.fori_loop(0, self.horizon, move, values))

    def _stated(self, belief: Particles) -> Array:
        """The states of the user's examples as vectors (n, P)."""
        assert self.examples is not None
        leaves = jax.tree.leaves(self.examples[0])
        unravel = belief.unravel
        counts = {jnp.shape(leaf)[:1] for leaf in leaves + jax.tree.leaves(self.examples[1])}
        fits = [jnp.shape(leaf)[1:] for leaf in leaves] == [*unravel.shapes]
        if not fits or len(counts) != 1 or counts == {()} or min(counts)[0] < 2:
            raise CredoError(
                "examples must be (states, observations) with one leading axis of at least 2, states shaped "
                f"{list(unravel.shapes)} each; got {[jnp.shape(leaf) for leaf in leaves]} and "
                f"{[jnp.shape(leaf) for leaf in jax.tree.leaves(self.examples[1])]}.",
                field="examples",
            )
        dtype = belief.values.dtype
        return jnp.concatenate([jnp.asarray(a, dtype).reshape(jnp.shape(a)[0], -1) for a in leaves], axis=1)

    def assimilate(
        self, belief: Particles, x: PyTree, y: PyTree, weight: Array, key: Array
    ) -> tuple[Particles, Array]:
        """The kernel Bayes rule with the examples as its training points."""
        first, second = jax.random.split(key)
        states: Array = belief.state
        if self.examples is None:
            ys = simulate(self.model, states, belief.unravel, x, first)
        else:
            ys = self.examples[1]
        return self.conclude(belief, (states, ys), x, y, weight, second)
