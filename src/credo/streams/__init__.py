"""Streams: run a learner over data, score it on the way, choose its hyper-parameters, save it and continue.

`run` is one compiled scan. `evaluate` predicts every observation before it learns from it (test-then-train)
and reports how good and how calibrated the predictions were; labels may come late. `select` maximises the log
evidence over hyper-parameters, on a vmapped grid or by its gradient. `pack` makes a loop in Python fast.
`save` and `load` keep a learner with its belief.
"""

from credo.streams.checkpoint import load, save
from credo.streams.decisions import Decision
from credo.streams.evaluate import Report, evaluate
from credo.streams.fit import BatchFit, fit
from credo.streams.keyed import Keyed, KeyedRows
from credo.streams.live import Pack, Port, mean_and_sd, pack
from credo.streams.run import run
from credo.streams.scoring import score_chunk, to_scores
from credo.streams.select import Selection, select

__all__ = [
    "BatchFit",
    "Decision",
    "Keyed",
    "KeyedRows",
    "Pack",
    "Port",
    "Report",
    "Selection",
    "evaluate",
    "fit",
    "load",
    "mean_and_sd",
    "pack",
    "run",
    "save",
    "score_chunk",
    "select",
    "to_scores",
]
