"""A learner whose name decides its kind of belief at run time."""

from __future__ import annotations

from typing import TypeAlias

from credo.core.types import PyTree
from credo.learners import Learner

__all__ = ["AnyBelief", "AnyLearner"]

AnyBelief: TypeAlias = PyTree
"""A belief of the kind that its learner keeps."""

AnyLearner: TypeAlias = Learner[AnyBelief]
"""A learner that is built from its name, such as "lofi" or "rl-pr"."""
