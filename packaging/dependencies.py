"""The table of docs/explanation/dependencies.md: python packaging/dependencies.py jax jaxlib numpy ...

The size of each installed distribution, its licence, and the processor time of its import in a fresh process,
the least of three. Without names it takes what credo itself needs.
"""

from __future__ import annotations

import importlib.metadata as metadata
import re
import resource
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
from disk import megabytes

MODULES = {
    "scikit-learn": "sklearn",
    "ml-dtypes": "ml_dtypes",
    "scipy": "scipy.stats",
    "safetensors": "safetensors.numpy",
}
MODULES |= {
    "matplotlib": "matplotlib.figure",
    "pyarrow": "pyarrow.parquet",
    "prometheus-client": "prometheus_client",
}


def licence(name: str) -> str:
    """The licence of a distribution, by its own words."""
    said = metadata.metadata(name)
    kinds = [
        line.rpartition(":: ")[2] for line in said.get_all("Classifier") or () if line.startswith("License")
    ]
    return said.get("License-Expression") or "; ".join(kinds) or (said.get("License") or "").split("\n")[0]


def seconds(module: str) -> float:
    """The processor time of an import, beyond that of a bare interpreter."""

    def spent(code: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    return min(spent(f"import {module}") for _ in range(3)) - min(spent("") for _ in range(3))


def needed() -> list[str]:
    """What credo needs without extras."""
    lines = [line for line in metadata.requires("credo") or () if "extra ==" not in line]
    return [re.split(r"[^\w-]", line)[0] for line in lines]


if __name__ == "__main__":
    for name in sys.argv[1:] or needed():
        module = MODULES.get(name, name)
        cells = (
            name,
            metadata.version(name),
            f"{megabytes(name) * 1e6 / 2**20:.1f}",
            f"{seconds(module):.2f}",
            licence(name),
        )
        print(f"| {' | '.join(cells)} |")
