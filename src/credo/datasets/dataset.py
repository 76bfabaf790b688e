"""What a data set is once it is in memory, and how it is divided into training and test rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from credo.core.errors import DataError

__all__ = ["Array", "Columns", "Dataset", "Task", "divide"]

Array = np.ndarray[Any, Any]
Columns = dict[str, Array]
Task = Literal["classification", "regression"]


@dataclass(frozen=True, repr=False, eq=False)
class Dataset:
    """A data set in memory, as NumPy arrays with one row for each observation.

    Arguments:
        name: the name it was loaded by.
        x: inputs, float32 of shape `(N, ...)`; images have shape `(N, height, width)` and values in [0, 1].
        y: targets of shape `(N,)`: int32 positions in `class_names`, or float32 numbers for a regression.
        task: `"classification"` or `"regression"`.
        feature_names: one name for each column of `x`; empty for images.
        class_names: one name for each class; empty for a regression.
        note: where the rows came from and what a reader of results must know about them.
        licence: the licence of the data.
        columns: the raw columns, numbers and text, each of shape `(N,)`, where the source is a table of mixed
            types; the target is among them.
        rewards: the reward of every arm, float32 of shape `(N, arms)`, where the data set is a bandit
            problem; `y` is then the arm with the highest reward.
        ordered: whether the rows are one stream whose order matters.

    Raises:
        DataError: if the arrays do not have one row for each target.

    Example:
        >>> import numpy as np
        >>> toy = Dataset("toy", np.zeros((3, 2), np.float32), np.zeros(3, np.float32), "regression")
        >>> toy
        Dataset('toy', regression, 3 rows, x of shape (3, 2))
    """

    name: str
    x: Array
    y: Array
    task: Task
    feature_names: tuple[str, ...] = ()
    class_names: tuple[str, ...] = ()
    note: str = ""
    licence: str = ""
    columns: Columns | None = None
    rewards: Array | None = None
    ordered: bool = False

    def __post_init__(self) -> None:
        lengths = {"y": self.y.shape[:1], **{key: value.shape[:1] for key, value in self._more().items()}}
        for field, length in lengths.items():
            if length != self.x.shape[:1]:
                raise DataError(
                    f"data set {self.name!r}: {field} must have one row for each of the {len(self.x)} rows "
                    f"of x; got shape {length}."
                )
        if self.feature_names and len(self.feature_names) != int(np.prod(self.x.shape[1:])):
            raise DataError(
                f"data set {self.name!r}: feature_names must name the columns of x, of shape {self.x.shape}; "
                f"got {len(self.feature_names)} names."
            )

    def __len__(self) -> int:
        """The number of rows.

        Example:
            >>> len(Dataset("toy", np.zeros((3, 2)), np.zeros(3), "regression"))
            3
        """
        return len(self.x)

    def __repr__(self) -> str:
        return f"Dataset({self.name!r}, {self.task}, {len(self)} rows, x of shape {self.x.shape})"

    def rows(self, index: slice | Array) -> Dataset:
        """Pick rows by a slice or by an array of positions.

        Arguments:
            index: a slice, or integers of shape `(M,)`.

        Returns:
            A data set of the rows, in the order of `index`.

        Example:
            >>> toy = Dataset("toy", np.zeros((3, 2)), np.arange(3.0), "regression")
            >>> toy.rows(slice(1, None)).y
            array([1., 2.])
        """
        columns = None if self.columns is None else {key: value[index] for key, value in self.columns.items()}
        rewards = None if self.rewards is None else self.rewards[index]
        return replace(self, x=self.x[index], y=self.y[index], columns=columns, rewards=rewards)

    def _more(self) -> Columns:
        rewards = {} if self.rewards is None else {"rewards": self.rewards}
        return {**rewards, **{f"columns[{key!r}]": value for key, value in (self.columns or {}).items()}}


def divide(data: Dataset, split: str, *, test_rows: int, seed: int = 0) -> Dataset:
    """Divide a data set that was published without test rows, always in the same way.

    The rows are put in an order drawn with a fixed seed, and the last `test_rows` of them are for testing.
    `RandomState` is used because NumPy promises never to change its numbers.
    """
    order = np.random.RandomState(seed).permutation(len(data))
    border = len(data) - test_rows
    pick = {"train": slice(None, border), "test": slice(border, None), "all": slice(None)}[split]
    return data.rows(order[pick])
