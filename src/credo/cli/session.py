"""A learner at work on a stream: encoding, scaling, belief and scores; saved and continued bitwise."""

from __future__ import annotations

import dataclasses
from collections import Counter
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.adapt import Bank, Hypotheses, Resettable
from credo.beliefs import Gaussian
from credo.cli.build import build
from credo.cli.changes import ChangeTally, Steps, collect, joined
from credo.cli.encoding import Block, Encoding, restore
from credo.cli.options import Settings
from credo.cli.tally import Tally
from credo.core.errors import FormatError
from credo.core.verbs import verb
from credo.metrics import Scores
from credo.streams import checkpoint, score_chunk, to_scores
from credo.streams.scoring import forecast_outcome
from credo.tables import Moments, TargetScaler

__all__ = ["Forecasts", "Session"]

FORMAT = 1
_SCALER = TargetScaler()


@dataclasses.dataclass(frozen=True)
class Forecasts:
    """Forecasts of n rows in the target's own units: class probabilities, or mean, sd and quantiles."""

    probs: np.ndarray | None
    mean: np.ndarray | None = None
    sd: np.ndarray | None = None
    quantiles: np.ndarray | None = None


class Session:
    """Everything that a run carries from one chunk to the next.

    Arguments:
        settings: how to learn.
        encoding: how rows become arrays.
        chunk: rows per compiled call; results do not depend on it.
    """

    def __init__(self, settings: Settings, encoding: Encoding, chunk: int = 100) -> None:
        self.settings, self.encoding, self.chunk = settings, encoding, chunk
        self.learner, self.belief = build(settings, encoding.shape, len(encoding.classes))
        self.key = jax.random.key(settings.seed) if settings.draws else None
        self.tally = Tally(settings.task, len(encoding.classes))
        self.changes = ChangeTally.of(settings.drift)
        self.scaler = _SCALER.initial()
        self.read = self.used = self.refused = 0
        self.missing: Counter[str] = Counter()
        self.unseen: Counter[str] = Counter()
        self.progress: dict[str, Any] = {"source": "", "line": 0, "interrupted": False}

    @property
    def uncertain(self) -> bool:
        """Whether the learner keeps a posterior."""
        return self.settings.uncertain

    @property
    def regression(self) -> bool:
        """Whether numbers are predicted."""
        return self.settings.task == "regression"

    def learn(self, block: Block) -> Steps | None:
        """Predict, score and learn every row of a block, in order.

        Returns:
            What was said of changes, row by row, where the drift says anything and there were rows.
        """
        self.read += block.read
        self.used += len(block.y)
        self.missing.update(block.missing)
        self.unseen.update(block.unseen)
        parts = []
        for start in range(0, len(block.y), self.chunk):
            rows = slice(start, start + self.chunk)
            parts.append(self._learn(block.x[rows], block.y[rows]))
        if not parts:
            return None
        self.tally.mark(self.used, *(float(number) for number in _size(self.belief)))
        if self.changes is None:
            return None
        steps = joined(parts)
        self.changes.add(steps)
        return steps

    def _learn(self, x: np.ndarray, y: np.ndarray) -> Steps | None:
        count, extra = len(y), {}
        real = np.arange(self.chunk) < count
        ys = _pad(y.astype(np.int32), self.chunk)
        if self.regression:
            before = self.scaler
            self.scaler, scaled = _SCALER.encode(before, y)
            ys = _pad(scaled.z.astype(np.float32), self.chunk)
            extra = {
                "targets": _pad(((y - scaled.location) / scaled.scale).astype(np.float32), self.chunk),
                "weights": _pad(scaled.known.astype(np.float32), self.chunk),
            }
        compare = ("plugin",) if self.uncertain else ()
        self.belief, outcome, info = score_chunk(
            self.learner,
            self.belief,
            _pad(x, self.chunk),
            ys,
            real=real,
            compare=compare,
            key=self.key,
            collect=None if self.changes is None else collect,
            **extra,
        )
        steps = None
        if self.changes is not None:
            steps = jax.tree.map(lambda leaf: np.asarray(leaf)[:count], info.extras)
        self.refused += count - int(np.asarray(info.ok)[:count].sum())
        if not self.regression:
            self.tally.add(to_scores(outcome, info, ys, real), *self.tally.class_baseline(y))
            return steps
        keep = np.concatenate([scaled.known, np.zeros(self.chunk - count, bool)])
        scores = to_scores(outcome, info, _pad(y, self.chunk), keep)
        location, scale = scaled.location[scaled.known], scaled.scale[scaled.known]
        counted = (before.count[0] + np.arange(count))[scaled.known]
        self.tally.add(
            _own_units(scores, location, scale), *_number_baseline(scores.y, location, scale, counted)
        )
        return steps

    def predict(self, x: np.ndarray, levels: tuple[float, ...] = ()) -> Forecasts:
        """Forecasts of rows in the target's own units, at the present belief; nothing is learned.

        Arguments:
            x: encoded rows.
            levels: the quantiles to give (regression).
        """
        parts: list[Any] = []
        for start in range(0, len(x), self.chunk):
            n = min(self.chunk, len(x) - start)
            padded = _pad(x[start : start + n], self.chunk)
            made = _forecast(
                self.learner,
                self.belief,
                padded,
                None if not self.regression else np.asarray(levels, np.float32),
            )
            parts.append([np.asarray(part)[:n] for part in made])
        joined = [np.concatenate(part) for part in zip(*parts, strict=True)]
        if not self.regression:
            return Forecasts(joined[0])
        mean, sd = _SCALER.inverse(self.scaler, joined[0], joined[1])
        return Forecasts(None, mean, sd, _SCALER.inverse(self.scaler, joined[2], joined[2])[0])

    def test(self, block: Block, tally: Tally) -> None:
        """Score rows that are not learned from, beside the baseline as it is now."""
        for start in range(0, len(block.y), self.chunk):
            self._test(block.x[start : start + self.chunk], block.y[start : start + self.chunk], tally)

    def _test(self, x: np.ndarray, y: np.ndarray, tally: Tally) -> None:
        n, scaled = len(y), None
        ys = _pad(y.astype(np.int32), self.chunk)
        if self.regression:
            _, scaled = _SCALER.encode(self.scaler, y, learn=False)
            ys = _pad(((y - scaled.location) / scaled.scale).astype(np.float32), self.chunk)
        compare = ("plugin",) if self.uncertain else ()
        said = _judge(self.learner, self.belief, _pad(x, self.chunk), ys, compare)
        said = jax.tree.map(lambda leaf: np.asarray(leaf)[:n], said)
        fields = (said.mean, said.sd, said.log_prob, said.pit, said.probs, said.others)
        scores = Scores(y, *fields, said.log_prob, np.ones(n, bool))
        if scaled is None:
            share = (self.tally.counts + 1) / (self.tally.counts + 1).sum()
            tally.add(scores, np.log(share[y]), (share.argmax() != y).astype(float))
        else:
            scores = _own_units(scores, scaled.location, scaled.scale)
            count = np.full(n, self.scaler.count[0])
            tally.add(scores, *_number_baseline(y, scaled.location, scaled.scale, count))

    def save(self, path: Path) -> None:
        """Write the session to a file, all or nothing."""
        meta = {
            "session": FORMAT,
            "settings": self.settings.to_dict(),
            "encoding": self.encoding.to_dict(),
            "counters": {"read": self.read, "used": self.used, "refused": self.refused},
            "missing": dict(self.missing),
            "unseen": dict(self.unseen),
            "progress": self.progress,
        }
        parts = {
            "encoding": self.encoding.arrays(),
            "scaler": self.scaler.arrays(),
            "tally": self.tally.arrays(),
            "changes": {} if self.changes is None else self.changes.arrays(),
        }
        arrays = {f"{part}/{name}": array for part, held in parts.items() for name, array in held.items()}
        checkpoint.save(path, self.learner, self.belief, meta=meta, arrays=arrays)

    @staticmethod
    def load(path: Path, chunk: int = 100) -> Session:
        """Read a session back; it continues bit by bit as if it had never stopped.

        Raises:
            DataError: there is no such file. FormatError: it is damaged, of another version, or not from the
                command line.
        """
        saved = checkpoint.read(path)
        if saved.meta.get("session") != FORMAT:
            what = (
                "by a program, not by `credo learn`"
                if "session" not in saved.meta
                else "by another version of credo"
            )
            raise FormatError(
                f"{path} was saved {what}; this command continues what `credo learn` of this version saved."
            )
        arrays: dict[str, dict[str, np.ndarray]] = {
            "encoding": {},
            "scaler": {},
            "tally": {},
            "changes": {},
        }
        for name, array in saved.arrays.items():
            part, _, rest = name.partition("/")
            arrays[part][rest] = array
        settings = Settings.from_dict(saved.meta["settings"])
        session = Session(settings, restore(saved.meta["encoding"], arrays["encoding"]), chunk)
        session.learner, session.belief = saved.learner, saved.belief
        session.scaler = Moments.from_arrays(arrays["scaler"])
        session.tally = Tally.from_arrays(settings.task, arrays["tally"])
        session.changes = ChangeTally.from_arrays(settings.drift, arrays["changes"])
        counters = saved.meta["counters"]
        session.read, session.used, session.refused = counters["read"], counters["used"], counters["refused"]
        session.missing, session.unseen = Counter(saved.meta["missing"]), Counter(saved.meta["unseen"])
        session.progress = saved.meta["progress"]
        return session

    def size(self) -> int:
        """The number P of parameters."""
        belief = self.belief
        return int((belief.beliefs if isinstance(belief, Bank) else belief).size)


@jax.jit
def _size(belief: Any) -> tuple[jax.Array, jax.Array]:
    """The norm of the mean parameters, and the mean posterior standard deviation (NaN for a point)."""
    mean, var = _moments(belief)
    return jnp.linalg.norm(mean), jnp.mean(jnp.sqrt(var))


def _moments(belief: Any) -> tuple[jax.Array, jax.Array]:
    """Mean and variances, in units of the standardised target whatever the noise."""
    if isinstance(belief, Hypotheses | Bank):
        means, variances = jax.vmap(_moments)(belief.beliefs)
        mean = belief.weights @ means
        return mean, belief.weights @ (variances + (means - mean[None]) ** 2)
    if isinstance(belief, Resettable):
        return _moments(belief.belief)
    if not isinstance(belief, Gaussian):
        return belief.mean, jnp.full_like(belief.mean, jnp.nan)
    unit = 1.0 if belief.noise is None else belief.noise.mean
    return belief.mean, belief.var * unit


@verb
def _forecast(learner: Any, belief: Any, xs: Any, levels: Any) -> tuple[jax.Array, ...]:
    """Class probabilities (N, C); or where levels are given mean, sd (N,) and quantiles (N, levels)."""

    def one(x: jax.Array) -> tuple[jax.Array, ...]:
        said = learner.forecast(belief, x)
        return (said.probs,) if levels is None else (said.mean, said.sd, said.quantile(levels))

    return jax.lax.map(one, xs, batch_size=16)


@verb(static=("compare",))
def _judge(learner: Any, belief: Any, xs: Any, ys: Any, compare: tuple[str, ...]) -> Any:
    """Forecast and score rows without learning from them."""
    return jax.lax.map(
        lambda row: forecast_outcome(learner, belief, row[0], row[1], None, compare, None),
        (xs, ys),
        batch_size=16,
    )


def _pad(rows: np.ndarray, length: int) -> np.ndarray:
    """Repeat the last row, so that every compiled call sees the same shapes."""
    return (
        rows
        if len(rows) == length
        else np.concatenate([rows, np.repeat(rows[-1:], length - len(rows), axis=0)])
    )


def _own_units(scores: Scores, location: np.ndarray, scale: np.ndarray) -> Scores:
    """Scores of standardised targets in the target's own units; densities are divided by the scale."""
    shift = np.log(scale)
    return dataclasses.replace(
        scores,
        mean=location + scale * np.asarray(scores.mean, float),
        sd=scale * np.asarray(scores.sd, float),
        log_prob=np.asarray(scores.log_prob, float) - shift,
        others={name: np.asarray(value, float) - shift for name, value in scores.others.items()},
    )


def _number_baseline(
    y: np.ndarray, location: np.ndarray, scale: np.ndarray, count: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The normal with the mean and spread of the targets so far: its log density and squared error."""
    var = scale**2 * (1.0 + 1.0 / np.maximum(count, 1))
    gap2 = (y - location) ** 2
    return -0.5 * (gap2 / var + np.log(2 * np.pi * var)), gap2
