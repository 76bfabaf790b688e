"""The experiments of BONG (Jones, Chang & Murphy 2024, arXiv 2405.19681): rules, curvatures and families.

They are `bong_linreg` and `bong_logreg` (which share `bong_exact`), `bong_mnist`, `bong_sarcos` and
`bong_timing`; `bong_grid` names the cells. `credo_papers` says how an experiment is divided into files.
"""

__all__: list[str] = []
