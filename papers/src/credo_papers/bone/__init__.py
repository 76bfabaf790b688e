"""The experiments of BONE (Duran-Martin et al. 2024, arXiv 2411.10153): learners in worlds that change.

`bone_NAME.py` is the experiment `bone-NAME`. What the experiments share is split like an experiment:
`bone_world` (streams), `bone_plan` (methods and grids), `bone_learner` (the methods by their codes),
`bone_peers` (methods of other packages), `bone_tuning` (tuning and scoring), `bone_table` and `bone_figure`.
`credo_papers` says how an experiment is divided into files.
"""

__all__: list[str] = []
