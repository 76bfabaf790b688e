"""Experiments on decisions: bandits and Bayesian optimisation.

`credo_papers` says how an experiment is divided into files.
"""

__all__: list[str] = []
