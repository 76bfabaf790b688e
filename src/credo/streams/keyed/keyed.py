"""One learner for each key, and the beliefs of all keys in one matrix.

Forecasts and reports for rows with keys.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar, get_args

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.errors import CredoError, require_choice, require_integer
from credo.core.inputs import require_finite, require_narrow
from credo.core.keys import as_key
from credo.core.places import Place, Where, place_of
from credo.core.types import ArrayLike, Key, PyTree
from credo.learners import Info, Learner
from credo.learners.base import require_learner
from credo.metrics import Scores
from credo.streams.keyed import pages
from credo.streams.keyed.engine import Engine, Late
from credo.streams.keyed.naming import KeyName, key_names
from credo.streams.keyed.programs import Prior
from credo.streams.live import Answer, mean_and_sd
from credo.streams.run import leading
from credo.streams.scoring import Outcome, to_scores

__all__ = ["Keyed", "KeyedRows"]


@dataclass(frozen=True)
class KeyedRows:
    """The forecasts and reports for the rows of a call of `Keyed.learn`, in their order.

    Attributes:
        outcome: the forecasts before learning with their scores, arrays (n, ...): `mean`, `sd`, `probs`,
            `log_prob`, `pit`, None if a forecast has none.
        info: what the updates reported, likewise. Its `extras` are the `change` and `alarm` of a wrapper that
            reports changes, and otherwise None.
        ys: the observations.
        late: which rows were earlier than another of their key (n,), and were learned without a step of time;
            None without times.
        slots: the place of the key of each row among all keys (n,). A key keeps its place until it is dropped
            or evicted; then another one may have it.

    Example:
        >>> import credo
        >>> coins = credo.Keyed(credo.BetaBernoulli(), credo.BetaBernoulli().init())
        >>> coins.learn(["a", "b", "a"], None, np.array([1, 0, 1])).outcome.probs.shape
        (3, 2)
    """

    outcome: Outcome
    info: Info
    ys: PyTree
    late: np.ndarray | None = None
    slots: np.ndarray | None = None

    @property
    def ok(self) -> np.ndarray:
        """Whether each row was taken in (n,), as `Info.ok` says."""
        return np.asarray(self.info.ok)

    @property
    def alarm(self) -> np.ndarray | None:
        """Whether each row reported a change (n,), None for a learner that reports none."""
        if self.info.extras is None:
            return None
        return np.asarray(self.info.extras["alarm"])

    @property
    def scores(self) -> Scores:
        """The scores of the observed rows."""
        return to_scores(self.outcome, self.info, self.ys)


B = TypeVar("B")
"""The kind of belief that a learner keeps."""

Keys: TypeAlias = Sequence[KeyName] | Iterable[KeyName] | ArrayLike


class Keyed(Generic[B]):
    """One small learner for each user, sensor or article: thousands of beliefs stepped in one compiled call.

    Rows are learned in order, each by the belief of its own key, after it was forecast. The bits of a key do
    not depend on how rows were grouped into calls, on other keys, on growth, or on what was on the disk
    meanwhile; they do depend on `tile`. A learner alone differs in the last bits.

    A call cuts its rows into tiles of different keys. A tile costs as much as `tile` rows, so it pays where
    there are many keys: where one key has a share of the rows above 1 / `tile`, choose a smaller one.
    Memory: the words of a belief and about 40 bytes a key, beside names that are text. A Keyed changes, as a
    `Pack` does; threads take turns.

    Arguments:
        learner: any learner or wrapper, the same for all keys.
        prior: the belief with which a key begins, or a traceable function from the inputs of its first row to
            that belief.
        tile: how many keys are stepped together.
        capacity: for how many keys there is room; room grows by doubling, and each size is compiled again.
        pooled: after each so many rows, new keys begin at the mixture of the beliefs of the latest keys (at
            most 1,024), by its first two moments; None for `prior` at all times.
        evict: the most keys in memory, at least 4; those that were not seen for longest lie in a file of
            SQLite, and come back with the same bits.
        key: a key, for learners that draw; step t of key k uses fold_in(fold_in(key, a hash of k), t).
            Beliefs that hold a key of their own, such as particles, draw by fold_in(that of the prior, the
            hash); the particles of the prior are the same for all keys.

    Attributes:
        offset: the offset of the checkpoint from which this was loaded, 0 otherwise.

    Raises:
        CredoError: an argument is out of its range, the capacity does not fit into memory, or the moments of
            the beliefs cannot be matched.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> learner = credo.extended_kalman(credo.Model(lambda w, x: x @ w, credo.Normal(0.1)))
        >>> keyed = credo.Keyed(learner, learner.init(jnp.zeros(2)), capacity=8, tile=4)
        >>> rows = keyed.learn(["ann", "bob", "ann"], np.ones((3, 2)), np.array([1.0, 4.0, 1.2]))
        >>> rows.outcome.mean.round(2), rows.ok.tolist(), len(keyed)
        (array([0.  , 0.  , 0.95], dtype=float32), [True, True, True], 2)
        >>> mean, sd = keyed.forecast(["bob", "eve"], np.ones((2, 2)))
        >>> mean.round(2), int(keyed.belief("ann").t)
        (array([3.81, 0.  ], dtype=float32), 2)
    """

    def __init__(
        self,
        learner: Learner[B],
        prior: B | Callable[[PyTree], B],
        *,
        tile: int = 16,
        capacity: int = 1024,
        pooled: int | None = None,
        evict: int | None = None,
        key: Key | None = None,
    ) -> None:
        require_learner("learner", learner)
        require_integer("tile", tile, 1, 1024)
        require_integer("capacity", capacity, 1, 2**31 - 1)
        if pooled is not None:
            require_integer("pooled", pooled, 1)
        if evict is not None:
            require_integer("evict", evict, 4)
        if callable(prior) and pooled is not None:
            raise CredoError("pooled needs a prior that is one belief; got a function.", field="pooled")
        random = None if key is None else as_key(key)
        of_inputs = prior if callable(prior) else None
        self.offset = 0
        # the stack is given away to each step and replaced by what comes back: two steps must not overlap
        self._lock = threading.Lock()
        self._engine = Engine(
            *(learner, of_inputs), tile=tile, capacity=capacity, pooled=pooled, evict=evict, random=random
        )
        if of_inputs is None:
            self._engine.begin(prior)

    @property
    def learner(self) -> Learner[B]:
        """The learner."""
        return self._engine.learner

    @property
    def tile(self) -> int:
        """The number of keys that are stepped together."""
        return self._engine.tile

    @property
    def rows(self) -> int:
        """The number of rows that were learned."""
        return self._engine.rows

    def __len__(self) -> int:
        if self._engine.begun:
            return self._engine.stack.keys
        return 0

    def __contains__(self, key: KeyName) -> bool:
        with self._lock:
            return self._engine.words_of(key) is not None

    def learn(
        self,
        keys: Keys,
        xs: PyTree,
        ys: PyTree,
        weights: ArrayLike | None = None,
        times: ArrayLike | Sequence[float] | None = None,
        *,
        late: Late = "refuse",
    ) -> KeyedRows:
        """Forecast each row by the belief of its key, score it, and learn from it.

        Arguments:
            keys: the key of each row: integers, text or bytes (n,). 1 and "1" are different keys.
            xs, ys: inputs and observations, trees whose arrays have a leading axis n (xs may be None).
            weights: the weights (n,), or None for 1; see `Learner.update`.
            times: when each row was observed (n,): a key's step is as long as the time since its latest row,
                and its first step 0. None for steps of 1. A Keyed has times always or never.
            late: what becomes of a row that is earlier than another of its key: "refuse" the call, or learn
                it "now", without a step of time.

        Returns:
            The forecasts before learning, their scores, and what the updates reported.

        Raises:
            CredoError: there is no row, a key is missing, lengths differ, or time goes back for a key; then
                nothing was learned.
        """
        with self._lock:
            require_choice("late", late, get_args(Late))
            names, clock, behind = self._checked(keys, times, late, xs=xs, ys=ys, weights=weights)
            factors = np.ones(len(names)) if weights is None else weights
            parts = [
                self._engine.learn(names[part], _part((xs, ys, factors), part), _part(clock, part))
                for part in self._engine.pieces(names)
            ]
        outcome, info, slots = _joined(parts)
        return KeyedRows(outcome, info, ys, behind, slots)

    def forecast(
        self,
        keys: Keys,
        xs: PyTree,
        *,
        times: ArrayLike | Sequence[float] | None = None,
        answer: Answer = mean_and_sd,
    ) -> Any:
        """Forecast the observations of rows by the beliefs of their keys. Nothing is learned.

        Arguments:
            keys, xs, times: as for `learn`. A key that was never learned is forecast by the prior.
            answer: what is asked of each forecast, a function of the predictive, by default its mean and
                standard deviation. It is compiled, so define it once.

        Returns:
            What `answer` gives, as NumPy arrays with a leading axis n.

        Raises:
            CredoError: as for `learn`.
        """
        with self._lock:
            names, clock, _ = self._checked(keys, times, "refuse", xs=xs)
            parts = [
                self._engine.ask(names[part], _part(xs, part), _part(clock, part), answer)
                for part in self._engine.pieces(names, renewed=False)
            ]
        return _joined(parts)

    def belief(self, key: KeyName) -> B:
        """The belief of a key, to be saved, looked at, or handed to any verb.

        Raises:
            CredoError: the key was never learned.
        """
        with self._lock:
            words = self._engine.words_of(key)
            if words is None:
                raise CredoError(f"key must be one that was learned; got {key!r}.", field="key")
            belief: B = self._engine.lanes.form.state.take((jnp.asarray(words), ()))
            return belief

    def drop(self, keys: Keys) -> None:
        """Forget some keys; they begin at the prior if they come again.

        Raises:
            CredoError: one was never learned; then none is forgotten.
        """
        with self._lock:
            names = key_names(keys)
            if names:
                self._engine.drop(names)

    def save(self, folder: Where, *, offset: int | None = None) -> Place:
        """Write a checkpoint into a folder: what changed since the latest one there, in pages of 1,024 keys.

        A manifest is written last, so a checkpoint is there completely or not at all; the two latest are
        kept. It costs about 0.4 microseconds a key of a changed page, and on a CPU no memory.

        Arguments:
            folder: the folder, which is made if need be, or the address of one for fsspec, such as
                s3://bucket/users. One Keyed at a time may save there.
            offset: how far the source was read, kept as `offset` for `load`; None for the number of rows.

        Returns:
            The path of the manifest.

        Raises:
            DataError: the folder cannot be written.
            CredoError: nothing was learned yet where the prior is a function, or the learner cannot be saved.
        """
        with self._lock:
            if not self._engine.begun:
                raise CredoError("keys must have been learned before they can be saved; there is none.")
            return pages.write(
                self._engine, place_of(folder, "folder"), self.rows if offset is None else offset
            )

    @staticmethod
    def load(folder: Where, learner: Learner[Any] | None = None, *, prior: Prior | None = None) -> Keyed[Any]:
        """The Keyed of the latest checkpoint in a folder, which goes on bit by bit.

        Arguments:
            folder: a folder that `save` wrote, or its address.
            learner: a learner of the same structure, which lends its functions; see `credo.load`.
            prior: the prior, where it is a function.

        Returns:
            The Keyed, whose `offset` is that of the checkpoint.

        Warns:
            UserWarning: the latest manifest is damaged, and the one before it was taken.

        Raises:
            DataError: there is no checkpoint.
            FormatError: it is damaged, has a newer format, or is of another learner.
        """
        engine, offset = pages.read(place_of(folder, "folder"), learner, prior)
        keyed: Keyed[Any] = Keyed.__new__(Keyed)
        keyed.offset = offset
        keyed._lock = threading.Lock()
        keyed._engine = engine
        return keyed

    def _checked(
        self, keys: Keys, times: ArrayLike | Sequence[float] | None, late: Late, **trees: PyTree
    ) -> tuple[list[KeyName], np.ndarray | None, np.ndarray | None]:
        """The keys and times of the rows of a call, which can be learned or forecast, and which are late."""
        engine = self._engine
        names = key_names(keys)
        clock = None if times is None else np.asarray(times, np.float64)
        if leading(keys=np.zeros(len(names)), times=clock, **trees) == 0:
            raise CredoError("keys must hold at least one row; got none.", field="keys")
        for field, tree in trees.items():
            for leaf in jax.tree.leaves(tree):
                require_narrow(field, np.asarray(leaf))
        if clock is not None:
            require_finite("times", clock)
        if engine.timed is not None and engine.timed != (clock is not None):
            was, now = ("had none", "have them") if clock is not None else ("had them", "have none")
            raise CredoError(f"times must be given for all rows or none; earlier rows {was}, these {now}.")
        if not engine.begun:
            assert engine.of_inputs is not None
            engine.begin(engine.of_inputs(jax.tree.map(jnp.asarray, _part(trees["xs"], 0))))
        if clock is None:
            return names, None, None
        return names, *engine.onward(names, clock, late)


def _part(tree: PyTree, rows: slice | int) -> PyTree:
    """Some rows of stacked arrays."""
    return jax.tree.map(lambda leaf: np.asarray(leaf)[rows], tree)


def _joined(parts: Sequence[PyTree]) -> PyTree:
    """Stacked arrays one after another."""
    if len(parts) == 1:
        return parts[0]
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)
