"""Data sets that are not downloaded: those that packages ship, and those that must be placed in a folder.

Scikit-learn and river ship data sets inside their packages; river's files are read where the package lies,
without importing it. Of the others, regressions of UCI, electricity prices and bandit problems, there is no
known address whose content could be checked. Every function takes the finder of a data set's files and
returns the whole data set with its raw columns, and raises a `DataError` where a file cannot be found or
understood.
"""

from __future__ import annotations

from datetime import datetime

import numpy as np

from credo.core.errors import DataError
from credo.core.extensions import extra
from credo.datasets.dataset import Array, Columns, Dataset, archive, columns_of, tabular, unzipped
from credo.datasets.finder import DataFile, Finder

__all__ = [
    "REGRESSIONS",
    "airline_passengers",
    "banana",
    "bandit",
    "chick_weights",
    "electricity",
    "phishing",
    "regression",
    "scikit_learn",
    "segments",
    "shuttle",
    "solar_flare",
    "sp500",
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
