"""A session behind the service: lines of the journal are learned in order, and answered."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from credo.core.errors import CredoError
from credo.live.change_steps import Steps
from credo.live.encoding import TableEncoding
from credo.recipes.options import Options
from credo.recipes.tasks import slots
from credo.serve.contents import Content, Learn, Predict
from credo.serve.journal_lines import Event
from credo.serve.requests import Columns
from credo.serve.specs import TableSpec
from credo.sessions import Forecasts, SeriesEncoding, Session
from credo.tables import Chunk, Schema, infer_schema
from credo.tables.cells import label_text

__all__ = ["CHUNK", "Answer", "Given", "TableModel", "base_path", "target_of"]

CHUNK = 256
"""The most rows of a compiled call."""


def base_path(folder: Path, digest: str) -> Path:
    """The place among the snapshots of a saved session that was sent."""
    return folder / f"base-{digest}.credo"


def target_of(path: Path) -> str:
    """The target of a saved session; a CredoError if it is none of a table."""
    session = Session.load(path, chunk=CHUNK)
    encoding = session.encoding
    if session.clock is not None:
        raise CredoError("the body must be a saved session whose rows have no times; its rows have them.")
    if not isinstance(encoding, TableEncoding) or isinstance(encoding, SeriesEncoding):
        raise CredoError("the body must be a saved session of a table; it is that of images or of a series.")
    return encoding.target


Answer = dict[str, Any]
"""An answer as JSON data."""

Given = Callable[[int], Answer]
"""A function that gives the answer of a line by its number."""

_REFUSED = "the row holds what its columns cannot; nothing was learned from it."


class TableModel:
    """A `Session` that takes the lines of a journal."""

    def __init__(self, session: Session, spec: TableSpec) -> None:
        self.session = session
        self.spec = spec
        self.refused = 0
        self._levels = spec.levels if session.regression else ()
        self.columns = Columns.of(self.schema, spec.seconds is not None)
        self._asked = self.schema

    @classmethod
    def start(cls, spec: TableSpec, first: Sequence[Content], folder: Path) -> TableModel:
        """A new model, by its first rows where they say what the columns mean, or by a saved session."""
        if spec.base is not None:
            return cls.load(base_path(folder, spec.base), spec)
        schema = spec.schema()
        if schema is None:
            rows = [{**row.x, spec.target: row.y} for row in first if isinstance(row, Learn)]
            names = list(dict.fromkeys(name for row in rows for name in row))
            chunk = Chunk(
                {name: [row.get(name) for row in rows] for name in names}, np.arange(1, len(rows) + 1)
            )
            drop, categorical = (
                [name for name in given if name in names] for given in (spec.drop, spec.categorical)
            )
            schema = infer_schema(
                chunk,
                spec.target,
                task=spec.task,
                classes=spec.classes,
                drop=drop,
                categorical=categorical,
            )
        session = Session.create(TableEncoding(schema), Options(**spec.options), chunk=CHUNK)  # type: ignore[arg-type]
        return cls(session, spec)

    @classmethod
    def load(cls, path: Path, spec: TableSpec) -> TableModel:
        """A model from a snapshot."""
        return cls(Session.load(path, chunk=CHUNK), spec)

    @property
    def rows(self) -> int:
        """The number of rows learned."""
        return self.session.rows_used

    def prepare(self) -> None:
        """Compile all that a row can need."""
        self.session.prepare(self._levels, timed=self.columns.timed)

    @property
    def schema(self) -> Schema:
        """The schema of the columns as it is now."""
        assert isinstance(self.session.encoding, TableEncoding)
        return self.session.encoding.schema

    def knows(self, event: Event) -> bool:
        """Whether a line brings no new column and no new class, for which programs are to be compiled."""
        if not _row(event).x.keys() <= self.columns.kinds.keys():
            return False
        y = getattr(event.content, "y", None)
        if y is None or not self.columns.classed:
            return True
        goal = self.schema.target
        return label_text(y, goal.whole) in goal.classes

    def grows(self, events: Sequence[Event]) -> bool:
        """Whether lines bring columns or classes for which there is no room: they need other programs."""
        learned = [event for event in events if event.kind != "predict"]
        if all(map(self.knows, learned)):
            return False
        goal = self.schema.target
        if goal.kind.classed and goal.first:
            labels = {label_text(event.content.y, goal.whole) for event in learned}  # type: ignore[union-attr]
            count = len(labels.union(goal.classes))
            if slots(goal.first, count) != slots(goal.first, len(goal.classes)):
                return True
        known = self.columns.kinds.keys()
        rows = [_row(event).x for event in learned]
        new = {name for row in rows for name in row if name not in known}
        cells = {name: [row.get(name) for row in rows] for name in sorted(new)}
        assert isinstance(self.session.encoding, TableEncoding)
        room = self.session.encoding.room_after(Chunk(cells, np.arange(1, len(rows) + 1)))
        return room != self.schema.extent.room

    def apply(self, events: Sequence[Event], given: Given) -> list[Answer]:
        """Learn from lines in order; their answers. Forecasts are those before a row was learned."""
        answers: list[Answer] = []
        fresh: dict[int, Answer] = {}  # a label may come in the same group as its forecast
        start = 0

        def known(seq: int) -> Answer:
            if seq in fresh:
                return fresh[seq]
            return given(seq)

        while start < len(events):
            learn = events[start].kind != "predict"
            stop = start
            while stop < len(events) and (events[stop].kind != "predict") == learn:
                stop += 1
            part = events[start:stop]
            some = self._learn(part, known) if learn else self.forecast([_row(event) for event in part])
            fresh |= {} if learn else {event.seq: one for event, one in zip(part, some, strict=True)}
            answers += some
            start = stop
        schema = self.schema
        if schema is not self._asked:  # columns or classes have come
            self.columns = Columns.of(schema, self.columns.timed)
            self._asked = schema
        return answers

    def _learn(self, events: Sequence[Event], given: Given) -> list[Answer]:
        rows: list[dict[str, Any]] = []
        times: list[float | None] = []
        weights: list[float] = []
        for event in events:
            row = _row(event)
            content: Any = event.content
            rows.append({**row.x, self.spec.target: content.y})
            times.append(row.time)
            weights.append(content.weight or 1.0)
        parts, steps = self.session.forecast_then_learn(
            rows,
            self._levels,
            None if set(weights) == {1.0} else weights,
            self._forward(times, ordered=True) if self.columns.timed else None,
        )
        answers = _answers(parts, steps, self._levels, len(rows))
        for answer, event in zip(answers, events, strict=True):
            self.refused += not answer["learned"]
            if event.kind == "label":
                answer["forecast"] = given(event.given).get("forecast")
                answer["nlpd"] = (
                    None if answer["forecast"] is None else self._score(answer["forecast"], event)
                )
        return answers

    def _score(self, forecast: Answer, event: Event) -> float | None:
        """The score of an answer that was given: of its probabilities, or of the normal of its moments."""
        y: Any = event.content.y  # type: ignore[union-attr]
        if "probs" in forecast:
            goal = self.schema.target
            p = forecast["probs"].get(label_text(y, goal.whole), 0.0)
            if p <= 0:
                return None
            return -math.log(p)
        mean = forecast["mean"]
        sd = forecast["sd"]
        if mean is None or not sd:
            return None
        z = (float(y) - mean) / sd
        return _plain(0.5 * z * z + math.log(sd) + 0.5 * math.log(2 * math.pi))

    def _forward(self, times: Sequence[float | None], *, ordered: bool) -> list[float]:
        """The times of rows in the unit of the model, none before the latest row, or before the one before it
        if `ordered`: late rows come with the latest one, as those without a time do.
        """
        unit = self.spec.seconds
        assert unit is not None
        latest = self.session.clock
        forward: list[float] = []
        for time in times:
            own = None if time is None else time / unit
            known = [one for one in (own, latest) if one is not None]
            forward.append(max(known, default=0.0))
            latest = forward[-1] if ordered else latest
        return forward

    def forecast(self, rows: Sequence[Learn | Predict]) -> list[Answer]:
        """Forecasts of rows, from which nothing is learned."""
        times = self._forward([row.time for row in rows], ordered=False) if self.columns.timed else None
        forecasts = self.session.predict([row.x for row in rows], self._levels, times)
        answers: list[Answer] = [{"forecast": None, "reason": _REFUSED} for _ in rows]
        for place, forecast in _forecasts(forecasts, self._levels):
            answers[place] = {"forecast": forecast, "version": self.session.rows_used}
        return answers

    def freeze(self, path: Path) -> Callable[[], None]:
        """A function that writes the model as it is now into a file, in whatever thread."""
        frozen = self.session.freeze()

        def write() -> None:
            frozen.save(path)

        return write

    def digest(self, path: Path) -> str:
        """The SHA-256 of the model, by way of a file."""
        self.session.save(path)
        return hashlib.sha256(path.read_bytes()).hexdigest()

    def view(self) -> Answer:
        """The facts about the model that are shown."""
        session = self.session
        tally = self.session.tally
        rows, loss = tally.curve("nlpd", window=200)
        _, base = tally.curve("base_nlpd", window=200)
        few = slice(None, None, max(1, len(rows) // 200))
        changes = session.changes
        summary = None if changes is None else changes.summary()
        return {
            "rows": session.rows_used,
            "refused": self.refused + session.rows_refused,
            "metrics": _finite(session.metrics()),
            "baseline": _finite(tally.baseline()),
            "curve": {
                "rows": rows[few].tolist(),
                "nlpd": _list(loss[few]),
                "baseline": _list(base[few]),
            },
            "weights": {} if summary is None else summary.get("weights", {}),
            "changes": 0 if summary is None else summary.get("reported", 0),
            "change_rows": [] if summary is None else summary.get("rows", [])[-100:],
            "task": session.settings.task,
            "learner": str(session.settings.model),
            "sentences": list(session.encoding.sentences),
        }


def _row(event: Event) -> Learn | Predict:
    """The row of a line."""
    return event.content if event.row is None else event.row  # type: ignore[return-value]


def _answers(
    parts: Sequence[Forecasts], steps: Steps | None, levels: Sequence[float], rows: int
) -> list[Answer]:
    """The answers of rows: of those that were learned, those that were only forecast, and the others."""
    answers: list[Answer] = [{"learned": False, "reason": _REFUSED} for _ in range(rows)]
    learned = 0
    for part in parts:
        for number, (place, forecast) in enumerate(_forecasts(part, levels)):
            if part.targets is None:
                answers[place] = {"forecast": forecast, "learned": False, "reason": _REFUSED}
                continue
            nlpd = None if part.nlpd is None else float(part.nlpd[number])
            answer: Answer = {"forecast": forecast, "nlpd": nlpd, "learned": True}
            if steps is not None and steps.alarm[learned]:
                answer["alarm"] = {"began": int(steps.began[learned])}
            learned += 1
            answers[place] = answer
    return answers


def _forecasts(forecasts: Forecasts, levels: Sequence[float]) -> list[tuple[int, Answer]]:
    """The forecasts of rows with their places; a number that is not finite is null in their JSON."""
    answers: list[tuple[int, Answer]] = []
    places = (forecasts.lines - 1).tolist()
    if forecasts.probs is not None:
        rows = np.asarray(forecasts.probs, float).tolist()
        for place, label, row in zip(places, forecasts.labels, rows, strict=True):
            probs = dict(zip(forecasts.classes, row, strict=True))
            answers.append((place, {"label": label, "probs": probs}))
        return answers
    if forecasts.mean is None or forecasts.sd is None:
        return answers
    for place, mean, sd in zip(places, forecasts.mean.tolist(), forecasts.sd.tolist(), strict=True):
        answers.append((place, {"mean": mean, "sd": sd}))
    if forecasts.quantiles is not None:
        for (_, answer), row in zip(answers, forecasts.quantiles.tolist(), strict=True):
            answer["quantiles"] = dict(zip(map(str, levels), row, strict=True))
    return answers


def _plain(value: float) -> float | None:
    """A number as JSON has it: None if it is not finite."""
    if math.isfinite(value):
        return float(value)
    return None


def _list(values: np.ndarray) -> list[float | None]:
    return [_plain(value) for value in values.tolist()]


def _finite(numbers: dict[str, float]) -> dict[str, float | None]:
    return {name: _plain(value) for name, value in numbers.items()}
