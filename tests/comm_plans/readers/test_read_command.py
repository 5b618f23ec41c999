"""`comm-plan read` as a person runs it: a topology file on one output, remarks and sentences on the other."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from reader_texts import FOLDER

from comm_plans.cli import main
from comm_plans.topology import Topology

BOX, XML = FOLDER / "dgx_a100.txt", FOLDER / "nccl_h100_four.xml"


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


def _commands_of_the_page() -> list[str]:
    page = (Path(__file__).parents[3] / "docs" / "reading-topologies.md").read_text()
    return re.findall(r"^    \$ (comm-plan .*|nvidia-smi .*)$", page, re.MULTILINE)


def test_the_commands_of_the_page_work(tmp_path: Path) -> None:
    """With texts of fixtures in place of a cluster; a shell stands in for nvidia-smi."""
    for name, source in (("node1.txt", BOX), ("node2.txt", BOX), ("node1.xml", XML), ("node2.xml", XML)):
        (tmp_path / name).write_bytes(source.read_bytes())
    comm_plan = f"{shlex.quote(sys.executable)} -m comm_plans.cli"
    commands = [line.replace("nvidia-smi topo -m", "cat node1.txt") for line in _commands_of_the_page()]
    assert len(commands) == 4
    script = "set -e\n" + "\n".join(line.replace("comm-plan", comm_plan) for line in commands)
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert Topology.load(tmp_path / "cluster.json").hosts.keys() == {"node1", "node2"}
