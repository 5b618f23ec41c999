"""Texts: where they come from, how they are split, and what is said of those that will not do."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from trainers.data.check import check_data
from trainers.data.text import BLOCKS, read_text, split_text
from trainers.data.windows import Windows
from trainers.errors import DataError


def test_the_king_james_bible_is_whole():
    text = read_text("kjv").tobytes()
    assert text.startswith(b"In the beginning God created the heaven and the earth.\nAnd the earth")
    assert text.count(b"\n") == 31_102
    assert len(text) == 4_137_451


def test_a_folder_is_read_in_the_order_of_its_paths(tmp_path):
    (tmp_path / "b.txt").write_text("two", encoding="utf-8")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "z.txt").write_text("öne", encoding="utf-8")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "x").write_bytes(b"\xff")
    assert read_text(str(tmp_path)).tobytes().decode() == "öne\ntwo"
    assert read_text(str(tmp_path / "b.txt")).tobytes() == b"two"


@settings(max_examples=50)
@given(st.integers(1, 40), st.integers(0, 5000))
def test_no_byte_is_in_two_splits_and_few_are_lost(context, more):
    # Every byte of this text is known by its place: the numbers stand in for bytes.
    text = np.arange(BLOCKS * (context + 1) + more)
    seen = []
    for part, starts in split_text(text, context, "text").values():
        windows = part[starts[:, None] + np.arange(context + 1)]
        assert (np.diff(windows, axis=1) == 1).all()  # a window is one stretch of the text
        seen.append(set(windows.flatten().tolist()))
    assert len(set.union(*seen)) == sum(map(len, seen))
    assert sum(map(len, seen)) >= len(text) - BLOCKS * context - BLOCKS


def test_the_splits_hold_90_5_and_5_percent_from_all_parts_of_the_text():
    text = np.arange(100_000)
    parts = split_text(text, 10, "text")
    assert [len(part) for part, _ in parts.values()] == [90_000, 5_000, 5_000]
    assert [part.mean() for part, _ in parts.values()] == pytest.approx([50_000] * 3, rel=0.02)


def test_windows_are_fetched_many_at_a_time():
    windows = Windows(np.arange(100, dtype=np.uint8), np.array([0, 4, 8]), length=5)
    assert len(windows) == 3
    assert windows[torch.tensor([2, 0])].tolist() == [[8, 9, 10, 11, 12], [0, 1, 2, 3, 4]]


def test_texts_that_will_not_do_are_named_before_anything_starts(tmp_path):
    def sentence(data: str, context: int = 16) -> str:
        task = {"_target_": "trainers.tasks.language_model.LanguageModel", "data": data, "context": context}
        with pytest.raises(DataError) as caught:
            check_data(task)
        return str(caught.value)

    (tmp_path / "latin").write_bytes(b"caf\xe9 " * 1000)
    (tmp_path / "short").write_text("word " * 100)
    (tmp_path / "empty").mkdir()
    (tmp_path / "nothing").write_bytes(b"")
    assert "missing cannot be read (No such file or directory); give a UTF-8 file" in sentence(
        str(tmp_path / "missing")
    )
    assert "latin is not UTF-8 (byte 3); convert it" in sentence(str(tmp_path / "latin"))
    assert "short holds 500 bytes; windows of task.context=16 need at least 1700" in sentence(str(tmp_path / "short"))
    assert "is a folder without files" in sentence(str(tmp_path / "empty"))
    assert "holds 0 bytes" in sentence(str(tmp_path / "nothing"))
    assert "task.context is 0" in sentence("kjv", 0)
    check_data({"_target_": "trainers.tasks.language_model.LanguageModel", "data": "kjv", "context": 128})
    check_data({"_target_": "somebody.elses.Task", "data": "whatever"})
