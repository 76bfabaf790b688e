"""Kalman filters under their names: exact, extended, decoupled, low-rank, with unknown noise.

Others learn a part of the parameters, or an ensemble.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from credo.beliefs import Gaussian, InverseGamma
from credo.core.errors import CredoError
from credo.core.names import ForecastName
from credo.core.records import record, replace
from credo.core.trees import as_like
from credo.core.types import Array, ArrayLike, Key, PyTree
from credo.covariances import Diagonal, Family, Full, FullCovariance, LowRank
from credo.covariances.full import Form
from credo.dynamics import Dynamics, LinearGaussian, Static
from credo.learners.acceptance import Info, accept, clean, legible, usable
from credo.learners.ensemble import EnsembleLearner
from credo.learners.methods.four_rules import bong
from credo.learners.recursive import RecursiveLearner
from credo.likelihoods import Normal, Predictive
from credo.likelihoods.normal import RootNormal, informative, resolution
from credo.linalg.jacobians import as_rows
from credo.linalg.matrices import precision, rows_times, solve_lower, triangularize
from credo.models import Model, last_layer, subspace

__all__ = [
    "Observation",
    "OrthogonalLearner",
    "enkf",
    "etkf",
    "extended_kalman",
    "fd_ekf",
    "iterated_ekf",
    "kalman",
    "last_layer_ekf",
    "lofi",
    "lofi_spherical",
    "lrvga",
    "normal_inverse_gamma",
    "subspace_ekf",
    "vd_ekf",
]


@record
class OrthogonalLearner(RecursiveLearner):
    """A recursive learner that squares and inverts no noise, by the array algorithm.

    With S = W W', R = N N' and the rows H of the outputs, one triangle has all of the update,

        [ N   H W ]         [ L   0  ]
        [ 0    W  ]  Q   =  [ K   W+ ],      mean+ = mean + K inv(L) (y - H mean),   S+ = W+ W+',

    where Q is orthogonal, L is the root of the covariance of y, and K = S H' inv(L)'. An output that those
    before it determine, to rounding, says nothing more and is left out, so that R may be 0 or singular. The
    evidence is then the density of the others. Source: Kailath, Sayed & Hassibi 2000, Linear Estimation.

    It is what `credo.kalman` gives for such noise, with a `RootNormal` as its likelihood, and what
    `credo.extended_kalman` gives for a `Normal` with small variances, which it updates in this way where
    there are more outputs than parameters, and otherwise as usual. The family is `Full()`, and the rule
    Kalman's. Cost: (C + P)^3.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> learner = credo.kalman(jnp.eye(1), jnp.ones((2, 1)), 0.1, 0.0)
        >>> belief, info = learner.step(learner.init(jnp.zeros(1)), None, jnp.ones(2))
        >>> bool(info.ok), belief.mean.tolist(), belief.cov.dense().tolist()
        (True, [1.0], [[0.0]])
    """

    def _is_usual(self, belief: Gaussian, x: PyTree) -> bool:
        """Whether no digits are lost: few outputs are read one by one, however small their noise is."""
        if isinstance(self.model.likelihood, RootNormal):
            return False
        outputs = jax.eval_shape(self.model.outputs, belief.mean, belief.unravel, x)
        count: int = math.prod(outputs.shape)
        return count <= belief.mean.shape[0]

    def _noise(self, eta: Array) -> RootNormal:
        """The noise by its root."""
        likelihood = self.model.likelihood
        if isinstance(likelihood, RootNormal):
            return likelihood
        sd = jnp.sqrt(likelihood.variance(eta))
        return RootNormal(jnp.diag(jnp.broadcast_to(sd, eta.shape)))

    def _outputs(self, belief: Gaussian, x: PyTree) -> tuple[Array, Array]:
        """The outputs (C,) at the mean, and the root Z = H W (C, P) of their covariance."""
        eta, rows = self.model.linearize(belief.mean, belief.unravel, x)
        return eta, rows_times(as_rows(rows).dense(), _root(belief))

    def measurement_update(
        self, belief: Gaussian, x: PyTree, y: PyTree, weight: ArrayLike, key: Key | None
    ) -> tuple[Gaussian, Info]:
        safe_x = clean(x)
        if self._is_usual(belief, safe_x):
            return super().measurement_update(belief, x, y, weight, key)
        safe_y, there = legible(self.model.likelihood, y)
        observed, used = usable(there, weight, belief.mean.dtype)
        eta, spread = self._outputs(belief, safe_x)
        likelihood = self._noise(eta)
        known = RootNormal(as_like(likelihood.root, eta) / jnp.sqrt(jnp.where(used > 0, used, 1.0)))
        forecast = known.with_spread(eta, spread)
        value = jnp.asarray(safe_y, eta.dtype).reshape(-1)
        seen = ~jnp.isnan(value)
        upper, free = informative(forecast.root, eta, seen)
        size = eta.shape[0]
        wide = jnp.zeros((belief.mean.shape[0], upper.shape[1]), eta.dtype)
        root = _root(belief)
        lower = wide.at[:, -size - spread.shape[1] : -size].set(root)
        triangle = triangularize(jnp.concatenate([upper, lower], axis=0))
        white = solve_lower(triangle[:size, :size], jnp.where(free, value - eta, 0.0))
        mean = belief.mean + triangle[size:, :size] @ white
        assert isinstance(belief.cov, FullCovariance)
        new = replace(belief, mean=mean, cov=belief.cov.with_root(_known(triangle[size:, size:], root)))
        distribution = likelihood.with_spread(eta, spread)
        log_evidence = jnp.where(used > 0, distribution.log_prob(safe_y), 0.0)
        return accept(belief, new, log_evidence, observed, x, y, used)

    def predictive(
        self, belief: Gaussian, x: PyTree, method: ForecastName | None, samples: int | None, key: Key | None
    ) -> Predictive:
        if (method or self.forecasting) != "linearized" or self._is_usual(belief, x):
            return super().predictive(belief, x, method, samples, key)
        eta, spread = self._outputs(belief, x)
        return self._noise(eta).with_spread(eta, spread)


def _known(root: Array, before: Array) -> Array:
    """The new root (P, P), with 0 where no more than the rounding of the old one is left."""
    level = 4.0 * resolution(before) * jnp.sqrt(jnp.sum(before**2, axis=1))
    return jnp.where(jnp.abs(root) > level[:, None], root, 0.0)


def _root(belief: Gaussian) -> Array:
    assert isinstance(belief.cov, FullCovariance)
    return belief.cov.as_root()


@record
class Observation:
    """The linear observation H z of a state-space model, which ignores x. H (C, D) is a leaf."""

    matrix: ArrayLike

    def __call__(self, params: Array, x: PyTree) -> Array:
        """H z."""
        return as_like(self.matrix, params) @ params


def extended_kalman(model: Model, *, dynamics: Dynamics = Static(), form: Form = "root") -> RecursiveLearner:
    """The extended Kalman filter (CM-EKF; Ollivier 2018): BONG / full / LIN-HESS.

    Arguments:
        model: a `Model`; `joint(model)` for mini-batches.
        dynamics: how parameters move between observations.
        form: how the covariance is held; see `Full`.

    Returns:
        A learner.

    A `Normal` whose variances single precision would lose beside outputs of variance 1 is updated by
    reflections where there are more outputs than parameters, as in `kalman`.

    Cost of a step: C P^2; (C + P)^3 by reflections. Exact for linear-Gaussian models.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> learner = credo.extended_kalman(model)
        >>> belief, info = learner.step(learner.init(jnp.zeros(2)), jnp.ones(2), 1.0)
        >>> [round(value, 3) for value in belief.mean.tolist()]
        [0.476, 0.476]
    """
    learner = bong(model, Full(form), dynamics=dynamics)
    if not _is_lost(model):
        return learner
    return OrthogonalLearner(model, learner.family, learner.curvature, learner.rule, dynamics)


def _is_lost(model: Model) -> bool:
    """Whether a model's noise is known, and lost in the roundings of single precision beside one of 1."""
    likelihood = getattr(model, "likelihood", None)
    if not isinstance(likelihood, Normal) or isinstance(likelihood.var, InverseGamma | Tracer):
        return False
    if np.ndim(likelihood.var) > 1 or type(likelihood.var) is object:
        return False
    return bool(np.min(np.asarray(likelihood.var, float)) < _LOST * precision(np.float32).eps)


def iterated_ekf(model: Model, *, dynamics: Dynamics = Static(), iterations: int = 3) -> RecursiveLearner:
    """The iterated EKF (Bell & Cathey 1993): relinearise at the new mean; each observation counts once.

    The one to take for a likelihood of your own. Where the log-likelihood bends, the first iteration finds
    the mode of the observation (Newton's steps in the space of the outputs, which cost no more with more
    parameters), and each later one goes as far as the posterior grows. So a first row far from a wide prior
    leads neither astray nor to false certainty, as it does with `extended_kalman`.

    Arguments:
        model: a `Model`; `joint(model)` for mini-batches.
        dynamics: how parameters move between observations.
        iterations: how often to linearise, at least 1.

    Returns:
        A learner.

    Cost of a step: `iterations` times C P^2. Exact for linear-Gaussian models.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> learner = credo.iterated_ekf(model, iterations=2)
        >>> belief, info = learner.step(learner.init(jnp.zeros(2)), jnp.ones(2), 1.0)
        >>> [round(value, 3) for value in belief.mean.tolist()]
        [0.476, 0.476]
    """
    return bong(model, Full(), dynamics=dynamics, iterations=iterations)


def kalman(
    transition: ArrayLike,
    observation: ArrayLike,
    transition_cov: ArrayLike,
    observation_cov: ArrayLike,
    offset: ArrayLike = 0.0,
    *,
    form: Form = "root",
) -> RecursiveLearner:
    """The Kalman filter (Kalman 1960) of z_t = F z_{t-1} + b + N(0, Q), y_t = H z_t + N(0, R); x is ignored.

    Arguments:
        transition: F (D, D).
        observation: H (C, D).
        transition_cov: Q, (D, D), (D,) or a number.
        observation_cov: R, (C, C), (C,) or a number: variances.
        offset: b, (D,) or a number.
        form: how the covariance is held; see `Full`. "dense" is several times as fast, and is for covariances
            that are not far apart: from a variance of 10^6 and observations with one of 10^-4 it diverges in
            single precision, where "root" keeps its digits.

    Returns:
        A learner. A matrix of noise that is diagonal counts as its diagonal, which spares a step the roots
        of a matrix.

    R may be 0 or singular: outputs without noise are seen exactly, and an output that others determine says
    nothing more. The evidence is then that of the outputs which the others do not determine. Such an R, and
    with more outputs than states one that rounding would lose beside H H', is updated by reflections of the
    roots (array algorithm; Kailath, Sayed & Hassibi 2000), whatever the `form`. R and H that are traced are
    taken to be neither.

    Cost of a step: D^3; (C + D)^3 by reflections. Exact.

    Raises:
        CredoError: H is not as wide as F, or a matrix is none of its kind.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> learner = credo.kalman(jnp.eye(2), jnp.ones((1, 2)), 0.1, 0.1)
        >>> belief, info = learner.step(learner.init(jnp.zeros(2)), None, 1.0)
        >>> [round(value, 3) for value in belief.mean.tolist()]
        [0.478, 0.478]
    """
    dynamics = LinearGaussian(transition, offset, _narrowest(transition_cov))
    size = np.shape(transition)[-1:]
    shape = np.shape(observation)
    if len(shape) != 2 or shape[1:] != size:
        raise CredoError(
            f"observation must be (C, D), as wide as the transition of {size[0]}; got shape {shape}.",
            field="observation",
        )
    root = _delicate_root(observation, observation_cov)
    if root is not None:
        return OrthogonalLearner(Model(Observation(observation), RootNormal(root)), dynamics=dynamics)
    likelihood = Normal(_narrowest(observation_cov))
    return bong(Model(Observation(observation), likelihood), Full(form), dynamics=dynamics)


_LOST = 100.0
"""The least variance of the noise, in roundings of the largest variance of an output, that is not lost."""


def _delicate_root(observation: ArrayLike, cov: ArrayLike) -> Array | None:
    """A root of the noise R if it is singular, or lost in rounding with more outputs than states; else None.

    The states are taken to have variances near 1. What is no covariance is left to `Normal`, which refuses.
    """
    if isinstance(observation, Tracer) or isinstance(cov, Tracer) or np.ndim(observation) != 2:
        return None
    seen = np.asarray(observation)
    given = np.asarray(cov, float)
    outputs, states = seen.shape
    eps = precision(jax.dtypes.canonicalize_dtype(np.result_type(seen.dtype, np.float32))).eps
    noise = np.diag(np.broadcast_to(given, outputs)) if given.shape in [(), (outputs,)] else given
    if noise.shape != (outputs, outputs) or not np.all(np.isfinite(noise)) or not np.allclose(noise, noise.T):
        return None
    if _is_diagonal(noise):
        values = np.diagonal(noise)
        vectors = np.eye(outputs)
    else:
        values, vectors = np.linalg.eigh(noise)
    least = float(np.min(values))
    # a singular matrix is rounded, and its eigenvalues with it; variances are what they are
    slack = 0.0 if _is_diagonal(noise) else outputs * float(eps) * float(np.max(values))
    lost = outputs > states and least < _LOST * eps * float(np.max(np.sum(seen**2, axis=1)))
    if least < -slack or (least > slack and not lost):
        return None
    return jnp.asarray(vectors * np.sqrt(np.where(values > slack, values, 0.0)), float)


def _narrowest(cov: ArrayLike) -> ArrayLike:
    """The variances (n,) of a covariance (n, n) whose other entries are known to be zero; else the same."""
    if isinstance(cov, Tracer) or np.ndim(cov) != 2 or not _is_diagonal(np.asarray(cov)):
        return cov
    variances: Array = jnp.diagonal(jnp.asarray(cov))
    return variances


def _is_diagonal(matrix: np.ndarray) -> bool:
    return matrix.shape[0] == matrix.shape[1] and np.array_equal(matrix, np.diag(np.diagonal(matrix)))


def vd_ekf(model: Model, *, dynamics: Dynamics = Static()) -> RecursiveLearner:
    """The variational diagonal EKF (Chang, Murphy & Jones 2022): BONG / diagonal / LIN-HESS, joint gain.

    Arguments:
        model: a `Model`; `joint(model)` for mini-batches.
        dynamics: how parameters move between observations.

    Returns:
        A learner.

    Cost of a step: C^2 P. Approximate: it keeps the diagonal of the precision.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> learner = credo.vd_ekf(model)
        >>> belief, info = learner.step(learner.init(jnp.zeros(2)), jnp.ones(2), 1.0)
        >>> [round(value, 3) for value in belief.mean.tolist()]
        [0.476, 0.476]
    """
    return bong(model, Diagonal("precision"), dynamics=dynamics)


def fd_ekf(model: Model, *, dynamics: Dynamics = Static()) -> RecursiveLearner:
    """The fully decoupled EKF (Puskorius & Feldkamp 1991): keeps marginal variances, not precisions.

    Arguments:
        model: a `Model`; `joint(model)` for mini-batches.
        dynamics: how parameters move between observations.

    Returns:
        A learner.

    Cost of a step: C^2 P. Approximate: it keeps the diagonal of the covariance.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> learner = credo.fd_ekf(model)
        >>> belief, info = learner.step(learner.init(jnp.zeros(2)), jnp.ones(2), 1.0)
        >>> [round(value, 3) for value in belief.mean.tolist()]
        [0.476, 0.476]
    """
    return bong(model, Diagonal("covariance"), dynamics=dynamics)


def lofi(model: Model, rank: int = 10, *, dynamics: Dynamics = Static()) -> RecursiveLearner:
    """LOFI, the low-rank extended Kalman filter (Chang et al. 2023, arXiv 2305.19535).

    BONG / low rank / LIN-HESS.

    Arguments:
        model: a `Model`; `joint(model)` for mini-batches.
        rank: the number R of directions, from 1 to P.
        dynamics: how parameters move between observations.

    Returns:
        A learner.

    Raises:
        CredoError: `rank` is out of range (here, or in `init` where it exceeds P).

    Cost of a step: (R + C)^2 P. Exact for linear-Gaussian models while R directions suffice.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> learner = credo.lofi(model, rank=1)
        >>> belief, info = learner.step(learner.init(jnp.zeros(2)), jnp.ones(2), 1.0)
        >>> [round(value, 3) for value in belief.mean.tolist()]
        [0.476, 0.476]
    """
    return bong(model, LowRank(rank), dynamics=dynamics)


def lofi_spherical(model: Model, rank: int = 10, *, dynamics: Dynamics = Static()) -> RecursiveLearner:
    """LOFI with one number for the rest of the precision (Chang et al. 2023, arXiv 2305.19535).

    Arguments:
        model: a `Model`; `joint(model)` for mini-batches.
        rank: the number R of directions, from 1 to P.
        dynamics: how parameters move between observations.

    Returns:
        A learner.

    Raises:
        CredoError: `rank` is out of range (here, or in `init` where it exceeds P).

    Cost of a step: (R + C)^2 P. Approximate.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> learner = credo.lofi_spherical(model, rank=1)
        >>> belief, info = learner.step(learner.init(jnp.zeros(2)), jnp.ones(2), 1.0)
        >>> [round(value, 3) for value in belief.mean.tolist()]
        [0.476, 0.476]
    """
    return bong(model, LowRank(rank, base="spherical"), dynamics=dynamics)


def lrvga(model: Model, rank: int = 10, *, dynamics: Dynamics = Static()) -> RecursiveLearner:
    """LRVGA (Lambert, Bonnabel & Bach 2023): BONG / low rank / LIN-HESS, projected by factor analysis.

    Arguments:
        model: a `Model`; `joint(model)` for mini-batches.
        rank: the number R of directions, from 1 to P.
        dynamics: how parameters move between observations.

    Returns:
        A learner.

    Raises:
        CredoError: `rank` is out of range (here, or in `init` where it exceeds P).

    Cost of a step: (R + C)^2 P and three rounds of R (R + C) P. Approximate.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> learner = credo.lrvga(model, rank=1)
        >>> belief, info = learner.step(learner.init(jnp.zeros(2)), jnp.ones(2), 1.0)
        >>> [round(value, 3) for value in belief.mean.tolist()]
        [0.476, 0.476]
    """
    return bong(model, LowRank(rank, projection="factor-analysis"), dynamics=dynamics)


def normal_inverse_gamma(
    model: Model,
    family: Family = Full(),
    *,
    dynamics: Dynamics = Static(),
    shape: ArrayLike = 2.0,
    scale: ArrayLike = 1.0,
) -> RecursiveLearner:
    """Regression with unknown noise variance v ~ InverseGamma(shape, scale).

    The model's likelihood must be a `Normal`; its variance is replaced by the prior. Variances of the belief
    and of the dynamics are in units of v.

    Arguments:
        model: a `Model` with a `Normal` likelihood.
        family: as in `bong`.
        dynamics: how parameters move between observations.
        shape, scale: the shape and scale of the prior of v, above 0.

    Returns:
        A learner.

    Raises:
        CredoError: the likelihood is not a `Normal`, or `shape` or `scale` is not above 0.

    Cost of a step: that of `bong`, and C^3. Exact for linear models with `Full()` (conjugate).

    Example:
        >>> import credo, jax.numpy as jnp
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> learner = credo.normal_inverse_gamma(model)
        >>> belief, info = learner.step(learner.init(jnp.zeros(2)), jnp.ones(2), 1.0)
        >>> float(belief.noise.shape)
        2.5
    """
    if not isinstance(model.likelihood, Normal):
        raise CredoError(f"normal_inverse_gamma needs a Normal likelihood; got {model.likelihood!r}.")
    return bong(replace(model, likelihood=Normal(InverseGamma(shape, scale))), family, dynamics=dynamics)


def subspace_ekf(
    model: Model, params: PyTree, basis: ArrayLike, *, dynamics: Dynamics = Static()
) -> RecursiveLearner:
    """The subspace EKF (Duran-Martin, Kara & Murphy 2022, arXiv 2112.00195): `subspace`, then the EKF.

    Arguments:
        model: a `Model`; `joint(model)` for mini-batches.
        params: the parameters at the origin of the subspace.
        basis: its directions (D, P), one a row.
        dynamics: how parameters move between observations.

    Returns:
        A learner.

    Raises:
        CredoError: the basis does not fit.

    Cost of a step: C D^2, and C P D for the Jacobian. Exact within the subspace for linear-Gaussian models.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> learner = credo.subspace_ekf(model, jnp.zeros(3), jnp.eye(2, 3))
        >>> learner.init().mean.shape
        (2,)
    """
    return extended_kalman(subspace(model, params, basis), dynamics=dynamics)


def last_layer_ekf(
    model: Model, params: PyTree, layer: str | None = None, *, dynamics: Dynamics = Static()
) -> RecursiveLearner:
    """The EKF of the last layer on frozen features (Snoek et al. 2015, arXiv 1502.05700): `last_layer`.

    Arguments:
        model: a `Model`; `joint(model)` for mini-batches.
        params: the parameters of the whole network.
        layer: the path of the layer; None takes the last entry of `params`.
        dynamics: how parameters move between observations.

    Returns:
        A learner.

    Raises:
        CredoError: there is no such layer.

    Cost of a step: C D^2 for the D parameters of the layer. Exact given the features, with a linear last
    layer and normal noise.

    Example:
        >>> import credo
        >>> net = credo.MLP(outputs=1, hidden=(8,))
        >>> learner = credo.last_layer_ekf(credo.Model(net, credo.Normal(0.1)), net.init(0, (3,)))
        >>> learner.init().mean.shape
        (9,)
    """
    return extended_kalman(last_layer(model, params, layer), dynamics=dynamics)


def enkf(model: Model, members: int = 100, *, dynamics: Dynamics = Static()) -> EnsembleLearner:
    """The ensemble Kalman filter (Evensen 1994; perturbed observations: Burgers et al. 1998).

    Arguments:
        model: a `Model`; `joint(model)` for mini-batches.
        members: the number M of members, at least 2.
        dynamics: how parameters move between observations.

    Returns:
        A learner.

    Raises:
        CredoError: fewer than 2 members.

    Cost of a step: M evaluations of the model, and M C P. Exact in the limit of many members on
    linear-Gaussian models.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> learner = credo.enkf(model, members=50)
        >>> belief, info = learner.step(learner.init(jnp.zeros(2), key=0), jnp.ones(2), 1.0)
        >>> belief.members.shape
        (50, 2)
    """
    return EnsembleLearner(model, members, "perturbed", dynamics)


def etkf(model: Model, members: int = 100, *, dynamics: Dynamics = Static()) -> EnsembleLearner:
    """The ensemble transform Kalman filter (Bishop, Etherton & Majumdar 2001), which draws nothing.

    Arguments:
        model: a `Model`; `joint(model)` for mini-batches.
        members: the number M of members, at least 2.
        dynamics: how parameters move between observations.

    Returns:
        A learner.

    Raises:
        CredoError: fewer than 2 members.

    Cost of a step: M evaluations of the model, and M C P. Exact for the members' sample covariance on
    linear-Gaussian models.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> learner = credo.etkf(model, members=50)
        >>> belief, info = learner.step(learner.init(jnp.zeros(2), key=0), jnp.ones(2), 1.0)
        >>> belief.members.shape
        (50, 2)
    """
    return EnsembleLearner(model, members, "etkf", dynamics)
