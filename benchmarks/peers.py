"""The peers, used as their documentation shows."""

# The extra "bench" has packages that no test needs.
# pyright: reportMissingImports=false

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from timing import Row, Table, seconds


def river_bayesian_regression(table: Table, group: str, x: np.ndarray, y: np.ndarray) -> float:
    """River's BayesianLinearRegression, `learn_one`."""
    from river import linear_model

    rows: list[dict[Any, Any]] = [dict(enumerate(map(float, row))) for row in x]

    def go() -> None:
        model = linear_model.BayesianLinearRegression()
        for row, target in zip(rows, map(float, y), strict=True):
            model.learn_one(row, target)

    return table.add(Row(group, "River BayesianLinearRegression.learn_one", len(x) / seconds(go, 1)[0]))


def river_logistic(table: Table, group: str, x: np.ndarray, y: np.ndarray) -> float:
    """River's LogisticRegression, `learn_one`: a point estimate."""
    from river import linear_model

    rows: list[dict[Any, Any]] = [dict(enumerate(map(float, row))) for row in x]

    def go() -> None:
        model = linear_model.LogisticRegression()
        for row, label in zip(rows, map(bool, y), strict=True):
            model.learn_one(row, label)

    return table.add(Row(group, "River LogisticRegression.learn_one", len(x) / seconds(go, 1)[0]))


def sklearn_sgd(table: Table, group: str, x: np.ndarray, y: np.ndarray, batch: int) -> float:
    """scikit-learn's SGDClassifier(log_loss).partial_fit: a point estimate."""
    from sklearn.linear_model import SGDClassifier

    def go() -> None:
        model = SGDClassifier(loss="log_loss")
        for start in range(0, len(x), batch):
            model.partial_fit(x[start : start + batch], y[start : start + batch], classes=[0, 1])

    name = f"scikit-learn SGDClassifier.partial_fit, {batch} rows a call"
    return table.add(Row(group, name, len(x) / seconds(go, 1)[0]))


def posteriors_ekf(
    table: Table, group: str, what: str, x: np.ndarray, y: np.ndarray, width: int | None, batch: int = 1
) -> float:
    """The diagonal EKF of `posteriors`: logistic regression, or a network with one hidden layer."""
    warnings.filterwarnings("ignore")
    import torch
    from posteriors import ekf
    from torch.func import functional_call

    torch.manual_seed(0)
    inputs = x[0].size
    if width is None:
        module: torch.nn.Module = torch.nn.Linear(inputs, 1, bias=False)
    else:
        module = torch.nn.Sequential(
            torch.nn.Linear(inputs, width), torch.nn.ReLU(), torch.nn.Linear(width, 10)
        )

    def log_likelihood(params: dict[str, Any], batch: tuple[Any, ...]) -> tuple[Any, ...]:
        a, b = batch
        out = functional_call(module, params, a)
        if width is None:
            loss = torch.nn.functional.binary_cross_entropy_with_logits(
                out[:, 0], b.float(), reduction="none"
            )
        else:
            loss = torch.nn.functional.cross_entropy(out, b, reduction="none")
        return -loss, torch.tensor([])

    xs = torch.as_tensor(x.reshape(len(x) // batch, batch, -1), dtype=torch.float32)
    ys = torch.as_tensor(y.reshape(len(y) // batch, batch), dtype=torch.long)
    transform = ekf.diag_fisher.build(log_likelihood, lr=1.0, per_sample=True, init_sds=0.1)
    params = {name: p.detach().clone() for name, p in module.named_parameters()}

    def go() -> None:
        state = transform.init(params)
        for a, b in zip(xs, ys, strict=True):
            state, _ = transform.update(state, (a, b))

    return table.add(Row(group, what, len(x) / seconds(go, 1)[0]))
