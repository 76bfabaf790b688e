"""Tables and archives of published files become arrays."""

from __future__ import annotations

import io

import numpy as np
import pytest

from credo.core.errors import DataError
from credo.datasets import Dataset
from credo.datasets.dataset import archive, columns_of, divide, tabular, unzipped


def test_columns_are_numbers_where_all_their_values_are() -> None:
    columns = columns_of(b"size,colour\n1,red\n2,blue\n", "a file")
    assert columns["size"].tolist() == [1, 2]
    assert columns["colour"].tolist() == ["red", "blue"]


def test_the_columns_beside_the_target_are_the_inputs() -> None:
    table = {"size": np.array([1, 2]), "sort": np.array(["b", "a"])}
    data = tabular("toy", table, target="sort", class_names=("a", "b"))
    assert (data.x.tolist(), data.y.tolist()) == ([[1.0], [2.0]], [1, 0])


def test_the_arrays_of_an_archive_are_read_by_name() -> None:
    buffer = io.BytesIO()
    np.savez(buffer, x=np.ones(2))
    assert archive(buffer.getvalue(), "a file", "x")[0].tolist() == [1.0, 1.0]


def test_what_is_no_zip_archive_is_refused() -> None:
    with pytest.raises(DataError, match="a file is no zip archive with a file in it"):
        unzipped(b"no archive", "a file")


def test_rows_are_divided_into_training_and_test() -> None:
    toy = Dataset("toy", np.zeros((5, 1)), np.arange(5.0), "regression")
    train, test = (divide(toy, split, test_rows=1) for split in ("train", "test"))
    assert (len(train), len(test)) == (4, 1)
    assert sorted([*train.y.tolist(), *test.y.tolist()]) == toy.y.tolist()
