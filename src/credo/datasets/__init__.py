"""Data sets by name: found in a folder, in the cache or in a package, or downloaded and checked.

`load` gives a `Dataset` of NumPy arrays. Nothing here needs JAX, and the network is used only where a
download is allowed. `credo.datasets.finder` says where the files are looked for. `linear_system` gives the
matrices of a benchmark of filters, which are shipped with credo.

The only mathematics is one permutation: rows that were published without test rows are put in the order of
`RandomState(0).permutation(N)`, and the last fifth of them is for testing.
"""

from credo.datasets.dataset import Dataset
from credo.datasets.loading import linear_system, load, names, splits

__all__ = ["Dataset", "linear_system", "load", "names", "splits"]
