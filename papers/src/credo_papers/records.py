"""The records of this package that saved files may name: credo imports this module where a file names one."""

from credo_papers import baselines, published_flow

__all__ = ["baselines", "published_flow"]
