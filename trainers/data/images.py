"""Images with labels: a folder of IDX files as MNIST and Fashion-MNIST come in, or scikit-learn's digits.

The format: two zero bytes, a type (8: uint8), the number of dimensions, each as a big-endian 32-bit number, the data.
No torch here, so that a launch can check its images before anything starts.
"""

import gzip
import struct
import zlib
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trainers.data.shares import shares
from trainers.errors import DataError

Bytes = NDArray[np.uint8]

MOST_DIMENSIONS = 8
LARGEST = 2 * 1024**3  # bytes of a file, unpacked
PIECE = 2**20  # bytes read at once
VALIDATION_SHARE = 0.1  # of the files' training images


@dataclass(frozen=True)
class LabelledImages:
    """Images (samples, height, width) of uint8 and one label each; `highest` is a white pixel's value."""

    images: Bytes
    labels: NDArray[np.int64]
    highest: int

    def take(self, chosen: NDArray[np.int64]) -> "LabelledImages":
        return LabelledImages(self.images[chosen], self.labels[chosen], self.highest)


def read_images(data: str) -> dict[str, LabelledImages]:
    """Train, validation and test images of "digits" or of a folder of IDX files, plain or gzipped.

    Raises DataError when a file is missing, damaged, or doesn't fit its partner.
    """
    if data == "digits":
        return _digits()
    folder = Path(data).expanduser()
    if not folder.is_dir():
        raise DataError(f"task.data={data} is no folder; give the folder that holds the IDX files, or digits.")
    whole = _pair(folder, "train")
    validation, train = shares(len(whole.labels), [VALIDATION_SHARE, 1 - VALIDATION_SHARE])
    return {"train": whole.take(train), "validation": whole.take(validation), "test": _pair(folder, "t10k")}


def read_idx(path: Path) -> Bytes:
    """The array of one IDX file of uint8. Raises DataError naming the file when it is not one, whole."""
    content = _content(path)
    zeros, kind, dimensions = struct.unpack(">HBB", content[:4]) if len(content) >= 4 else (1, 0, 0)
    if zeros != 0 or kind != 8 or dimensions > MOST_DIMENSIONS:
        raise DataError(f"{path} is not an IDX file of bytes; get it again.")
    header = 4 + 4 * dimensions
    if len(content) < header:
        raise DataError(f"{path} ends within its header; get it again.")
    shape = struct.unpack(f">{dimensions}I", content[4:header])
    expected = prod(shape)
    if len(content) - header != expected:
        raise DataError(f"{path} holds {len(content) - header} bytes of data where {expected} belong; get it again.")
    if expected == 0:  # beside which a shape may hold any number, larger than an array can have
        raise DataError(f"{path} holds no data, its shape is {shape}; get it again.")
    return np.frombuffer(content, np.uint8, offset=header).reshape(shape).copy()  # torch wants it writable


def _content(path: Path) -> bytearray:
    """No more is unpacked than may be read: a small file can hold any amount of zeros."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            content = bytearray()
            while len(content) <= LARGEST and (piece := file.read(PIECE)):
                content += piece
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path} is damaged or cannot be read ({error}); get it again.") from error
    if len(content) > LARGEST:
        raise DataError(
            f"{path} holds more than {LARGEST >> 20} MB, and images are kept in memory; use a part of them."
        )
    return content


def _pair(folder: Path, part: str) -> LabelledImages:
    images, labels = (
        read_idx(_find(folder, f"{part}-images-idx3-ubyte")),
        read_idx(_find(folder, f"{part}-labels-idx1-ubyte")),
    )
    if images.ndim != 3 or labels.shape != images.shape[:1] or len(labels) == 0:
        raise DataError(
            f"{folder}: the {part} images have shape {images.shape} and the labels {labels.shape}; "
            "they must be (samples, height, width) and (samples,): get both files again."
        )
    return LabelledImages(images, labels.astype(np.int64), highest=255)


def _find(folder: Path, name: str) -> Path:
    for path in (folder / name, folder / f"{name}.gz"):
        if path.is_file():
            return path
    raise DataError(f"task.data={folder} has neither {name} nor {name}.gz; a folder of IDX files needs both splits.")


def _digits() -> dict[str, LabelledImages]:
    from sklearn.datasets import load_digits

    bunch = load_digits()
    whole = LabelledImages(bunch.images.astype(np.uint8), bunch.target.astype(np.int64), highest=16)
    parts = shares(len(whole.labels), [0.7, 0.15, 0.15])
    return {name: whole.take(part) for name, part in zip(("train", "validation", "test"), parts, strict=True)}
