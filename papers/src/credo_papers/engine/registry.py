"""All experiments by name: the room that each lives in, one line about it, and its source."""

from __future__ import annotations

import importlib

from credo.core.errors import require_choice
from credo_papers.engine.experiment import Experiment

__all__ = ["find", "names"]

_BACKGROUND = "background experiments"
_PFBR = "Chen, Dai & Song 2019 (PFBR, arXiv 1902.00640)"

# name -> (room, one line, source). The modules import JAX, so they are loaded only when they are run.
_EXPERIMENTS: dict[str, tuple[str, str, str]] = {
    "kf-tracking": (
        "kalman",
        "Track an object in the plane with a Kalman filter",
        f"{_BACKGROUND}: Kalman filter tracking",
    ),
    "kf-linreg": (
        "kalman",
        "Linear regression one row at a time meets ridge regression at the end",
        f"{_BACKGROUND}: recursive linear regression",
    ),
    "moons": (
        "kalman",
        "A small neural classifier learns two moons from 200 labels, in one pass",
        f"{_BACKGROUND}: extended Kalman filter classification",
    ),
    "lofi-uci": (
        "lofi",
        "Regressions of UCI in one pass: low-rank filters between diagonal and full",
        "Chang et al. 2023 (LOFI, arXiv 2305.19535)",
    ),
    "lofi-fashion": (
        "lofi",
        "Fashion-MNIST row by row, standing still and drifting: filters against gradient descent",
        "Chang et al. 2023 (LOFI, arXiv 2305.19535)",
    ),
    "bone-segmentation": (
        "bone",
        "Piecewise linear regression: changes found by run lengths, beside forgetting",
        "Duran-Martin et al. 2024 (BONE, arXiv 2411.10153): segmentation",
    ),
    "bone-drift-jump": (
        "bone",
        "Logistic regression with drift and jumps: run lengths, soft resets and experts",
        "Duran-Martin et al. 2024 (BONE, arXiv 2411.10153): drift and jumps",
    ),
    "bone-rotating": (
        "bone",
        "Logistic regression whose weights never stop turning: forgetting against resets",
        "Duran-Martin et al. 2024 (BONE, arXiv 2411.10153): periodic drift",
    ),
    "bone-heavy-tails": (
        "bone",
        "Changes among outliers: robust learners inside run lengths",
        "Duran-Martin et al. 2024 (BONE, arXiv 2411.10153): outliers",
    ),
    "bone-polynomial": (
        "bone",
        "A curve in pieces: what carries over a change, and what does not",
        "Duran-Martin et al. 2024 (BONE, arXiv 2411.10153): dependent segments",
    ),
    "bone-moons": (
        "bone",
        "Two moons that are turned twice by half a circle, 3 x 100 labels, and a small network",
        "Duran-Martin et al. 2024 (BONE, arXiv 2411.10153): moons",
    ),
    "bone-moons-long": (
        "bone",
        "Two moons that are turned four times, 5 x 200 labels, and a small network",
        "Duran-Martin et al. 2024 (BONE, arXiv 2411.10153): moons",
    ),
    "bone-bandit": (
        "bone",
        "A restless bandit: UCB and Thompson sampling with a learner for every arm",
        "Duran-Martin et al. 2024 (BONE, arXiv 2411.10153): bandits",
    ),
    "bone-sde": (
        "bone",
        "The drift of a diffusion whose level changes, learned from its increments",
        "Duran-Martin et al. 2024 (BONE, arXiv 2411.10153): stochastic differential equations",
    ),
    "bone-electricity": (
        "bone",
        "Electricity demand one hour ahead, 45,312 half hours, with a small network",
        "Duran-Martin et al. 2024 (BONE, arXiv 2411.10153): electricity (other data)",
    ),
    "bone-prices": (
        "bone",
        "Electricity prices up or down, 45,312 half hours: learners that adapt, beside River's",
        "Harries 1999 (Elec2); the methods of Duran-Martin et al. 2024 (BONE, arXiv 2411.10153)",
    ),
    "bong-linreg": (
        "bong",
        "Online linear regression: the grid's divergence from the exact posterior",
        "Jones, Chang & Murphy 2024 (arXiv 2405.19681): linear regression",
    ),
    "bong-logreg": (
        "bong",
        "Online logistic regression: the grid's divergence from the exact posterior",
        "Jones, Chang & Murphy 2024 (arXiv 2405.19681): logistic regression",
    ),
    "bong-mnist": (
        "bong",
        "MNIST, one digit at a time: four rules, three curvatures, a low-rank belief",
        "Jones, Chang & Murphy 2024 (arXiv 2405.19681): MNIST",
    ),
    "bong-mnist-families": (
        "bong",
        "MNIST, one digit at a time: full, diagonal and low-rank beliefs over a tiny network",
        "Jones, Chang & Murphy 2024 (arXiv 2405.19681): MNIST (smaller network)",
    ),
    "bong-sarcos": (
        "bong",
        "Inverse dynamics of a robot arm: a network with a low-rank posterior, rule by rule",
        "Jones, Chang & Murphy 2024 (arXiv 2405.19681): SARCOS",
    ),
    "bong-timing": (
        "bong",
        "What a step costs against P, R, M, I and C, for every rule, curvature and family",
        "Jones, Chang & Murphy 2024 (arXiv 2405.19681): complexities",
    ),
    "bayesopt-ackley": (
        "bandits",
        "Ten evaluations of a function with many peaks: optimisation around features and networks",
        "the talk on online learning: Bayesian optimisation",
    ),
    "bandit-mab": (
        "bandits",
        "Arms without contexts: regret like log T, and like sqrt T for arms on a circle",
        "Lai & Robbins 1985; Kaufmann, Korda & Munos 2012 (arXiv 1205.4217); the bandit demo of probml",
    ),
    "bandit-tabular": (
        "bandits",
        "Statlog and covertype by bandit feedback: the default agent, linear ones and a network",
        "Duran-Martin, Kara & Murphy 2022 (arXiv 2112.00195): tabular bandits",
    ),
    "bandit-wheel": (
        "bandits",
        "The wheel: rare contexts that are worth fifty times the others",
        "Riquelme, Tucker & Snoek 2018 (arXiv 1802.09127): the wheel bandit",
    ),
    "bandit-mnist": (
        "bandits",
        "5,000 digits by bandit feedback: the default agent, a linear one and random features",
        "Duran-Martin, Kara & Murphy 2022 (arXiv 2112.00195): MNIST",
    ),
    "bandit-memory": (
        "bandits",
        "Reward against memory: the rank of a covariance, a replay buffer, a subspace, an ensemble",
        "the talk on online learning: bandits, the memory of low-rank filters",
    ),
    "pfbr-gaussian": (
        "pfbr",
        "Particles learn the mean of a normal distribution: how they age over 100 observations",
        f"{_PFBR}: Fig. 2",
    ),
    "pfbr-mixture": (
        "pfbr",
        "A posterior with two modes, and particles that must keep both",
        f"{_PFBR}: Fig. 3",
    ),
    "pfbr-lds": (
        "pfbr",
        "Particles in linear dynamical systems, where a Kalman filter knows the posterior",
        f"{_PFBR}: Fig. 4 and Table 1",
    ),
    "pfbr-lorenz": (
        "pfbr",
        "Chaos seen through heavy-tailed noise: particles by their forecasts",
        "no publication: a test that a linear filter does not pass",
    ),
    "pfbr-logistic-meta": (
        "pfbr",
        "Digits 6 and 8 online, and tasks that differ: does a learner learn?",
        f"{_PFBR}: Fig. 5 (other digits)",
    ),
    "pfbr-logistic-vi": (
        "pfbr",
        "A posterior over 50 weights from one pass: test error by labels seen",
        f"{_PFBR}: Fig. 6 (other digits)",
    ),
}


def names() -> dict[str, str]:
    """Return the name of every experiment with one line about it.

    Example:
        >>> list(names())[:2]
        ['kf-tracking', 'kf-linreg']
    """
    return {name: title for name, (_, title, _) in _EXPERIMENTS.items()}


def find(name: str) -> Experiment:
    """Load an experiment: the module of its name in the room of its paper.

    Arguments:
        name: one of `names()`.

    Raises:
        CredoError: no experiment has this name.

    Example:
        >>> find("bone-sde").title
        'The drift of a diffusion whose level changes, learned from its increments'
    """
    require_choice("experiment", name, _EXPERIMENTS)
    room, title, source = _EXPERIMENTS[name]
    module = importlib.import_module(f"credo_papers.{room}.{name.replace('-', '_')}")
    return Experiment(name, title, source, module.run)
