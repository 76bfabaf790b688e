"""Data sets that scikit-learn and river ship inside their packages.

River's files are read where the package lies, without importing it. Every function takes the finder of a
data set's files and returns the whole data set with its raw columns, and raises a `DataError` where a file
cannot be found or understood.
"""

from __future__ import annotations

from datetime import datetime

import numpy as np

from credo.core.errors import DataError
from credo.datasets.dataset import Array, Columns, Dataset, columns_of, tabular, unzipped
from credo.datasets.finder import DataFile, Finder

__all__ = [
    "airline_passengers",
    "banana",
    "chick_weights",
    "phishing",
    "scikit_learn",
    "segments",
    "shuttle",
    "solar_flare",
    "sp500",
    "trump_approval",
    "water_flow",
]

UCI = "CC BY 4.0 (UCI Machine Learning Repository)"
SEGMENTS = ("brickface", "cement", "foliage", "grass", "path", "sky", "window")


def scikit_learn(finder: Finder) -> Dataset:
    """One of scikit-learn's data sets: digits (N, 8, 8) in [0, 1], breast-cancer, diabetes or wine."""
    try:
        import sklearn.datasets as shipped
    except ImportError as error:
        raise DataError(
            f"data set {finder.name!r} is shipped with scikit-learn, which is not installed; "
            f"install 'credo[data]'."
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
    return _river(finder, "chick-weights.csv", "weight", _unstated(), ordered=True)


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
    """How many small solar flares an active region will have within a day, 1,066 rows of mixed types.

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
        licence=_unstated(),
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


def _unstated() -> str:
    return "no licence is stated; shipped with river (BSD 3-Clause)"
