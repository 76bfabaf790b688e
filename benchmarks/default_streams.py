"""The streams on which defaults are compared: raw columns, a target and a task, by name.

`CHOSEN` are the streams on which the members of credo's default were chosen; `HELD` are streams that no
choice has seen. Rows keep the order of their source where it is a stream: River's files and generators, and
the electricity of New South Wales. The data sets of scikit-learn and of UCI, several of which are sorted by
the class or the target, are shuffled once with seed 0. A stream has at most 10,000 rows, but `electricity`
is whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import chain, islice
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

import credo

__all__ = ["CHOSEN", "HELD", "Stream", "stream", "streams"]

MOST_ROWS = 10_000

Array: TypeAlias = np.ndarray
Group: TypeAlias = Literal["chosen", "held"]


class Stream(NamedTuple):
    """Rows in their order.

    Attributes:
        columns: raw cells by the name of their column: numbers, truth values or text.
        target: labels as text (classification), or numbers.
        task: what is predicted.
    """

    columns: dict[str, Array]
    target: Array
    task: Literal["classification", "regression"]

    @property
    def classes(self) -> list[str]:
        """The labels in alphabetical order; empty for a regression."""
        return np.unique(self.target).tolist() if self.task == "classification" else []

    @property
    def rows(self) -> dict[str, Array]:
        """The table with its target, which is called `y`."""
        return {**self.columns, "y": self.target}


def packaged(name: str) -> Stream:
    """A data set of `credo.datasets`; what is not a stream comes shuffled with seed 0."""
    data = credo.datasets.load(name, split="all")
    x = data.x.reshape(len(data.x), -1)
    names = data.feature_names or [f"pixel{place}" for place in range(x.shape[1])]
    # the same cells in double precision, as a file would have them
    columns = {key: np.array([float(str(cell)) for cell in x[:, i]]) for i, key in enumerate(names)}
    if data.task == "regression":
        return Stream(columns, np.array([float(str(number)) for number in data.y]), "regression")
    return Stream(columns, np.array(data.class_names)[data.y], "classification")


def iris() -> Stream:
    """150 flowers of three kinds, shuffled with seed 0."""
    from sklearn.datasets import load_iris

    source: Any = load_iris()
    order = np.random.RandomState(0).permutation(len(source.data))
    columns = {name: source.data[order, i] for i, name in enumerate(source.feature_names)}
    return Stream(columns, source.target_names[source.target][order].astype(str), "classification")


def river(name: str) -> Stream:
    """A data set that River ships, in the order of its file."""
    import river.datasets

    return gathered(getattr(river.datasets, name)())


def gathered(rows: Iterable[tuple[Mapping[Any, Any], Any]], most: int = MOST_ROWS) -> Stream:
    """The first rows of one of River's streams as columns; of several targets the first is taken."""
    pairs = list(islice(rows, most))
    columns = {f"x{key}" if isinstance(key, int) else key: key for key in pairs[0][0]}
    table = {name: np.array([x[key] for x, _ in pairs]) for name, key in columns.items()}
    targets = [next(iter(y.values())) if isinstance(y, dict) else y for _, y in pairs]
    if isinstance(targets[0], float | np.floating) or isinstance(pairs[0][1], dict):
        return Stream(table, np.array(targets, float), "regression")
    return Stream(table, np.array([str(label) for label in targets]), "classification")


def generated(name: str, rows: int, **settings: Any) -> Stream:
    """A stream of one of River's generators."""
    import river.datasets.synth

    return gathered(getattr(river.datasets.synth, name)(**settings), rows)


def generated_parts(name: str, rows: int, parts: Iterable[Mapping[str, Any]]) -> Stream:
    """`rows` rows of one of River's generators for each of several settings: the world changes at once."""
    import river.datasets.synth

    generator = getattr(river.datasets.synth, name)
    return gathered(chain.from_iterable(islice(generator(**part), rows) for part in parts))


def changed_agrawal() -> Stream:
    """Agrawal's people by one rule, and little by little by another."""
    from river.datasets.synth import Agrawal, ConceptDriftStream

    before = Agrawal(classification_function=1, seed=7)
    after = Agrawal(classification_function=4, seed=8)
    return gathered(ConceptDriftStream(before, after, position=3000, width=1000, seed=7), 6000)


def simulated(kind: str, rows: int = 5000, width: int = 5, seed: int = 7) -> Stream:
    """Rows of normal inputs and a target that tries one property.

    `heteroscedastic` has noise that follows the inputs, `heavy-tailed` a Student's t with 1.5 degrees of
    freedom, `log-normal` and `poisson` targets that are positive and counts, `walking` weights that walk by
    0.05 a row, `resets` new weights every 1,000 rows, and `rare` two classes of about 2% beside a large one.
    """
    random = np.random.default_rng(seed)
    x = random.normal(size=(rows, width))
    weights = random.normal(size=width)
    linear = x @ weights / np.sqrt(width)
    noise = random.normal(size=rows)
    columns = {f"x{i}": column for i, column in enumerate(x.T)}
    if kind == "rare":
        scores = 2.0 * x @ random.normal(size=(width, 2)) / np.sqrt(width) + random.gumbel(size=(rows, 2))
        limits = np.quantile(scores, 0.98, axis=0)
        labels = np.where(scores[:, 0] > limits[0], "b", np.where(scores[:, 1] > limits[1], "c", "a"))
        return Stream(columns, labels, "classification")
    if kind == "heteroscedastic":
        y = np.sin(2.0 * x[:, 0]) + linear + 0.3 * np.exp(0.8 * x[:, 1]) * noise
    elif kind == "heavy-tailed":
        y = linear + 0.3 * random.standard_t(1.5, size=rows)
    elif kind == "log-normal":
        y = np.exp(3.0 + linear + 0.5 * noise)
    elif kind == "poisson":
        y = random.poisson(np.exp(2.0 + 0.7 * linear)).astype(float)
    elif kind == "walking":
        path = weights + 0.05 * np.cumsum(random.normal(size=(rows, width)), axis=0)
        y = np.sum(x * path, axis=1) + 0.3 * noise
    else:
        path = np.repeat(random.normal(size=(-(-rows // 1000), width)), 1000, axis=0)[:rows]
        y = np.sum(x * path, axis=1) + 0.3 * noise
    return Stream(columns, y, "regression")


CHOSEN: dict[str, Callable[[], Stream]] = {
    "airline-passengers": partial(packaged, "airline-passengers"),
    "wine": partial(packaged, "wine"),
    "yacht": partial(packaged, "yacht"),
    "diabetes": partial(packaged, "diabetes"),
    "breast-cancer": partial(packaged, "breast-cancer"),
    "chick-weights": partial(packaged, "chick-weights"),
    "energy": partial(packaged, "energy"),
    "trump-approval": partial(packaged, "trump-approval"),
    "concrete": partial(packaged, "concrete"),
    "phishing": partial(river, "Phishing"),
    "sp500": partial(packaged, "sp500"),
    "water-flow": partial(packaged, "water-flow"),
    "wine-quality-red": partial(packaged, "wine-quality-red"),
    "digits": partial(packaged, "digits"),
    "segments": partial(river, "ImageSegments"),
    "statlog": partial(packaged, "statlog"),
    "covertype": partial(packaged, "covertype"),
    "bananas": partial(river, "Bananas"),
    "friedman": partial(generated, "Friedman", 5000, seed=1),
    "mv": partial(generated, "Mv", 5000, seed=1),
    "planes": partial(generated, "Planes2D", 5000, seed=1),
    "agrawal": partial(generated, "Agrawal", 5000, seed=1),
    "random-rbf": partial(generated, "RandomRBF", 5000, seed_model=1, seed_sample=1, n_classes=4),
    "led": partial(generated, "LED", 5000, seed=1, noise_percentage=0.1),
    "sine": partial(generated, "Sine", 5000, seed=1),
    "stagger": partial(generated, "STAGGER", 5000, seed=1),
    "waveform": partial(generated, "Waveform", 5000, seed=1),
    "kin8nm": partial(packaged, "kin8nm"),
    "power-plant": partial(packaged, "power-plant"),
    "friedman-drift": partial(
        generated,
        "FriedmanDrift",
        10_000,
        drift_type="lea",
        position=(2500, 5000, 7500),
        seed=1,
    ),
    "hyperplane": partial(generated, "Hyperplane", 10_000, seed=1, mag_change=0.001),
    "sea": partial(
        generated_parts,
        "SEA",
        2500,
        [{"variant": variant, "noise": 0.1, "seed": 1 + variant} for variant in range(4)],
    ),
    "electricity": partial(packaged, "electricity"),
}

HELD: dict[str, Callable[[], Stream]] = {
    "iris": iris,
    "solar-flare": partial(river, "SolarFlare"),
    "heteroscedastic": partial(simulated, "heteroscedastic"),
    "heavy-tailed": partial(simulated, "heavy-tailed"),
    "log-normal": partial(simulated, "log-normal"),
    "poisson": partial(simulated, "poisson"),
    "walking": partial(simulated, "walking"),
    "resets": partial(simulated, "resets"),
    "friedman-gsg": partial(
        generated,
        "FriedmanDrift",
        6000,
        drift_type="gsg",
        position=(2000, 4000),
        transition_window=500,
        seed=7,
    ),
    "rbf-drift": partial(
        generated,
        "RandomRBFDrift",
        6000,
        seed_model=7,
        seed_sample=7,
        n_classes=3,
        n_features=8,
        change_speed=0.0005,
        n_drift_centroids=20,
    ),
    "led-drift": partial(
        generated_parts,
        "LEDDrift",
        2000,
        [
            {"n_drift_features": moved, "seed": 7, "noise_percentage": 0.2, "irrelevant_features": True}
            for moved in (0, 3, 7)
        ],
    ),
    "random-tree": partial(generated, "RandomTree", 6000, seed_tree=7, seed_sample=7, n_classes=3),
    "mixed": partial(generated, "Mixed", 6000, seed=7, classification_function=1),
    "agrawal-drift": changed_agrawal,
    "rare": partial(simulated, "rare", rows=10_000),
    "shuttle": partial(river, "Shuttle"),
}


def stream(name: str) -> Stream:
    """The rows of a stream by its name."""
    return {**CHOSEN, **HELD}[name]()


def streams(group: Group | None = None) -> dict[str, Stream]:
    """All streams by name, or those of a group."""
    sources = {"chosen": CHOSEN, "held": HELD, None: {**CHOSEN, **HELD}}[group]
    return {name: load() for name, load in sources.items()}
