"""The experiments of LOFI (Chang et al. 2023, arXiv 2305.19535): low-rank filters between diagonal and full.

They are `lofi_uci` and `lofi_fashion`; `credo_papers` says how an experiment is divided into files.
"""

__all__: list[str] = []
