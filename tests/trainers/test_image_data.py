"""IDX files as MNIST and Fashion-MNIST come in, whole and damaged; scikit-learn's digits."""

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from trainers.data.check import check_data
from trainers.data.images import read_idx, read_images
from trainers.errors import DataError

FILES = {
    "train-images-idx3-ubyte": np.random.default_rng(0).integers(0, 256, (50, 6, 5), dtype=np.uint8),
    "train-labels-idx1-ubyte": np.arange(50, dtype=np.uint8) % 10,
    "t10k-images-idx3-ubyte": np.random.default_rng(1).integers(0, 256, (20, 6, 5), dtype=np.uint8),
    "t10k-labels-idx1-ubyte": np.arange(20, dtype=np.uint8) % 10,
}


def idx_bytes(array: np.ndarray) -> bytes:
    return struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.tobytes()


def write_folder(folder: Path, compressed: bool) -> Path:
    for name, array in FILES.items():
        if compressed:
            (folder / f"{name}.gz").write_bytes(gzip.compress(idx_bytes(array)))
        else:
            (folder / name).write_bytes(idx_bytes(array))
    return folder


@pytest.mark.parametrize("compressed", [False, True])
def test_a_folder_gives_three_disjoint_splits(tmp_path, compressed):
    splits = read_images(str(write_folder(tmp_path, compressed)))
    assert [len(splits[name].labels) for name in ("train", "validation", "test")] == [45, 5, 20]
    assert (splits["test"].images == FILES["t10k-images-idx3-ubyte"]).all()
    both = [image.tobytes() for name in ("train", "validation") for image in splits[name].images]
    assert sorted(both) == sorted(image.tobytes() for image in FILES["train-images-idx3-ubyte"])


@settings(max_examples=30)
@given(array=hnp.arrays(np.uint8, hnp.array_shapes(min_dims=1, max_dims=3)), data=st.data())
def test_a_file_is_read_back_and_every_truncation_is_noticed(tmp_path_factory, array, data):
    path = tmp_path_factory.mktemp("idx") / "file"
    content = idx_bytes(array)
    path.write_bytes(content)
    assert np.array_equal(read_idx(path), array)
    path.write_bytes(content[: data.draw(st.integers(0, len(content) - 1))])
    with pytest.raises(DataError, match=r"file .*get it again"):
        read_idx(path)


def test_what_is_missing_or_damaged_is_named_before_anything_starts(tmp_path):
    def sentence(folder: Path) -> str:
        task = {"_target_": "trainers.tasks.image_classification.ImageClassification", "data": str(folder)}
        with pytest.raises(DataError) as caught:
            check_data(task)
        return str(caught.value)

    assert "is no folder; give the folder that holds the IDX files" in sentence(tmp_path / "nowhere")
    assert "neither train-images-idx3-ubyte nor train-images-idx3-ubyte.gz" in sentence(tmp_path)
    labels = write_folder(tmp_path, compressed=True) / "train-labels-idx1-ubyte.gz"
    whole = labels.read_bytes()
    labels.write_bytes(whole[:-12])
    assert "train-labels-idx1-ubyte.gz is damaged" in sentence(tmp_path)
    labels.write_bytes(b"plain text")
    assert "train-labels-idx1-ubyte.gz is damaged" in sentence(tmp_path)
    labels.write_bytes(gzip.compress(idx_bytes(FILES["t10k-labels-idx1-ubyte"])))
    assert "train images have shape (50, 6, 5) and the labels (20,)" in sentence(tmp_path)
    labels.write_bytes(whole)
    check_data({"_target_": "trainers.tasks.image_classification.ImageClassification", "data": str(tmp_path)})


def test_the_digits_are_split_into_three():
    splits = read_images("digits")
    assert [len(splits[name].labels) for name in ("train", "validation", "test")] == [1258, 269, 270]
    assert splits["train"].images.max() == splits["train"].highest == 16
