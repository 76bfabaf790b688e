"""The regressor of scikit-learn."""

from __future__ import annotations

from typing import Any, Self, Unpack

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from credo.core.errors import CredoError
from credo.core.types import PyTree
from credo.estimators.parameters import spelled_out
from credo.estimators.sklearn_base import OnlineEstimator, within_floats
from credo.learners import Learner
from credo.likelihoods import PredictiveRows
from credo.likelihoods.rescaled import FARTHEST, Rescaled
from credo.live import passes
from credo.recipes.language import Network
from credo.recipes.options import NumberWords

__all__ = ["OnlineRegressor"]


class OnlineRegressor(RegressorMixin, OnlineEstimator):  # type: ignore[misc]
    """A regressor of scikit-learn that learns row by row, with the settings and defaults of `credo learn`.

    Rows are those that `OnlineClassifier` takes. `fit` standardises inputs and targets by all of its rows and
    learns the rows once, in their order. `partial_fit` standardises each row by the rows before it. It goes
    on after `fit`, whose rows then count as the rows before, and any split of rows into calls of
    `partial_fit` gives the same bits. Without a `fit`, the first 10 targets say in which units the others
    are, and are learned from after that; forecasts before take the rows so far for all.

    Arguments:
        model, posterior, method, curvature, drift, prior_var, learning_rate: see `OnlineClassifier`.
        iterations, budget, passes, random_state: see `OnlineClassifier`.
        learner, params: see `OnlineClassifier`; the learner is given standardised targets.
        noise_var: the noise variance in units of the target's variance; learned by default, and "input"
            learns one that follows the inputs.

    Attributes:
        n_features_in_: the number of columns.
        feature_names_in_: their names, if they have names.
        n_parameters_: the number of parameters.
        log_evidence_: the sum of the log densities of targets, forecast from the rows before, in their own
            units.
        n_seen_: how many rows were learned from.
        changes_: the rows, from 1, at which the drift reported a change.

    Example:
        >>> from sklearn.datasets import load_diabetes
        >>> X, y = load_diabetes(return_X_y=True)
        >>> regressor = OnlineRegressor("linear", drift="none").fit(X, y)
        >>> regressor.score(X, y) > 0.5, regressor.predict_interval(X[:3], coverage=0.9).shape
        (True, (3, 2))
    """

    _numbers = True

    @spelled_out(NumberWords)
    def __init__(
        self,
        model: Network | str | None = "auto",
        *,
        passes: int = 1,
        random_state: Any = None,
        learner: Learner[Any] | None = None,
        params: PyTree = None,
        **options: Unpack[NumberWords],
    ) -> None:
        """The parameters become attributes of their names, and nothing else happens yet."""

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn rows from the prior on, standardised by all of them.

        Arguments:
            X: the rows (n, D); see `OnlineClassifier`.
            y: their targets (n,), finite.
            sample_weight: their weights (n,). A row of weight 2 counts as two, one of weight 0 is left out.

        Returns:
            The estimator.

        Raises:
            DataError: a weight is negative, or all weights are 0.
            CredoError: a parameter is unknown or out of its range, or two do not fit together.
            ValueError: rows and targets are not what scikit-learn takes.
        """
        return self._learn_all(X, y, sample_weight)

    def partial_fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn further rows, each standardised by the rows before it.

        Arguments:
            X, y, sample_weight: see `fit`.

        Returns:
            The estimator.

        Raises:
            DataError, CredoError, ValueError: as for `fit`.
        """
        return self._learn_more(X, y, sample_weight)

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """The mean of the forecast of each row (n,), in the target's own units.

        Arguments:
            X: rows, which need no order: each is forecast at the present belief.
            return_std: whether the standard deviations (n,) are returned, too.
        """
        mean, sd = (np.asarray(column, float) for column in self._ask(X, passes.moments))
        location, scale = self._trainer.location_scale
        mean = location + scale * mean
        if return_std:
            return (mean, scale * sd)
        return mean

    def predict_interval(self, X: Any, coverage: float = 0.9) -> NDArray[np.float64]:
        """The central interval that holds the target of each row with a probability (n, 2).

        Arguments:
            X: rows.
            coverage: the probability, above 0 and below 1.

        Raises:
            CredoError: the probability is out of its range.
        """
        share = _require_probabilities("coverage", coverage)
        if share.ndim:
            raise CredoError("coverage must be one number.", field="coverage")
        ends = 0.5 - float(share) / 2, 0.5 + float(share) / 2
        return self._quantiles(X, ends)

    def predict_quantiles(self, X: Any, alpha: ArrayLike = 0.5) -> NDArray[np.float64]:
        """The quantiles of the forecast of each row, in the target's own units.

        Arguments:
            X: rows.
            alpha: their probabilities, above 0 and below 1: a number, or several (A,).

        Returns:
            The quantiles: (n,) for a number, (n, A) for several.

        Raises:
            CredoError: a probability is out of its range.
        """
        levels = _require_probabilities("alpha", alpha)
        quantiles = self._quantiles(X, tuple(levels.reshape(-1).tolist()))
        if levels.ndim:
            return quantiles
        return quantiles[:, 0]

    def forecast(self, X: Any) -> PredictiveRows:
        """The forecasts of rows as distributions of credo, in the target's own units.

        Arguments:
            X: rows.
        """
        rows = self._ask(X, passes.whole)
        like = jax.eval_shape(lambda: jax.vmap(lambda row: row.mean)(rows))
        location, scale = (jnp.full(like.shape, one, like.dtype) for one in self._trainer.location_scale)
        return PredictiveRows(Rescaled(rows, location, scale))

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """R^2 of the forecasts, as of every regressor of scikit-learn.

        Arguments:
            X: rows (n, D), or a data frame.
            y: their targets (n,).
            sample_weight: how much each row counts (n,).

        Returns:
            1 less the squared errors as a share of those of the mean of `y`.

        Raises:
            DataError: a number is one that no float can hold.
        """
        with within_floats(y=y, sample_weight=sample_weight):
            return float(super().score(X, y, sample_weight))

    def log_score(self, X: Any, y: ArrayLike) -> float:
        """The mean log density of the targets of rows, in nats and in the target's own units.

        Arguments:
            X: rows.
            y: their targets (n,).
        """
        check_is_fitted(self)
        location, scale = self._trainer.location_scale
        with within_floats(y=y):
            targets = np.asarray(y, float)
        away = np.clip((targets - location) / scale, -FARTHEST, FARTHEST)
        return float(np.mean(np.asarray(self._ask(X, passes.log_prob, away), float)) - np.log(scale))

    def _quantiles(self, X: Any, levels: tuple[float, ...]) -> NDArray[np.float64]:
        quantiles = np.asarray(self._ask(X, passes.quantiles, None, levels), float)
        location, scale = self._trainer.location_scale
        return np.asarray(location + scale * quantiles, float)

    def _class_count(self) -> int:
        return 0

    def _encode_targets(self, y: np.ndarray, classes: Any, *, online: bool) -> np.ndarray:
        return np.asarray(y, float)


def _require_probabilities(field: str, value: ArrayLike) -> np.ndarray:
    """Probabilities as an array, or a sentence."""
    numbers = np.asarray(value)
    if numbers.dtype.kind not in "fiu" or not ((numbers > 0) & (numbers < 1)).all() or numbers.ndim > 1:
        raise CredoError(f"{field} must be above 0 and below 1; got {value!r}.", field=field)
    return numbers.astype(float)
