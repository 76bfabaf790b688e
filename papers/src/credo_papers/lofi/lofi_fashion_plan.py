"""The plan of `lofi-fashion`: learners, grids, what runs at each size, and the published numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from credo_papers.engine.experiment import Size
from credo_papers.engine.plain_data import Values
from credo_papers.lofi.lofi_fashion_world import StreamName

__all__ = [
    "LEARNERS",
    "NETWORKS",
    "PLANS",
    "PUBLISHED",
    "MethodName",
    "NetworkName",
    "Part",
    "grid_of",
]

NetworkName: TypeAlias = Literal["784-50-50-10", "784-500-500-10"]
"""A network, by the sizes of its layers."""

NETWORKS: dict[NetworkName, list[int]] = {"784-50-50-10": [50, 50], "784-500-500-10": [500, 500]}
"""The hidden layers of each network."""

MethodName: TypeAlias = Literal["lofi", "vd-ekf", "fd-ekf", "sgd", "adam"]
"""The methods that are compared."""

LEARNERS: dict[str, tuple[MethodName, int]] = {
    **{f"LOFI-{rank}": ("lofi", rank) for rank in (1, 5, 10, 20, 50)},
    "vd-ekf": ("vd-ekf", 0),
    "fd-ekf": ("fd-ekf", 0),
    "online SGD": ("sgd", 1),
    "replay SGD-10": ("sgd", 10),
    "replay Adam-10": ("adam", 10),
}
"""By label: the method, and its rank (for replay the size of the buffer)."""

PUBLISHED: dict[str, tuple[float, float]] = {
    "LOFI-10": (0.218, 0.61),
    "replay SGD-10": (0.257, 0.90),
    "replay Adam-10": (0.272, 0.77),
    "vd-ekf": (0.287, 0.76),
    "fd-ekf": (0.287, 0.76),
    "online SGD": (0.288, 0.77),
}
"""Misclassification and NLL in nats after 2,000 rows of the stationary stream: Chang et al. 2023 (LOFI)."""


@dataclass(frozen=True)
class Part:
    """One kind of stream, and the network that learns it.

    Arguments:
        stream, network: their names.
        rows: the length of a stream.
        task: the length of a task, where the stream has tasks.
        every: a stream is tested each time that so many rows have passed.
        seeds: how many streams are scored.
        tuning_rows, tuning_seeds: the length and number of the streams on which settings are chosen.
        test_rows: how many test images a test takes at most.
        learners: the labels of the learners.
        chunk: how many streams run side by side.
    """

    stream: StreamName
    network: NetworkName = "784-50-50-10"
    rows: int = 2000
    task: int = 300
    every: int = 100
    seeds: int = 5
    tuning_rows: int = 600
    tuning_seeds: int = 2
    test_rows: int = 1000
    learners: tuple[str, ...] = tuple(LEARNERS)
    chunk: int = 5

    @property
    def name(self) -> str:
        """The names of the stream and the network."""
        return f"{self.stream} {self.network}"


_FEW = ("LOFI-10", "vd-ekf", "online SGD", "replay SGD-10")
_DRIFT = tuple(label for label in LEARNERS if label not in ("LOFI-5", "LOFI-20"))

PLANS: dict[Size, tuple[Part, ...]] = {
    "quick": (
        Part("stationary", rows=400, every=50, seeds=2, tuning_rows=400, test_rows=300, learners=_FEW),
        Part("split", rows=400, task=100, every=50, seeds=2, tuning_rows=400, test_rows=300, learners=_FEW),
    ),
    "full": (
        Part("stationary", "784-500-500-10", seeds=3, tuning_seeds=1, learners=tuple(PUBLISHED), chunk=1),
        Part("stationary"),
        Part("permuted", rows=3000, learners=_DRIFT),
        Part("rotated", rows=3000, learners=_DRIFT),
        Part("split", rows=1500, every=50, learners=_DRIFT),
    ),
}


def grid_of(method: MethodName, stream: StreamName, size: Size) -> list[Values]:
    """Return the settings among which a method is tuned, on other streams than those on which it is scored.

    Arguments:
        method: one of `MethodName`.
        stream: "stationary" or another; only the others have drifts to choose from.
        size: "quick" has fewer settings.
    """
    quick = size == "quick"
    if method in ("sgd", "adam"):
        rates = (0.001, 0.003, 0.01, 0.03) if method == "sgd" else (1e-4, 3e-4, 1e-3, 3e-3)
        return [{"learning_rate": rate} for rate in rates[1 : 3 if quick else None]]
    scales = (0.3, 1.0, 3.0)[quick:]
    drifts = (1e-3,) if quick else (1e-4, 1e-3, 1e-2)
    if stream == "stationary":
        drifts = (0.0,)
    return [{"scale": scale, "drift": drift} for scale in scales for drift in drifts]
