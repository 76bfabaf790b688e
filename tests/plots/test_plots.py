"""Plots: pictures depend on what is drawn alone, and the user's settings of matplotlib come back."""

from __future__ import annotations

import matplotlib as mpl

from credo.plots import COMPACT_PALETTE, PALETTE, new_figure, png, style


def test_a_style_ends_with_its_context() -> None:
    with mpl.rc_context({"font.size": 7.0}):
        with style():
            assert mpl.rcParams["font.size"] == 12.0
        assert mpl.rcParams["font.size"] == 7.0


def test_the_same_drawing_gives_the_same_bytes() -> None:
    def drawing() -> bytes:
        with style():
            figure = new_figure(3.0, 2.0)
            figure.subplots().plot([1, 2, 3])
            return png(figure)

    assert drawing() == drawing()


def test_both_palettes_have_the_same_names() -> None:
    assert list(PALETTE) == list(COMPACT_PALETTE)
