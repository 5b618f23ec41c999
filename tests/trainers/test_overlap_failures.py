"""A rank that fails while steps overlap ends the step on all ranks, with its reason and long before the time-out."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

RANK = Path(__file__).with_name("failing_overlap_rank.py")
PATIENCE = 25.0  # seconds, of a group that waits for 60


def said(ranks: int, folder: Path, how: str) -> list[str]:
    """What each rank said in the end; the last one is guilty, and says nothing if it was killed."""
    processes = [subprocess.Popen([sys.executable, RANK, str(rank), str(ranks), folder, how]) for rank in range(ranks)]
    try:
        for process in processes:
            process.wait(timeout=120)
    finally:
        for process in processes:
            process.kill()
    found = [json.loads(path.read_text()) for path in sorted(folder.glob("said-*.json"))]
    assert all(seconds < PATIENCE for _, seconds in found)
    return [words for words, _ in found]


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2, 3])
def test_an_exception_in_an_operation(ranks, tmp_path):
    sentences = said(ranks, tmp_path, "raised")
    assert len(sentences) == ranks
    for sentence in sentences:
        assert sentence.startswith("OverlapError: The overlapped step has failed")
        assert "ArithmeticError: the step went wrong" in sentence
    assert all(f"on rank {ranks - 1}" in sentence for sentence in sentences[:-1])


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2, 3])
def test_a_rank_that_is_killed(ranks, tmp_path):
    sentences = said(ranks, tmp_path, "killed")
    assert len(sentences) == ranks - 1
    for sentence in sentences:
        assert sentence.startswith("OverlapError: The overlapped step has failed"), sentence


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [3])
def test_a_rank_that_votes_differently(ranks, tmp_path):
    sentences = said(ranks, tmp_path, "voted")
    assert len(sentences) == ranks
    for sentence in sentences:
        assert sentence.startswith(f"OverlapError: Rank {ranks - 1} has another model"), sentence


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [3])
def test_a_rank_that_fails_while_it_is_measured(ranks, tmp_path):
    *others, guilty = said(ranks, tmp_path, "recorded")
    assert guilty == "ArithmeticError: there is no loss"
    assert len(others) == ranks - 1
    for sentence in others:
        assert sentence.startswith("OverlapError: "), sentence
        assert f"rank {ranks - 1}: ArithmeticError: there is no loss" in sentence
