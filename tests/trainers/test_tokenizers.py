"""Text to tokens and back, and the merges of byte-level BPE by a plain second implementation."""

import re
from itertools import pairwise

import gguf_files
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainers.generation.tokenizer import ByteTokenizer
from trainers.models.gguf import SMOLLM2, read_llama
from trainers.models.gguf.tokenizer import tokenizer_of

TEXTS = st.text(alphabet=st.characters(exclude_categories=["Cs"]))
LACKING = re.compile("[\x04\x06\x13\x14\x16\x1d\U00040000-\U000bffff]")  # SmolLM2 has no token for some of their bytes
BEGINS = {"tokenizer.ggml.add_bos_token": 1, "tokenizer.ggml.bos_token_id": 261}


@pytest.fixture(scope="module")
def header():
    return read_llama(SMOLLM2).header


@pytest.fixture(scope="module")
def smollm2(header):
    return tokenizer_of(header)


@pytest.fixture(scope="module")
def words(header):
    return header.metadata["tokenizer.ggml.tokens"]


@pytest.fixture(scope="module")
def ranks(header):
    return {tuple(merge.split(" ")): rank for rank, merge in enumerate(header.metadata["tokenizer.ggml.merges"])}


def tiny(folder, **more):
    path = gguf_files.write(folder / "tiny.gguf", gguf_files.tensors(layers=1), more=more)
    return tokenizer_of(read_llama(path).header)


@settings(max_examples=200)
@given(text=TEXTS)
def test_smollm2_gives_texts_back(smollm2, text):
    text = LACKING.sub("", text)
    tokens = smollm2.encode(text)
    assert smollm2.decode(tokens) == text
    assert b"".join(map(smollm2.token_bytes, tokens)) == text.encode()
    assert all(0 <= token < smollm2.vocabulary for token in tokens)


@pytest.mark.parametrize("cut", ["smollm", "gpt-2", "llama-bpe"])
def test_every_text_comes_back_whatever_the_cuts(cut, tmp_path):
    tokenizer = tiny(tmp_path, **{"tokenizer.ggml.pre": cut, **BEGINS})

    @settings(max_examples=60)
    @given(text=TEXTS)
    def comes_back(text):
        tokens = tokenizer.encode(text)
        assert tokens[0] == 261
        assert tokenizer.decode(tokens) == text

    comes_back()


@settings(max_examples=60)
@given(text=TEXTS)
def test_bytes_give_texts_back(text):
    tokenizer = ByteTokenizer()
    tokens = tokenizer.encode(text)
    assert tokenizer.decode(tokens) == text
    assert b"".join(map(tokenizer.token_bytes, tokens)) == bytes(tokens) == text.encode()


def test_bytes_that_are_no_text_are_shown():
    assert ByteTokenizer().decode([72, 0xFF, 105]) == "H\ufffdi"
    assert ByteTokenizer().ends == frozenset()


def test_digits_stand_singly(smollm2, words):
    assert [words[token] for token in smollm2.encode("In 1984, 20٣")] == ["In", "Ġ", *"1984", ",", "Ġ", *"20", "Ù", "£"]


def test_control_tokens_are_one_token_each(smollm2, words):
    tokens = smollm2.encode("<|im_start|>user\nHi<|im_end|>")
    assert [words[token] for token in tokens] == ["<|im_start|>", "user", "Ċ", "Hi", "<|im_end|>"]
    assert smollm2.ends == {tokens[-1]}
    assert smollm2.decode(tokens) == "<|im_start|>user\nHi<|im_end|>"


@settings(max_examples=100)
@given(word=st.text(alphabet="abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=24))
def test_words_are_merged_by_rank(smollm2, words, ranks, word):
    parts = ["Ġ", *word]
    while pairs := [pair for pair in pairwise(parts) if pair in ranks]:
        best = min(pairs, key=ranks.__getitem__)
        joined, place = [], 0
        while place < len(parts):
            step = 2 if tuple(parts[place : place + 2]) == best else 1
            joined.append("".join(parts[place : place + step]))
            place += step
        parts = joined
    assert [words[token] for token in smollm2.encode(f" {word}")] == parts


def test_a_token_outside_the_vocabulary_is_said(smollm2):
    with pytest.raises(ValueError, match="Token 49152 is outside the vocabulary of 49152"):
        smollm2.token_bytes(49152)


def test_many_texts_are_encoded_as_one_by_one(smollm2):
    texts = ["In the beginning", "", "13 times\n"]
    assert smollm2.encode_all(texts) == [smollm2.encode(text) for text in texts]
