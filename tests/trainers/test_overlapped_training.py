"""Overlapped steps give the bits of DDP's, whatever is trained, by whichever optimizer, in whichever layout."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from overlap_rank import CASES

RANK = Path(__file__).with_name("overlap_rank.py")
FEW = ("untied", "clipped", "schedule-free", "batch norm", "experts")


def run(ranks: int, folder: Path, *cases: str, how: str = "laid out") -> list[dict]:
    command = [sys.executable, RANK]
    processes = [subprocess.Popen([*command, str(rank), str(ranks), folder, how, *cases]) for rank in range(ranks)]
    try:
        assert [process.wait(timeout=300) for process in processes] == [0] * ranks
    finally:
        for process in processes:
            process.kill()
    return [json.loads((folder / f"seen-{rank}.json").read_text()) for rank in range(ranks)]


@pytest.mark.parametrize("cases", [FEW, pytest.param(set(CASES) - set(FEW), marks=pytest.mark.slow)], ids=len)
def test_two_ranks_get_the_bits_of_ddp(cases, tmp_path):
    for rank in run(2, tmp_path, *cases):
        for name, outcomes in rank.items():
            for layout, outcome in outcomes.items():
                assert outcome == outcomes["DDP"], (name, layout)


@pytest.mark.slow
def test_gradients_may_travel_along_plans(tmp_path):
    for rank in run(2, tmp_path, "tied", "schedule-free", "clipped", how="along plans"):
        for name, outcomes in rank.items():
            assert all(outcome == outcomes["DDP"] for outcome in outcomes.values()), name


@pytest.mark.slow
def test_searching_leaves_no_trace_and_what_is_found_gives_the_bits_of_ddp(tmp_path):
    seen = run(2, tmp_path, "tied", "clipped", "accumulated", "batch norm", "experts", how="searched")
    for name, found in seen[0].items():
        decision = found["decision"]
        assert decision == seen[1][name]["decision"]
        assert {"serial", "ddp"} <= set(decision["seconds"])
        assert decision["chosen"] in decision["seconds"]
        for rank in seen:
            assert rank[name]["before"] == rank[name]["after"]
            assert rank[name]["searched"] == rank[name]["DDP"], (name, decision["chosen"])


@pytest.mark.slow
def test_three_ranks_get_the_losses_of_ddp_and_the_bits_of_one_another(tmp_path):
    """Sums of three and more depend on how gradients are grouped."""
    seen = run(3, tmp_path, "tied", "schedule-free", "table")
    for name in seen[0]:
        for layout, (losses, (weights, *_), *_) in seen[0][name].items():
            assert {rank[name][layout][1][0] for rank in seen} == {weights}
            assert losses[0] == pytest.approx(seen[0][name]["DDP"][0][0], abs=1e-5), (name, layout)
