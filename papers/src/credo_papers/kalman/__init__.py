"""The background experiments: Kalman filters of a moving object, of a regression and of a small network.

They are `kf_tracking`, `kf_linreg` and `moons`; `credo_papers` says how an experiment is divided into
files.
"""

__all__: list[str] = []
