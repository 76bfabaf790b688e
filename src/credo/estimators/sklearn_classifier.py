"""The classifier of scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import check_is_fitted

from credo.core.errors import DataError
from credo.core.types import PyTree
from credo.estimators.parameters import spelled_out
from credo.estimators.sklearn_base import OnlineEstimator
from credo.learners import Learner
from credo.likelihoods import PredictiveRows
from credo.live import passes
from credo.recipes.language import Network
from credo.recipes.options import LearnerWords

__all__ = ["OnlineClassifier"]


class OnlineClassifier(ClassifierMixin, OnlineEstimator):  # type: ignore[misc]
    """A classifier of scikit-learn that learns row by row, with the settings and defaults of `credo learn`.

    `fit` standardises numbers by all of its rows and learns the rows once, in their order. `partial_fit`
    standardises each row by the rows before it. It goes on after `fit`, whose rows then count as the rows
    before, and any split of rows into calls of `partial_fit` gives the same bits. Rows are an array, a CSR
    matrix, a DataFrame (pandas, Polars, ...), a dict of columns or a list of dicts. NaN and None are missing.
    Columns of a DataFrame that hold categories, dates, truth values or text are encoded as `credo learn`
    does, from what the first call shows.

    Arguments:
        model: "auto" for the bank of learners of `credo learn`, or a network: "linear", "mlp:50,50".
        posterior, method, curvature, drift, prior_var, learning_rate, iterations, budget: the settings of
            `credo learn`; see `credo.sessions.Options`. The drift "none" suits rows whose order says nothing.
        passes: how often `fit` goes over its rows. Each pass counts the rows again, so that the posterior is
            too narrow: that of a data set `passes` times as large.
        random_state: the seed of initial weights and draws; None is 0.
        learner: any learner of credo, wrappers included, in place of those that the settings above build.
            Its rows have one input a column, standardised, and its labels are class numbers from 0.
        params: the parameters that `learner` begins with; `prior_var` is their prior variance.

    Attributes:
        classes_: the class labels, sorted (C,).
        n_features_in_: the number of columns.
        feature_names_in_: their names, if they have names.
        n_parameters_: the number of parameters.
        log_evidence_: the sum of the log probabilities of the labels, each forecast from the rows before it.
        n_seen_: how many rows were learned from.
        changes_: the rows, from 1, at which the drift reported a change.

    Example:
        >>> from sklearn.datasets import load_breast_cancer
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> classifier = OnlineClassifier("linear", drift="none").fit(X, y)
        >>> classifier.score(X, y) > 0.9, classifier.predict_proba(X[:2]).shape
        (True, (2, 2))
    """

    _numbers = False
    classes_: NDArray[Any]

    @spelled_out(LearnerWords)
    def __init__(
        self,
        model: Network | str | None = "auto",
        *,
        passes: int = 1,
        random_state: Any = None,
        learner: Learner[Any] | None = None,
        params: PyTree = None,
        **options: Unpack[LearnerWords],
    ) -> None:
        """The parameters become attributes of their names, and nothing else happens yet."""

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn rows from the prior on, standardised by all of them.

        Arguments:
            X: the rows (n, D); see the class.
            y: their labels (n,).
            sample_weight: their weights (n,). A row of weight 2 counts as two, one of weight 0 is left out.

        Returns:
            The estimator.

        Raises:
            DataError: there is one class only, a weight is negative, or all weights are 0.
            CredoError: a parameter is unknown or out of its range, or two do not fit together.
            ValueError: rows and labels are not what scikit-learn takes.
        """
        return self._learn_all(X, y, sample_weight)

    def partial_fit(
        self,
        X: Any,
        y: ArrayLike,
        classes: Sequence[Any] | NDArray[Any] | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn further rows, each standardised by the rows before it.

        Arguments:
            X, y, sample_weight: see `fit`.
            classes: all labels that can come, which the first call needs.

        Returns:
            The estimator.

        Raises:
            DataError: the first call has no classes, later classes are others, or a label is none of them.
            ValueError: as for `fit`.
        """
        return self._learn_more(X, y, sample_weight, classes)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The probabilities of the classes (n, C), in the order of `classes_`.

        Arguments:
            X: rows, which need no order: each is forecast at the present belief.
        """
        probs = np.asarray(self._ask(X, passes.probs), float)
        return np.asarray(probs / probs.sum(axis=1, keepdims=True), float)

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable label of each row (n,).

        Arguments:
            X: rows.
        """
        best = self.predict_proba(X).argmax(axis=1)
        labels: NDArray[Any] = np.asarray(self.classes_)[best]
        return labels

    def forecast(self, X: Any) -> PredictiveRows:
        """The forecasts of rows as distributions of credo, in which classes are numbers from 0.

        Arguments:
            X: rows.
        """
        return PredictiveRows(self._ask(X, passes.whole))

    def log_score(self, X: Any, y: ArrayLike) -> float:
        """The mean log probability of the labels of rows, in nats; 0 is the best.

        Arguments:
            X: rows.
            y: their labels (n,).

        Raises:
            DataError: a label is none of the classes.
        """
        check_is_fitted(self)
        numbers = _numbers_of(np.asarray(y), self.classes_)
        return float(np.mean(np.asarray(self._ask(X, passes.log_prob, numbers), float)))

    def _class_count(self) -> int:
        return len(self.classes_)

    def _encode_targets(self, y: np.ndarray, classes: Any, *, online: bool) -> np.ndarray:
        check_classification_targets(y)
        if not online:
            self.classes_ = np.unique(y)
        elif not hasattr(self, "_trainer"):
            if classes is None:
                raise DataError(
                    "classes must be given at the first call of partial_fit: all labels that can come.",
                    field="classes",
                )
            self.classes_ = unique_labels(classes)
        elif classes is not None and not np.array_equal(unique_labels(classes), self.classes_):
            raise DataError(
                f"classes must be those of the first call, {_shown(self.classes_)}; got "
                f"{_shown(unique_labels(classes))}.",
                field="classes",
            )
        if len(self.classes_) < 2:
            raise DataError(
                f"y must hold at least two classes; it holds one class, {_shown(self.classes_)}.", field="y"
            )
        return _numbers_of(y, self.classes_)


def _numbers_of(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The class numbers of labels."""
    try:
        places = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
        wrong = classes[places] != y
    except TypeError:  # labels that cannot be compared with the classes are none of them
        places = np.zeros(len(y), int)
        wrong = np.ones(len(y), bool)
    if np.any(wrong):
        row = int(np.argmax(wrong))
        raise DataError(
            f"y must hold the classes {_shown(classes)}; row {row + 1} has {y.tolist()[row]!r}.", field="y"
        )
    return np.asarray(places, np.int32)


def _shown(labels: np.ndarray) -> str:
    return ", ".join(repr(label) for label in labels[:10].tolist()) + ", ..." * (len(labels) > 10)
