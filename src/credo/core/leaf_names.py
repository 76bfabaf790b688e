"""The names of the leaves of a parameter tree."""

from __future__ import annotations

from fnmatch import fnmatchcase

import jax

from credo.core.types import PyTree

__all__ = ["fits", "leaf_names"]


def leaf_names(tree: PyTree) -> list[str]:
    """The path of each leaf: keys and positions joined by dots, such as "2.w"."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return [jax.tree_util.keystr(path, simple=True, separator=".") for path, _ in leaves]


def fits(path: str, name: str) -> bool:
    """Whether a name means the leaf at a path: its path, the path of a part that holds it, or a pattern."""
    return fnmatchcase(path, name) or fnmatchcase(path, f"{name}.*")
