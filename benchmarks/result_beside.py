"""credo beside other libraries: the tables of README and RESULTS.md.

The rule: of a library, the method that counts is the one with the best score on that stream, for each score
separately, among those that ran there. So a peer has the choice in hindsight, and credo has one method.
Streams on which nothing was chosen come first. The best cell of a row is bold, whoever has it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from default_best import BATCH, OURS, number
from result_evidence import Evidence
from result_file import Grid
from result_markdown import line, markdown

__all__ = ["LIBRARIES", "REGIONS", "Best", "best"]

LIBRARIES: dict[str, Callable[[str], bool]] = {
    OURS: lambda method: method == OURS,
    "River": lambda method: method.startswith("River"),
    "Vowpal Wabbit": lambda method: method.startswith("VW"),
    "scikit-learn `partial_fit`": lambda method: method in ("MLP Adam", "sklearn SGD"),
}
"""Whose method a method is; of scikit-learn a linear model, and a perceptron with Adam."""

UNSEEN = ("held", "unseen")
SHOWN = ("electricity", "bananas", "phishing", "segments")
WORDS = {"log_loss": "log loss", "error": "error", "rmse": "RMSE"}
SPOKEN = "no one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"


class Best(NamedTuple):
    """The best score of a library on a stream, and the method that has it."""

    score: float
    method: str


def best(row: Mapping[str, Mapping[str, Any]], library: str, metric: str) -> Best | None:
    """The best method of a library on a stream, by a score; None if none of them ran."""
    mine = LIBRARIES[library]
    found = [Best(scores[metric], method) for method, scores in row.items() if mine(method)]
    return min(found, default=None)


def _bold(texts: Sequence[str], keys: Sequence[float | None], most: bool = False) -> list[str]:
    """Texts, the best of them bold; texts that read the same as the best are bold too."""
    known = [key for key in keys if key is not None]
    if not known:
        return list(texts)
    first = texts[keys.index(max(known) if most else min(known))]
    return [f"**{text}**" if text == first else text for text in texts]


def _scores(evidence: Evidence, group: str, task: str) -> dict[str, dict[str, Mapping[str, Any]]]:
    """The scores of a group's streams of a task, as far as credo has run there."""
    metric = "error" if task == "classification" else "rmse"
    return {
        name: row
        for name, row in evidence.table(group).items()
        if OURS in row and row[OURS][metric] is not None
    }


def _means(evidence: Evidence, title: str, task: str, metric: str, digits: int) -> str:
    """A row of means over the streams that no choice has seen."""
    streams = _scores(evidence, "held", task)
    means = []
    for library in LIBRARIES:
        found = [one.score for row in streams.values() if (one := best(row, library, metric))]
        means.append(sum(found) / len(found) if len(found) == len(streams) else None)
    texts = ["" if mean is None else f"{mean:.{digits}f}" for mean in means]
    return line([title.format(len(streams)), *_bold(texts, means)])


def _firsts(evidence: Evidence, metrics: Sequence[str]) -> tuple[list[int], list[str], int]:
    """How often each library is first where no choice was made, where credo is not, and how many streams."""
    counts = [0] * len(LIBRARIES)
    lost = list[str]()
    total = 0
    for group in UNSEEN:
        for name, row in evidence.table(group).items():
            if OURS not in row:
                continue
            metric = next(metric for metric in metrics if row[OURS][metric] is not None)
            found = [best(row, library, metric) for library in LIBRARIES]
            least = min(one.score for one in found if one)
            leaders = [place for place, one in enumerate(found) if one and one.score == least]
            for place in leaders:
                counts[place] += 1
            total += 1
            if 0 not in leaders:
                lost.append(f"`{name}` ({found[leaders[0]].method})")  # type: ignore[union-attr]
    return counts, lost, total


def _four(evidence: Evidence, title: str, metric: str, digits: int) -> str:
    """A row of the scores on four streams by which members were chosen."""
    streams = [evidence.table("chosen")[name] for name in SHOWN]
    cells: list[list[str]] = [[] for _ in LIBRARIES]
    for row in streams:
        found = [best(row, library, metric) for library in LIBRARIES]
        keys = [one.score if one else None for one in found]
        texts = _bold(["-" if key is None else f"{key:.{digits}f}" for key in keys], keys)
        for cell, text in zip(cells, texts, strict=True):
            cell.append(text)
    return line([title.format(" / ".join(SHOWN)), *(" / ".join(cell) for cell in cells)])


def _range(grid: Grid, beginning: str) -> str:
    """The least and the largest number of the rows that begin so, with two digits."""
    found = [cell for row in grid.rows if str(row[0]).startswith(beginning) for cell in row[1:]]
    numbers = [cell for cell in found if isinstance(cell, int | float)]
    return f"{_two(min(numbers)):,} to {_two(max(numbers)):,}"


def _two(value: float) -> int:
    """A number with two digits."""
    return round(value, 1 - math.floor(math.log10(value)))  # type: ignore[return-value]


def _speeds(evidence: Evidence) -> list[str]:
    """The row of speeds. That of the default was measured before it had all its members, and is not said."""
    budget = evidence.sections["budgets"].grid
    streams = evidence.sections["real streams: rows a second"].grid
    speeds = {row[0]: [cell for cell in row[2:4] if isinstance(cell, int)] for row in budget.rows}
    ours = {name: f"{_two(min(some)):,} to {_two(max(some)):,}" for name, some in speeds.items()}
    linear = ["rows a second, linear model", f"{ours['fast']} (`--budget fast`, from a file)"]
    return [
        line([*linear, *(_range(streams, name) for name in ("River, scaled", "Vowpal", "scikit-learn"))]),
    ]


def _disk(evidence: Evidence) -> str:
    sizes = {str(row[0]): row[1] for row in evidence.sections["disk"].grid.rows}
    cells = [sizes[name.split(" `")[0]] for name in LIBRARIES]
    return line(["disk, with all that it needs", *(f"{cell:,.0f} MB" for cell in cells if cell is not None)])


def beside(evidence: Evidence) -> str:
    """README's table, and where credo loses."""
    point = "a point or class probabilities"
    firsts = [_firsts(evidence, metrics) for metrics in (("log_loss",), ("error", "rmse"))]
    rows = [
        line(["", *LIBRARIES]),
        line(["---"] * (1 + len(LIBRARIES))),
        line(["a prediction is", "a distribution, and the belief says what is not known yet", *[point] * 3]),
        _means(
            evidence,
            "log loss, mean of {} streams of classes that no choice of ours has seen",
            "classification",
            "log_loss",
            2,
        ),
        _means(evidence, "error on the same streams", "classification", "error", 3),
        _means(evidence, "log loss, mean of {} such streams of numbers", "regression", "log_loss", 2),
    ]
    for what, (counts, _, total) in zip(("log loss", "error or RMSE"), firsts, strict=True):
        title = f"on how many of {total} such streams and tables it has the least {what}"
        rows.append(line([title, *_bold([str(one) for one in counts], counts, most=True)]))
    rows += [
        _four(evidence, "log loss on four streams by which its members were chosen: {}", "log_loss", 2),
        _four(evidence, "error on these four", "error", 3),
        *_speeds(evidence),
        line(["says when the world changed", "yes, with a probability", "detectors", "no", "no"]),
        line(["decision trees", "no", "yes", "no", "no"]),
        _disk(evidence),
    ]
    (_, loss, _), (_, error, _) = firsts
    said = (
        f"Another library has a smaller log loss on {', '.join(loss)}, and a smaller error or RMSE on "
        f"{', '.join(error)}."
    )
    return "\n".join([*rows, "", said, _packages(evidence)])


def _packages(evidence: Evidence) -> str:
    """The sentence about the tables from packages."""
    words = SPOKEN.split()
    (light, _) = BATCH
    rows = [row for row in evidence.table("unseen").values() if OURS in row]
    own = [row[OURS]["log_loss"] for row in rows]
    steady = [
        min(one["log_loss"] for peer, one in row.items() if peer != OURS and peer not in BATCH)
        for row in rows
    ]
    ahead = sum(mine < least for mine, least in zip(own, steady, strict=True))
    batch = sum(mine < row[light]["log_loss"] for mine, row in zip(own, rows, strict=True) if light in row)
    behind = sum(_led_by_a_peer(row) for row in rows)
    return (
        f"On {words[ahead]} of {words[len(rows)]} tables from packages its log loss is less than that of "
        f"every online peer that has run on them, and on {words[batch]} less than that of LightGBM refitted "
        f"every 500 rows; in error or RMSE an online peer leads on {words[behind]} "
        "([table](docs/explanation/defaults.md#how-good-it-is))."
    )


def _led_by_a_peer(row: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether an online peer has a smaller error or RMSE on a stream."""
    score = "rmse" if row[OURS].get("error") is None else "error"
    peers = [one.get(score) for peer, one in row.items() if peer != OURS and peer not in BATCH]
    known = [value for value in peers if value is not None]
    return bool(min(known) < row[OURS][score])


def one_row(evidence: Evidence) -> str:
    """README's sentences about one row at a time."""
    section = evidence.sections["estimators"]
    times = {row[0]: row[1] for row in section.grid.rows}
    alone = next(part for part in section.body if isinstance(part, str) and part.startswith("With JAX's own"))
    river = times["River StandardScaler \\| LogisticRegression, learn_one"]
    ours = times["RiverClassifier.learn_one"]
    slow = float(alone.split(" takes ")[1].split(" us")[0])
    return (
        "One row at a time credo is slower than River, because every call goes through JAX. "
        f"With ten features `RiverClassifier.learn_one` takes {ours:.0f} microseconds and keeps a full "
        f"posterior if `jax_cpu_enable_async_dispatch` is off, and {slow:.0f} if it is on, which is JAX's "
        f"default. River's scaler and logistic regression take {river:.0f}. In chunks credo is not slower."
    )


def scores(evidence: Evidence) -> str:
    """The table of RESULTS.md: on each stream the best method of each library."""
    parts = []
    for group, title in {
        "unseen": "Tables from packages, which no choice has seen",
        "held": "Streams that no choice has seen",
        "chosen": "Streams on which members were chosen",
    }.items():
        parts.append(f"### {title}")
        for metric in ("log_loss", "error", "rmse"):
            rows = [
                _line(name, row, metric)
                for name, row in evidence.table(group).items()
                if OURS in row and row[OURS][metric] is not None
            ]
            head = [f"{WORDS[metric]} of", *LIBRARIES]
            rule = ["---", *["--:"] * len(LIBRARIES)]
            parts.append("\n".join([line(head), line(rule), *rows]))
    return "\n\n".join(parts)


def _line(name: str, row: Mapping[str, Mapping[str, Any]], metric: str) -> str:
    found = [best(row, library, metric) for library in LIBRARIES]
    keys = [one.score if one else None for one in found]
    texts = _bold(["" if key is None else number(key) for key in keys], keys)
    methods = [f" ({one.method})" if one and one.method != OURS else "" for one in found]
    return line([name, *(text + method for text, method in zip(texts, methods, strict=True))])


def sections(evidence: Evidence) -> str:
    """All that was measured, section by section."""
    return markdown(evidence.sections.values())


REGIONS: dict[str, Callable[[Evidence], str]] = {
    "beside": beside,
    "one-row": one_row,
    "scores": scores,
    "sections": sections,
}
"""What is written into README and RESULTS.md, by the name of the region."""
