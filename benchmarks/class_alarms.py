"""Does the default bank notice that a world of classes changed, and is it quiet where none did?

    python benchmarks/class_alarms.py              # about ten minutes; needs the extra "bench"
    python benchmarks/class_alarms.py --seeds 2    # fewer streams of each kind, about three

Worlds of softmax regressions with five normal inputs and two or three classes: all or half of the weights are
new in the middle, they come one row after the other within 200 rows, or two rules take turns. Others stay as
they are: with inputs of heavy tails, inputs that move slowly between easy and hard regions, a rare class, few
labels that are wrong, labels that are mostly chance, and weights that walk. Then come generators whose rules
change. A change counts as found if an alarm follows within 60 rows (260 of the gradual one); what is not
within 300 rows after a change is a false alarm.

Beside it are ADWIN and KSWIN of River, which watch the errors of the same forecasts with their defaults, and
what the same losses give without a surprise: `Monitored` by its own defaults and with `surprise=0`. The
numbers in `credo.adapt.monitored` and `credo.recipes.defaults` were chosen on other draws of the first worlds
and on the generators; no choice was made on the draws of the key 50, which is the default.
"""

from __future__ import annotations

import argparse
import itertools
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from default_ours import Recorder
from default_streams import generated_parts

from credo.adapt.monitored import LevelChanges, share_losses
from credo.sessions import Forecasts, Session

INPUTS = 5
ROWS = 3000
MIDDLE = ROWS // 2
QUIET_ROWS = 15_000
NEAR = 60
GRADUAL = 200
SETTLED = 300
SHAPES = (2, 3)
"""The numbers of classes."""

SIZE = 3.5 / np.sqrt(INPUTS)
"""The standard deviation of a weight."""

FACTORS = {"mostly chance": 0.2, "wrong labels": 10.0}
"""How many times the scores of a world are as large."""


class World(NamedTuple):
    """A stream of classes.

    Attributes:
        columns: the inputs and the class `y`.
        changes: the rows at which it changes.
        near: within how many rows a change is found.
    """

    columns: Mapping[str, np.ndarray]
    changes: tuple[int, ...] = ()
    near: int = NEAR


def softmax(kind: str, classes: int, key: int) -> World:
    """A world of softmax regressions."""
    rng = np.random.default_rng([key, INPUTS, classes, sum(map(ord, kind))])
    still = kind not in CHANGING
    rows = QUIET_ROWS if still else ROWS
    x = rng.normal(size=(rows, INPUTS))
    weights = rng.normal(size=(2, INPUTS, classes)) * SIZE
    second = np.zeros(rows, bool)
    if not still:
        second = _by_second(kind, weights, rng)
    elif kind == "heavy tails":
        x = rng.standard_t(2, size=(rows, INPUTS))
    elif kind == "easy and hard regions":
        for row in range(1, rows):
            x[row] = 0.98 * x[row - 1] + np.sqrt(1 - 0.98**2) * x[row]
    scores = np.where(second[:, None], x @ weights[1], x @ weights[0]) * FACTORS.get(kind, 1.0)
    if kind == "weights walk":
        moving = weights[0] + np.cumsum(rng.normal(size=(rows, INPUTS, classes)) * 0.03 * SIZE, axis=0)
        scores = np.einsum("nd,ndc->nc", x, moving)
    if kind == "a rare class":
        scores[:, 0] += 5.0
    labels = np.argmax(scores + rng.gumbel(size=(rows, classes)), axis=1)
    if kind == "wrong labels":
        wrong = rng.random(rows) < 0.003
        labels = np.where(wrong, rng.integers(0, classes, rows), labels)
    columns = {f"x{place}": column for place, column in enumerate(x.T)}
    names = np.array([f"c{label}" for label in labels.tolist()])
    changes = (750, 1500, 2250) if kind == "two rules in turns" else (MIDDLE,)
    near = GRADUAL + NEAR if kind == "gradual" else NEAR
    return World(columns | {"y": names}, () if still else changes, near)


def _by_second(kind: str, weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Which rows (N,) are by the second weights, some of which may become those of the first."""
    rows = np.arange(ROWS)
    if kind == "two rules in turns":
        second: np.ndarray = rows // 750 % 2 == 1
        return second
    if kind == "gradual":
        gradual: np.ndarray = rng.random(ROWS) < np.clip((rows - MIDDLE) / GRADUAL, 0, 1)
        return gradual
    if kind == "half of the weights new":
        weights[1, : INPUTS // 2] = weights[0, : INPUTS // 2]
    after: np.ndarray = rows >= MIDDLE
    return after


CHANGING = ("all weights new", "half of the weights new", "gradual", "two rules in turns")
QUIET = (
    "still",
    "heavy tails",
    "easy and hard regions",
    "a rare class",
    "wrong labels",
    "mostly chance",
    "weights walk",
)


def generators() -> Iterator[tuple[str, World]]:
    """Generators of River whose rules change."""
    rules = {
        "STAGGER": (1000, (0, 1, 2, 0, 2)),
        "Mixed": (1500, (0, 1, 0, 1)),
        "Agrawal": (1500, (0, 2, 5, 7)),
        "Sine": (1500, (0, 1, 2, 3)),
        "SEA": (2500, (0, 1, 2, 3)),
    }
    for name, (rows, order) in rules.items():
        setting = "variant" if name == "SEA" else "classification_function"
        stream = generated_parts(name, rows, [{setting: rule, "seed": 7} for rule in order])
        changes = tuple(rows * number for number in range(1, len(order)))
        yield f"{name}, rules {', '.join(map(str, order))}", World(stream.rows, changes)


def played(world: World) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """The log probabilities (N,), the errors (N,) and the alarms (rows from 0) of the default session."""
    first = {name: column[:1000] for name, column in world.columns.items()}
    session = Session.from_rows(first, "y", task="classification")
    recorder = Recorder(session.tally)
    session.tally = recorder
    forecasts, _ = session.forecast_then_learn(world.columns, ())
    logs = np.concatenate(recorder.log_prob)
    errors = np.concatenate([_errors(part) for part in forecasts])
    changes = session.changes
    assert changes is not None
    return logs, errors, [int(row) - 1 for row in changes.alarms[:, 0].tolist()]


def _errors(forecasts: Forecasts) -> np.ndarray:
    """Whether the likeliest class was not the one that came (n,), 0 or 1."""
    assert forecasts.probs is not None and forecasts.targets is not None
    wrong: np.ndarray = np.argmax(forecasts.probs, axis=1) != forecasts.targets
    return wrong.astype(int)


def by_losses(logs: np.ndarray) -> list[int]:
    """The alarms of `Monitored` by its defaults with `surprise=0`, which sees the losses alone."""
    losses = jnp.asarray(-np.expm1(np.minimum(logs, 0.0)), jnp.float32)

    def row(changes: LevelChanges, loss: jax.Array) -> tuple[LevelChanges, jax.Array]:
        after, reported = changes.later(3e-4, None).learned(share_losses(loss), 0.9, 5)
        return after, reported.alarm

    _, alarms = jax.lax.scan(row, LevelChanges.first(jnp.float32), losses)
    return np.flatnonzero(np.asarray(alarms)).tolist()


def by_detector(errors: np.ndarray, name: str) -> list[int]:
    """The alarms of a detector of River that watches errors, with its defaults."""
    from river import drift

    detector: Any = drift.ADWIN() if name == "ADWIN" else drift.KSWIN(seed=0)
    alarms = []
    for row, error in enumerate(errors.tolist()):
        detector.update(error)
        if detector.drift_detected:
            alarms.append(row)
    return alarms


class Count(NamedTuple):
    """How many changes there were and were found, after how many rows, and how many alarms were false."""

    changes: int
    delays: tuple[int, ...]
    false: int

    def __add__(self, other: object) -> Count:
        assert isinstance(other, Count)
        return Count(self.changes + other.changes, self.delays + other.delays, self.false + other.false)

    def __str__(self) -> str:
        if not self.changes:
            return f"{self.false} false"
        delay = f", {np.median(self.delays):.0f} rows" if self.delays else ""
        return f"{len(self.delays)} of {self.changes}{delay}, {self.false} false"


def counted(alarms: list[int], world: World) -> Count:
    """What some alarms are worth in a world."""
    delays = []
    for change in world.changes:
        after = [alarm - change for alarm in alarms if 0 <= alarm - change < world.near]
        delays += after[:1]
    late = max(world.near, SETTLED)
    false = [alarm for alarm in alarms if not any(0 <= alarm - change < late for change in world.changes)]
    return Count(len(world.changes), tuple(delays), len(false))


def compared(world: World) -> list[Count]:
    """What the alarms of each are worth in a world."""
    logs, errors, ours = played(world)
    others = [by_losses(logs), by_detector(errors, "ADWIN"), by_detector(errors, "KSWIN")]
    return [counted(alarms, world) for alarms in (ours, *others)]


def table(worlds: Callable[[], Iterator[tuple[str, World]]]) -> list[list[Count]]:
    """Print a line for the worlds of each name, which come one after the other."""
    lines = []
    for name, group in itertools.groupby(worlds(), lambda pair: pair[0]):
        counts = [compared(world) for _, world in group]
        sums = [sum(column[1:], column[0]) for column in zip(*counts, strict=True)]
        print(f"| {name} | {' | '.join(map(str, sums))} |", flush=True)
        lines.append(sums)
    return lines


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seeds", type=int, default=6, help="streams of each kind and number of classes")
    parser.add_argument("--key", type=int, default=50, help="the first of their seeds")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")

    def drawn() -> Iterator[tuple[str, World]]:
        for kind in (*CHANGING, *QUIET):
            many = options.seeds if kind in CHANGING else max(1, options.seeds // 6)
            for classes, number in itertools.product(SHAPES, range(many)):
                yield kind, softmax(kind, classes, options.key + number)

    print("| world | default bank | its losses alone | ADWIN | KSWIN |")
    print("|---|---|---|---|---|")
    lines = table(drawn) + table(generators)
    sums = [sum(column[1:], column[0]) for column in zip(*lines, strict=True)]
    print(f"| all | {' | '.join(map(str, sums))} |")


if __name__ == "__main__":
    main()
