"""What is run on Fashion-MNIST at each size, and the published numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from credo.experiments.records import Size

__all__ = ["LEARNERS", "NETWORKS", "PLANS", "PUBLISHED", "Part", "grid_of"]

NETWORKS = {"784-50-50-10": (50, 50), "784-500-500-10": (500, 500)}

# label -> (method, rank; for replay the size of the buffer)
LEARNERS: dict[str, tuple[str, int]] = {
    **{f"LOFI-{rank}": ("lofi", rank) for rank in (1, 5, 10, 20, 50)},
    "vd-ekf": ("vd-ekf", 0),
    "fd-ekf": ("fd-ekf", 0),
    "online SGD": ("sgd", 1),
    "replay SGD-10": ("sgd", 10),
    "replay Adam-10": ("adam", 10),
}

# Misclassification and NLL in nats after 2,000 rows of the stationary stream: Chang et al. 2023 (LOFI).
PUBLISHED: dict[str, tuple[float, float]] = {
    "LOFI-10": (0.218, 0.61),
    "replay SGD-10": (0.257, 0.90),
    "replay Adam-10": (0.272, 0.77),
    "vd-ekf": (0.287, 0.76),
    "fd-ekf": (0.287, 0.76),
    "online SGD": (0.288, 0.77),
}


@dataclass(frozen=True)
class Part:
    """One stream and network.

    Args:
        stream, network: Names.
        rows: The length of the stream.
        task: The length of a task, where the stream has tasks.
        every: The stream is tested after every so many rows.
        seeds: How many streams are scored.
        tuning_rows, tuning_seeds: The length and number of the streams that settings are chosen on.
        test_rows: How many test images a test takes at most.
        learners: Labels.
        chunk: How many streams run side by side.
    """

    stream: str
    network: str = "784-50-50-10"
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
        """The stream and the network."""
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


def grid_of(method: str, stream: str, size: Size) -> list[dict[str, float]]:
    """The settings that a method chooses from, on other streams than those it is scored on."""
    quick = size == "quick"
    if method in ("sgd", "adam"):
        rates: dict[str, Any] = {"sgd": (0.001, 0.003, 0.01, 0.03), "adam": (1e-4, 3e-4, 1e-3, 3e-3)}
        return [{"learning_rate": rate} for rate in rates[method][1 : 3 if quick else None]]
    scales = (0.3, 1.0, 3.0)[quick:]
    drifts = (0.0,) if stream == "stationary" else ((1e-3,) if quick else (1e-4, 1e-3, 1e-2))
    return [{"scale": scale, "drift": drift} for scale in scales for drift in drifts]
