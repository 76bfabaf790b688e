"""The contribution of each row to the metrics that are means."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import DTypeLike

from credo.core.errors import CredoError, require_choice
from credo.metrics.scores import Scores

__all__ = ["LossName", "row_losses"]

LossName: TypeAlias = Literal["nlpd", "error", "brier", "rmse", "mae", "loss"]
"""The metrics that are means over rows; for the root mean squared error, its square is."""

_NEEDS: dict[LossName, tuple[str, str]] = {
    "error": ("probs", "class probabilities"),
    "brier": ("probs", "class probabilities"),
    "rmse": ("mean", "predictive means"),
    "mae": ("mean", "predictive means"),
    "loss": ("loss", "the losses of decisions"),
}
"""The field of `Scores` that a metric needs, and what it holds."""


def row_losses(scores: Scores, name: LossName, dtype: DTypeLike | None = None) -> np.ndarray:
    """What each row adds to a metric.

    Arguments:
        scores: the scores of N rows.
        name: "nlpd", -log p(y); "error", whether the class was wrong; "brier", |p - onehot(y)|^2; "rmse",
            (y - mean)^2; "mae", |y - mean|; "loss", the loss of the decision.
        dtype: the precision of the distances of a regression; by default that of the forecasts.

    Returns:
        The losses (N,), or (N, C) for a regression with C outputs; NaN where an output was not observed.

    Raises:
        CredoError: the metric is unknown, or the scores lack what it needs.

    Example:
        >>> from credo.metrics import Scores
        >>> one = np.ones(2)
        >>> scores = Scores(np.array([1.0, 4.0]), one, one, -one, None, None, {}, one, one > 0)
        >>> row_losses(scores, "rmse").tolist()
        [0.0, 9.0]
    """
    require_choice("name", name, get_args(LossName))
    field, words = _NEEDS.get(name, ("log_prob", ""))
    if getattr(scores, field) is None:
        raise CredoError(f"{name!r} needs {words}, and these scores have none.", field="name")
    if name == "nlpd":
        return -scores.log_prob
    if name == "loss":
        return np.asarray(scores.loss, float)
    if name == "error":
        return 1.0 - scores.correct
    if name == "brier":
        assert scores.probs is not None
        onehot = np.eye(scores.probs.shape[1])[scores.y.astype(int)]
        return np.asarray(((scores.probs - onehot) ** 2).sum(axis=1))
    assert scores.mean is not None
    gap = np.asarray(scores.y - scores.mean, dtype=dtype)
    return gap**2 if name == "rmse" else np.abs(gap)
