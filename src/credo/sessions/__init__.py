"""Sessions, which turn rows of a table or images into forecasts, scores and a saved state.

A `Session` takes a stream of rows through an encoder, online scaling, a learner and running scores. Each row
is forecast before it is learned from. `Session.from_rows` starts one from a DataFrame or a list of dicts;
`open_file` and `open_dataset` give rows that need not fit in memory. A `Trainer` learns without scoring,
from rows with weights; the estimators stand on it. `Lagged` forecasts the next steps of a series in time,
whose rows get their lags on the way into a session. All choices have defaults
(`credo.recipes.defaults`). `Options` hold what a user chooses, and `Settings` what is resolved from it.

Settings with numbers are records, `Network`, `Posterior` and `Drift`, which are also written as text:

    mlp:50,50    low-rank:10    run-length:0.005,5
"""

from credo.live.change_steps import Steps
from credo.live.encoding import Block, Encoding, ImageEncoding, Images, TableEncoding
from credo.live.intake import Rows
from credo.live.series import SeriesEncoding
from credo.live.trainer import Trainer
from credo.recipes.auto import Auto, auto
from credo.recipes.image_members import ImageMember
from credo.recipes.language import Drift, DriftKind, Network, NetworkKind, Posterior, PosteriorKind
from credo.recipes.members import Breadth, Member
from credo.recipes.options import (
    METHODS,
    BudgetName,
    ColumnOptions,
    MethodName,
    Options,
    SeriesOptions,
    TaskName,
)
from credo.recipes.resolution import resolve
from credo.recipes.settings import SavedSettings, Settings
from credo.sessions.change_tally import ChangeSummary, ChangeTally
from credo.sessions.chunk_parts import after_line
from credo.sessions.horizons import HorizonSummary
from credo.sessions.importance import Importance, permutation_importance
from credo.sessions.lagged import Lagged
from credo.sessions.paths import PathForecast
from credo.sessions.places import Progress
from credo.sessions.row_sources import RowSource, open_dataset, open_file, open_series
from credo.sessions.session import Forecasts, Session
from credo.sessions.tally import Tally

__all__ = [
    "METHODS",
    "Auto",
    "Block",
    "Breadth",
    "BudgetName",
    "ChangeSummary",
    "ChangeTally",
    "ColumnOptions",
    "Drift",
    "DriftKind",
    "Encoding",
    "Forecasts",
    "HorizonSummary",
    "ImageEncoding",
    "ImageMember",
    "Images",
    "Importance",
    "Lagged",
    "Member",
    "MethodName",
    "Network",
    "NetworkKind",
    "Options",
    "PathForecast",
    "Posterior",
    "PosteriorKind",
    "Progress",
    "RowSource",
    "Rows",
    "SavedSettings",
    "SeriesEncoding",
    "SeriesOptions",
    "Session",
    "Settings",
    "Steps",
    "TableEncoding",
    "Tally",
    "TaskName",
    "Trainer",
    "after_line",
    "auto",
    "open_dataset",
    "open_file",
    "open_series",
    "permutation_importance",
    "resolve",
]
