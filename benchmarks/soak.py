"""A soak of every family in single against double precision, on data that hurt.

    python benchmarks/soak.py                     # 10^6 rows of every case; about an hour on one core
    python benchmarks/soak.py --rows 1e5 --only low-rank

A case is a learner and a stream of `soak_cases.py`. The learner goes through the same rows, rounded to single
precision, in both precisions, and forecasts each before it learns it, as `credo.evaluate` does. Reported are
the rows that were refused although they were whole, the largest difference of a forecast (in its standard
deviations, or in probability) and of a log density (relative to 1 + its size), the number of rows on which
the log densities are apart and the first of them, and the smallest variance or eigenvalue, relative to the
largest. A case fails by the limits below; the
exit status is then 1. A failure is excused only where `soak_cases.KNOWN` names it and says why; the excuses
that were needed are printed at the end.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from soak_cases import Case, cases, known, streams

import credo
from credo.core.trees import all_finite
from credo.streams.scoring import score_chunk

CHUNK = 50_000

APART = 0.1
"""Log densities are apart where they differ by more than this, relative to 1 + their size."""

LIMITS = {"refused": 2e-3, "apart": 1e-3, "nlpd": 0.02, "eigenvalue": -1e-4}
"""What a case may have: the share of whole rows that are refused in either precision; the share of rows
whose log densities are apart; the difference of the mean NLPD, relative to 1 + its size; and the smallest
eigenvalue relative to the largest. All beliefs and all densities of learned rows must be finite. One row in a
thousand is an outlier, which a learner may refuse: the rate of a Poisson with an input of 10^6 overflows."""


@dataclass(frozen=True)
class Outcome:
    """What happened in a case; the fields are those of the table."""

    learner: str
    stream: str
    rows: int
    refused: tuple[int, int]
    finite: bool
    forecast: float
    density: float
    apart: int
    first: int
    nlpd: tuple[float, float]
    eigenvalue: float
    seconds: float
    failures: list[str]
    excused: list[str]
    reason: str


def in_precision(tree: Any, dtype: Any) -> Any:
    """The same tree with its floating-point arrays in another precision."""

    def cast(leaf: Any) -> Any:
        floating = hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jnp.floating)
        if floating:
            return leaf.astype(dtype)
        return leaf

    return _with_layout(jax.tree.map(cast, tree), str(np.dtype(dtype)))


def _with_layout(belief: Any, dtype: str) -> Any:
    """A belief whose parameters are laid out in another precision, at every depth."""
    if not dataclasses.is_dataclass(belief) or isinstance(belief, type):
        return belief
    changes: dict[str, Any] = {}
    for field in dataclasses.fields(belief):
        value = getattr(belief, field.name)
        if field.name == "unravel":
            changes[field.name] = credo.replace(value, dtypes=(dtype,) * len(value.dtypes))
        elif dataclasses.is_dataclass(value):
            changes[field.name] = _with_layout(value, dtype)
    if changes:
        return credo.replace(belief, **changes)
    return belief


def smallest(belief: Any) -> float:
    """The smallest eigenvalue or variance of a belief, relative to the largest."""
    cov = getattr(belief, "cov", None)
    if cov is not None:
        matrix = np.asarray(cov.dense(), np.float64)
        if not np.isfinite(matrix).all():
            return float("nan")
        values = np.linalg.eigvalsh(matrix)
        return float(values[0] / max(values[-1], np.finfo(float).tiny))
    var = getattr(belief, "var", None)
    if var is None:
        return 1.0
    return float(np.min(np.asarray(var)) / max(float(np.max(np.asarray(var))), 1e-300))


Scores = dict[str, np.ndarray]
"""By row: log density, centre and spread of the forecast, whether the row was taken in."""


def go(case: Case, x: np.ndarray, y: np.ndarray, dtype: Any) -> tuple[Scores, float, bool]:
    """The scores of a learner on a stream, its smallest eigenvalue, and whether its beliefs stayed finite."""
    belief = in_precision(case.belief, dtype)
    parts = []
    least = np.inf
    finite = True
    for first in range(0, len(x), CHUNK):
        part = slice(first, first + CHUNK)
        ys = y[part] if y.dtype.kind == "i" else y[part].astype(dtype)
        xs = x[part].astype(dtype) if case.inputs else None
        belief, scores, info = score_chunk(case.learner, belief, xs, ys)
        centre: Any = scores.mean if scores.probs is None else scores.probs
        spread: Any = scores.sd if scores.probs is None else jnp.ones_like(centre)
        arrays = (scores.log_prob, centre.reshape(len(ys), -1), spread.reshape(len(ys), -1), info.ok)
        parts.append([np.asarray(array) for array in arrays])
        least = min(least, smallest(belief))
        finite = finite and bool(all_finite(jax.tree.map(_finite_part, belief)))
    names = ("density", "centre", "spread", "ok")
    return dict(zip(names, map(np.concatenate, zip(*parts, strict=True)), strict=True)), least, finite


def _finite_part(leaf: Any) -> Any:
    """A leaf, in which the log weights of empty slots count as finite."""
    if jnp.issubdtype(leaf.dtype, jnp.floating):
        return jnp.where(jnp.isneginf(leaf), 0, leaf)
    return leaf


def compare(case: Case, stream: str, x: np.ndarray, y: np.ndarray) -> Outcome:
    """One case in both precisions, with its verdict."""
    start = time.perf_counter()
    single, least, sound = go(case, x, y, np.float32)
    double, true_least, sound_too = go(case, x, y, np.float64)
    whole = y >= 0 if y.dtype.kind == "i" else ~np.isnan(y)
    if case.inputs:
        whole = whole & ~np.isnan(x).any(axis=1)
    refused = tuple(int((whole & ~scores["ok"]).sum()) for scores in (single, double))
    both = whole & single["ok"] & double["ok"]
    left, right = (scores["density"][both].astype(float) for scores in (single, double))
    gap = np.abs(left - right) / (1.0 + np.abs(right))
    with np.errstate(all="ignore"):
        near = single["centre"][both]
        far = double["centre"][both]
        moved = np.where(near == far, 0.0, np.abs(near - far) / double["spread"][both])
    apart = np.flatnonzero(~(gap <= APART))
    nlpd = (-float(left.mean()), -float(right.mean())) if both.any() else (np.nan, np.nan)
    finite = sound and sound_too and bool(np.isfinite(left).all() and np.isfinite(right).all())
    failures = [] if finite else ["not finite"]
    failures += ["refused"] if max(refused) > LIMITS["refused"] * len(x) else []
    failures += ["eigenvalue"] if not least >= LIMITS["eigenvalue"] else []
    if not case.parting:
        failures += ["apart"] if len(apart) > LIMITS["apart"] * len(x) else []
        failures += ["nlpd"] if not abs(nlpd[0] - nlpd[1]) <= LIMITS["nlpd"] * (1 + abs(nlpd[1])) else []
    entry = known(case.name, stream, true_least)
    excused = [failure for failure in failures if entry and failure in entry.failures]
    reason = entry.reason if entry and (excused or entry.always) else ""
    return Outcome(
        case.name,
        stream,
        len(x),
        (refused[0], refused[1]),
        finite,
        float(np.max(moved, initial=0.0)),
        float(np.max(gap, initial=0.0)),
        len(apart),
        int(np.flatnonzero(both)[apart[0]]) if len(apart) else -1,
        nlpd,
        least,
        round(time.perf_counter() - start, 1),
        [failure for failure in failures if failure not in excused],
        excused,
        reason,
    )


HEADINGS = (
    "learner",
    "stream",
    "refused",
    "forecast",
    "density",
    "apart",
    "first",
    "NLPD",
    "eigenvalue",
    "verdict",
)


def line(outcome: Outcome) -> str:
    """A line of the table."""
    words = (
        f"{outcome.refused[0]}/{outcome.refused[1]}",
        f"{outcome.forecast:.1e}",
        f"{outcome.density:.1e}",
        str(outcome.apart),
        str(outcome.first) if outcome.first >= 0 else "",
        f"{outcome.nlpd[0]:.4g}/{outcome.nlpd[1]:.4g}",
        f"{outcome.eigenvalue:.1e}",
        _verdict(outcome),
    )
    return _row(outcome.learner, outcome.stream, *words)


def _verdict(outcome: Outcome) -> str:
    """What failed; else what was excused, or that all is well."""
    if outcome.failures or not outcome.reason:
        return ", ".join([*outcome.failures, *outcome.excused]) or "ok"
    return f"known: {', '.join(outcome.excused) or 'sooner or later'}"


def _row(learner: str, stream: str, *words: str) -> str:
    widths = (12, 9, 9, 9, 9, 24, 11)
    numbers = "".join(f"{word:>{width}}" for word, width in zip(words, widths, strict=False))
    return f"{learner:26} {stream:10} {numbers}  {words[-1]}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cases and print the table; 1 where one fails."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rows", type=float, default=1e6, help="rows of every case")
    parser.add_argument("--only", default="", help="only the cases whose name has this in it")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the data")
    parser.add_argument("--json", type=Path, help="write the outcomes to this file, too")
    options = parser.parse_args(arguments)
    jax.config.update("jax_enable_x64", True)
    print(_row(*HEADINGS), flush=True)
    outcomes = []
    for case in cases():
        if options.only not in case.name:
            continue
        for stream, x, y in streams(case.task, int(options.rows), options.seed):
            outcomes.append(compare(case, stream, x, y))
            print(line(outcomes[-1]), flush=True)
        jax.clear_caches()
    failed = [outcome for outcome in outcomes if outcome.failures]
    print(f"\n{len(outcomes)} cases, of which {len(failed)} failed; limits: {LIMITS}, apart from {APART}")
    for reason in dict.fromkeys(outcome.reason for outcome in outcomes if outcome.reason):
        names = [f"{one.learner} ({one.stream})" for one in outcomes if one.reason == reason]
        print(f"known: {'; '.join(names)}: {reason}.")
    if options.json:
        options.json.write_text(json.dumps([asdict(outcome) for outcome in outcomes], indent=1) + "\n")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
