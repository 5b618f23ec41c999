"""What people report of others' output: lines without end, and names that no file system takes."""

import io
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from orchestrator.events import JobReady, RateChosen, RunStarted
from orchestrator.journal_file import read_journal
from orchestrator.recorders.mlflow.parameters import flat
from orchestrator.recorders.terminal import TerminalRecorder

RUN = read_journal(Path(__file__).parent.parent / "data" / "journal_autolrs.jsonl")
MANY = {f"a_parameter_whose_name_is_rather_long_{number}": "x" * 100 for number in range(40)}


def shown(*events: object) -> list[str]:
    output = io.StringIO()
    recorder = TerminalRecorder(Console(file=output, width=80), clock=lambda: 0.0)
    for event in events:
        recorder.record(event)  # type: ignore[arg-type]
    recorder.close()
    return output.getvalue().splitlines()


def test_forty_long_parameters_do_not_flood_the_terminal_ray_36854() -> None:
    started = RUN[0]
    assert isinstance(started, RunStarted)
    crowded = replace(started, config=started.config | {"task": {**started.config["task"], **MANY}})
    lines = shown(crowded, *RUN[1:])
    assert len(lines) == len(shown(*RUN)) < 80
    assert max(map(len, lines)) <= 80


def test_no_name_is_longer_than_a_tracker_takes_ray_1463() -> None:
    deep = {"a" * 100: {"b" * 100: {"c" * 100: "x"}}} | MANY
    assert all(len(name) <= 250 for name in flat(deep))


def test_how_to_sign_in_to_the_dashboard_is_told_beside_its_address_ray_auth() -> None:
    lines = shown(RUN[0], JobReady(2, "cpu", 100, 1.0, "http://127.0.0.1:8265"))
    assert any("http://127.0.0.1:8265" in line for line in lines)
    assert "auth_token" in " ".join(lines)


def test_a_stage_is_one_line_ray_12374() -> None:
    stages = [line for line in shown(*RUN) if line.startswith("stage ")]
    assert len(stages) == sum(isinstance(event, RateChosen) for event in RUN)
