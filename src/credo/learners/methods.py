"""Named methods: one-line spellings of model x family x curvature x rule x dynamics, with references."""

from __future__ import annotations

from typing import Literal

from credo.beliefs import InverseGamma
from credo.core.errors import CredoError, require_choice
from credo.core.names import CurvatureName
from credo.core.records import record, replace
from credo.core.trees import as_like
from credo.core.types import Array, ArrayLike, PyTree
from credo.covariances import Diagonal, Family, Full, LowRank
from credo.dynamics import Dynamics, LinearGaussian, Static
from credo.learners.curvatures import (
    Curvature,
    LinearizedEmpiricalFisher,
    LinearizedGaussNewton,
    MonteCarloEmpiricalFisher,
    MonteCarloHessian,
)
from credo.learners.ensemble import EnsembleLearner
from credo.learners.gradient import GradientLearner, sgd
from credo.learners.recursive import RecursiveLearner
from credo.learners.rules import BBBRule, BLRRule, BOGRule, BONGRule
from credo.learners.rules.ascents import Chart
from credo.learners.rules.bong import Gain
from credo.learners.rules.rates import Rate
from credo.learners.rules.retraction import Retraction
from credo.likelihoods import Normal
from credo.models import Model, last_layer, subspace

__all__ = [
    "bbb",
    "blr",
    "bog",
    "bong",
    "enkf",
    "etkf",
    "extended_kalman",
    "fd_ekf",
    "iterated_ekf",
    "ivon",
    "kalman",
    "last_layer_ekf",
    "lofi",
    "lofi_spherical",
    "lrvga",
    "normal_inverse_gamma",
    "ogd",
    "rvga",
    "slang",
    "subspace_ekf",
    "vd_ekf",
    "vogn",
    "von",
]

_CURVATURES: dict[CurvatureName, type[Curvature]] = {
    "lin-hess": LinearizedGaussNewton,
    "lin-ef": LinearizedEmpiricalFisher,
    "mc-hess": MonteCarloHessian,
    "mc-ef": MonteCarloEmpiricalFisher,
}


def _curvature(name: CurvatureName | Curvature) -> Curvature:
    if isinstance(name, Curvature):
        return name
    require_choice("curvature", name, _CURVATURES)
    return _CURVATURES[name]()


def _family(family: Family) -> Family:
    if not isinstance(family, Family):
        raise CredoError(
            f"family must be credo.Full(), credo.Diagonal() or credo.LowRank(rank); got {family!r}."
        )
    return family


@record
class Observation:
    """The linear observation H z of a state-space model, whatever x is; H (C, D) is a leaf."""

    matrix: ArrayLike

    def __call__(self, params: Array, x: PyTree) -> Array:
        """H z."""
        return as_like(self.matrix, params) @ params


def bong(
    model: Model,
    family: Family,
    curvature: CurvatureName | Curvature = "lin-hess",
    *,
    dynamics: Dynamics = Static(),
    gain: Gain = "joint",
    iterations: int = 1,
) -> RecursiveLearner:
    """Bayesian online natural gradient (Jones, Chang & Murphy 2024, arXiv 2405.19681): one natural-gradient
    step.

    Arguments:
        model: a `Model`; `joint(model)` for mini-batches.
        family: `Full()`, `Diagonal()` or `LowRank(rank)`.
        curvature: "lin-hess", "lin-ef", "mc-hess", "mc-ef" (100 draws), or a curvature object.
        dynamics: how parameters move between observations.
        gain, iterations: see `BONGRule`.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> learner = credo.bong(credo.Model(lambda w, x: x @ w, credo.Normal(0.1)), credo.Full())
        >>> belief, info = learner.step(learner.init(jnp.zeros(2)), jnp.ones(2), 1.0)
        >>> bool(info.ok)
        True
    """
    return RecursiveLearner(
        model, _family(family), _curvature(curvature), BONGRule(gain, iterations), dynamics
    )


def blr(
    model: Model,
    family: Family,
    curvature: CurvatureName | Curvature = "lin-hess",
    *,
    dynamics: Dynamics = Static(),
    learning_rate: Rate = 0.5,
    iterations: int = 10,
    gain: Gain = "joint",
    parameters: Chart = "natural",
    retraction: Retraction = "safe",
) -> RecursiveLearner:
    """The Bayesian learning rule (Khan & Rue 2023, arXiv 2107.04562): iterated natural gradients on the ELBO.

    Arguments:
        model, family, curvature, dynamics: as in `bong`.
        learning_rate, iterations, gain, parameters, retraction: see `BLRRule`.
    """
    rule = BLRRule(learning_rate, iterations, gain, parameters, retraction)
    return RecursiveLearner(model, _family(family), _curvature(curvature), rule, dynamics)


def bog(
    model: Model,
    family: Family,
    curvature: CurvatureName | Curvature = "lin-hess",
    *,
    dynamics: Dynamics = Static(),
    learning_rate: Rate = 0.01,
    parameters: Chart | None = None,
    retraction: Retraction = "safe",
) -> RecursiveLearner:
    """Bayesian online gradient (Jones, Chang & Murphy 2024, arXiv 2405.19681): one plain gradient step.

    Arguments:
        model, family, curvature, dynamics: as in `bong`.
        learning_rate, parameters, retraction: see `BOGRule`.
    """
    rule = BOGRule(learning_rate, parameters, retraction)
    return RecursiveLearner(model, _family(family), _curvature(curvature), rule, dynamics)


def bbb(
    model: Model,
    family: Family,
    curvature: CurvatureName | Curvature = "lin-hess",
    *,
    dynamics: Dynamics = Static(),
    learning_rate: Rate = 0.01,
    iterations: int = 10,
    parameters: Chart | None = None,
    retraction: Retraction = "safe",
) -> RecursiveLearner:
    """Bayes by backprop, online (Blundell et al. 2015, arXiv 1505.05424): plain gradients on the ELBO.

    Arguments:
        model, family, curvature, dynamics: as in `bong`.
        learning_rate, iterations, parameters, retraction: see `BBBRule`.
    """
    rule = BBBRule(learning_rate, iterations, parameters, retraction)
    return RecursiveLearner(model, _family(family), _curvature(curvature), rule, dynamics)


def extended_kalman(
    model: Model, *, dynamics: Dynamics = Static(), form: Literal["root", "dense"] = "root"
) -> RecursiveLearner:
    """The extended Kalman filter (CM-EKF; Ollivier 2018): BONG / full / LIN-HESS."""
    return bong(model, Full(form), dynamics=dynamics)


def iterated_ekf(model: Model, *, dynamics: Dynamics = Static(), iterations: int = 3) -> RecursiveLearner:
    """The iterated EKF (Bell & Cathey 1993): relinearise at the new mean; each observation counts once."""
    return bong(model, Full(), dynamics=dynamics, iterations=iterations)


def kalman(
    transition: ArrayLike,
    observation: ArrayLike,
    transition_cov: ArrayLike,
    observation_cov: ArrayLike,
    offset: ArrayLike = 0.0,
) -> RecursiveLearner:
    """The Kalman filter (Kalman 1960) of z_t = F z_{t-1} + b + N(0, Q), y_t = H z_t + N(0, R); x is ignored.

    Arguments:
        transition: F (D, D).
        observation: H (C, D).
        transition_cov: Q, (D, D), (D,) or a number.
        observation_cov: R, (C, C), (C,) or a number: variances.
        offset: b, (D,) or a number.
    """
    dynamics = LinearGaussian(transition, offset, transition_cov)
    return bong(Model(Observation(observation), Normal(observation_cov)), Full(), dynamics=dynamics)


def vd_ekf(model: Model, *, dynamics: Dynamics = Static()) -> RecursiveLearner:
    """The variational diagonal EKF (Chang, Murphy & Jones 2022): BONG / diagonal / LIN-HESS with the joint
    gain.
    """
    return bong(model, Diagonal("precision"), dynamics=dynamics)


def fd_ekf(model: Model, *, dynamics: Dynamics = Static()) -> RecursiveLearner:
    """The fully decoupled EKF (Puskorius & Feldkamp 1991): keeps marginal variances, not precisions."""
    return bong(model, Diagonal("covariance"), dynamics=dynamics)


def lofi(model: Model, rank: int = 10, *, dynamics: Dynamics = Static()) -> RecursiveLearner:
    """LOFI, the low-rank extended Kalman filter (Chang et al. 2023, arXiv 2305.19535).

    BONG / low rank / LIN-HESS.
    """
    return bong(model, LowRank(rank), dynamics=dynamics)


def lofi_spherical(model: Model, rank: int = 10, *, dynamics: Dynamics = Static()) -> RecursiveLearner:
    """LOFI with one number for the rest of the precision (Chang et al. 2023, arXiv 2305.19535)."""
    return bong(model, LowRank(rank, base="spherical"), dynamics=dynamics)


def lrvga(model: Model, rank: int = 10, *, dynamics: Dynamics = Static()) -> RecursiveLearner:
    """LRVGA (Lambert, Bonnabel & Bach 2023): BONG / low rank / LIN-HESS, projected by factor analysis."""
    return bong(model, LowRank(rank, projection="factor-analysis"), dynamics=dynamics)


def rvga(model: Model, samples: int = 100, *, dynamics: Dynamics = Static()) -> RecursiveLearner:
    """RVGA (Lambert, Bonnabel & Bach 2022): BONG / full / MC-HESS, the explicit scheme."""
    return bong(model, Full(), MonteCarloHessian(samples), dynamics=dynamics)


def von(
    model: Model,
    samples: int = 10,
    *,
    dynamics: Dynamics = Static(),
    learning_rate: Rate = 0.5,
    iterations: int = 10,
) -> RecursiveLearner:
    """VON, variational online Newton (Khan et al. 2018, arXiv 1806.04854): BLR / diagonal / MC-HESS."""
    return blr(
        model,
        Diagonal(),
        MonteCarloHessian(samples),
        dynamics=dynamics,
        learning_rate=learning_rate,
        iterations=iterations,
        gain="kept",
    )


def vogn(
    model: Model,
    samples: int = 10,
    *,
    dynamics: Dynamics = Static(),
    learning_rate: Rate = 0.5,
    iterations: int = 10,
) -> RecursiveLearner:
    """VOGN (Khan et al. 2018, arXiv 1806.04854): BLR / diagonal / MC-EF with squares of each gradient."""
    return blr(
        model,
        Diagonal(),
        MonteCarloEmpiricalFisher(samples),
        dynamics=dynamics,
        learning_rate=learning_rate,
        iterations=iterations,
        gain="kept",
    )


def slang(
    model: Model,
    rank: int = 10,
    samples: int = 10,
    *,
    dynamics: Dynamics = Static(),
    learning_rate: Rate = 0.5,
    iterations: int = 10,
) -> RecursiveLearner:
    """SLANG (Mishkin et al. 2018, arXiv 1811.04504): BLR / low rank / MC-EF."""
    return blr(
        model,
        LowRank(rank),
        MonteCarloEmpiricalFisher(samples),
        dynamics=dynamics,
        learning_rate=learning_rate,
        iterations=iterations,
    )


def ivon(
    model: Model,
    samples: int = 10,
    *,
    dynamics: Dynamics = Static(),
    learning_rate: Rate = 0.1,
    iterations: int = 10,
) -> RecursiveLearner:
    """IVON's estimator and step (Shen et al. 2024, arXiv 2402.17641), without its momentum.

    BLR / diagonal / MC-HESS by Price's theorem.
    """
    return blr(
        model,
        Diagonal(),
        MonteCarloHessian(samples, estimator="price"),
        dynamics=dynamics,
        learning_rate=learning_rate,
        iterations=iterations,
        gain="kept",
    )


def ogd(model: Model, learning_rate: ArrayLike = 1e-2) -> GradientLearner:
    """Online gradient descent (Zinkevich 2003): BOG with only the mean, theta + a grad log p(y | theta)."""
    return sgd(model, learning_rate)


def subspace_ekf(
    model: Model, params: PyTree, basis: ArrayLike, *, dynamics: Dynamics = Static()
) -> RecursiveLearner:
    """The subspace EKF (Duran-Martin, Kara & Murphy 2022, arXiv 2112.00195): `subspace`, then the EKF."""
    return extended_kalman(subspace(model, params, basis), dynamics=dynamics)


def last_layer_ekf(
    model: Model, params: PyTree, layer: str | None = None, *, dynamics: Dynamics = Static()
) -> RecursiveLearner:
    """The EKF of the last layer on frozen features (Snoek et al. 2015, arXiv 1502.05700): `last_layer`."""
    return extended_kalman(last_layer(model, params, layer), dynamics=dynamics)


def enkf(model: Model, members: int = 100, *, dynamics: Dynamics = Static()) -> EnsembleLearner:
    """The ensemble Kalman filter (Evensen 1994; perturbed observations: Burgers et al. 1998)."""
    return EnsembleLearner(model, members, "perturbed", dynamics)


def etkf(model: Model, members: int = 100, *, dynamics: Dynamics = Static()) -> EnsembleLearner:
    """The ensemble transform Kalman filter (Bishop, Etherton & Majumdar 2001): nothing is drawn."""
    return EnsembleLearner(model, members, "etkf", dynamics)


def normal_inverse_gamma(
    model: Model,
    family: Family = Full(),
    *,
    dynamics: Dynamics = Static(),
    shape: ArrayLike = 2.0,
    scale: ArrayLike = 1.0,
) -> RecursiveLearner:
    """Regression with unknown noise variance v ~ InverseGamma(shape, scale): exact for linear models
    (conjugate).

    The model's likelihood must be a `Normal`; its variance is replaced by the prior. Variances of the belief
    and of the dynamics are in units of v.
    """
    if not isinstance(model.likelihood, Normal):
        raise CredoError(f"normal_inverse_gamma needs a Normal likelihood; got {model.likelihood!r}.")
    return bong(replace(model, likelihood=Normal(InverseGamma(shape, scale))), family, dynamics=dynamics)
