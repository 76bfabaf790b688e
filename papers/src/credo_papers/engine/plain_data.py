"""The values that JSON and `.npz` files can hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

__all__ = ["Arrays", "Json", "Values"]

Json: TypeAlias = bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"] | None
"""The values that JSON can hold."""

Arrays: TypeAlias = dict[str, np.ndarray]
"""Arrays by name, as an `.npz` file holds them."""

Values: TypeAlias = Mapping[str, float]
"""Hyper-parameters by name."""
