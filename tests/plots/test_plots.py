"""Plots: pictures depend on what is drawn alone, and the user's settings of matplotlib come back."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest

from credo.plots import COMPACT_PALETTE, PALETTE, compact_figure, ellipse, new_figure, png, style


def test_a_style_ends_with_its_context() -> None:
    with mpl.rc_context({"font.size": 7.0}):
        with style():
            assert mpl.rcParams["font.size"] == 12.0
        assert mpl.rcParams["font.size"] == 7.0
        with compact_figure():
            assert mpl.rcParams["font.size"] == 10.5
        assert mpl.rcParams["font.size"] == 7.0


def test_the_same_drawing_gives_the_same_bytes() -> None:
    def drawing() -> bytes:
        with style():
            figure = new_figure(3.0, 2.0)
            figure.subplots().plot([1, 2, 3])
            return png(figure)

    assert drawing() == drawing()


def test_compact_panels_share_their_horizontal_axis() -> None:
    with compact_figure((3, 1)) as drawing:
        upper, lower = drawing.panels
        upper.set_xlim(0, 7)
        assert lower.get_xlim() == (0, 7) and drawing.png == b""
    assert drawing.png.startswith(b"\x89PNG")


def test_both_palettes_have_the_same_names() -> None:
    assert list(PALETTE) == list(COMPACT_PALETTE)


@pytest.mark.parametrize("radius", [0.5, 2.0])
def test_an_ellipse_has_its_radius(radius: float) -> None:
    cov, mean = np.array([[2.0, 0.3], [0.3, 0.5]]), np.array([1.0, -2.0])
    gaps = ellipse(mean, cov, radius) - mean
    np.testing.assert_allclose(np.sum(gaps * np.linalg.solve(cov, gaps.T).T, axis=1), radius**2, rtol=1e-10)
