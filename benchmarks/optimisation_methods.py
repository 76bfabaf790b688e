"""Methods of `optimisation.py` as ask and tell: random points, credo, Optuna, scikit-optimize, bayes_opt.

Each package is imported if its method is asked for, so that peers can live in environments of their own. All
have their defaults: their own first points, and their own idea of the best point in the end.
"""

# pyright: reportMissingImports=false

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

__all__ = ["METHODS", "Method"]

Box = Sequence[tuple[float, float]]


class Method(Protocol):
    """A search that minimises."""

    def ask(self) -> np.ndarray:
        """The next point (d,)."""
        ...

    def tell(self, point: np.ndarray, value: float) -> None:
        """Its value."""
        ...

    def answer(self) -> np.ndarray | None:
        """The point that is believed to be the best; None for the one with the best value."""
        ...


class Random:
    """Points at random."""

    def __init__(self, box: Box, seed: int, noisy: bool) -> None:
        self._low, self._high = np.asarray(box, float).T
        self._rng = np.random.default_rng(seed)

    def ask(self) -> np.ndarray:
        return np.asarray(self._low + (self._high - self._low) * self._rng.random(len(self._low)))

    def tell(self, point: np.ndarray, value: float) -> None:
        return None

    def answer(self) -> np.ndarray | None:
        return None


class Credo:
    """`bandits.Optimizer` without options."""

    def __init__(self, box: Box, seed: int, noisy: bool) -> None:
        from credo import bandits

        self._best = bandits.Optimizer(None, box, goal="min", seed=seed)

    def ask(self) -> np.ndarray:
        return np.asarray(self._best.ask())

    def tell(self, point: np.ndarray, value: float) -> None:
        self._best.tell(point, value)

    def answer(self) -> np.ndarray | None:
        return np.asarray(self._best.recommended)


class Optuna:
    """Optuna's TPE."""

    def __init__(self, box: Box, seed: int, noisy: bool) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
        self._space: dict[str, Any] = {
            f"x{i}": optuna.distributions.FloatDistribution(low, high) for i, (low, high) in enumerate(box)
        }
        self._trial: Any = None

    def ask(self) -> np.ndarray:
        self._trial = self._study.ask(self._space)
        return np.array([self._trial.params[name] for name in self._space])

    def tell(self, point: np.ndarray, value: float) -> None:
        self._study.tell(self._trial, value)

    def answer(self) -> np.ndarray | None:
        return None


class ScikitOptimize:
    """`skopt.Optimizer`, by a Gaussian process, as in `gp_minimize`; it is told whether there is noise."""

    def __init__(self, box: Box, seed: int, noisy: bool) -> None:
        from skopt import Optimizer
        from skopt.utils import cook_estimator

        space = [(float(low), float(high)) for low, high in box]
        noise: Any = "gaussian" if noisy else 1e-10
        estimator = cook_estimator("GP", space=space, random_state=seed, noise=noise)
        warnings.filterwarnings("ignore")
        self._search = Optimizer(
            space,
            estimator,
            n_initial_points=10,
            acq_func="gp_hedge",
            acq_optimizer="auto",
            random_state=seed,
        )

    def ask(self) -> np.ndarray:
        return np.asarray(self._search.ask(), float)

    def tell(self, point: np.ndarray, value: float) -> None:
        self._search.tell([float(number) for number in point], float(value))

    def answer(self) -> np.ndarray | None:
        return None


class BayesOpt:
    """`bayes_opt.BayesianOptimization`, with five points at random first, as its `maximize` has it."""

    def __init__(self, box: Box, seed: int, noisy: bool) -> None:
        from bayes_opt import BayesianOptimization

        warnings.filterwarnings("ignore")
        self._names = [f"x{i}" for i in range(len(box))]
        self._search: Any = BayesianOptimization(
            None,
            dict(zip(self._names, box, strict=True)),
            random_state=seed,
            verbose=0,
            allow_duplicate_points=True,
        )
        self._first = Random(box, seed, noisy)
        self._told = 0

    def ask(self) -> np.ndarray:
        if self._told < 5:
            return self._first.ask()
        point: Any = self._search.suggest()
        return np.array([point[name] for name in self._names])

    def tell(self, point: np.ndarray, value: float) -> None:
        self._told += 1
        self._search.register(dict(zip(self._names, point.tolist(), strict=True)), -value)

    def answer(self) -> np.ndarray | None:
        return None


METHODS: dict[str, Callable[[Box, int, bool], Method]] = {
    "random": Random,
    "credo": Credo,
    "optuna": Optuna,
    "skopt": ScikitOptimize,
    "bayes_opt": BayesOpt,
}
