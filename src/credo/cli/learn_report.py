"""The report of `credo learn`: scores, sentences, tables and plots, each said once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from credo.cli.flags import in_flags
from credo.cli.report import (
    BLUE,
    GREY,
    ORANGE,
    SKY,
    Line,
    Picture,
    Report,
    Section,
    Table,
    calibration_chart,
    draw_reliability,
)
from credo.metrics.calibration import coverage_of, ece_of
from credo.plots import (
    COMPACT_PALETTE,
    RAMPS,
    Chart,
    Legend,
    Mark,
    Pen,
    Times,
    shade,
    shortened,
    stepped,
)
from credo.sessions import ChangeTally, SeriesEncoding, Tally
from credo.sessions.bank_summary import AnyMember, BankSummary, Effect, walk_of
from credo.sessions.run_summary import (
    MEANING,
    Ahead,
    ImportanceSummary,
    OfClass,
    Results,
    RowCounts,
    Summary,
    number,
    summarize_run,
)
from credo.sessions.tally import ColumnName

__all__ = ["bank_sections", "draw_weights", "legend_entries", "report_of", "select_classes"]


def report_of(results: Results) -> Report:
    """The report of a run."""
    data = summarize_run(results)
    verdict = data["verdict"] = in_flags(data["verdict"])
    headline = f"{results.rows:,} rows in {results.seconds:.1f} s ({results.rows_per_second:,.0f} rows/s)"
    if "this_run" in data:
        headline += f", after {data['rows']['learned'] - results.rows:,} rows of earlier runs"
    return Report(
        title=results.source,
        subject=f"{data['task'].capitalize()} of {data['target']!r}",
        headline=headline,
        verdict=f"{verdict[0].upper()}{verdict[1:]}.",
        remarks=list(_remarks(results, data)),
        sections=list(_sections(results, data)),
        notes=data["notes"],
        settings=data["settings"],
        command="credo learn",
        data=data,
        draw=lambda: _pictures(results, data),
        file="metrics.json",
    )


def _remarks(results: Results, data: Summary) -> Iterator[str]:
    """The sentences below the verdict."""
    yield from _rarest(data.get("by_class", {}))
    last = data.get("last_value_baseline", {})
    if results.session.tally.scored and "the last value" not in data["verdict"]:
        for word, value in last.items():
            yield f"For information: repeating the last value has {word} {number(value)}."
    if "bank" in data:
        yield from data["bank"]["short"]
    if "changes" in data:
        yield from data["changes"]["sentences"]
    if results.importance is not None:
        yield _what_matters(results.importance)
    if results.ahead is not None:
        yield _against_naive(results.ahead)


def _sections(results: Results, data: Summary) -> Iterator[Section]:
    """The parts of the report, that of the scores first."""
    yield _scores(data)
    if "by_class" in data:
        yield _classes(data["by_class"])
    if results.ahead is not None:
        yield from _steps_ahead(results.ahead)
    if results.importance is not None:
        yield _columns_that_matter(results.importance)
    if "bank" in data:
        yield from bank_sections(data["bank"])
    yield Section("Rows", list(_row_sentences(data["rows"])))


def _pictures(results: Results, data: Summary) -> dict[str, Picture]:
    """All plots that apply, by file name without suffix."""
    session = results.session
    changes = session.changes
    times = session.tally.timeline()
    pictures: dict[str, Picture] = {}
    if results.ahead is not None and isinstance(session.encoding, SeriesEncoding):
        pictures |= _draw_steps_ahead(results.ahead, session.encoding)
    pictures |= _draw_scores(results)
    if "by_class" in data:
        pictures["classes"] = _draw_classes(session.tally, session.encoding.classes)
    if results.importance is not None:
        pictures["importance"] = _draw_importance(results.importance)
    if "bank" in data and changes is not None:
        pictures["weights"] = draw_weights(changes, session.members, times)
        if _has_effects(data["bank"]):
            pictures["effects"] = _draw_effects(data["bank"])
    elif changes is not None and changes.rows:
        mixed = changes.kind == "mixture"
        pictures["drift"] = draw_weights(changes, (), times) if mixed else _draw_run_lengths(changes, times)
    return pictures


def _scores(data: Summary) -> Section:
    """The table of scores; a cell is blank if there is nothing."""
    columns: dict[str, Any] = {}
    learned = "credo"
    if "this_run" in data:
        run = data["this_run"]
        columns[f"credo, this run ({run['rows']:,})"] = run["metrics"]
        learned = f"credo, all rows ({data['rows']['scored']:,})"
    columns[learned] = data["metrics"]
    columns[str(data["baseline"]["name"])] = data["baseline"]
    if "test" in data:
        columns[f"held out ({data['test']['rows']:,})"] = data["test"]["metrics"]
    lines = []
    for name, meaning in MEANING.items():
        if name in data["metrics"]:
            cells = (number(column[name]) if name in column else "" for column in columns.values())
            lines.append(Line(name, tuple(cells), meaning))
    sentence = "Every row was predicted before it was learned from: these numbers are about unseen rows."
    return Section("Scores", [sentence], Table(("metric", *columns), lines), main=True)


def _row_sentences(rows: RowCounts) -> Iterator[str]:
    """Sentences about the rows."""
    yield f"{rows['read']:,} read, {rows['learned']:,} learned from, {rows['scored']:,} scored"
    yield from rows["bad"]
    if rows["refused"]:
        yield f"{rows['refused']:,} rows would have made the belief infinite and were left out"
    if rows["restarts"]:
        at = ", ".join(f"{row:,}" for row in rows["restarts"][:5])
        yield f"the belief began again from the prior {len(rows['restarts']):,} times, first after rows {at}"
    for cells, words in (
        (rows["missing_cells"], "missing or infinite cells"),
        (rows["unseen_categories"], "cells of an unseen category"),
    ):
        if cells:
            counts = ", ".join(f"{column} {count:,}" for column, count in cells.items())
            yield f"{words}: {counts}"


LONGEST = 36
"""The longest name of a target that fits beside an axis."""

DASHED = "5 3"
DOTTED = "1.5 2.5"


def _draw_scores(results: Results) -> dict[str, Picture]:
    tally = results.session.tally
    ordered = results.ordered
    uncertain = results.session.uncertain
    target = shortened(results.session.encoding.target, LONGEST)
    numbers = not tally.kind.classed
    pictures: dict[str, Picture] = {}
    if tally.scored:
        window = int(max(20, min(1000, tally.scored // 10)))
        label = f"RMSE ({target})" if numbers else "error (share of wrong classes)"
        last: ColumnName | None = "last_loss" if ordered else None
        pictures["rmse" if numbers else "error"] = Picture(
            _curves(results, "loss", "base_loss", label, window, last),
            "Each row is predicted before it is learned from. "
            + (f"Thin: over the latest {window:,} rows; t" if tally.scored > window else "T")
            + "hick: over all rows so far; dashed: the baseline on the same rows.",
        )
        pictures["nlpd"] = Picture(
            _curves(results, "nlpd", "base_nlpd", "NLPD (nats a row)", window, None),
            "The negative log predictive density, which judges the whole forecast and not only its "
            "centre; lower is better.",
        )
        pictures["reliability"] = _draw_coverage(tally) if numbers else _draw_classes_together(tally)
        if tally.pits[1].any():
            pictures["pit"] = _draw_pits(tally)
    if numbers and len(tally.recent):
        pictures["bands"] = Picture(
            _bands(tally, target, ordered),
            f"The latest {len(tally.recent)} rows{'' if ordered else ', sorted by prediction'}: targets, "
            "and the predicted mean with bands of one and two standard deviations.",
        )
    if len(tally.trace) > 1 and np.isfinite(tally.trace[:, 1]).any():
        pictures["parameters"] = Picture(
            _trace(tally, uncertain),
            "How the weights settle: the norm of their mean"
            + (", and the mean posterior standard deviation of one." if uncertain else "."),
        )
    return pictures


def _curves(
    results: Results, ours: ColumnName, base: ColumnName, label: str, window: int, last: ColumnName | None
) -> bytes:
    tally = results.session.tally
    chart = Chart(label="rows")
    panel = chart.panels[0]
    panel.label = label
    rows, recent = tally.curve(ours, window)
    _, overall = tally.curve(ours)
    _, floor = tally.curve(base)
    if tally.scored > window:
        panel.line(rows, recent, Pen(SKY, 0.9), name=f"credo, latest {window:,} rows")
    panel.line(rows, overall, Pen(BLUE, 2.2), name="credo, all rows so far")
    panel.line(rows, floor, Pen(ORANGE, dash=DASHED), name=results.baseline_name)
    curves = [recent, overall, floor]
    if last is not None:
        curves.append(tally.curve(last)[1])
        panel.line(rows, curves[-1], Pen(GREY, dash=DOTTED), name="the last value again")
    _limit(chart, curves, rows, bottom=0.0 if ours == "loss" else None)
    chart.count_rows(tally.timeline())
    panel.legend = Legend(columns=4 if last is None else 2)
    return chart.svg()


def _limit(chart: Chart, curves: list[np.ndarray], rows: np.ndarray, bottom: float | None) -> None:
    """Limits that the first few rows, whose means jump about, do not set."""
    skip = int(np.searchsorted(rows, max(min(10.0, 0.1 * rows[-1]), 0.02 * rows[-1])))
    values = np.concatenate([curve[skip:] if skip < len(curve) else curve[-1:] for curve in curves])
    values = values[np.isfinite(values)]
    if not values.size:
        return
    low = float(values.min()) if bottom is None else bottom
    high = float(np.quantile(values, 0.995))
    margin = 0.06 * max(high - low, 1e-9)
    chart.panels[0].low = low if bottom is not None else low - margin
    chart.panels[0].high = high + 2 * margin
    chart.low = 0.0
    chart.high = float(rows[-1])


def _draw_classes_together(tally: Tally) -> Picture:
    chart = calibration_chart("share that was right", "probability of the predicted class")
    if tally.unscaled.any():
        some, sure, right = tally.unscaled[tally.unscaled[:, 0] > 0].T
        _draw_unscaled(chart, sure / some, right / some)
    draw_reliability(chart, tally.bins, "credo")
    return Picture(
        chart.svg(),
        "Reliability: of the rows predicted with a probability, how many were right; on the diagonal, "
        "probabilities mean what they say. Larger dots stand for more rows."
        + _unscaled(tally, "calibration error", ece_of),
    )


def _draw_unscaled(chart: Chart, claimed: np.ndarray, came: np.ndarray) -> None:
    """Draw what the members' own forecasts would have come to."""
    panel = chart.panels[0]
    panel.line(claimed, came, Pen(ORANGE, 1.0), name="before scaling")
    panel.dots(claimed, came, ORANGE, size=3.5, shape="square")


def _draw_coverage(tally: Tally) -> Picture:
    count = tally.bins[:, 0]
    bins = len(count)
    levels = np.arange(bins + 1) / bins

    def inside(counts: np.ndarray) -> np.ndarray:
        return np.append(0.0, np.cumsum(counts) / counts.sum())

    chart = calibration_chart("share of rows inside", "probability of the central interval")
    if tally.unscaled.any():
        _draw_unscaled(chart, levels, inside(tally.unscaled[:, 0]))
    panel, below = chart.panels
    panel.line(levels, inside(count), Pen(BLUE), name="credo")
    panel.dots(levels, inside(count), BLUE, size=4.0)
    below.bars(levels[1:] - 0.5 / bins, count, 0.9 / bins, SKY)
    below.across(float(count.mean()), Pen(GREY, 1.0, DASHED))
    return Picture(
        chart.svg(),
        "Coverage: what share of the targets lay inside the central interval of each probability. "
        "Below the diagonal the forecasts are over-confident, above it under-confident; the bars below are "
        "flat if they are calibrated." + _unscaled(tally, "coverage of the 90% interval", coverage_of),
    )


def _unscaled(tally: Tally, name: str, measure: Callable[[np.ndarray], float]) -> str:
    """A sentence about a bank's forecasts before they were scaled; empty if there are none."""
    if not tally.unscaled.any():
        return ""
    return (
        " Orange: the forecasts of the members as they compute them, before their widths are weighted; "
        f"{name} {measure(tally.unscaled):.3f} before, {measure(tally.bins):.3f} after."
    )


def _draw_pits(tally: Tally) -> Picture:
    edges = np.linspace(0.0, 1.0, tally.pits.shape[1] + 1)
    shares = tally.pits / np.maximum(tally.pits.sum(axis=1, keepdims=True), 1.0)
    level = 1.0 / tally.pits.shape[1]
    chart = Chart(size=(389.0, 259.0), label="P(Y ≤ observed)", low=0.0, high=1.0)
    panel = chart.panels[0]
    panel.label = "share of rows"
    panel.low = 0.0
    panel.high = max(1.15 * float(shares.max()), 2 * level)
    panel.band(*_filled(edges, shares[0]), SKY, name="credo")
    panel.line(*stepped(edges, shares[1]), Pen(ORANGE, 1.6), name="before scaling")
    panel.across(level, Pen(GREY, 1.2, DASHED), name="calibrated")
    panel.legend = Legend(columns=3)
    return Picture(
        chart.svg(),
        "The probability integral transform: the forecast probability of a value up to the observed one. "
        "It is flat if forecasts are calibrated, U-shaped if they are too narrow, a hill if they are too "
        "wide, and tilted if they are biased. Before scaling it is that of a normal distribution with their "
        "mean and standard deviation.",
    )


def _bands(tally: Tally, target: str, ordered: bool) -> bytes:
    rows, y, mean, sd = tally.recent.T
    if not ordered:
        order = np.argsort(mean, kind="stable")
        rows = np.arange(1.0, len(y) + 1)
        y = y[order]
        mean = mean[order]
        sd = sd[order]
    chart = Chart(label="scored row" if ordered else "rows, sorted by predicted mean")
    chart.low = float(rows[0])
    chart.high = float(max(rows[-1], rows[0] + 1))
    panel = chart.panels[0]
    panel.label = target
    for width, opacity in ((2, 0.25), (1, 0.45)):
        low = mean - width * sd
        high = mean + width * sd
        low = np.maximum(low, 0.0) if tally.kind.whole else low  # no count lies below
        panel.band(rows, low, high, SKY, opacity=opacity, name=f"± {width} sd")
    panel.line(rows, mean, Pen(BLUE, 1.3), name="predicted mean")
    panel.dots(rows, y, ORANGE, size=2.6, name="observed")
    panel.legend = Legend(columns=4)
    chart.count_rows(tally.timeline() if ordered else None)
    return chart.svg()


def _trace(tally: Tally, uncertain: bool) -> bytes:
    rows, norm, sd = tally.trace.T
    chart = Chart((1, 1) if uncertain else (1,), label="rows")
    chart.panels[0].label = "norm of the mean"
    chart.panels[0].line(rows, norm, Pen(BLUE))
    if uncertain:
        chart.panels[1].label = "mean sd"
        chart.panels[1].line(rows, sd, Pen(ORANGE))
    chart.count_rows(tally.timeline())
    return chart.svg()


SHOWN_CLASSES = 40
RARE = 0.1
"""The most classes in the table of classes, and the share of rows below which a class is rare (among many
classes, half of an equal share)."""


def _classes(classes: Mapping[str, OfClass]) -> Section:
    """The classes by falling numbers of rows; of many classes, the most frequent and rarest."""
    rows = np.array([scores["rows"] for scores in classes.values()])
    names = list(classes)
    lines = []
    for c in select_classes(rows, SHOWN_CLASSES):
        scores = classes[names[c]]
        cells = (
            f"{rows[c]:,}",
            f"{rows[c] / rows.sum():.2%}",
            f"{number(scores['auc'])} ± {scores['auc_error']:.1g}",
            number(scores["average_precision"]),
            number(scores["log_loss"]),
            number(scores["ece"]),
        )
        lines.append(Line(names[c], cells))
    heads = ("class", "rows", "share", "AUC", "average precision", "log loss (nats)", "calibration error")
    sentence = (
        "Each class against all others. By chance the AUC is 0.5, and the average precision is the share of "
        "the class; the log loss is the NLPD of the rows of the class. AUC and average precision are "
        "computed from bins of the probability; ± is the most by which the AUC can be wrong."
    )
    return Section("Classes", [sentence], Table(heads, lines))


def _rarest(classes: Mapping[str, OfClass]) -> Iterator[str]:
    """A sentence on the rarest class, if it is rare."""
    present = {name: scores for name, scores in classes.items() if scores["rows"]}
    if len(present) < 2:
        return
    name = min(present, key=lambda one: present[one]["rows"])
    scores = present[name]
    share = scores["rows"] / sum(one["rows"] for one in present.values())
    if share >= min(RARE, 0.5 / len(present)):
        return
    rows = "row" if scores["rows"] == 1 else "rows"
    yield (
        f"The rarest class, {name!r} ({scores['rows']:,} {rows}, {share:.2%}), has AUC {scores['auc']:.3f}, "
        f"average precision {scores['average_precision']:.3f} and log loss {scores['log_loss']:.3f}; "
        "the report has those of every class."
    )


COLOURS = ("blue", "orange", "green", "pink", "sky", "amber")

LEAST = 3
"""The fewest rows of a point: fewer say nothing about a share."""


def select_classes(rows: np.ndarray, most: int = len(COLOURS)) -> list[int]:
    """The classes to show, by falling numbers of rows: all, or the most frequent and the rarest in halves."""
    order = [int(c) for c in np.argsort(-rows, kind="stable") if rows[c] > 0]
    if len(order) <= most:
        return order
    return order[: most - most // 2] + order[-(most // 2) :]


def _draw_classes(tally: Tally, names: Sequence[str]) -> Picture:
    tables = tally.by_class.bins
    rows = tally.by_class.scores().rows
    shown = select_classes(rows)
    chart = Chart(size=(518.0, 317.0), label="probability of the class", low=-0.02, high=1.02)
    panel = chart.panels[0]
    panel.label = "share of rows of the class"
    panel.low = -0.03
    panel.high = 1.05
    panel.line([0, 1], [0, 1], Pen(GREY, 1.2, DASHED))
    for c, name in zip(shown, COLOURS, strict=False):
        count, predicted, observed = tables[c][tables[c][:, 0] >= LEAST].T
        colour = COMPACT_PALETTE[name]
        panel.line(
            predicted / count,
            observed / count,
            Pen(colour, 1.3),
            name=f"{shortened(names[c], 24)} ({rows[c]:,})",
        )
        panel.dots(predicted / count, observed / count, colour, size=4.0)
    panel.legend = Legend("right", title="class (rows)")
    some = "" if len(shown) == len(names) else " The most frequent and the rarest classes are shown."
    return Picture(
        chart.svg(),
        "Reliability of each class: of the rows that gave a class some probability, whether or not it was "
        f"the largest, how many were of that class; on the diagonal, probabilities mean what they say.{some}",
    )


SHOWN_STEPS = 8

_NAMES = {"credo": "credo", "naive": "naive", "seasonal_naive": "seasonal naive"}


def _shown_steps(horizon: int) -> list[int]:
    """Some steps up to the horizon, the first and the last among them."""
    if horizon <= SHOWN_STEPS:
        return list(range(1, horizon + 1))
    return sorted({round(step) for step in np.geomspace(1, horizon, SHOWN_STEPS).tolist()})


def _steps_ahead(ahead: Ahead) -> Iterator[Section]:
    """The scores of the forecasts at some steps, and the forecast after the last row."""
    scores = ahead.scores
    steps = _shown_steps(len(scores["horizon"]))

    def by_step(heads: Iterable[str], columns: Iterable[Sequence[float]]) -> Table:
        chosen = ([f"{column[step - 1]:.4g}" for step in steps] for column in columns)
        lines = [Line(str(step), cells) for step, cells in zip(steps, zip(*chosen, strict=True), strict=True)]
        return Table(("step", *heads), lines)

    if scores["origins"]:
        names = [_NAMES[name] for name in scores["crps"]]
        crps = by_step([*names, "inside 90%"], [*scores["crps"].values(), scores["coverage_90"]])
        yield Section(
            "CRPS by step ahead, in units of the target (lower is better)",
            [
                "For a forecast without spread the CRPS is the absolute error. The naive forecast is the "
                "last value, the seasonal one the value a season before; both are as wide as such forecasts "
                "were wrong so far. Forecasts were made before the rows were learned from."
            ],
            crps,
            main=True,
        )
        words = "The negative log predictive density at the same rows; lower is better."
        yield Section("NLPD by step ahead", [words], by_step(names, scores["nlpd"].values()))
    forecast = ahead.forecast
    columns = np.column_stack([forecast.mean, forecast.quantile((0.05, 0.5, 0.95))]).tolist()
    lines = [Line(str(step), (forecast.times[step - 1], *map(number, columns[step - 1]))) for step in steps]
    heads = ("step", "time", "mean", "5%", "median", "95%")
    words = "All of the steps are in forecast.csv."
    yield Section("Forecast after the last row", [words], Table(heads, lines), main=True)


def _against_naive(ahead: Ahead) -> str:
    """A comparison of the forecasts with the naive ones, in words."""
    scores = ahead.scores
    horizon = len(scores["horizon"])
    if not scores["origins"]:
        return "The series is too short for forecasts of the next steps to be scored."
    means = {name: float(np.nanmean(column)) for name, column in scores["crps"].items()}
    ours = means.pop("credo")
    best = min(means, key=lambda name: means[name])
    gap = 1 - ours / means[best] if means[best] else 0.0
    steps = "the next step" if horizon == 1 else f"the next {horizon} steps"
    side = "below" if gap >= 0 else "above"
    season = f" (season of {scores['season']} steps)" if best == "seasonal_naive" else ""
    return (
        f"Over {steps} the CRPS is {ours:.4g} on average, {abs(gap):.0%} {side} the {means[best]:.4g} of the "
        f"{_NAMES[best]} forecast{season}, at {scores['origins']:,} origins."
    )


PAST = 3
"""The number of horizons of the past that are drawn."""

_LINES = {
    "credo": Pen(BLUE),
    "naive": Pen(GREY, dash=DOTTED),
    "seasonal_naive": Pen(ORANGE, dash=DASHED),
}


def _draw_steps_ahead(ahead: Ahead, encoding: SeriesEncoding) -> dict[str, Picture]:
    """The latest targets with the forecast, and the CRPS at each step."""
    first = ahead.forecast.ticks[:1] - 1
    last = encoding.columns.clock.texts(first, encoding.history.offset)[0]
    pictures = {
        "forecast": Picture(
            _fan(ahead, encoding, last),
            f"The latest targets, and the forecast of the steps after {last}: its mean, "
            "and the intervals that hold a target with probability 50% and 90%.",
        )
    }
    if ahead.scores["origins"]:
        pictures["horizons"] = Picture(
            _by_step(ahead),
            "The mean CRPS of forecasts so many steps ahead, in units of the target; lower is better.",
        )
    return pictures


def _fan(ahead: Ahead, encoding: SeriesEncoding, last: str) -> bytes:
    forecast = ahead.forecast
    history = encoding.history
    start = int(forecast.ticks[0]) - 1
    earliest = start - PAST * len(forecast.ticks)
    past = np.arange(max(earliest, int(history.ticks[0])), start + 1)
    steps = forecast.ticks - start
    low, lower, upper, high = forecast.quantile((0.05, 0.25, 0.75, 0.95)).T
    chart = Chart(label=f"steps after {last}")
    panel = chart.panels[0]
    panel.label = shortened(encoding.target, LONGEST)
    panel.band(steps, low, high, SKY, opacity=0.25, name="90%")
    panel.band(steps, lower, upper, SKY, opacity=0.45, name="50%")
    panel.line(steps, forecast.mean, Pen(BLUE, 1.3), name="mean of the forecast")
    panel.line(past - start, history.at(past), Pen(ORANGE, 1.3), name="observed")
    panel.upright([0.5], Pen(GREY, 0.8))
    panel.legend = Legend(columns=4)
    return chart.svg()


def _by_step(ahead: Ahead) -> bytes:
    chart = Chart(label="steps ahead", whole=True)
    panel = chart.panels[0]
    panel.label = "CRPS"
    panel.low = 0.0
    for name, crps in ahead.scores["crps"].items():
        pen = _LINES[name]
        panel.line(ahead.scores["horizon"], crps, pen, name=_NAMES[name])
        panel.dots(ahead.scores["horizon"], crps, pen.color)
    panel.legend = Legend(columns=3)
    return chart.svg()


def _named_rows(names: Sequence[str], label: str) -> Chart:
    """A chart that has a row for each name, from the bottom to the top, and a line at zero."""
    chart = Chart(size=(518.0, 94.0 + 19.5 * max(len(names), 4)), label=label)
    panel = chart.panels[0]
    panel.marks = [Mark(place, shortened(name, 30)) for place, name in enumerate(names)]
    panel.low = -0.7
    panel.high = len(names) - 0.3
    panel.line([0, 0], [panel.low, panel.high], Pen(GREY, 1.0))
    return chart


SHOWN = 20
NAMED = 5
"""The most columns in the picture of their importance, and in the sentence on it."""


def _matters(column: Mapping[str, float]) -> bool:
    return column["nlpd"] > 2 * column["nlpd_se"]


def _what_matters(found: ImportanceSummary) -> str:
    """The columns that matter most."""
    most = [(name, one) for name, one in found["columns"].items() if _matters(one)]
    if not most:
        return (
            "Forecasts do not get clearly worse if the cells of any one column are shuffled over the "
            f"{found['rows']} {found['of']}."
        )
    shown = ", ".join(f"{name} {one['nlpd']:.3g}" for name, one in most[:NAMED])
    rest = len(found["columns"]) - min(len(most), NAMED)
    others = f" (of {len(found['columns'])} columns)" if rest else ""
    return (
        "What matters most, by the rise of the NLPD in nats a row if a column is shuffled over the "
        f"{found['rows']} {found['of']}: {shown}{others}."
    )


def _columns_that_matter(found: ImportanceSummary) -> Section:
    """The table of all columns."""
    loss = "RMSE" if any("rmse" in one for one in found["columns"].values()) else "error"
    lines = [
        Line(name, (f"{one['nlpd']:+.4f}", f"{one['nlpd_se']:.4f}", f"{one[loss.lower()]:+.4g}"))
        for name, one in found["columns"].items()
    ]
    heads = ("column", "rise of NLPD (nats a row)", "standard error", f"rise of {loss}")
    return Section("Importance of the columns", [_importance(found)], Table(heads, lines))


def _importance(found: ImportanceSummary) -> str:
    """An explanation of the importance of a column."""
    return (
        f"How much worse forecasts get if the cells of a column are shuffled over the {found['rows']} "
        f"{found['of']}. Columns that say the same share what they say, so that each can look unimportant."
    )


def _draw_importance(found: ImportanceSummary) -> Picture:
    """The columns that matter most, with bars of two standard errors to each side."""
    names = list(found["columns"])[:SHOWN][::-1]
    columns = [found["columns"][name] for name in names]
    rise = np.array([one["nlpd"] for one in columns])
    error = np.array([one["nlpd_se"] for one in columns])
    chart = _named_rows(names, "rise of the NLPD if the column is shuffled (nats a row)")
    panel = chart.panels[0]
    for place, column in enumerate(columns):
        panel.lying_bar(place, column["nlpd"], 0.6, BLUE if _matters(column) else GREY)
    panel.whiskers(rise, np.arange(len(names)), 2 * error, Pen("#000000", 1.2), upright=False)
    return Picture(
        chart.svg(),
        f"{_importance(found)} Lines are two standard errors to each side; grey is no clear difference.",
    )


SMALL = 0.01
"""The weight from which on linear members have a part in the forecasts that is worth a look."""


def _shown(effect: Effect) -> str:
    """The name of an effect: the feature, and the class if there are several."""
    if "output" in effect:
        return f"{effect['feature']} → {effect['output']}"
    return effect["feature"]


def _trust(bank: BankSummary) -> str:
    """Sentences about the weight of the linear members, and the worth of their effects."""
    weight = bank["linear_weight"]
    mean = bank["linear_mean_weight"]
    sentence = f"Linear members have {weight:.1%} of the weight now and had {mean:.1%} over all rows. "
    if weight < SMALL:
        return (
            sentence + "The effects of single columns by them would say almost nothing about the forecasts; "
            "the importance of the columns, from held-out rows or --importance, does."
        )
    return sentence + "Effects are mixed over them by their weights."


def _has_effects(bank: BankSummary) -> bool:
    """Whether effects by the linear members say something about the forecasts."""
    return bool(bank["effects"]) and bank["linear_weight"] >= SMALL


def _shares(weights: Mapping[str, float]) -> str:
    return ", ".join(f"{name}: {share:.0%}" for name, share in weights.items())


def bank_sections(bank: BankSummary) -> Iterator[Section]:
    """The members of a bank, and the effects of the columns if they say something."""
    yield _members(bank)
    if _has_effects(bank):
        yield _effects(bank)


def _members(bank: BankSummary) -> Section:
    """The members of a bank by falling weight."""
    members = sorted(bank["members"], key=lambda one: -max(one["weight"], one["mean_weight"]))
    failed = any(one["failures"] for one in members)
    lines = []
    for one in members:
        failures = [f"{one['failures']:,}"] * failed
        lines.append(Line(one["name"], (f"{one['weight']:.1%}", f"{one['mean_weight']:.1%}", *failures)))
    walks = {"none" if walk == "0" else walk: share for walk, share in bank["walks"].items()}
    factors = f"of the factors of the logits: {_shares(bank['sharpness'])}; " if bank["sharpness"] else ""
    sentences = [
        *bank["sentences"],
        *([_trust(bank)] if bank["effects"] and not _has_effects(bank) else []),
        "A weight is the probability that the member predicts best. Of a member, walk is the variance that "
        "each of its parameters gains at a row, prior the scale of their variances before any row, clip the "
        "largest size of a standardised number that it sees (3 unless its name says otherwise), and noise "
        "the factor by which what it knows of the noise fades at a row.",
        f"Weights of the walks, over the latest {bank['walks_over_rows']:,} rows: {_shares(walks)}. "
        f"Weights now of the scales of the computed variance: {_shares(bank['scales'])}; {factors}"
        f"of the chance that another member takes over before a row: {_shares(bank['switching'])}.",
    ]
    heads = ("member", "weight now", "mean weight", *(["failures"] * failed))
    return Section("Members", sentences, Table(heads, lines))


def _effects(bank: BankSummary) -> Section:
    """The largest effects by the linear members."""
    meaning = (
        f"An effect is the change of {bank['effects_of']} if a column rises by one standard deviation, "
        "or if a category is present, and all other columns stay the same."
    )
    lines = [
        Line(_shown(effect), (f"{effect['mean']:+.3g}", f"{effect['sd']:.2g}")) for effect in bank["effects"]
    ]
    heads = ("feature", "effect", "standard deviation")
    return Section("Effects of the columns", [meaning, _trust(bank)], Table(heads, lines))


def _draw_effects(bank: BankSummary) -> Picture:
    """The largest effects, with bars of two standard deviations to each side."""
    effects = bank["effects"][::-1]
    mean = np.array([effect["mean"] for effect in effects])
    sd = np.array([effect["sd"] for effect in effects])
    places = np.arange(len(effects))
    sure = np.abs(mean) > 2 * sd
    label = f"effect on {shortened(bank['effects_of'], 60)}"
    chart = _named_rows([_shown(effect) for effect in effects], label)
    for which, colour in ((sure, BLUE), (~sure, GREY)):
        chart.panels[0].whiskers(mean[which], places[which], 2 * sd[which], Pen(colour, 1.6), upright=False)
        chart.panels[0].dots(mean[which], places[which], colour, size=5.0)
    return Picture(
        chart.svg(),
        f"Effects by the linear members, which have {bank['linear_weight']:.0%} of the weight, plus and "
        "minus two standard deviations; in grey if that includes zero.",
    )


EXPERTS = ("sky", "blue", "orange", "green", "grey")
"""The colours of the experts of a mixture."""

MOST_NAMED = 8
OFTEN = 0.015
ONCE = 0.3
"""The most members that the legend names; a named one has this mean weight, or this weight in some block."""

MARKED = 60
"""The most reported changes that are marked by a line."""


def draw_weights(changes: ChangeTally, members: Sequence[AnyMember], times: Times = None) -> Picture:
    """The weight of each member of a bank, or without members of each expert, one above the other."""
    share = changes.grid / np.maximum(changes.counts, 1)[:, None]
    edges = _edges(changes)
    names = changes.experts
    word = "member" if members else "expert"
    if members:
        named, others = legend_entries(changes, members)
        colours = _colours(members, named)
    else:
        named = list(range(len(names)))
        others = 0
        colours = {k: COMPACT_PALETTE[EXPERTS[k % len(EXPERTS)]] for k in named}
    rest = 1.0 - share[:, named].sum(axis=1)
    chart = Chart(size=(518.0, 389.0), label="rows", low=float(edges[0]), high=float(edges[-1]))
    panel = chart.panels[0]
    panel.label = f"weight of each {word}"
    panel.low = 0.0
    panel.high = 1.0
    panel.grid = False
    floor = np.zeros(len(share))
    for k in named:
        top = floor + share[:, k]
        panel.band(*_filled(edges, top, floor), colours[k], name=names[k])
        floor = top
    if rest.max() > 1e-3:
        name = f"the {others} others" if others > 1 else "the other one"
        panel.band(*_filled(edges, np.ones(len(share)), floor), "#dddddd", name=name)
    panel.upright(changes.alarms[:MARKED, 0], Pen("#000000", 0.8, opacity=0.6))
    panel.legend = Legend("below", columns=2, backwards=True)
    chart.count_rows(times)
    hues = " One hue a kind" if members else ""
    darker = ", darker for members whose weights walk faster" if any(map(walk_of, members)) else ""
    lines = "; lines are reported changes" if changes.reported else ""
    return Picture(
        chart.svg(),
        f"{word.capitalize()}s: how much each is believed after each row.{hues}{darker}{lines}"
        + _blocks(changes, "the mean of each block"),
    )


def _filled(
    edges: np.ndarray, top: np.ndarray, floor: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The corners between two curves that are constant between edges: places, lower and upper ends."""
    x, high = stepped(edges, top)
    _, low = stepped(edges, np.zeros_like(top) if floor is None else floor)
    return x, low, high


def legend_entries(changes: ChangeTally, members: Sequence[AnyMember]) -> tuple[list[int], int]:
    """The members that the legend names, in the order of drawing, and how many others there are."""
    mean = changes.grid.sum(axis=0) / max(changes.rows, 1)
    most = (changes.grid / np.maximum(changes.counts, 1)[:, None]).max(axis=0)
    ranked = [k for k in np.argsort(-mean, kind="stable") if mean[k] > OFTEN or most[k] > ONCE][:MOST_NAMED]
    named = [k for k in _order(members) if k in ranked]
    return named, len(mean) - len(named)


def _order(members: Sequence[AnyMember]) -> list[int]:
    """The members, those with one network side by side, from the slowest to the fastest."""
    networks = list(dict.fromkeys(member.kind for member in members))

    def rank(place: int) -> tuple[int, float]:
        member = members[place]
        return networks.index(member.kind), walk_of(member)

    return sorted(range(len(members)), key=rank)


def _colours(members: Sequence[AnyMember], named: Sequence[int]) -> dict[int, str]:
    """The colour of each of the named members: one hue a kind, from light where a member stands still to dark
    where it walks fast.
    """
    networks = list(dict.fromkeys(member.kind for member in members))
    walks = sorted({walk_of(member) for member in members})
    colours: dict[int, str] = {}
    ramps = list(RAMPS.values())
    for place, network in enumerate(networks):
        own = [k for k in named if members[k].kind == network]
        shades = np.linspace(0.3, 0.95, len(own))
        if len(own) == 1:
            shades = np.array([0.3 + 0.65 * walks.index(walk_of(members[own[0]])) / max(len(walks) - 1, 1)])
        ramp = ramps[place % len(ramps)]
        colours |= {k: shade(ramp, share) for k, share in zip(own, shades.tolist(), strict=True)}
    return colours


def _edges(changes: ChangeTally) -> np.ndarray:
    """The rows between which the blocks lie."""
    rows = np.minimum(changes.size * np.arange(len(changes.grid) + 1), changes.rows)
    return np.asarray(rows + 0.5)


def _blocks(changes: ChangeTally, how: str) -> str:
    if changes.size == 1:
        return "."
    return f" ({how} of {changes.size:,} rows)."


FAINTEST = 1e-3
"""The least probability of a run length that is drawn."""


def _draw_run_lengths(changes: ChangeTally, times: Times) -> Picture:
    soft = changes.kind == "soft-reset"
    edges = _edges(changes)
    share = changes.grid / np.maximum(changes.counts, 1)[:, None]
    used = int(np.max(np.nonzero(share.sum(axis=0) > 1e-6)[0], initial=0)) + 1
    longest = float(changes.width * used)
    chart = Chart((2, 1), (518.0, 374.0), "rows", float(edges[0]), float(edges[-1]), scale="probability")
    panel, below = chart.panels
    panel.label = "rows since the last reset" if soft else "run length (rows)"
    panel.low = 0.0
    panel.high = 1.05 * longest
    panel.grid = False
    visible = np.where(share[:, :used] >= FAINTEST, share[:, :used], np.nan)
    end = float(edges[0] + changes.size * len(share))  # the last block may not be full yet
    panel.heat((float(edges[0]), end), (0.0, longest), 1 + np.log(visible.T) / np.log(1 / FAINTEST), "blue")
    below.label = "P(change)"
    below.low = 0.0
    below.high = 1.05
    chance = changes.curves[:, 0]
    below.band(*_filled(edges, chance), BLUE, opacity=0.35)
    below.line(*stepped(edges, chance), Pen(BLUE, 1.1))
    chart.count_rows(times)
    _mark(chart, changes.alarms[:, 0], "full reset" if soft else "change reported")
    if soft:
        return Picture(
            chart.svg(),
            "Soft resets. Above: rows since the last full reset. Below: how much of the belief was given up "
            "for the prior" + _blocks(changes, "the largest of each block"),
        )
    return Picture(
        chart.svg(),
        "Changes. Above: the probability of each run length, the rows since the current segment began; a "
        "ridge that falls back to zero is a change. Below: the probability that a segment began with the row"
        + _blocks(changes, "the largest of each block"),
    )


def _mark(chart: Chart, rows: np.ndarray, word: str) -> None:
    """Mark the rows at which something was reported."""
    if len(rows) <= MARKED:
        for panel in chart.panels:
            panel.upright(rows, Pen(ORANGE, 0.8, opacity=0.6))
    if len(rows):
        chart.panels[0].flags(rows, ORANGE, word)
        chart.panels[0].legend = Legend()
