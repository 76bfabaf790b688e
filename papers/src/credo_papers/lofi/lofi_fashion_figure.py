"""The figure of `lofi-fashion`: test error and log loss against the number of rows, stream by stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from credo.plots import PALETTE, new_figure
from credo_papers.engine.plain_data import Arrays
from credo_papers.lofi.lofi_fashion_plan import Part

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw"]

LOOKS = {
    "LOFI-1": ("sky", "-"),
    "LOFI-10": ("blue", "-"),
    "LOFI-50": ("ink", "-"),
    "vd-ekf": ("green", "-"),
    "fd-ekf": ("green", "--"),
    "online SGD": ("amber", "--"),
    "replay SGD-10": ("orange", "-"),
    "replay Adam-10": ("pink", "-"),
}
"""The colour and the line of a learner; learners that are not here are in the table only."""


def draw(plan: Sequence[Part], results: Mapping[str, Mapping[str, Arrays]]) -> Figure:
    """Draw the streams side by side, errors above and log losses below, with bands of two standard errors.

    Arguments:
        plan: the parts, one for each column.
        results: for each part, by name, the results of its learners.
    """
    figure = new_figure(max(12.0, 4.6 * len(plan)), 8.5)
    figure.suptitle("Fashion-MNIST row by row: tests on the task at hand")
    panels = figure.subplots(2, len(plan), sharex="col", squeeze=False)
    for column, part in enumerate(plan):
        t = np.arange(part.every, part.rows + 1, part.every)
        for axes, key in zip(panels[:, column], ("test_error", "test_nll"), strict=True):
            for label, (colour, line) in LOOKS.items():
                if label not in results[part.name]:
                    continue
                values = results[part.name][label][key]
                mean = values.mean(axis=0)
                axes.plot(t, mean, line, color=PALETTE[colour], lw=1.6, label=label)
                if len(values) > 1:
                    se = values.std(axis=0, ddof=1) / np.sqrt(len(values))
                    axes.fill_between(
                        t, mean - 2 * se, mean + 2 * se, color=PALETTE[colour], alpha=0.15, lw=0
                    )
            if part.stream in ("permuted", "split"):
                for border in range(part.task, part.rows, part.task):
                    axes.axvline(border, color=PALETTE["grey"], lw=0.8, ls=":")
        panels[0, column].set(title=f"{part.stream}, {part.network}")
        panels[1, column].set(xlabel="rows seen t", xlim=(0, part.rows))
        worst = max(float(np.nanmax(results[part.name][label]["test_nll"])) for label in results[part.name])
        panels[1, column].set_ylim(0, min(worst, 3.0) * 1.05)
        panels[0, column].set_ylim(0, None)
    panels[0, 0].set_ylabel("misclassified (test)")
    panels[1, 0].set_ylabel("NLL in nats (test)")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(8, len(labels)))
    return figure
