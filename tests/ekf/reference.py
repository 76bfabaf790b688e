"""Streams for the Fisher EKFs, and their recursion written out with NumPy.

Gradients are derived by hand: with eta the outputs, d l / d eta is y - sigmoid(eta), onehot(y) -
softmax(eta), or (y - eta) / var, and the chain rule takes it through x w + b or tanh(x w1 + b1) w2 + b2.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

VAR = 0.25
Tree = dict[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Stream:
    """A model, data, and settings of a filter."""

    kind: str
    hidden: int
    batch: int
    lr: float | Callable[..., Any] = 1.0
    drift: float = 0.0
    sds: float | dict[str, float] = 0.5
    per_sample: bool = False
    reduce: str = "mean"
    steps: int = 12

    @property
    def outputs(self) -> int:
        return 3 if self.kind == "categorical" else 1

    def shapes(self) -> dict[str, tuple[int, ...]]:
        if not self.hidden:
            return {"b": (self.outputs,), "w": (3, self.outputs)}
        return {
            "b1": (self.hidden,),
            "b2": (self.outputs,),
            "w1": (3, self.hidden),
            "w2": (self.hidden, self.outputs),
        }

    def params(self) -> Tree:
        rng = np.random.default_rng(1)
        return {name: 0.4 * rng.normal(size=shape) for name, shape in self.shapes().items()}

    def data(self) -> tuple[np.ndarray, np.ndarray]:
        """x (T, B, 3), and y (T, B)."""
        rng = np.random.default_rng(2)
        shape = (self.steps, self.batch)
        x = rng.normal(size=(*shape, 3))
        if self.kind == "normal":
            return x, np.sin(x.sum(axis=-1)) + 0.3 * rng.normal(size=shape)
        y = rng.integers(0, self.outputs if self.kind == "categorical" else 2, shape)
        return x, y if self.kind == "categorical" else y.astype(float)

    def sd_tree(self) -> Tree:
        each = self.sds if isinstance(self.sds, dict) else dict.fromkeys(self.shapes(), self.sds)
        return {name: np.full(shape, each[name]) for name, shape in self.shapes().items()}

    def rate(self, step: int) -> float:
        return float(self.lr(step)) if callable(self.lr) else self.lr


def halving(step: Any) -> Any:
    """A schedule, for JAX, torch and NumPy."""
    return 2.0 / (1.0 + 0.5 * (step.astype(float) if hasattr(step, "astype") else float(step)))


STREAMS = {
    "bernoulli-linear-1": Stream("bernoulli", 0, 1),
    "bernoulli-linear-4-drift": Stream("bernoulli", 0, 4, drift=0.2, reduce="sum"),
    "categorical-linear-4-schedule": Stream("categorical", 0, 4, lr=halving, per_sample=True),
    "normal-linear-8-sum": Stream("normal", 0, 8, lr=8.0, reduce="sum"),
    "normal-linear-1-sds": Stream("normal", 0, 1, sds={"b": 1.5, "w": 0.3}, drift=0.1),
    "bernoulli-mlp-4-sds": Stream(
        "bernoulli", 4, 4, sds={"b1": 0.2, "b2": 1.0, "w1": 0.4, "w2": 0.7}, per_sample=True
    ),
    "categorical-mlp-8-schedule-drift": Stream("categorical", 4, 8, lr=halving, drift=0.05),
    "normal-mlp-1": Stream("normal", 4, 1, lr=0.5, per_sample=True),
}


def log_likelihood(stream: Stream, xp: Any) -> Callable[[Any, Any], tuple[Any, Any]]:
    """The same function in JAX or in torch: a number for the batch, or one a row; aux is the outputs."""

    def function(params: Any, batch: Any) -> tuple[Any, Any]:
        x, y = batch
        if stream.hidden:
            eta = xp.tanh(x @ params["w1"] + params["b1"][None]) @ params["w2"] + params["b2"][None]
        else:
            eta = x @ params["w"] + params["b"][None]
        if stream.kind == "normal":
            each = -0.5 * (y - eta[:, 0]) ** 2 / VAR
        elif stream.kind == "bernoulli":
            each = y * eta[:, 0] - xp.logaddexp(eta[:, 0], 0.0 * eta[:, 0])
        else:
            named = xp.where(y[:, None] == xp.arange(3)[None], eta, 0.0 * eta)
            each = named.sum(-1) - xp.log(xp.exp(eta).sum(-1))
        return (each if stream.per_sample else getattr(each, stream.reduce)()), eta

    return function


def row(stream: Stream, params: Tree, x: np.ndarray, y: Any) -> tuple[float, Tree]:
    """log p of one row and its gradient."""
    h = np.tanh(x @ params["w1"] + params["b1"]) if stream.hidden else np.zeros(0)
    if stream.hidden:
        eta = h @ params["w2"] + params["b2"]
    else:
        eta = x @ params["w"] + params["b"]
    if stream.kind == "normal":
        value, s = -0.5 * float((y - eta[0]) ** 2) / VAR, (y - eta) / VAR
    elif stream.kind == "bernoulli":
        value, s = float(y * eta[0] - np.log1p(np.exp(eta[0]))), y - 1.0 / (1.0 + np.exp(-eta))
    else:
        p = np.exp(eta) / np.exp(eta).sum()
        value, s = float(np.log(p[y])), np.eye(3)[y] - p
    if not stream.hidden:
        return value, {"b": s, "w": np.outer(x, s)}
    back = (params["w2"] @ s) * (1.0 - h**2)
    return value, {"b1": back, "b2": s, "w1": np.outer(x, back), "w2": np.outer(h, s)}


def flat(tree: Any) -> np.ndarray:
    """Leaves by the order of their names, one after another."""
    return np.concatenate([np.asarray(tree[name]).reshape(-1) for name in sorted(tree)])


def unflat(stream: Stream, vector: np.ndarray) -> Tree:
    sizes = {name: int(np.prod(shape)) for name, shape in sorted(stream.shapes().items())}
    parts = np.split(vector, np.cumsum(list(sizes.values()))[:-1])
    return {name: part.reshape(stream.shapes()[name]) for name, part in zip(sizes, parts, strict=True)}


def slopes(stream: Stream, mean: np.ndarray, x: np.ndarray, y: np.ndarray) -> tuple[float, np.ndarray]:
    """The mean log-likelihood, and the rows' gradients (B, P)."""
    made = [row(stream, unflat(stream, mean), a, b) for a, b in zip(x, y, strict=True)]
    return float(np.mean([value for value, _ in made])), np.stack([flat(grad) for _, grad in made])


def diagonal(stream: Stream) -> Iterator[tuple[np.ndarray, np.ndarray, float]]:
    """(mean, sd, log-likelihood) after every batch."""
    mean, sd = flat(stream.params()), flat(stream.sd_tree())
    for step, (x, y) in enumerate(zip(*stream.data(), strict=True)):
        lr = stream.rate(step)
        sd = np.sqrt(sd**2 + stream.drift**2)
        value, grads = slopes(stream, mean, x, y)
        sd = (sd**-2.0 + lr * np.mean(grads**2, axis=0)) ** -0.5
        mean = mean + lr * sd**2 * np.mean(grads, axis=0)
        yield mean, sd, value


def dense(
    stream: Stream, drift: np.ndarray | None = None, sign: float = 1.0
) -> Iterator[tuple[np.ndarray, np.ndarray, float]]:
    """(mean, covariance, log-likelihood) after every batch; `sign` is that of the Fisher information."""
    mean, cov = flat(stream.params()), np.diag(flat(stream.sd_tree()) ** 2)
    noise = stream.drift**2 * np.eye(len(mean)) if drift is None else drift
    for step, (x, y) in enumerate(zip(*stream.data(), strict=True)):
        lr = stream.rate(step)
        value, grads = slopes(stream, mean, x, y)
        cov = np.linalg.inv(np.linalg.inv(cov + noise) + sign * lr * grads.T @ grads / len(grads))
        mean = mean + lr * cov @ np.mean(grads, axis=0)
        yield mean, cov, value
