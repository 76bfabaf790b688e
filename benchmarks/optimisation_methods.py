"""Methods of `optimisation.py` as ask and tell: random points, credo, and its peers.

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

    told = False
    """Whether it is told whether there is noise."""

    def __init__(self, box: Box, seed: int, noisy: bool) -> None:
        from credo import bandits

        self._best = bandits.Optimizer(
            None, box, goal="min", deterministic=self.told and not noisy, seed=seed
        )

    def ask(self) -> np.ndarray:
        return np.asarray(self._best.ask())

    def tell(self, point: np.ndarray, value: float) -> None:
        self._best.tell(point, value)

    def answer(self) -> np.ndarray | None:
        return np.asarray(self._best.recommended)


class CredoTold(Credo):
    """The same, told whether there is noise, as scikit-optimize and BoTorch are."""

    told = True


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


class BoTorch:
    """A Gaussian process of BoTorch with noisy log expected improvement, the default of Ax.

    It has BoTorch's priors, inputs in the unit box, standardised values, and five points of Sobol's sequence
    first, and is told whether there is noise.
    """

    def __init__(self, box: Box, seed: int, noisy: bool) -> None:
        import torch

        warnings.filterwarnings("ignore")
        torch.set_num_threads(1)
        torch.manual_seed(seed)
        self._torch = torch
        self._noisy = noisy
        self._low, self._high = np.asarray(box, float).T
        self._first = torch.quasirandom.SobolEngine(len(box), scramble=True, seed=seed)
        self._points: list[np.ndarray] = []
        self._values: list[float] = []

    def _fit(self) -> tuple[Any, Any]:
        """The model of the values so far, and their points in the unit box."""
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import SingleTaskGP
        from botorch.models.transforms import Standardize
        from gpytorch.mlls import ExactMarginalLogLikelihood

        kind = self._torch.double
        unit = (np.stack(self._points) - self._low) / (self._high - self._low)
        points = self._torch.tensor(unit, dtype=kind)
        values = self._torch.tensor(self._values, dtype=kind)[:, None]
        var = None if self._noisy else 1e-8 * values.var() * self._torch.ones_like(values)
        model = SingleTaskGP(points, -values, var, outcome_transform=Standardize(m=1))
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        return model, points

    def ask(self) -> np.ndarray:
        from botorch.acquisition.logei import qLogNoisyExpectedImprovement
        from botorch.optim import optimize_acqf

        if len(self._points) < 5:
            place = self._first.draw(1)[0]
        else:
            model, points = self._fit()
            gain = qLogNoisyExpectedImprovement(model, points, prune_baseline=True)
            width = len(self._low)
            bounds = self._torch.stack([self._torch.zeros(width), self._torch.ones(width)]).double()
            place = optimize_acqf(gain, bounds, q=1, num_restarts=10, raw_samples=512)[0][0]
        return np.asarray(self._low + (self._high - self._low) * place.double().numpy())

    def tell(self, point: np.ndarray, value: float) -> None:
        self._points.append(point)
        self._values.append(value)

    def answer(self) -> np.ndarray | None:
        if not self._noisy:
            return None
        model, points = self._fit()
        return self._points[int(model.posterior(points).mean.argmax())]


METHODS: dict[str, Callable[[Box, int, bool], Method]] = {
    "random": Random,
    "credo": Credo,
    "credo-told": CredoTold,
    "optuna": Optuna,
    "skopt": ScikitOptimize,
    "bayes_opt": BayesOpt,
    "botorch": BoTorch,
}
