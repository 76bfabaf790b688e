"""Data sets that must be placed in a folder: regressions of UCI, electricity prices and bandit problems.

There is no known address of these files whose content could be checked, so they are never downloaded.
"""

from __future__ import annotations

import numpy as np

from credo.datasets.dataset import Dataset, archive, columns_of, tabular
from credo.datasets.finder import DataFile, Finder

__all__ = ["REGRESSIONS", "bandit", "electricity", "regression"]

UCI = "CC BY 4.0 (UCI Machine Learning Repository)"

# For each regression: the checksum of its archive and the names of its columns.
REGRESSIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "concrete": (
        "9c21d78a673e0497ffe3b1b0debe81053a9cd5f059a93401a033996d23113f2b",
        (
            "cement",
            "blast_furnace_slag",
            "fly_ash",
            "water",
            "superplasticizer",
            "coarse_aggregate",
            "fine_aggregate",
            "age",
        ),
    ),
    "energy": (
        "08f24c196d604db4ca1d62f2b1230c3bd3f167579250a21fe9447c43cadb531d",
        (
            "relative_compactness",
            "surface_area",
            "wall_area",
            "roof_area",
            "overall_height",
            "orientation",
            "glazing_area",
            "glazing_area_distribution",
        ),
    ),
    "kin8nm": (
        "fe0770f1fc43e1a82cfbb03673cb9fe7f307d9409c7484ca630d3d060dbafe0d",
        tuple(f"theta{joint}" for joint in range(1, 9)),
    ),
    "power-plant": (
        "5d83a09e265de79aea30d4ab1d8e286b0693c6929b5d827996e6a38406be5b46",
        ("temperature", "exhaust_vacuum", "ambient_pressure", "relative_humidity"),
    ),
    "wine-quality-red": (
        "6fee81add0efaa659b6db740aa04e65367df2715f0c36922a5e1e1b490fa1844",
        (
            "fixed_acidity",
            "volatile_acidity",
            "citric_acid",
            "residual_sugar",
            "chlorides",
            "free_sulfur_dioxide",
            "total_sulfur_dioxide",
            "density",
            "pH",
            "sulphates",
            "alcohol",
        ),
    ),
    "yacht": (
        "6955c439f63f6ebc2126ca32484e732f436dc0b4ebae860db495fb683b557382",
        (
            "centre_of_buoyancy",
            "prismatic_coefficient",
            "length_displacement_ratio",
            "beam_draught_ratio",
            "length_beam_ratio",
            "froude_number",
        ),
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
        feature_names=feature_names,
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
