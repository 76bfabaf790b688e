"""The rooms with records and functions that saved files may name, for a file that names an unknown one."""

from credo import adapt, bandits, ekf, flows, particles, recipes

__all__ = ["adapt", "bandits", "ekf", "flows", "particles", "recipes"]
