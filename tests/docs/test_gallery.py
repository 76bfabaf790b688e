"""The pictures of the gallery are those of the lines above them."""

from __future__ import annotations

from pathlib import Path

import jax
import pytest
from PIL import Image
from tests.docs.gallery import MARK, Picture, draw, pictures

PICTURES = {picture.path.stem: picture for picture in pictures()}
CHEAP = ("off-policy", "arms")
"""What is drawn every time; `make thorough` draws the others, whose digests say which lines drew them."""


@pytest.mark.parametrize("picture", PICTURES.values(), ids=PICTURES)
def test_the_lines_above_a_picture_drew_it(picture: Picture) -> None:
    with Image.open(picture.path) as image:
        assert image.info[MARK] == picture.digest, f"python -m tests.docs.gallery {picture.path.stem}"
        assert image.width <= 800


def test_the_gallery_has_twenty_pictures_and_shows_every_file() -> None:
    assert len(PICTURES) >= 20
    folder = next(iter(PICTURES.values())).path.parent
    assert {path.stem for path in folder.iterdir()} == set(PICTURES)
    assert sum(path.stat().st_size for path in folder.iterdir()) < 2_000_000


@pytest.mark.parametrize(
    "name", [name if name in CHEAP else pytest.param(name, marks=pytest.mark.thorough) for name in PICTURES]
)
def test_the_lines_run(name: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    with jax.enable_x64(False), jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        draw(PICTURES[name], tmp_path / "drawn.png")
    with Image.open(tmp_path / "drawn.png") as drawn, Image.open(PICTURES[name].path) as kept:
        assert drawn.size == kept.size
