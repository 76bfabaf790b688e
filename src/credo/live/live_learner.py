"""A learner at work on rows of slots, one at a time or many, which grows as features and classes come."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from credo.adapt import Standardized
from credo.adapt.running_moments import farthest
from credo.beliefs import embed
from credo.core.records import replace
from credo.core.types import Array, ArrayLike, PyTree
from credo.learners import Info
from credo.likelihoods import Predictive
from credo.live.recovery import Recovery
from credo.programs.packed import PackedBelief
from credo.recipes.assembly import build, require_room
from credo.recipes.networks import Origin, outputs_of
from credo.recipes.settings import Settings
from credo.streams import Pack, Port, pack
from credo.streams.live import Answer

__all__ = [
    "Answer",
    "Extent",
    "LiveLearner",
    "require_room_for",
]

CHUNK = 512
"""The rows of a compiled call of many rows; fewer cost as many as there are."""

REMEMBERED = 10
"""The latest alarms that are remembered."""

FIRST_CLASSES = 2
"""The number of classes for which there is one output; further classes get outputs of their own."""

TARGET_CLIP = 8.0
"""The largest size of a standardised target that is learned."""


class Extent(NamedTuple):
    """Settings of a learner, its first inputs, whether they are standardised, and their largest size then."""

    settings: Settings
    origin: Origin
    scale: bool
    clip: float


def expected_value(predictive: Predictive) -> Array:
    """The mean of a forecast of numbers."""
    return predictive.mean


def class_probabilities(predictive: Predictive) -> Array:
    """The probabilities of a forecast of classes."""
    return predictive.probs


def distribution_and_moments(predictive: Predictive) -> tuple[Predictive, Array, Array]:
    """A forecast of numbers, its mean and its standard deviation."""
    return predictive, predictive.mean, predictive.sd


@functools.lru_cache(maxsize=32)
def _inside(extent: Extent, inputs: int, classes: int) -> tuple[Standardized[Any], Any]:
    """The learner, and the prior belief of the one inside; estimators of one kind share both."""
    settings = extent.settings
    inner, prior = build(settings, (inputs,), classes, FIRST_CLASSES if classes else 0, None, extent.origin)
    regression = settings.target.standardised
    return Standardized(inner, extent.scale, regression, extent.clip, target_clip=TARGET_CLIP), prior


@functools.lru_cache(maxsize=32)
def _first_belief(extent: Extent, inputs: int, classes: int, scaled: tuple[bool, ...]) -> Any:
    """The belief before any row, which the learners of one kind share."""
    learner, prior = _inside(extent, inputs, classes)
    return learner.wrap(prior, inputs, np.asarray(scaled))


class LiveLearner:
    """A learner of rows (inputs,), of so many classes or 0 for a regression, and its belief. It counts the
    rows learned from, those refused and the alarms, whose latest rows are `latest`; `change` is the
    probability that the latest row began a segment, None if the drift says none.
    """

    def __init__(self, extent: Extent, inputs: int, classes: int, scaled: np.ndarray) -> None:
        require_room_for(extent, inputs, classes)
        self.extent = extent
        self.inputs = inputs
        self.classes = classes
        self.rows = 0
        self.refused = 0
        self.alarms = 0
        self.recovery = Recovery()
        self.latest: deque[int] = deque(maxlen=REMEMBERED)
        self.change: float | None = None
        self._scaled = tuple(map(bool, scaled))
        self._pack: Pack[Any] | None = None
        self._port: Port | None = None
        self._distributions: Port | None = None
        self._silent = False  # whether updates report nothing but what every update does
        self._leaves: list[np.ndarray] | None = None

    @property
    def learner(self) -> Standardized[Any]:
        """The learner."""
        return _inside(self.extent, self.inputs, self.classes)[0]

    @property
    def belief(self) -> Any:
        """The belief after the latest row."""
        return self._live.belief

    @property
    def _live(self) -> Pack[Any]:
        if self._pack is None:
            first = _first_belief(self.extent, self.inputs, self.classes, self._scaled)
            if self._leaves is not None:
                kinds, structure = jax.tree.flatten(first)
                pairs = zip(self._leaves, kinds, strict=True)
                first = jax.tree.unflatten(structure, [_restored(leaf, like) for leaf, like in pairs])
                self._leaves = None
            self.hold(first)
        assert self._pack is not None
        return self._pack

    @property
    def _key(self) -> Array | None:
        """The key of what is drawn, None if nothing is."""
        settings = self.extent.settings
        if settings.draws:
            return jax.random.key(settings.seed)
        return None

    @property
    def _packed(self) -> PackedBelief:
        """The belief as programs of many rows take it."""
        return PackedBelief.of(self.learner, self._live.belief, self._key)

    def hold(self, belief: Any) -> None:
        """Go on from another belief of this learner."""
        answer = class_probabilities if self.classes else expected_value
        self._pack = pack(self.learner, belief, key=self._key, answer=answer)
        self._port = self._distributions = None

    def grow(self, inputs: int, classes: int, scaled: np.ndarray) -> None:
        """Make room for inputs and classes, at their prior; a CredoError, no change, if there is none."""
        wanted = tuple(map(bool, scaled))
        if (inputs, classes, wanted) == (self.inputs, self.classes, self._scaled):
            return
        require_room_for(self.extent, inputs, classes)
        belief = self.belief
        if inputs != self.inputs or _outputs_differ(self.extent, self.classes, classes):
            belief = embed(belief, _first_belief(self.extent, inputs, classes, wanted))
        if belief.inputs is not None:
            belief = replace(belief, inputs=belief.inputs.choose(np.asarray(wanted)))
        self.inputs = inputs
        self.classes = classes
        self._scaled = wanted
        self.hold(belief)

    def step(self, x: np.ndarray, y: ArrayLike, weight: float) -> None:
        """Learn a row."""
        port = self._port
        if port is not None and weight == 1.0 and self._silent:
            port.x[:] = x
            port.y[...] = y
            ok = port.learn()
            self.rows += 1
        else:
            live = self._live
            info = live.step(x, y) if weight == 1.0 else live.step(x, y, weight=weight)
            ok = bool(info.ok)
            self._silent = info.extras is None
            self._port = live.port(x, y) if port is None else port
            self.rows += 1
            self._watch(info)
        if not ok or self.recovery.streak:
            self._recover(ok, float(np.asarray(y)))

    def _recover(self, ok: bool, y: float) -> None:
        """Count refusals, and let the learner begin again after many that no absurd target explains."""
        self.refused += not ok
        if abs(y) <= farthest(np.float32) and self.recovery.due(ok, self.rows):
            self.hold(replace(self.belief, belief=_inside(self.extent, self.inputs, self.classes)[1]))

    def forecast(self, x: np.ndarray) -> Any:
        """The mean, or the probabilities of the classes, before a row is learned."""
        port = self._port
        if port is None:
            return self._live.forecast(x)
        port.asked[:] = x
        return port.forecast()

    def probabilities(self, x: np.ndarray) -> Sequence[float]:
        """Those of the classes, as `forecast` gives them."""
        port = self._port
        if port is None:
            probs: list[float] = self._live.forecast(x).tolist()
            return probs
        port.asked[:] = x
        return port.forecast_floats()

    def learn_rows(self, xs: np.ndarray, ys: np.ndarray) -> None:
        """Learn rows (n, inputs) and (n,) in order, as `step` does one by one."""
        for start in range(0, len(xs), CHUNK):
            x = xs[start : start + CHUNK]
            y = ys[start : start + CHUNK]
            if not self._learned_all(x, y):
                # one may be the last of many refusals, after which all is different
                for row in range(len(x)):
                    self._learned_all(x[row : row + 1], y[row : row + 1])

    def _learned_all(self, xs: np.ndarray, ys: np.ndarray) -> bool:
        """Learn the rows of a chunk, or none of them where some of several are refused."""
        count = len(xs)
        after, infos = self._packed.learn("learn_live", _learn, (xs, ys), CHUNK)
        ok = bool(np.all(infos.ok))
        if not ok and count > 1:
            return False
        self._live.adopt(after.tree)
        if infos.extras is None:
            self.rows += count
        else:
            for row in range(count):
                self.rows += 1
                self._watch(jax.tree.map(lambda leaf, row=row: leaf[row], infos))
        if not ok or self.recovery.streak:
            self._recover(ok, float(ys[-1]))
        return True

    def forecast_rows(self, xs: np.ndarray) -> np.ndarray:
        """The answers of `forecast` for rows (n, inputs), with a leading axis n."""
        packed = self._packed
        question = _Forecast(class_probabilities if self.classes else expected_value)
        parts: list[np.ndarray] = []
        for start in range(0, len(xs), CHUNK):
            rows = xs[start : start + CHUNK]
            parts.append(packed.ask("forecast_live", question, rows, CHUNK, before=_predicted))
        return np.concatenate(parts)

    def predictive(self, x: np.ndarray) -> Callable[[], tuple[Predictive, float, float]]:
        """The whole forecast of a row, its mean and its standard deviation, read when called for."""
        if self._distributions is None:
            self._distributions = self._live.port(x, np.float32(0.0), answer=distribution_and_moments)
        self._distributions.asked[:] = x
        return functools.partial(self._distributions.read, self._distributions.forecast_words())

    def inputs_of(self, x: np.ndarray) -> np.ndarray:
        """A row as the learner inside sees it (inputs,)."""
        return np.asarray(self.learner.encode(self.belief, x))

    @property
    def nbytes(self) -> int:
        """The bytes of the belief."""
        leaves = jax.tree.leaves(self.belief) if self._leaves is None else self._leaves
        return sum(leaf.nbytes for leaf in leaves)

    def _watch(self, info: Info) -> None:
        """Note what the drift reports of a row."""
        report = info.extras
        if hasattr(report, "alarm"):
            self.change = float(report.change) if self.rows > 1 else 0.0
            if report.alarm:
                self.alarms += 1
                self.latest.append(self.rows)
        elif isinstance(report, float | np.ndarray) and np.ndim(report) == 0:
            self.change = float(report)

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__ | {"_pack": None, "_port": None, "_distributions": None}
        if self._pack is not None:
            state["_leaves"] = [_plain(leaf) for leaf in jax.tree.leaves(self.belief)]
        return state


def _outputs_differ(extent: Extent, before: int, after: int) -> bool:
    """Whether the outputs of a network differ between two numbers of classes."""
    first = FIRST_CLASSES if before else 0
    one, other = (outputs_of(extent.settings.task, classes, first) for classes in (before, after))
    return one != other


def require_room_for(extent: Extent, inputs: int, classes: int) -> None:
    """Refuse more inputs or classes than fit in memory, by a CredoError."""
    first = FIRST_CLASSES if classes else 0
    require_room(extent.settings, (inputs,), classes, first, extent.origin)


def _plain(leaf: Array) -> np.ndarray:
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return np.asarray(jax.random.key_data(leaf))
    return np.asarray(leaf)


def _restored(leaf: np.ndarray, like: Array) -> Array:
    if jnp.issubdtype(like.dtype, jax.dtypes.prng_key):
        key: Array = jax.random.wrap_key_data(jnp.asarray(leaf), impl=jax.random.key_impl(like))
        return key
    return jnp.asarray(leaf)


def _learn(learner: Standardized[Any], belief: Any, key: Any, row: tuple[Any, Any]) -> tuple[Any, Info]:
    """Learn a row."""
    x, y = row
    result: tuple[Any, Info] = learner.step(belief, x, y, key=key)
    return result


def _predicted(learner: Standardized[Any], belief: Any, key: Any) -> Any:
    """The belief at the next row."""
    return learner.predict(belief)


@dataclass(frozen=True)
class _Forecast:
    """The question for an answer at a row, by the belief at that row."""

    answer: Answer

    def __call__(self, learner: Standardized[Any], belief: Any, key: Any, x: Any) -> PyTree:
        if key is not None:
            key = jax.random.fold_in(jax.random.fold_in(key, belief.t), 1)
        return self.answer(learner.forecast(belief, x, key=key))
