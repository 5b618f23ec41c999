"""Every command that README and docs show is one that the programs take, and the cheap ones are run.

Runs are tried with `dry_run=true`, sweeps are planned. Commands of other programs (Ray, MLflow, Prometheus) are not
looked at, and those that need root or the network lab only as far as their files are there.
"""

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from comm_plans.cli import _parser as comm_plan_parser
from orchestrator.cli import _dispatch
from orchestrator.cli import _parser as orchestrate_parser
from orchestrator.sweep.plan import planned

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SHOWN = re.compile(r"^ {4}(?:\$ )?((?:orchestrate|comm-plan) .*)$", re.M)
IN_TEXT = re.compile(r"`((?:orchestrate|comm-plan) [^`]+)`")
SCRIPTS = re.compile(r"\bscripts/\w+\.(?:py|sh)\b")
TARGETS = re.compile(r"^ {4}make ([\w-]+)", re.M)
LINKS = re.compile(r"\]\(([^)#]+)[^)]*\)")
CONTINUED = re.compile(r"\s*\\\n\s*")
END = re.compile(r"\s{2,}|\s#\s|\s\|\s|\s>\s|\s\[|\s…")  # where a description, a remark, another program begins
LAB = "cluster=lab"
CLUSTER_FILE = "servers: 2\ngpus_per_server: 4\nintra_bandwidth: 300\nnic_bandwidth: 25\n"
OWN_TASK = "# @package _global_\nsteps: 300\nbatch_size: 32\ntask: {_target_: own_task.Sine}\n"


def shown() -> dict[str, list[str]]:
    """The words of each command by `PAGE: COMMAND`."""
    found = {}
    for page in PAGES:
        text = CONTINUED.sub(" ", page.read_text())
        for line in [*SHOWN.findall(text), *IN_TEXT.findall(text)]:
            bare = END.split(line.replace(",…", ""))[0]
            found[f"{page.name}: {bare}"] = [word.partition("|")[0] for word in shlex.split(bare)]
    return found


def commands(*beginning: str) -> list[Any]:
    """Those that begin so, as test parameters: the words behind that."""
    count = len(beginning)
    chosen = {name: words[count:] for name, words in shown().items() if words[:count] == [*beginning]}
    return [pytest.param(words, id=name) for name, words in chosen.items() if LAB not in words]


def parses(parser: Any, words: list[str]) -> None:
    """A command alone, as a text mentions it, must be there; with words behind it, they must be right."""
    if len(words) > 1:
        parser.parse_args(words)
        return
    with pytest.raises(SystemExit, match="0"):
        parser.parse_args([*words, "--help"])


@pytest.fixture
def _as_a_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand in a folder that has the files which the commands name."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["orchestrate"])
    shutil.copy(ROOT / "conf" / "topologies" / "two_boxes.yaml", tmp_path / "cluster.yaml")
    (tmp_path / "gpus.yaml").write_text(CLUSTER_FILE)
    (tmp_path / "my_texts").mkdir()
    (tmp_path / "my_texts" / "one.txt").write_text("In the beginning. " * 4000)
    (tmp_path / "FOLDER").mkdir()
    (tmp_path / "FOLDER" / "best.yaml").write_text("- task=tabular\n- lr=cosine\n- lr.rate=0.003\n")
    (tmp_path / "my_conf" / "task").mkdir(parents=True)
    for name in ("my_task", "sine"):
        (tmp_path / "my_conf" / "task" / f"{name}.yaml").write_text(OWN_TASK)


@pytest.mark.slow
@pytest.mark.usefixtures("_as_a_reader")
@pytest.mark.parametrize("words", commands("orchestrate", "run"))
def test_a_run_can_be_started_as_it_is_shown(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    try:
        status: Any = _dispatch(["run", *words, "dry_run=true"])
    except SystemExit as ended:  # Hydra's own way to end, as after --help
        status = ended.code
    assert not status
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("_as_a_reader")
@pytest.mark.parametrize("words", [each for each in commands("orchestrate", "sweep") if each.values[0]])
def test_a_sweep_can_be_planned_as_it_is_shown(words: list[str]) -> None:
    assert planned(words).trials > 1


OTHERS = [each for each in commands("orchestrate") if each.values[0][0] not in ("run", "sweep")]


@pytest.mark.parametrize("words", OTHERS)
def test_other_commands_of_orchestrate_are_taken(words: list[str]) -> None:
    parses(orchestrate_parser(), words)


@pytest.mark.parametrize("words", commands("comm-plan"))
def test_commands_of_comm_plan_are_taken(words: list[str]) -> None:
    parses(comm_plan_parser(), words)


def test_scripts_and_targets_are_there() -> None:
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M)
    for page in PAGES:
        text = page.read_text()
        assert [name for name in SCRIPTS.findall(text) if not (ROOT / name).is_file()] == [], page.name
        assert [name for name in TARGETS.findall(text) if name not in targets] == [], page.name


def test_every_page_is_in_the_index_and_every_link_leads_somewhere() -> None:
    index = (ROOT / "docs" / "README.md").read_text()
    for page in PAGES:
        links = [link for link in LINKS.findall(page.read_text()) if "://" not in link]
        assert [link for link in links if not (page.parent / link).exists()] == [], page.name
    assert [page.name for page in PAGES[1:] if page.name != "README.md" and f"({page.name})" not in index] == []


@pytest.mark.slow
def test_the_readmes_plans_come_out_as_it_says(tmp_path: Path) -> None:
    lines = [line for line in SHOWN.findall((ROOT / "README.md").read_text()) if line.startswith("comm-plan ")]
    names = ("solve", "simulate", "verify", "export", "wire")
    for line in [line for line in lines if line.split()[1] in names]:
        command = [str(Path(sys.executable).with_name("comm-plan")), *shlex.split(END.split(line)[0])[1:]]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert {"plan.json", "plan.xml"} <= {path.name for path in tmp_path.iterdir()}


@pytest.mark.slow
def test_what_can_be_done_with_run_folders_is_done(tmp_path: Path) -> None:
    for name in ("autolrs", "cosine"):
        folder = tmp_path / "outputs" / "2026-11-30" / name
        folder.mkdir(parents=True)
        lines = (ROOT / "tests" / "data" / f"journal_{name}.jsonl").read_text().splitlines()
        (folder / "journal.jsonl").write_text("\n".join(lines) + "\n")
        (folder / "result.json").write_text(json.dumps(json.loads(lines[-1])["result"]))
    run = "outputs/2026-11-30/autolrs"
    for words in (["compare"], ["report", run], ["watch", run, "--file", "run.html"], ["doctor"]):
        command = [str(Path(sys.executable).with_name("orchestrate")), *words]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (words, done.stderr)
    assert {"compare.png", "compare.txt"} <= {path.name for path in (tmp_path / "outputs").iterdir()}
    assert "<html" in (tmp_path / "run.html").read_text()
