"""Methods by their names in the literature: one line each, a choice of auxiliary variable, conditional prior
and weighting.

The codes are those of BONE (Duran-Martin et al. 2024, arXiv 2411.10153): C constant, RL run length, RLCC run
length and changepoint count, CPT changepoint times, CPL changepoint location, CPP changepoint probability,
CPV changepoint vector, ME mixture of experts; PR prior reset, MMPR moment-matched prior reset, OUPR soft
reset, ACI additive covariance inflation, MCI multiplicative covariance inflation, OU Ornstein-Uhlenbeck, LSSM
linear state-space model. Prefer these functions where a paper's method is meant, and the classes elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from credo.adapt.experts import Experts
from credo.adapt.hazards import LearnedHazard
from credo.adapt.priors import Subset
from credo.adapt.probability import ChangeProbability
from credo.adapt.robust import WoLF
from credo.adapt.run_length import ChangeTimes, RunLength
from credo.adapt.soft_reset import SoftReset
from credo.adapt.weighted_past import WeightedPast
from credo.core.records import replace
from credo.dynamics import Inflation, OrnsteinUhlenbeck, RandomWalk, Static
from credo.learners import Learner

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


def c_static(learner: Any) -> Learner:
    """Nothing changes: the learner with `Static()` dynamics."""
    return replace(learner, dynamics=Static())


def c_aci(learner: Any, q: Any = 1e-4) -> Learner:
    """Additive covariance inflation, a random walk (Kalman 1960; Chang et al. 2023 for LOFI)."""
    return replace(learner, dynamics=RandomWalk(q))


def c_ou(learner: Any, gamma: Any = 0.99) -> Learner:
    """A constant pull to the prior, Ornstein-Uhlenbeck (Kurle et al. 2020): never wider than the prior."""
    return replace(learner, dynamics=OrnsteinUhlenbeck(gamma))


def rl_pr(learner: Learner, hazard: Any = 0.01, capacity: int = 10) -> RunLength:
    """RL[K]-PR: Bayesian online changepoint detection (Adams & MacKay 2007) around any learner."""
    return RunLength(learner, hazard, capacity)


def bocd(learner: Learner, hazard: Any = 0.01, capacity: int = 200) -> RunLength:
    """The same with so much room that it is exact for 200 steps and more (Adams & MacKay 2007)."""
    return RunLength(learner, hazard, capacity)


def rl_mmpr(learner: Learner, hazard: Any = 0.01, capacity: int = 10, jump: Any = 1.0) -> RunLength:
    """RL[K]-MMPR: a segment begins at the moments of what was believed, plus a jump of variance `jump`
    (Fearnhead & Liu 2011).
    """
    return RunLength(learner, hazard, capacity, RandomWalk(jump))


def rl_oupr(learner: Learner, hazard: Any = 0.05, floor: Any = 0.5) -> SoftReset:
    """RL[1]-OUPR*: a soft reset by the odds of a change (Duran-Martin et al. 2024)."""
    return SoftReset(learner, hazard, floor)


def rlcc_pr(learner: Learner, capacity: int = 10, a: Any = 1.0, b: Any = 100.0) -> RunLength:
    """RLCC[K]-PR: run length and changepoint count, the hazard learned (Wilson, Nassar & Gold 2010)."""
    return RunLength(learner, LearnedHazard(a, b), capacity)


def cpt_mmpr(learner: Learner, hazard: Any = 0.01, capacity: int = 10, jump: Any = 1.0) -> ChangeTimes:
    """CPT-MMPR: sets of changepoint times, dependence across them (Fearnhead & Liu 2011)."""
    return ChangeTimes(learner, hazard, capacity, RandomWalk(jump))


def cpl_mci(learner: Learner, hazard: Any = 0.1, capacity: int = 5, alpha: Any = 1.0) -> ChangeTimes:
    """CPL-MCI[K]: a beam over changepoint bits, each change divides the precision by 1 + alpha (Li et al.
    2021).
    """
    return ChangeTimes(learner, hazard, capacity, Inflation(alpha, "simple"))


def cpl_sub(learner: Learner, hazard: Any = 0.1, capacity: int = 10) -> ChangeTimes:
    """CPL-Sub: a beam over subsets of the data; what is left out is explained by the prior (BONE)."""
    return ChangeTimes(learner, hazard, capacity, Subset())


def cpp_ou(
    learner: Learner, strength: Any = 10.0, levels: int = 11, method: str = "marginal"
) -> ChangeProbability:
    """CPP-OU: how much is kept is chosen at every step, with prior Beta(strength + 1, 1) (Kurle et al. 2020;
    Titsias et al. 2024).
    """
    grid = np.linspace(1.0, 0.0, levels)
    with np.errstate(divide="ignore"):
        log_prior = np.maximum(strength * np.log(grid), -1e3)
    return ChangeProbability(learner, tuple(grid.tolist()), tuple(log_prior.tolist()), "ou", method)


def cpp_aci(
    learner: Learner, scale: float = 0.01, levels: int = 8, method: str = "marginal"
) -> ChangeProbability:
    """CPP-ACI: how much variance is added is chosen at every step, with an exponential prior of mean
    `scale`, on a geometric grid.
    """
    grid = np.concatenate([[0.0], scale * 2.0 ** np.arange(levels - 1) / 8.0])
    # The prior mass of each cell of the grid.
    edges = np.concatenate([[0.0], 0.5 * (grid[1:] + grid[:-1]), [np.inf]])
    mass = np.exp(-edges[:-1] / scale) - np.exp(-edges[1:] / scale)
    return ChangeProbability(learner, tuple(grid.tolist()), tuple(np.log(mass).tolist()), "inflation", method)


def bam(learner: Learner, memory: int = 20, penalty: Any = 0.5) -> WeightedPast:
    """CPV: Bayes augmented with memory (Nassar et al. 2022)."""
    return WeightedPast(learner, memory, penalty=penalty)


def me_lssm(learners: Iterable[Learner], switching: Any = 0.01) -> Experts:
    """ME-LSSM: a bank of filters of which one is right at a time (Magill 1965; Chang & Athans 1978)."""
    return Experts(list(learners), switching)


def wolf_rl_pr(learner: Any, threshold: Any = 4.0, hazard: Any = 0.01, capacity: int = 10) -> RunLength:
    """WoLF+RL[K]-PR: changepoints among outliers (Altamirano et al. 2023; Duran-Martin et al. 2024)."""
    return RunLength(WoLF(learner, threshold), hazard, capacity)
