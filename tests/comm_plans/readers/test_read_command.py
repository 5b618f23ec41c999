"""`comm-plan read` as a person runs it: a topology file on one output, remarks and sentences on the other."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from reader_texts import FOLDER

from comm_plans.cli import main
from comm_plans.topology import Topology

BOX = FOLDER / "dgx_a100.txt"


def test_what_is_printed_is_a_topology_file_and_nothing_else(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["read", str(BOX), str(BOX), "--bandwidth", "NIC=50", "--network", "rails"]) == 0
    printed = capsys.readouterr()
    (tmp_path / "cluster.json").write_text(printed.out)
    assert len(Topology.load(tmp_path / "cluster.json").ranks) == 16
    assert "assuming 300 GB/s for NV12" in printed.err
    assert main(["solve", str(tmp_path / "cluster.json"), "--collective", "all_gather", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["verified"] is True


def test_a_pipe_is_read_too() -> None:
    command = [sys.executable, "-m", "comm_plans.cli", "read", "-"]
    done = subprocess.run(command, input=BOX.read_bytes(), capture_output=True, check=True)
    assert json.loads(done.stdout)["name"] == "host"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([str(BOX), "--bandwidth", "NV12"], "'NV12' is not WORD=GB/S; write it as NV12=300"),
        ([str(BOX), "--bandwidth", "NV12=0"], "is not WORD=GB/S"),
        ([str(BOX), "--bandwidth", "NV12=1e30"], "is not WORD=GB/S"),
        ([str(BOX), "--bandwidth", "=5"], "is not WORD=GB/S"),
        ([str(BOX), "--bandwidth", "QPI=5"], "nothing here goes by that word"),
        (["ring:ranks=4", "--bandwidth", "NV12=5"], "ring:ranks=4 is no file that nvidia-smi"),
        (["ring:ranks=4", str(BOX)], "ring:ranks=4 is no file that nvidia-smi"),
        ([str(BOX), "no such file.txt"], "no such file.txt is no file"),
        ([str(BOX), str(FOLDER)], "topology_inputs"),
        ([str(BOX), __file__], "in none of the forms that can be joined"),
    ],
)
def test_a_mistake_is_one_sentence_and_nothing_is_printed(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["read", *arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert sentence in printed.err
    assert printed.err.count("\n") == 1


def test_other_commands_say_how_to_turn_it_into_a_topology_file(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("dgx_a100.txt", "nccl_h100_four.xml", "two_hives_showtopo.txt", "p2p_four_gpus.txt"):
        assert main(["solve", str(FOLDER / name), "--collective", "all_gather"]) == 2
        assert f"comm-plan read {FOLDER / name} > topology.json" in capsys.readouterr().err
