"""One line a run, whatever happened in it, in columns that several runs share."""

import io
import re
from pathlib import Path

from rich.console import Console

from orchestrator.events import Event, RunEnded, RunStarted, Warned
from orchestrator.journal_file import read_journal
from orchestrator.recorders.quiet import QuietRecorder

DATA = Path(__file__).parent.parent / "data"
RUN = read_journal(DATA / "journal_autolrs.jsonl")


def shown(events: list[Event], terminal: bool = False) -> str:
    output = io.StringIO()
    recorder = QuietRecorder(Console(file=output, force_terminal=terminal, width=80, highlight=False), clock=lambda: 0)
    for event in events:
        recorder.record(event)
    recorder.close()
    return output.getvalue()


def test_a_run_is_one_line_in_a_log() -> None:
    (line,) = shown(RUN).splitlines()
    assert line.startswith("FINISHED  ")
    for part in ("val 1.399", "test 1.412", "language_model, autolrs, seed 0", "outputs/2026-11-30/12-00-00"):
        assert part in line


def test_lines_of_several_runs_share_their_columns() -> None:
    lines = [shown(read_journal(DATA / f"journal_{name}.jsonl")) for name in ("autolrs", "cosine")]
    assert lines[0].index(" val ") == lines[1].index(" val ")
    assert lines[0].index("language_model") == lines[1].index("language_model")


def test_a_failure_says_why_without_passwords_and_warnings_are_counted() -> None:
    started = next(event for event in RUN if isinstance(event, RunStarted))
    ended = RunEnded("FAILED", "http://ann:secret@host is away", {"wall_seconds": 65.0})
    (line,) = shown([started, Warned("few samples"), ended]).splitlines()
    assert line.startswith("FAILED       1:05  http://ann:***@host is away")
    assert line.endswith("(1 warning in the report)")


def test_a_terminal_shows_progress_until_the_line_comes() -> None:
    text = shown(RUN, terminal=True)
    assert "step 800/800" in text
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h") > 0  # the cursor came back
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
    assert re.split(r"[\r\n]+", plain.rstrip())[-1].startswith("FINISHED")
