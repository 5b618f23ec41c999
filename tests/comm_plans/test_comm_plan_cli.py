"""`comm-plan` as a person runs it: its two outputs and its exit code; as a process where that is what matters."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from io import BytesIO, TextIOWrapper
from pathlib import Path
from time import sleep
from typing import NamedTuple
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msccl_interpreter import check

from comm_plans import terminal
from comm_plans.cache import PlanCache
from comm_plans.cli import main
from comm_plans.errors import PlansError
from comm_plans.fabrics import fabric
from comm_plans.sizes import parse_size
from comm_plans.solve import solve
from comm_plans.topology import Topology


class Done(NamedTuple):
    """What a command printed."""

    stdout: str
    stderr: str


Command = Callable[..., Done]


@pytest.fixture
def comm_plan(capsys: pytest.CaptureFixture[str]) -> Command:
    def run(*arguments: str | Path, code: int = 0) -> Done:
        capsys.readouterr()
        try:
            returned = main([str(argument) for argument in arguments])
        except SystemExit as exit:
            returned = exit.code
        done = Done(*capsys.readouterr())
        assert returned == code, done.stderr
        return done

    return run


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("plans") / "plan.json"
    main(["solve", "ring:ranks=4", "--collective", "all_gather", "--out", str(file)])
    return file


def test_solve_prints_one_json_object_and_nothing_else(comm_plan: Command) -> None:
    done = comm_plan("solve", "dgx_a100:boxes=2", "--collective", "all_gather", "--trees-per-rank", "1", "--json")
    answer = json.loads(done.stdout)
    assert Fraction(answer["algbw"]) == Fraction(2400, 7)
    assert Fraction(answer["optimum"]) == Fraction(1040, 3)
    assert (answer["optimal"], answer["verified"], answer["trees_per_rank"], answer["ranks"]) == (False, True, 1, 16)
    assert set(answer) >= {"collective", "depth", "bottleneck", "solve_seconds"}


def test_solve_speaks_to_people_without_colours_where_nobody_looks(comm_plan: Command) -> None:
    done = comm_plan("solve", "ring:ranks=4", "--collective", "broadcast", "--root", "g2")
    assert "the network's optimum" in done.stdout
    assert "\x1b" not in done.stdout + done.stderr


def test_verify_checks_the_plan_on_its_own_network_and_on_another(
    comm_plan: Command, plan: Path, tmp_path: Path
) -> None:
    assert "exactly once" in comm_plan("verify", plan).stdout
    comm_plan("verify", plan, "--topology", "ring:ranks=4")
    slower = comm_plan("verify", plan, "--topology", "ring:ranks=4,bandwidth=1/2", code=2)
    assert slower.stdout == ""
    assert "nodes are not those" in comm_plan("verify", plan, "--topology", "ring:ranks=5", code=2).stderr


def test_verify_refuses_a_broken_plan(comm_plan: Command, plan: Path, tmp_path: Path) -> None:
    document = json.loads(plan.read_text())
    document["trees"].pop()
    broken = tmp_path / "broken.json"
    broken.write_text(json.dumps(document))
    for command in (["verify", broken], ["simulate", broken, "--bytes", "1GiB"]):
        assert_one_sentence(comm_plan(*command, code=2))
    comm_plan("export", broken, "--format", "svg", "--out", tmp_path / "broken.svg", code=2)
    assert not (tmp_path / "broken.svg").exists()


def test_simulate_as_json_and_for_people(comm_plan: Command, plan: Path) -> None:
    done = comm_plan("simulate", plan, "--bytes", "1GiB", "--json")
    answer = json.loads(done.stdout)
    assert answer["bytes"] == 2**30
    assert Fraction(answer["fluid_seconds"]) <= Fraction(answer["seconds"])
    assert len(answer["links"]) == 8
    assert "assuming 5 µs a hop" in done.stderr
    assert "busiest link" in comm_plan("simulate", plan, "--bytes", "4096", "--chunks", "2").stdout


def test_export_writes_xml_and_pictures(comm_plan: Command, plan: Path, tmp_path: Path) -> None:
    done = comm_plan("export", plan, "--format", "msccl", "--out", tmp_path / "plan.xml")
    assert done.stdout == ""
    assert "thread blocks" in done.stderr
    check((tmp_path / "plan.xml").read_text())
    comm_plan("export", plan, "--format", "svg", "--out", tmp_path / "plan.svg")
    assert ElementTree.parse(tmp_path / "plan.svg").getroot().tag.endswith("svg")


def test_read_prints_a_topology_file(comm_plan: Command, tmp_path: Path) -> None:
    file = tmp_path / "ring.json"
    file.write_text(comm_plan("read", "ring:ranks=4").stdout)
    assert Topology.load(file).capacities == Topology.loads(comm_plan("read", file).stdout).capacities


def test_cache_commands(comm_plan: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert comm_plan("cache", "list").stdout == ""
    path = PlanCache().put(solve(fabric("ring:ranks=4"), "all_gather"))
    assert "all_gather" in comm_plan("cache", "list").stdout
    (listed,) = json.loads(comm_plan("cache", "list", "--json").stdout)
    assert json.loads(comm_plan("cache", "show", listed["key"][:6], "--json").stdout)["ranks"] == 4
    assert "verified" in comm_plan("cache", "verify").stdout
    path.write_bytes(path.read_bytes()[:-9])
    assert "not as it was written" in comm_plan("cache", "verify", code=1).stdout
    assert_one_sentence(comm_plan("cache", "show", listed["key"], code=2))
    assert "removed" in comm_plan("cache", "prune").stdout
    assert not path.exists()


def test_a_person_at_a_terminal_sees_colour_and_a_tree() -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "comm_plans.cli", "solve", "ring:ranks=4", "--collective", "broadcast"]
    subprocess.run([*command, "--root", "0"], stdout=theirs, stderr=subprocess.PIPE, check=True)
    os.close(theirs)
    shown = os.read(ours, 100_000).decode()
    os.close(ours)
    assert "└── " in shown
    assert "\x1b[" in shown


def test_a_long_solve_speaks_up_where_nobody_watches(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal, "PATIENCE", 0.05)
    with terminal.progress() as report:
        report("trees")
        assert capsys.readouterr().err == ""
        sleep(0.3)
        report("verify")
    assert capsys.readouterr().err == "trees …\nverify …\n"


@given(size=st.integers(1, 10**15), unit=st.sampled_from(["", "B", "kB", "MiB", "gb"]))
def test_sizes_are_exact(size: int, unit: str) -> None:
    factor = {"": 1, "B": 1, "kB": 1000, "MiB": 2**20, "gb": 10**9}[unit]
    if size * factor <= 10**18:
        assert parse_size(f"{size}{unit}") == size * factor


@pytest.mark.parametrize(("text", "size"), [("1GiB", 2**30), ("64MB", 64 * 10**6), ("1e9", 10**9), ("1.5 KiB", 1536)])
def test_sizes_as_people_write_them(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "GB", "1.3", "-1", "0", "1e30", "1 PB", "1e", "1..2", "inf"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(PlansError, match="is no size"):
        parse_size(text)


def assert_one_sentence(done: Done) -> None:
    assert done.stdout == ""
    assert done.stderr.startswith("comm-plan")
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr
    assert "\x1b" not in done.stderr


SOLVE = ("--collective", "all_gather")
WRONG = {
    "no command": [],
    "unknown option": ["solve", "ring", *SOLVE, "--fast"],
    "no collective": ["solve", "ring"],
    "unknown collective": ["solve", "ring", "--collective", "gather"],
    "unknown fabric": ["solve", "dgx_z", *SOLVE],
    "missing file": ["solve", "missing.yaml", *SOLVE],
    "one rank": ["solve", "ring:ranks=1", *SOLVE],
    "trees": ["solve", "ring", *SOLVE, "--trees-per-rank", "0"],
    "trees in words": ["solve", "ring", *SOLVE, "--trees-per-rank", "two"],
    "tolerance": ["solve", "ring", *SOLVE, "--tolerance", "nan"],
    "tolerance of all": ["solve", "ring", *SOLVE, "--tolerance", "1"],
    "trees beyond counting": ["solve", "ring", *SOLVE, "--trees-per-rank", "1" + "0" * 30],
    "out to nowhere": ["solve", "ring", *SOLVE, "--out", ""],
    "out to a folder": ["export", "{plan}", "--format", "msccl", "--out", "/"],
    "plan with a control character": ["verify", "{ansi}"],
    "plan that other commands refuse": ["verify", "{extra}"],
    "file with a control character": ["read", "\x1b[31m.yaml"],
    "NCCL topology to solve": ["solve", "{xml}", *SOLVE],
    "nvidia-smi to verify": ["verify", "{plan}", "--topology", "{smi}"],
    "no root": ["solve", "ring", "--collective", "reduce"],
    "unknown root": ["solve", "ring", "--collective", "reduce", "--root", "99"],
    "root of an all_gather": ["solve", "ring", *SOLVE, "--root", "0"],
    "folder of the plan": ["solve", "ring", *SOLVE, "--out", "/missing/plan.json"],
    "missing plan": ["simulate", "missing.json", "--bytes", "1GB"],
    "size": ["simulate", "{plan}", "--bytes", "many"],
    "part of a byte": ["simulate", "{plan}", "--bytes", "0.3"],
    "latency": ["simulate", "{plan}", "--bytes", "1", "--latency", "-1"],
    "format": ["export", "{plan}", "--format", "pdf", "--out", "plan.pdf"],
    "no such key": ["cache", "show", "zzz"],
    "NCCL topology": ["read", "{xml}"],
    "nvidia-smi": ["read", "{smi}"],
}


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_input_is_one_sentence_and_exit_code_2(
    comm_plan: Command, wrong: str, plan: Path, tmp_path: Path
) -> None:
    files = {"plan": plan, "xml": tmp_path / "topology.xml", "smi": tmp_path / "topo.txt"}
    document = json.loads(plan.read_text())
    for name, change in {
        "ansi": {"version": "\x1b[31m"},
        "extra": {"topology": {**document["topology"], "x": 1}},
    }.items():
        files[name] = tmp_path / f"{name}.json"
        files[name].write_text(json.dumps(document | change))
    files["xml"].write_text('<system version="1"><cpu numaid="0"/></system>')
    files["smi"].write_text("\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV12\n")
    assert_one_sentence(comm_plan(*(word.format_map(files) for word in WRONG[wrong]), code=2))


@pytest.mark.parametrize("stdout", [None, TextIOWrapper(BytesIO(), "ascii")])
def test_closed_and_narrow_outputs_are_no_fault(
    stdout: TextIOWrapper | None, plan: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", stdout)
    assert main(["simulate", str(plan), "--bytes", "64MB"]) == 0


def test_what_is_almost_the_optimum_is_not_called_all_of_it(comm_plan: Command) -> None:
    done = comm_plan("solve", "dgx_a100:boxes=2", "--collective", "all_gather", "--trees-per-rank", "100000")
    assert "99.9% of the optimum" in done.stdout


def test_help_needs_nothing_heavy() -> None:
    heavy = "numpy", "numba", "scipy", "rich", "yaml"
    code = f"import sys, comm_plans.cli as cli; cli._parser(); print([m for m in {heavy} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_the_installed_command() -> None:
    command = Path(sys.executable).with_name("comm-plan")
    done = subprocess.run([command, "solve", "ring", *SOLVE, "--json"], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["verified"]
    wrong = subprocess.run([command, "read", "missing.json"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 2
    assert_one_sentence(Done(wrong.stdout, wrong.stderr))
