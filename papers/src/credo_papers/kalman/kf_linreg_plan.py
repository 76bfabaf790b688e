"""The plan of `kf-linreg`: how many data sets, the prior, and the published numbers."""

from __future__ import annotations

from credo_papers.engine.experiment import Size

__all__ = ["ALPHA", "PUBLISHED", "PUBLISHED_RMSE", "SETS"]

SETS: dict[Size, int] = {"quick": 20, "full": 200}
"""The number of data sets."""

ALPHA = 1.0
"""The prior variance of each weight."""

PUBLISHED_RMSE = 0.977
PUBLISHED = {"median": "~1e-16", "largest": "7e-16"}
"""The distance to ridge regression at the end."""
