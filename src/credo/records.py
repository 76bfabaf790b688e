"""The rooms with records and functions that saved files may name, for a file that names an unknown one."""

from credo import adapt, bandits, ekf, flows, particles
from credo.recipes import auto

__all__ = ["adapt", "auto", "bandits", "ekf", "flows", "particles"]
