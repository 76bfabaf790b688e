"""From the contexts that callers pass, and the features of arms, to the inputs of an agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import jax.numpy as jnp
import numpy as np

from credo.bandits.designs import DesignName
from credo.bandits.service.arms import Arms
from credo.bandits.service.features import FeatureEncoder, Features
from credo.core.errors import CredoError, require_integer

__all__ = ["Inputs", "as_features"]


Marked: TypeAlias = tuple[FeatureEncoder, FeatureEncoder | None, tuple[int, ...] | None]
"""The encoders of contexts and of features of arms, and the shape of contexts."""


def as_features(field: str, value: int | Features | None) -> Features:
    """The settings of an encoder: a number stands for that many places, None for the defaults."""
    if value is None or isinstance(value, Features):
        return value or Features()
    require_integer(field, value, 2)
    return Features(slots=value)


class Inputs:
    """Contexts and features of arms, as the inputs of an agent of one design. With "actions", an arm with
    features has the row (context, features), or with `products` (context, features, context x features), and
    arms without take theirs from the context, (arms, d). `shape` is that of a context, None at first.
    """

    def __init__(
        self, design: DesignName, contexts: FeatureEncoder, actions: FeatureEncoder | None, products: bool
    ) -> None:
        self.design = design
        self.contexts = contexts
        self.actions = actions
        self.products = products
        self.shape: tuple[int, ...] | None = None
        self._kind = np.dtype(jnp.result_type(float))

    @property
    def size(self) -> int:
        """The length of the inputs where contexts come by name."""
        context = self.contexts.size
        if self.actions is None:
            return context
        own = self.actions.size
        return context + own + (context * own if self.products else 0)

    def context(self, value: Any, learn: bool = True, arms: Arms | None = None) -> np.ndarray | None:
        """A context as a finite array, of the shape before and with the rows of `arms`, or None; else a
        CredoError, and no change.
        """
        if value is None:
            array = None
        elif isinstance(value, Mapping):
            self._require_shape((self.contexts.size,), value)
            array = self.contexts.encode(value, learn)
        else:
            array = _numbers(value)
        shape = () if array is None else array.shape
        if array is None or not isinstance(value, Mapping):
            self._require_shape((-1,) if array is None else shape, value)
        if arms is not None:
            self._require_rows(array, arms)
        return array

    def pin(self, context: np.ndarray | None) -> None:
        """Take the shape of a context for that of all later ones."""
        self.shape = (-1,) if context is None else context.shape

    def _require_shape(self, shape: tuple[int, ...], value: Any) -> None:
        rows = self.design == "actions" and self.actions is None and len(shape) == 2
        same = self.shape is None or (self.shape[1:] == shape[1:] if rows else self.shape == shape)
        if not same:
            words = ["no context" if one == (-1,) else f"the shape {one}" for one in (self.shape, shape)]
            raise CredoError(f"context must have {words[0]}, as before; got {words[1]}.", field="context")

    def of(self, context: np.ndarray | None, arms: Arms, rows: np.ndarray | None) -> np.ndarray | None:
        """The agent's inputs, with features by slot (K, e) or None; a CredoError if rows do not fit."""
        if self.design != "actions":
            if context is None:
                return context
            return context.astype(self._kind)
        slots = len(arms.slots)
        if rows is None:
            self._require_rows(context, arms)
            assert context is not None
            if arms.named is None:
                return context.astype(self._kind)
            table = np.zeros((slots, context.shape[1]), self._kind)
            table[arms.named] = context
            return table
        shared = np.zeros(0) if context is None else context.reshape(-1)
        parts = [np.broadcast_to(shared, (slots, shared.size)), rows]
        if self.products:
            parts.append((shared[None, :, None] * rows[:, None, :]).reshape(slots, -1))
        return np.concatenate(parts, axis=1).astype(self._kind)

    def _require_rows(self, context: np.ndarray | None, arms: Arms) -> None:
        """Refuse a context without a row for each arm, where arms have no features of their own."""
        if self.design != "actions" or self.actions is not None:
            return
        if context is None or context.ndim != 2 or len(context) != len(arms.names):
            what = "None" if context is None else f"the shape {context.shape}"
            raise CredoError(
                f"context must have a row for each of the {len(arms.names)} arms, as they have no features; "
                f"got {what}.",
                field="context",
            )

    def features(self, name: str, value: Any) -> np.ndarray | None:
        """The features of an arm as a vector, None if arms have none; a CredoError if this one differs."""
        if self.actions is None:
            if value is not None:
                raise CredoError(
                    f"features of the arm {name!r} need an agent with design='actions' whose first arms have "
                    "features, too.",
                    field="features",
                )
            return None
        if not isinstance(value, Mapping):
            raise CredoError(
                f"features of the arm {name!r} must be given by name, as the other arms' are; got {value!r}.",
                field="features",
            )
        return self.actions.encode(value)

    def table(self, told: Mapping[str, Any], slots: int) -> np.ndarray:
        """The features of arms as rows, one a slot (K, e), which are taken in; a CredoError, and no change,
        if there are none. They come by name, or all of them as arrays of e numbers.
        """
        names = list(told)
        rows = list(told.values())
        if self.actions is None:
            self.features(names[0], rows[0] or {})
        assert self.actions is not None
        if not all(type(row) is dict or isinstance(row, Mapping) for row in rows):
            size = self.actions.size
            kinds = "biuf"
            plain = all(type(row) is np.ndarray and row.shape == (size,) for row in rows)
            values = np.stack(rows) if plain else np.zeros(0, object)
            if values.dtype.kind not in kinds or not np.isfinite(values).all():
                values = np.stack([self._array(name, row) for name, row in told.items()])
        else:
            values = self.actions.encode_rows(rows)
        return np.concatenate([values, np.zeros((slots - len(rows), self.actions.size))])

    def _array(self, name: str, value: Any) -> np.ndarray:
        assert self.actions is not None
        row = None if isinstance(value, Mapping) else _numbers(value)
        if row is None or row.shape != (self.actions.size,):
            raise CredoError(
                f"features of the arm {name!r} must be by name, or an array of {self.actions.size} numbers, "
                f"and the same for all arms; got {_short(value)}.",
                field="features",
            )
        return row

    def mark(self, *, features: bool) -> Marked:
        """A mark for `back` to take back what was taken in: contexts, and with `features` those of arms."""
        actions = self.actions.copy() if features and self.actions is not None else None
        return self.contexts.copy(), actions, self.shape

    def back(self, mark: Marked) -> None:
        """Take back what was taken in since."""
        self.contexts, actions, self.shape = mark
        self.actions = self.actions if actions is None else actions

    def filled(self, x: np.ndarray | None, arms: Arms, rows: np.ndarray | None) -> np.ndarray | None:
        """The agent's inputs from what is kept of a decision: they, or the context if arms have features."""
        if rows is None:
            return x
        return self.of(x, arms, rows)

    def to_dict(self) -> dict[str, Any]:
        """The state, as JSON data."""
        return {
            "contexts": self.contexts.to_dict(),
            "actions": None if self.actions is None else self.actions.to_dict(),
            "products": self.products,
            "shape": None if self.shape is None else list(self.shape),
        }

    @classmethod
    def restore(cls, design: DesignName, saved: Mapping[str, Any]) -> Inputs:
        """The inputs that `to_dict` described."""
        actions = saved["actions"]
        encoder = None if actions is None else FeatureEncoder.restore(actions, "features")
        contexts = FeatureEncoder.restore(saved["contexts"])
        inputs = cls(design, contexts, encoder, bool(saved["products"]))
        shape = saved["shape"]
        inputs.shape = None if shape is None else tuple(map(int, shape))
        return inputs


def _numbers(value: Any) -> np.ndarray:
    """An array of finite numbers."""
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):
        array = np.asarray(None)
    if array.dtype.kind not in "biuf" and str(array.dtype) != "bfloat16":
        raise CredoError(
            f"context must be None, an array of numbers, or numbers and texts by name; got {_short(value)}.",
            field="context",
        )
    numbers = array.astype(np.float64)
    if not np.isfinite(numbers).all():
        raise CredoError(f"context must be finite; got {_short(value)}.", field="context")
    return numbers


def _short(value: Any) -> str:
    text = " ".join(repr(value).split())
    if len(text) <= 60:
        return text
    return text[:57] + "..."
