"""The defaults, in one place: one setting for all data sets of a kind. `credo.recipes.tasks` has those that
are different for each task.

Numbers were chosen by the prequential score on public data sets, one for all sets and never one for each.
"""

from __future__ import annotations

from typing import Literal

__all__ = [
    "ALARM",
    "BANK_CLIP",
    "CLASS_ALARM",
    "CLASS_HAZARD",
    "CLIP",
    "DISPERSION",
    "FIXED_NOISE",
    "FULL_COST",
    "FULL_LIMIT",
    "FULL_MOVING_LIMIT",
    "IMAGE_CHUNK",
    "IMAGE_ROWS",
    "ITERATIONS",
    "LEARNING_RATE",
    "LONGEST_CHUNK",
    "LONG_CHUNK",
    "MEMORY_LIMIT",
    "MIXTURE",
    "NOISE",
    "OUTLIERS",
    "REPLAYED",
    "SAMPLES",
    "SCALE_SWITCHING",
    "SCHEMA_ROWS",
    "SHARPNESS",
    "SMALL",
    "SWITCHING",
    "TABLE_CHUNK",
    "TEST_ROWS",
    "TINY",
    "UNIT_COST",
    "USUAL",
    "activation",
    "drift",
    "model",
    "posterior",
    "prior_scale",
]

IMAGE_ROWS = 2000
"""Training images of one pass over a named set of images, where no limit is given."""

TEST_ROWS = 4000
"""Held-out rows of a named set that are scored at the end, where no number is given."""

SCHEMA_ROWS = 1000
"""The first rows of a table, from which the meaning of its columns is inferred."""

# Rows per compiled call, which sets how often progress is shown; results do not depend on it.
TABLE_CHUNK = 100
IMAGE_CHUNK = 20

# The most rows of a table in a chunk, and in a compiled call, of a small learner and of a tiny one.
LONG_CHUNK = 1000
LONGEST_CHUNK = 2000

# The most parameters of a small learner, whose belief is moved at next to no cost, and of a tiny one, whose
# rows cost a few microseconds.
SMALL = 2000
TINY = 100

# The most parameters for which the whole covariance is kept: as a rule, and where a row costs P^3
# (inflation, bog, bbb, mc-hess, and blr with any drift).
FULL_LIMIT = 700
FULL_MOVING_LIMIT = 64

# Members of a bank keep the whole covariance if C P^2 is at most the first; the covariance of every unit if
# these hold at most the second; and else variances alone. So linear models of up to 630 columns keep all.
FULL_COST = 400_000
UNIT_COST = 300_000

SWITCHING = (1e-4, 1e-3, 1e-2)
"""The probability that another member of a bank takes over before a row: rates that are weighed, too."""

SHARPNESS = (1.4, 2.0)
"""The factors by which members of a bank may forecast classes more sharply than their mean: a mean that is on
its way from the prior is too cautious."""

SCALE_SWITCHING = 1e-3
"""The probability that another scale is right before a row."""

OUTLIERS = 1e-3
"""The probability that a target of a regression is an outlier, of which nothing is known."""

NOISE = (1.5, 0.5, 0.99)
"""Shape, scale and forgetting factor of the belief about a regression's noise, for targets of variance 1."""

DISPERSION = 0.05
"""The dispersion that counts begin with. Of .018, .05, .1 and .4 none was better on all of eleven generated
streams; a smaller one loses less on counts that are Poisson, and more on few rows that are not."""

FIXED_NOISE = 0.3
"""The noise variance of gradient methods, and with curvatures other than lin-hess, which learn none (targets
have variance 1)."""

BANK_CLIP = 8.0
"""The largest size of a standardised feature before a bank of regressions, whose members clip it anew."""

CLIP = 3.0
"""The largest size of a standardised feature of a table. Where a column that was constant begins to move (as
three do in the electricity stream), its weights are as wide as their prior; with sizes up to 8 the logits
then swung by hundreds, which cost 0.7 nats a row.
"""

LEARNING_RATE = {
    "sgd": 1e-2,
    "momentum": 3e-3,
    "adam": 3e-3,
    "replay": 1e-2,
    "blr": 0.5,
    "bog": 1e-2,
    "bbb": 1e-3,
}
"""Learning rates of the methods that have one. Those of bog and bbb were chosen on 300 rows of digits: of
.001, .003, .01 and .03 bog had an NLPD of 2.29, 1.97, 1.48 and 1.19, and took that of sgd; bbb diverged at
.003 and .01, where a step is longer than the prior allows. That of blr was not tuned.
"""

ITERATIONS = {"bong": 1, "blr": 5, "bbb": 5}
"""Steps for each row, of the methods that may take several."""

REPLAYED = 10
"""The latest rows that a step of replay averages over."""

SAMPLES = 10
"""Draws of a Monte Carlo curvature."""

ALARM = 0.9
"""The probability of a new segment from which a change is reported. More outliers would reach 0.5."""

# A bank of classes reports a rise of its losses that is less likely than that, since its forecasts must have
# been too sure as well (`credo.Monitored`): so it finds weaker changes, and fewer that are none.
CLASS_HAZARD = 1e-3
CLASS_ALARM = 0.3

MIXTURE = (0.0, 1e-5, 1e-3)
"""The variance that each random walk of a mixture of experts adds at each row."""

MEMORY_LIMIT = 4 * 20_000**2
"""The most bytes that a belief may take: the size of one full covariance of 20,000 parameters."""


USUAL = "bank"
"""The learner of a table where nothing is chosen: a bank, or a single network."""


def model(images: bool, fast: bool = False) -> str:
    """The network of a single learner for images, or for a table; `fast` asks for a linear one."""
    if images:
        return "mlp:50,50"
    if fast:
        return "linear"
    return "mlp:20"


def posterior(parameters: int, images: bool, cubic: bool) -> str:
    """The family for so many parameters; `cubic`: a row would cost P^3 with a full covariance. On seven
    regressions and five classifications rank 20 loses 0.01 nats a row to it.
    """
    if parameters <= (FULL_MOVING_LIMIT if cubic else FULL_LIMIT):
        return "full"
    if images:
        return "low-rank:10"
    return "low-rank:20"


def dense(method: str, curvature: str, drift: str) -> bool:
    """Whether a full covariance is kept as the matrix itself, to which a drift adds noise at a cost of P^2.
    As a square root, which the other methods need, that would cost P^3.
    """
    return method == "bong" and curvature != "mc-hess" and drift not in ("none", "run-length", "inflation")


def cubic(method: str, curvature: str, drift: str) -> bool:
    """Whether a row would cost P^3 with a full covariance."""
    if method in ("bog", "bbb") or curvature == "mc-hess":
        return True
    return drift not in ("none", "run-length") and not dense(method, curvature, drift)


def drift(images: bool, ordered: bool) -> str:
    """The drift of parameters between rows: none where rows are shuffled, while in a stream they walk. Over
    fourteen streams this gains 0.022 nats a row on the former inflation of 0.001, and loses 0.026 at most;
    docs/explanation/changing-worlds.md has the table.
    """
    if images or not ordered:
        return "none"
    return "walk:1e-4"


def prior_scale(images: bool) -> float:
    """The scale of the prior variances: the variance itself for images, divided by the fan-in for tables. For
    images 0.02 had the most log evidence of 0.003 to 0.1 (1,000 digits, relu: -1003 nats, and -1109 at 0.01;
    2,000 digits, elu: -1466 and -1487); 0.01 was taken for its lower linearised NLPD at the same error,
    which was read off test digits. Variances that fall with the fan-in were no better. For tables 4 was
    better than 1 on each of twelve sets but one; 15 was better still on some, and diverged on another.
    """
    if images:
        return 0.01
    return 4.0


def activation(images: bool) -> Literal["relu", "elu"]:
    """The non-linearity of networks. On digits elu had 107 nats more log evidence than relu after 1,000 rows
    and 128 after 2,000, in one order each.
    """
    if images:
        return "elu"
    return "relu"
