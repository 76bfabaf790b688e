"""Methods by their names in the literature.

Each is one line: a choice of auxiliary variable, conditional prior and weighting.

The codes are those of BONE (Duran-Martin et al. 2024, arXiv 2411.10153): C constant, RL run length, RLCC run
length and changepoint count, CPT changepoint times, CPL changepoint location, CPP changepoint probability,
CPV changepoint vector, ME mixture of experts; PR prior reset, MMPR moment-matched prior reset, OUPR soft
reset, ACI additive covariance inflation, MCI multiplicative covariance inflation, OU Ornstein-Uhlenbeck, LSSM
linear state-space model. Use these functions for the method of a paper, and the classes for anything else.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import numpy as np

from credo.adapt.changepoints import ChangeTimes, LearnedHazard, RunLength
from credo.adapt.changepoints.hazards import HazardLike
from credo.adapt.experts import Experts
from credo.adapt.nested import B
from credo.adapt.priors import Subset
from credo.adapt.probability import ChangeProbability, LevelChoice
from credo.adapt.robust import WoLF
from credo.adapt.soft_reset import SoftReset
from credo.adapt.weighted_past import WeightedPast
from credo.beliefs import Gaussian
from credo.core.records import replace
from credo.core.types import ArrayLike
from credo.dynamics import Inflation, OrnsteinUhlenbeck, RandomWalk, Static
from credo.learners import Learner, RecursiveLearner

__all__ = [
    "bam",
    "bocd",
    "c_aci",
    "c_ou",
    "c_static",
    "cpl_mci",
    "cpl_sub",
    "cpp_aci",
    "cpp_ou",
    "cpt_mmpr",
    "me_lssm",
    "rl_mmpr",
    "rl_oupr",
    "rl_pr",
    "rlcc_pr",
    "wolf_rl_pr",
]

L = TypeVar("L")
"""A learner with a field `dynamics`."""


def c_static(learner: L) -> L:
    """C-Static: nothing changes. This is the learner with `Static()` dynamics.

    Arguments:
        learner: a learner with dynamics.

    Example:
        >>> import credo
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> c_static(credo.extended_kalman(model, dynamics=credo.RandomWalk(0.1))).dynamics
        Static()
    """
    return replace(learner, dynamics=Static())


def c_aci(learner: L, var: ArrayLike = 1e-4) -> L:
    """C-ACI: additive covariance inflation, a random walk (Kalman 1960; Chang et al. 2023 for LOFI).

    Arguments:
        learner: a learner with dynamics.
        var: the variance that is added at each step, at least 0: a number, or (P,).

    Example:
        >>> import credo
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> c_aci(credo.extended_kalman(model), var=1e-3).dynamics
        RandomWalk(var=0.001)
    """
    return replace(learner, dynamics=RandomWalk(var))


def c_ou(learner: L, forgetting: ArrayLike = 0.99) -> L:
    """C-OU: a constant pull to the prior, Ornstein-Uhlenbeck, never wider than the prior (Kurle et al. 2020).

    Arguments:
        learner: a learner with dynamics.
        forgetting: the share of the distance from the prior that is kept at each step, in [0, 1].

    Example:
        >>> import credo
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> c_ou(credo.extended_kalman(model), forgetting=0.95).dynamics
        OrnsteinUhlenbeck(forgetting=0.95)
    """
    return replace(learner, dynamics=OrnsteinUhlenbeck(forgetting))


def rl_pr(learner: Learner[B], hazard: HazardLike = 0.01, capacity: int = 10) -> RunLength[B]:
    """RL[K]-PR: Bayesian online changepoint detection (Adams & MacKay 2007) around any learner.

    Arguments:
        learner: the learner of one segment.
        hazard: P(change) before an observation.
        capacity: how many run lengths K are kept.

    Example:
        >>> import credo
        >>> rl_pr(credo.BetaBernoulli(), hazard=0.05).capacity
        10
    """
    return RunLength(learner, hazard, capacity)


def bocd(learner: Learner[B], hazard: HazardLike = 0.01, capacity: int = 200) -> RunLength[B]:
    """BOCD: `rl_pr` with enough capacity to be exact for 200 steps (Adams & MacKay 2007).

    Arguments:
        learner, hazard, capacity: as for `rl_pr`.

    Example:
        >>> import credo
        >>> bocd(credo.BetaBernoulli()).capacity
        200
    """
    return RunLength(learner, hazard, capacity)


def rl_mmpr(
    learner: Learner[B], hazard: HazardLike = 0.01, capacity: int = 10, jump_var: ArrayLike = 1.0
) -> RunLength[B]:
    """RL[K]-MMPR: a segment begins at the moments of the past belief, plus a jump (Fearnhead & Liu 2011).

    Arguments:
        learner, hazard, capacity: as for `rl_pr`.
        jump_var: the variance of the jump of each parameter, at least 0.

    Example:
        >>> import credo
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> rl_mmpr(credo.extended_kalman(model), jump_var=0.5).conditional_prior
        RandomWalk(var=0.5)
    """
    return RunLength(learner, hazard, capacity, RandomWalk(jump_var))


def rl_oupr(learner: Learner[B], hazard: HazardLike = 0.05, floor: ArrayLike = 0.5) -> SoftReset[B]:
    """RL[1]-OUPR*: a soft reset by the odds of a change (Duran-Martin et al. 2024).

    Arguments:
        learner: a learner with a Gaussian or conjugate belief.
        hazard: P(change) before an observation.
        floor: a share in [0, 1]; where less than this would be kept, nothing is.

    Example:
        >>> import credo
        >>> rl_oupr(credo.BetaBernoulli(), hazard=0.05).hazard
        ConstantHazard(hazard=0.05)
    """
    return SoftReset(learner, hazard, floor)


def rlcc_pr(
    learner: Learner[B], capacity: int = 10, a: ArrayLike = 1.0, b: ArrayLike = 100.0
) -> RunLength[B]:
    """RLCC[K]-PR: run length and changepoint count, with a learned hazard (Wilson, Nassar & Gold 2010).

    Arguments:
        learner: the learner of one segment.
        capacity: how many hypotheses K are kept.
        a, b: prior pseudo-counts of changes and of steps without one, above 0.

    Example:
        >>> import credo
        >>> rlcc_pr(credo.BetaBernoulli(), a=1.0, b=50.0).hazard
        LearnedHazard(a=1.0, b=50.0)
    """
    return RunLength(learner, LearnedHazard(a, b), capacity)


def cpt_mmpr(
    learner: Learner[B], hazard: HazardLike = 0.01, capacity: int = 10, jump_var: ArrayLike = 1.0
) -> ChangeTimes[B]:
    """CPT-MMPR: sets of changepoint times, with dependence across them (Fearnhead & Liu 2011).

    Arguments:
        learner, hazard, capacity, jump_var: as for `rl_mmpr`.

    Example:
        >>> import credo
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> cpt_mmpr(credo.extended_kalman(model), jump_var=0.5).conditional_prior
        RandomWalk(var=0.5)
    """
    return ChangeTimes(learner, hazard, capacity, RandomWalk(jump_var))


def cpl_mci(
    learner: Learner[B], hazard: HazardLike = 0.1, capacity: int = 5, rate: ArrayLike = 1.0
) -> ChangeTimes[B]:
    """CPL-MCI[K]: a beam over changepoint bits, each of which broadens the belief (Li et al. 2021).

    Arguments:
        learner, hazard: as for `rl_pr`.
        capacity: how many sets of changes K are kept.
        rate: a change divides the precision by 1 + rate, as `Inflation(rate, "simple")` does.

    Example:
        >>> import credo
        >>> cpl_mci(credo.BetaBernoulli(), capacity=3).slots
        6
    """
    return ChangeTimes(learner, hazard, capacity, Inflation(rate, "simple"))


def cpl_sub(learner: Learner[B], hazard: HazardLike = 0.1, capacity: int = 10) -> ChangeTimes[B]:
    """CPL-Sub: a beam over subsets of the data, where the prior explains what is left out (BONE).

    Arguments:
        learner: the learner of the observations that are not left out.
        hazard: P(an observation is left out).
        capacity: how many subsets K are kept.

    Example:
        >>> import credo
        >>> cpl_sub(credo.BetaBernoulli()).conditional_prior
        Subset()
    """
    return ChangeTimes(learner, hazard, capacity, Subset())


def cpp_ou(
    learner: Learner[B], strength: ArrayLike = 10.0, levels: int = 11, method: LevelChoice = "marginal"
) -> ChangeProbability[B]:
    """CPP-OU: the share that is kept is chosen at every step (Kurle et al. 2020; Titsias et al. 2024).

    Arguments:
        learner: a learner with a Gaussian or conjugate belief.
        strength: the strength of the prior Beta(strength + 1, 1) of the share that is kept, at least 0.
        levels: how many shares there are to choose from, evenly spaced between 1 and 0.
        method: how a share is chosen; see `ChangeProbability`.

    Example:
        >>> import credo
        >>> cpp_ou(credo.BetaBernoulli(), levels=3).levels.tolist()
        [1.0, 0.5, 0.0]
    """
    grid = np.linspace(1.0, 0.0, levels)
    with np.errstate(divide="ignore"):
        log_prior = np.maximum(strength * np.log(grid), -1e3)
    return ChangeProbability(learner, tuple(grid.tolist()), tuple(log_prior.tolist()), "ou", method)


def cpp_aci(
    learner: Learner[B], mean_var: float = 0.01, levels: int = 8, method: LevelChoice = "marginal"
) -> ChangeProbability[B]:
    """CPP-ACI: the added variance is chosen at every step, on a geometric grid.

    Arguments:
        learner: a learner with a Gaussian belief.
        mean_var: the mean of the exponential prior of the added variance, above 0.
        levels: how many variances there are to choose from; the first is 0.
        method: how a variance is chosen; see `ChangeProbability`.

    Example:
        >>> import credo
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> cpp_aci(credo.extended_kalman(model), levels=4).levels.shape
        (4,)
    """
    grid = np.concatenate([[0.0], mean_var * 2.0 ** np.arange(levels - 1) / 8.0])
    # The prior mass of each cell of the grid.
    edges = np.concatenate([[0.0], 0.5 * (grid[1:] + grid[:-1]), [np.inf]])
    mass = np.exp(-edges[:-1] / mean_var) - np.exp(-edges[1:] / mean_var)
    return ChangeProbability(learner, tuple(grid.tolist()), tuple(np.log(mass).tolist()), "inflation", method)


def bam(learner: Learner[B], memory: int = 20, penalty: ArrayLike = 0.5) -> WeightedPast[B]:
    """CPV: Bayes augmented with memory (Nassar et al. 2022).

    Arguments:
        learner: a differentiable learner that needs no key.
        memory: how many observations are remembered.
        penalty: the cost in nats of leaving out one observation, at least 0.

    Example:
        >>> import credo
        >>> bam(credo.BetaBernoulli(), memory=5).memory
        5
    """
    return WeightedPast(learner, memory, penalty=penalty)


def me_lssm(learners: Iterable[Learner[B]], switching: ArrayLike = 0.01) -> Experts[B]:
    """ME-LSSM: a bank of filters, one of which is right at a time (Magill 1965; Chang & Athans 1978).

    Arguments:
        learners: learners that differ only in their numbers.
        switching: the probability that the right learner changes at a step.

    Example:
        >>> import credo
        >>> me_lssm([credo.BetaBernoulli(forgetting=keep) for keep in (0.9, 0.99, 1.0)]).size
        3
    """
    return Experts(list(learners), switching)


def wolf_rl_pr(
    learner: RecursiveLearner, threshold: ArrayLike = 4.0, hazard: HazardLike = 0.01, capacity: int = 10
) -> RunLength[Gaussian]:
    """WoLF+RL[K]-PR: changepoints among outliers (Altamirano et al. 2023; Duran-Martin et al. 2024).

    Arguments:
        learner: a `RecursiveLearner` with a `Normal` likelihood of known variance.
        threshold: the distance from which an observation is weighted down, in the units of y.
        hazard, capacity: as for `rl_pr`.

    Example:
        >>> import credo
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> wolf_rl_pr(credo.extended_kalman(model), threshold=3.0).learner.threshold
        3.0
    """
    return RunLength(WoLF(learner, threshold), hazard, capacity)
