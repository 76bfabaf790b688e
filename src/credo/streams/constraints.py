"""What the numbers of a belief can be: finite, and within the range of their field."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import NamedTuple, NoReturn

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.errors import FormatError
from credo.core.forms import require_bounded
from credo.core.groups import Groups

__all__ = ["CONSTRAINTS", "require_possible"]

TOLERANCE = 1e-3
"""How far rounding may have taken a matrix from being symmetric and positive semi-definite, and weights from
summing to one, as a share of the largest entry."""


class Constraint(NamedTuple):
    """A test of the numbers of a field, what it asks for in words, and whether they must be finite, too."""

    test: Callable[[np.ndarray], bool]
    words: str
    finite: bool = True


def _refuse(path: str, what: str) -> NoReturn:
    raise FormatError(f"{path} {what}.", field=path)


def _all(test: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], bool]:
    return lambda array: bool(np.all(test(array)))


def _normalised(array: np.ndarray) -> bool:
    with np.errstate(over="ignore"):
        total = np.exp(array).sum(axis=-1)
    return not np.isnan(array).any() and bool(np.all(np.abs(total - 1) < TOLERANCE))


def _semidefinite(array: np.ndarray) -> bool:
    for matrix in array.reshape(-1, *array.shape[-2:]):
        scale = float(np.abs(matrix).max(initial=0.0))
        if np.abs(matrix - matrix.T).max(initial=0.0) > TOLERANCE * scale:
            return False
        try:
            np.linalg.cholesky(matrix + (TOLERANCE * scale + np.finfo(float).tiny) * np.eye(len(matrix)))
        except np.linalg.LinAlgError:
            return False
    return True


def _centred(array: np.ndarray) -> bool:
    total, size = np.abs(array.sum(axis=-2)), np.abs(array).sum(axis=-2)
    return bool(np.all(total <= TOLERANCE * size + np.finfo(float).tiny))


_POSITIVE = Constraint(_all(lambda array: array > 0), "must be above 0")
_NONNEGATIVE = Constraint(_all(lambda array: array >= 0), "must be at least 0")
_PRECISION = Constraint(_all(lambda array: array >= 1e-30), "must be above 0, and no less than 1e-30")
_SHARE = Constraint(_all(lambda array: (array >= 0) & (array <= 1 + TOLERANCE)), "must be in [0, 1]")
_LENGTH = Constraint(_all(lambda array: array >= -1), "must be at least -1")
_WEIGHTS = Constraint(_normalised, "must be log probabilities that sum to one", finite=False)
_LOGS = Constraint(_all(lambda array: array < np.inf), "must be log probabilities", finite=False)
_MATRIX = Constraint(_semidefinite, "must be symmetric and positive semi-definite")
_OBSERVED = Constraint(_all(lambda array: ~np.isinf(array)), "must not be infinite", finite=False)
_MOMENTS = Constraint(
    _all(lambda array: array[..., [0, 3]] >= 0), "must have counts and variances of at least 0"
)
_ROWS = Constraint(_all(lambda array: array[..., 0] >= 0), "must have weights of at least 0")
_WAITING = Constraint(_all(lambda array: array[..., 2] >= 0), "must have weights of at least 0")
_UNITS = Constraint(_all(lambda array: array[..., 1] >= 0), "must have a scale of at least 0")

CONSTRAINTS: dict[str, dict[str, Constraint]] = {
    "Bank": {"log_weights": _WEIGHTS, "log_joint": _LOGS},
    "Beta": {"a": _POSITIVE, "b": _POSITIVE},
    "Buffer": {"weight": _NONNEGATIVE, "count": _NONNEGATIVE, "y": _OBSERVED},
    "Calibration": {"log_weights": _WEIGHTS},
    "ClassNormals": {name: _POSITIVE for name in ("counts", "rows", "shape", "scale")},
    "DenseCovariance": {"matrix": _MATRIX},
    "DiagonalCovariance": {"var": _NONNEGATIVE},
    "Dirichlet": {"counts": _POSITIVE},
    "Ensemble": {"deviations": Constraint(_centred, "must have columns that sum to 0")},
    "FirstRewards": {"rows": _WAITING},
    "Forgetting": {"level": _NONNEGATIVE, "pending": _NONNEGATIVE},
    "Gamma": {"shape": _POSITIVE, "per": _POSITIVE},
    "Hypotheses": {"log_weights": _WEIGHTS},
    "LearnedUnits": {"known": _UNITS},
    "NumberLevel": {"count": _NONNEGATIVE, "noise": _POSITIVE},
    "LowRankCovariance": {"base": _PRECISION},
    "Memory": {"filled": _NONNEGATIVE, "ys": _OBSERVED},
    "Piece": {"jump_var": _NONNEGATIVE},
    "ProcessBelief": {
        "length": _POSITIVE,
        "signal_var": _POSITIVE,
        "noise_var": _POSITIVE,
        "offset_var": _NONNEGATIVE,
        "shares": _NONNEGATIVE,
        "written": _NONNEGATIVE,
    },
    "Remembered": {
        "shares": _NONNEGATIVE,
        "base": _POSITIVE,
        "log_weights": _WEIGHTS,
        "written": _NONNEGATIVE,
    },
    "Resettable": {"run_length": _LENGTH, "retention": _SHARE, "change": _SHARE},
    "RunningMoments": {"values": _MOMENTS},
    "ScaleByAdamState": {"count": _NONNEGATIVE, "nu": _NONNEGATIVE},
    "Segments": {"count": _NONNEGATIVE, "best": _LOGS},
    "Waiting": {"rows": _ROWS},
}
"""What the fields of beliefs must be beside finite, by the name of the record."""


_RAW = ("Buffer", "FirstRewards", "Memory", "Remembered", "RunningMoments", "Waiting")
"""Records of data as they came, and of squares, which may be larger than numbers that are multiplied."""


def require_possible(
    value: object, path: str, weights: np.ndarray | None = None, *, raw: bool = False
) -> None:
    """Refuse numbers that no belief holds, except in parts of a mixture whose weight is 0; those of `raw`
    data must be finite, and others in bounds.
    """
    if isinstance(value, dict):
        for name, child in value.items():
            require_possible(child, f"{path}.{name}", weights, raw=raw)
    elif dataclasses.is_dataclass(value) or hasattr(value, "_fields"):
        names, raw = _fields(value), raw or type(value).__name__ in _RAW
        rules = {"t": _NONNEGATIVE} | CONSTRAINTS.get(type(value).__name__, {})
        for name in names:
            child, rule = getattr(value, name), rules.get(name)
            shares = getattr(value, "log_weights", None) if name == "beliefs" else None
            inner = weights if shares is None else np.exp(np.asarray(shares, float))
            if rule is not None and isinstance(child, jax.Array | np.ndarray | int | float):
                _require_rule(_kept(np.asarray(child), weights), rule, f"{path}.{name}")
            if isinstance(child, Groups) and shares is not None and inner is not None:
                for i, (part, places) in enumerate(zip(child.parts, child.places, strict=True)):
                    require_possible(part, f"{path}.{name}.parts.{i}", inner[..., list(places)], raw=raw)
            elif rule is None or rule.finite:
                require_possible(child, f"{path}.{name}", inner, raw=raw)
    elif isinstance(value, list | tuple):
        for i, child in enumerate(value):
            require_possible(child, f"{path}.{i}", weights, raw=raw)
    elif isinstance(value, jax.Array | np.ndarray | float):
        array = jnp.asarray(value)
        if jnp.issubdtype(array.dtype, jnp.floating):
            kept = _kept(np.asarray(value), weights)
            if not raw and not isinstance(value, float):
                require_bounded(kept, path)
            elif not np.isfinite(kept).all():
                _refuse(path, "must be finite")


def _fields(value: object) -> tuple[str, ...]:
    """The names of the fields of a record or of a named tuple."""
    if dataclasses.is_dataclass(value):
        return tuple(field.name for field in dataclasses.fields(value))
    names: tuple[str, ...] = getattr(value, "_fields", ())
    return names


def _kept(array: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """The entries of an array that have a probability above 0."""
    return array if weights is None or array.shape[: weights.ndim] != weights.shape else array[weights > 0]


def _require_rule(array: np.ndarray, rule: Constraint, path: str) -> None:
    if not rule.test(array.astype(float)):
        _refuse(path, rule.words)
