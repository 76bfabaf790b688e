"""The purposes of streams of random numbers. The purpose is a part of the seed, so no two share numbers."""

from __future__ import annotations

__all__ = ["SCORED", "TEST", "TUNING"]

SCORED, TUNING, TEST = range(3)
