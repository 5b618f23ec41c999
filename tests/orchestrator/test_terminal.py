"""What a person sees: complete, at most 80 columns, readable without colour and in a pipe."""

import io
import re
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from orchestrator.events import CommunicationMeasured, Event, RateChosen, RunEnded, RunStarted, StepsTrained, Warned
from orchestrator.journal_file import read_journal
from orchestrator.recorders.terminal import TerminalRecorder
from orchestrator.words import clock_text, duration_text, loss_text, rate_text, score_text

RUN = read_journal(Path(__file__).parent.parent / "data" / "journal_autolrs.jsonl")


def shown(events: list[Event], terminal: bool) -> str:
    """What a recorder writes, driven by a clock that follows the events' own seconds."""
    output, now = io.StringIO(), [0.0]
    console = Console(file=output, force_terminal=terminal, width=80 if terminal else None, highlight=False)
    recorder = TerminalRecorder(console, clock=lambda: now[0])
    for event in events:
        now[0] += getattr(event, "seconds", 0.0) + getattr(event, "train_seconds", 0.0)
        recorder.record(event)
    recorder.close()
    return output.getvalue()


def test_a_piped_run_tells_everything_in_plain_text() -> None:
    text = shown(RUN, terminal=False)
    assert "\x1b" not in text
    lines = text.splitlines()
    assert all(line == line.rstrip() for line in lines)
    assert "language_model on 2 workers, seed 0" in text
    assert "800 steps, and at most 520 of search (39 % of all)" in text
    assert text.index("at most 520") < text.index("2 workers ready")
    for event in RUN:
        if isinstance(event, RateChosen):
            choice = event.choice
            line = next(line for line in lines if line.startswith(f"stage {choice.stage}  {rate_text(choice.rate)}"))
            assert choice.reason in line
    assert text.count("diverged") == 7
    assert "validation loss 1.399, test loss 1.412" in text
    assert "outputs/2026-11-30/12-00-00/result.json" in text
    assert text.rstrip().splitlines()[-2:] == [
        "compare  orchestrate compare",
        "score    orchestrate run evaluate=outputs/2026-11-30/12-00-00",
    ]


def test_how_gradients_travelled_and_why_is_told_at_the_end() -> None:
    rule = "plans for pair (file, 0 s)\nall_reduce: by plan from 1 KiB; 8 MiB take 1 s by plan, 2 s by gloo"
    moved = {"planned_calls": 3, "planned_bytes": 10**9, "measured_seconds": 2.0, "other_calls": 1}
    text = shown([CommunicationMeasured(20, rule, {"all_reduce": moved})], terminal=False)
    assert text == f"3 of 4 all_reduce by plan at 0.5 GB/s ({rule.splitlines()[1]})\n"
    text = shown([CommunicationMeasured(20, "no plan; every collective goes by the inner group", {})], terminal=False)
    assert text == "0 of 0 all_reduce by plan (no plan; every collective goes by the inner group)\n"


def test_progress_lines_in_a_pipe_come_every_five_seconds() -> None:
    progress = [line for line in shown(RUN, terminal=False).splitlines() if line.endswith(" left")]
    spent = sum(getattr(event, "seconds", 0.0) + getattr(event, "train_seconds", 0.0) for event in RUN)
    assert spent / 5 - 8 < len(progress) <= spent / 5
    for line in progress:
        assert re.fullmatch(
            r"(range test|stage \d(/4| probe \d))  step \d+/800  lr \S+  train \S+(  val \S+)?  \d+:\d\d left", line
        )
    minutes = [int(line.split()[-2].split(":")[0]) * 60 + int(line.split()[-2].split(":")[1]) for line in progress]
    assert minutes[0] > 40
    assert minutes[-1] < 8


def test_a_terminal_of_80_columns_holds_every_line() -> None:
    text = shown(RUN, terminal=True)
    assert "\x1b[" in text
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
    lines = re.split(r"[\r\n]+", plain)
    assert max(map(len, lines)) <= 80
    assert any("step 800/800" in line for line in lines)
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h") > 0  # the cursor came back


def test_no_color_is_obeyed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    text = shown(RUN, terminal=True)
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]m", text)
    assert "▸1.4e-3" in text  # what colour marks is marked otherwise as well


def test_a_warning_is_one_line_without_passwords() -> None:
    message = "MLflow at http://ann:secret@host does not answer; " + "what it misses is kept and sent later; " * 4
    text = shown([Warned(message)], terminal=False)
    assert text.count("\n") == 1
    assert "http://ann:***@host" in text


def test_a_failed_run_says_why_and_how_to_go_on() -> None:
    started = next(event for event in RUN if isinstance(event, RunStarted))
    text = shown([started, RunEnded("FAILED", "rank 1 ran out of memory", {})], terminal=False)
    assert "FAILED: rank 1 ran out of memory" in text
    assert "orchestrate resume outputs/2026-11-30/12-00-00" in text


def test_what_to_type_next_names_code_of_ones_own() -> None:
    started = next(event for event in RUN if isinstance(event, RunStarted))
    mine = replace(started, config={**started.config, "task": {"_target_": "own_task.Sine"}})
    for state, command in (("KILLED", "orchestrate resume "), ("FINISHED", "orchestrate run evaluate=")):
        text = shown([mine, RunEnded(state, None, {})], terminal=False)
        assert f"{command}{mine.folder} task._target_=own_task.Sine\n" in text


def test_steps_without_a_start_do_no_harm() -> None:
    assert "stage" not in shown([StepsTrained(0, 0, [], [], 9.0)], terminal=False)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (rate_text(0.0032), "3.2e-3"), (rate_text(1.0), "1.0e0"), (rate_text(0.0), "0.0"),
        (loss_text(None), "–"), (loss_text(float("nan")), "nan"), (loss_text(2.5), "2.500"),
        (loss_text(0.00123), "0.00123"), (loss_text(0.0), "0"), (loss_text(123456.0), "1.23e+05"),
        (duration_text(0.08), "0.08 s"), (duration_text(59.97), "1 min 00 s"), (duration_text(11100), "3 h 05 min"),
        (clock_text(112), "1:52"), (clock_text(11100), "3:05:00"),
    ],
)  # fmt: skip
def test_numbers_as_people_read_them(text: str, expected: str) -> None:
    assert text == expected


def test_scores_of_any_size() -> None:
    scores = {0.9: "0.900", 1024.0: "1,024", 118.0: "118", 1026.4: "1,026", 1.0: "1.000", 0.0: "0", 1e12 + 0.5: "1e+12"}
    assert [score_text(score) for score in scores] == list(scores.values())
    assert score_text(float("inf")) == "inf"
