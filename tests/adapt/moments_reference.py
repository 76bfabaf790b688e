"""Robust running moments of one column, written as plainly as they can be, for tests to compare with."""

from __future__ import annotations

import math

import numpy as np


class Naive:
    """The entries that count; their mean and spread are computed from all of them anew after every one."""

    def __init__(self) -> None:
        self.keep(np.zeros(0))
        self.streak: list[float] = []
        self.far = False
        self.restarts, self.events, self.farthest = 0, 0, math.inf

    def keep(self, entries: np.ndarray) -> None:
        self.entries, self.count = entries, len(entries)
        self.mean = float(entries.mean()) if len(entries) else 0.0
        self.sd = float(entries.std(ddof=1)) if len(entries) > 1 else 0.0

    @property
    def known(self) -> bool:
        return self.sd > 1e-12 * abs(self.mean)

    def z(self, x: float, clip: float) -> float:
        """The standardised entry, before it is observed; 0 where it is missing or nothing is known."""
        if not self.known or not math.isfinite(x):
            return 0.0
        limit, away = min(clip, math.sqrt(self.count)), (x - self.mean) / self.sd
        return min(max(away, -limit), limit) * (1.0 if abs(away) <= 100 else (100 / away) ** 2)

    def observe(self, x: float) -> None:
        if not math.isfinite(x):
            return
        n = self.count
        gap, wide = x - self.mean, 8 * (1 + (10 / n) ** 2) * self.sd if n else 0.0
        far, new = self.known and abs(gap) > wide, False
        if far:
            goes_on = self.far and bool(self.streak)
            if not goes_on:
                new = not self.events or abs(x - self.farthest) > 1e-2 * abs(gap)
                if new and (not self.events or abs(gap) > abs(self.farthest - self.mean)):
                    self.farthest = x
                self.events += new
        else:
            near = bool(self.streak) and abs(x - float(np.mean(self.streak))) <= 1e-2 * self.sd
            goes_on = n <= 100 and self.restarts == 0 and not self.far and near
        self.streak = [*self.streak, x] if goes_on else [x]
        self.far = far
        full, spread = len(self.streak) >= 10, float(np.std(self.streak))
        absurd = max(abs(float(np.mean(self.streak)) - self.mean), spread) > 100 * self.sd
        if full and (absurd or not far) and spread > 1e-12 * abs(float(np.mean(self.streak))):
            self.keep(np.array(self.streak))
            self.restarts += 1
        elif full and far and not absurd:
            self.keep(np.append(self.entries, self.streak))
        elif not far:
            return self.keep(np.append(self.entries, x))
        else:
            if new and self.events >= 3:
                most = 8 * self.events * self.sd
                self.keep(np.append(self.entries, self.mean + min(max(gap, -most), most)))
            return None
        self.streak, self.far, self.events = [], False, 0


def standardised(rows: np.ndarray, clip: float) -> np.ndarray:
    """Each row (n, D) standardised by those before it."""
    columns = [Naive() for _ in range(rows.shape[1])]
    out = np.zeros(rows.shape)
    for i, row in enumerate(rows.tolist()):
        for j, (column, x) in enumerate(zip(columns, row, strict=True)):
            out[i, j] = column.z(x, clip)
            column.observe(x)
    return out
