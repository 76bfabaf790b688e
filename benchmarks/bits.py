"""Do twenty runs give the same bits in two checkouts? For changes that mean to change no number.

    python benchmarks/bits.py ../before        # this checkout against the one in ../before

Every family, rule, curvature and kind of wrapper takes part, and the command line on a table and on images.
Each run has a process of its own in each checkout; what it believes, forecasts and scores is compared.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent.parent
STEPS = 40
TABLE = "command line, table"
IMAGES = "command line, images"


def _data() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(STEPS, 4)).astype(np.float32)
    y = (x @ np.array([1.0, -1.0, 0.5, 0.0]) + 0.3 * rng.normal(size=STEPS)).astype(np.float32)
    y[STEPS // 2 :] *= -1
    y[7] = np.nan
    y[11] = 40.0
    labels = (x[:, 0] * x[:, 1] > 0).astype(np.int32) + (x[:, 2] > 1)
    weights = np.where(np.arange(STEPS) % 9 == 5, 0.0, 1.0).astype(np.float32)
    return {"x": x, "y": y, "labels": labels, "weights": weights}


def _learners() -> dict[str, tuple[Any, str]]:
    """The learners, and whether they see numbers or labels."""
    import credo

    normal = credo.Model(credo.Linear(1), credo.Normal(0.1))
    network = credo.Model(credo.MLP(outputs=3, hidden=(8,)), credo.Categorical(3))
    walk = credo.RandomWalk(1e-3)
    ekf = credo.bong(normal, credo.Full(), dynamics=walk)
    dense = credo.bong(normal, credo.Full("dense"), dynamics=credo.OrnsteinUhlenbeck(0.95))
    noisy = credo.Model(credo.Linear(1), credo.Normal(credo.InverseGamma(2.0, 1.0)))
    experts = [credo.bong(normal, credo.Full(), dynamics=credo.RandomWalk(q)) for q in (0.0, 0.1)]
    return {
        "bong full lin-hess": (credo.bong(network, credo.Full(), dynamics=walk), "labels"),
        "bong diagonal lin-ef": (credo.bong(network, credo.Diagonal(), "lin-ef", dynamics=walk), "labels"),
        "bong low-rank lin-hess": (
            credo.bong(network, credo.LowRank(3), dynamics=credo.Inflation(0.01)),
            "labels",
        ),
        "bong dense mc-ef": (credo.bong(network, credo.Full("dense"), "mc-ef"), "labels"),
        "blr full lin-hess": (credo.blr(network, credo.Full(), iterations=3), "labels"),
        "blr low-rank lin-hess": (credo.blr(network, credo.LowRank(3), iterations=3), "labels"),
        "blr diagonal mc-hess": (credo.blr(network, credo.Diagonal(), "mc-hess", iterations=2), "labels"),
        "bog low-rank mc-hess": (credo.bog(network, credo.LowRank(3), "mc-hess"), "labels"),
        "bbb full lin-ef": (
            credo.bbb(network, credo.Full(), "lin-ef", learning_rate=1e-3, iterations=3),
            "labels",
        ),
        "lrvga": (credo.lrvga(network, 3), "labels"),
        "ensemble": (credo.enkf(normal, 20), "y"),
        "unknown noise": (credo.bong(noisy, credo.Full()), "y"),
        "run length": (credo.RunLength(ekf, hazard=0.05, capacity=5), "y"),
        "change times": (credo.ChangeTimes(ekf, 0.1, 4, credo.RandomWalk(1.0)), "y"),
        "experts": (credo.Experts(experts, 0.05), "y"),
        "soft reset": (credo.SoftReset(dense, 0.1), "y"),
        "change probability": (credo.adapt.named.cpp_ou(dense), "y"),
        "robust in run length": (credo.RunLength(credo.WoLF(ekf, 3.0), 0.05, 3), "y"),
    }


def _observed(name: str) -> dict[str, np.ndarray]:
    """What a learner believes and says after a run, by the path in the tree."""
    import jax

    import credo

    data = _data()
    (learner, kind) = _learners()[name]
    start = credo.MLP(outputs=3, hidden=(8,)) if kind == "labels" else credo.Linear(1)
    belief = learner.init(start.init(jax.random.key(1), (4,)), var=0.5)
    belief, trace = credo.run(
        learner, belief, data["x"], data[kind], key=jax.random.key(2), weights=data["weights"]
    )
    parts = {
        "mean": belief.mean,
        "var": belief.var,
        "leaves": jax.tree.leaves(belief),
        "evidence": trace.log_evidence,
        "ok": trace.ok,
    }
    flat = jax.tree_util.tree_leaves_with_path(parts)
    return {jax.tree_util.keystr(path): _plain(leaf) for path, leaf in flat}


def _plain(leaf: Any) -> np.ndarray:
    import jax
    import jax.numpy as jnp

    return np.asarray(jax.random.key_data(leaf) if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf)


def _command_line(name: str, folder: Path) -> dict[str, np.ndarray]:
    """The arrays that `credo learn` saves: the belief, the scaling and the running scores."""
    from safetensors.numpy import load_file

    data = _data()
    source: list[str]
    if name == TABLE:
        rows = np.column_stack([data["x"], np.nan_to_num(data["y"])])
        np.savetxt(folder / "rows.csv", rows, delimiter=",", header="a,b,c,d,y", comments="")
        source = [str(folder / "rows.csv"), "--target", "y", "--drift", "run-length"]
    else:
        source = ["mnist", "--limit", "200"]
    command = "import sys; from credo.cli import main; sys.exit(main())"
    arguments = [sys.executable, "-c", command, "learn", *source, "--out", str(folder / "run")]
    subprocess.run(arguments, check=True, capture_output=True)
    arrays = load_file(folder / "run" / "belief.credo").values()
    # In an order of their own, since fields may have been renamed.
    return {str(i): array for i, array in enumerate(sorted(arrays, key=lambda array: array.tobytes()))}


NAMES = (TABLE, IMAGES)


def _worker(name: str, out: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        arrays = _command_line(name, Path(folder)) if name in NAMES else _observed(name)
    np.savez(out, allow_pickle=False, **arrays)


def _arrays(checkout: Path, name: str, folder: Path) -> dict[str, np.ndarray]:
    out = folder / "arrays.npz"
    environment = {**os.environ, "PYTHONPATH": str(checkout.resolve() / "src"), "JAX_PLATFORMS": "cpu"}
    subprocess.run([sys.executable, __file__, "--worker", name, str(out)], check=True, env=environment)
    with np.load(out) as arrays:
        return dict(arrays)


def _same(left: dict[str, np.ndarray], right: dict[str, np.ndarray]) -> list[str]:
    """The names of the arrays that differ, or that only one side has."""
    shared = left.keys() & right.keys()
    differ = [key for key in shared if left[key].tobytes() != right[key].tobytes()]
    return sorted([*differ, *(left.keys() ^ right.keys())])


def main() -> None:
    """Compare, and say which runs differ and in what."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["--worker"]:
        return _worker(*arguments[1:])
    if len(arguments) != 1 or not (Path(arguments[0]) / "src" / "credo").is_dir():
        sys.exit("name the other checkout: python benchmarks/bits.py FOLDER")
    worse = 0
    for name in (*NAMES, *_learners()):
        with tempfile.TemporaryDirectory() as folder:
            sides = [_arrays(checkout, name, Path(folder)) for checkout in (Path(arguments[0]), HERE)]
        differ = _same(*sides)
        worse += bool(differ)
        print(f"{name:28} {'same bits' if not differ else 'differs in ' + ', '.join(differ)}")
    sys.exit(1 if worse else 0)


if __name__ == "__main__":
    main()
