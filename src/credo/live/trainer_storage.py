"""A trainer in a file, beside its learner and belief: what is fixed as JSON, and its state as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

import numpy as np

from credo.core.archive import join, leaves_of, refill, split
from credo.core.constraints import require_possible
from credo.core.forms import Seed, Size, require_form
from credo.learners import Learner
from credo.live.recovery import Recovery, SavedRecovery
from credo.live.runner import Early
from credo.live.trainer import Trainer
from credo.recipes.settings import Settings
from credo.tables import EncoderState, Moments, Schema

__all__ = ["arrays", "restore", "summary"]


class _SavedTrainer(TypedDict):
    """The result of `summary`."""

    schema: dict[str, Any]
    clip: float
    classes: Size
    settings: dict[str, Any] | None
    seed: Seed | None
    units: bool
    seen: int
    refused: int
    log_evidence: float
    changes: list[int]
    recovery: SavedRecovery


def summary(trainer: Trainer) -> dict[str, Any]:
    """The settings of a trainer, and its counts, as JSON data."""
    return {
        "schema": trainer.table.schema.to_dict(),
        "clip": trainer.encoder.clip,
        "classes": trainer.classes,
        "settings": None if trainer.settings is None else trainer.settings.to_dict(),
        "seed": trainer.seed,
        "units": trainer.units,
        "seen": trainer.seen,
        "refused": trainer.rows_refused,
        "log_evidence": trainer.log_evidence,
        "changes": list(trainer.changes),
        "recovery": trainer.recovery.to_dict(),
    }


def arrays(trainer: Trainer) -> dict[str, np.ndarray]:
    """The moments, the rows that wait, and the prior of a learner that was built elsewhere."""
    return join(
        {
            "inputs": trainer.table.state.arrays(),
            "scaler": trainer.scaler.arrays(),
            "waiting": trainer.early.arrays(),
            "prior": {} if trainer.settings is not None else leaves_of(trainer.prior),
        }
    )


def restore(
    saved: Mapping[str, Any], named: Mapping[str, np.ndarray], learner: Learner[Any], belief: Any
) -> Trainer:
    """The trainer of which `summary` and `arrays` were saved, with its learner and belief."""
    require_form(saved, _SavedTrainer, "trainer")
    parts = split(named, ("inputs", "scaler", "waiting", "prior"))
    settings = None if saved["settings"] is None else Settings.from_dict(saved["settings"])
    prior = None
    if settings is None:
        prior = refill(belief, parts["prior"], "prior")
        require_possible(prior, "prior")
    schema = Schema.from_dict(saved["schema"])
    trainer = Trainer(
        schema, saved["clip"], saved["classes"], settings, learner=learner, prior=prior, seed=saved["seed"]
    )
    trainer.belief = belief
    trainer.table.state = EncoderState.from_arrays(parts["inputs"])
    trainer.scaler = Moments.from_arrays(parts["scaler"], "scaler")
    trainer.early = Early.from_arrays(parts["waiting"])
    trainer.units = saved["units"]
    trainer.seen = saved["seen"]
    trainer.rows_refused = saved["refused"]
    trainer.log_evidence = saved["log_evidence"]
    trainer.changes = tuple(saved["changes"])
    trainer.recovery = Recovery.from_dict(saved["recovery"])
    return trainer
