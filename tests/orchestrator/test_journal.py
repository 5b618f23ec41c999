"""The journal keeps every event exactly, and a kill at any byte costs at most the line being written."""

import json
import math
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator import events
from orchestrator.errors import UserError
from orchestrator.events import Event, Json, RunStarted, StepsTrained, Validated, Warned
from orchestrator.journal_file import read_entries, read_journal
from orchestrator.learning_rate.policy import Choice, Forecast, RangeFound
from orchestrator.recorders.journal import Journal

floats = st.floats()
texts = st.text(max_size=20)
naturals = st.integers(0, 10**9)
series = st.lists(floats, max_size=5)
json_values: st.SearchStrategy[Json] = st.dictionaries(
    texts,
    st.recursive(st.none() | st.booleans() | naturals | floats | texts, lambda inner: st.lists(inner, max_size=3)),
)
some_events: st.SearchStrategy[Event] = st.one_of(
    st.builds(events.RunStarted, texts, texts, json_values, json_values, floats),
    st.builds(events.RunResumed, naturals, st.none() | texts),
    st.builds(
        events.Recovered,
        naturals,
        st.none() | texts,
        texts,
        st.none() | naturals,
        texts,
        naturals,
        floats,
        st.lists(texts),
    ),
    st.builds(events.RateLowered, naturals, naturals, floats, naturals, floats),
    st.builds(events.SnapshotFailed, naturals, texts),
    st.builds(events.JobReady, naturals, texts, naturals, floats),
    st.builds(events.PlanChosen, texts, st.none() | texts, st.none() | texts, st.none() | texts),
    st.builds(
        events.ProbeRan,
        naturals,
        texts,
        naturals,
        series,
        series,
        st.lists(st.tuples(naturals, floats)),
        floats,
        floats,
        floats,
        st.none() | texts,
        naturals,
    ),
    st.builds(
        events.OverlapPlanned,
        st.dictionaries(texts, texts),
        texts,
        st.dictionaries(texts, st.lists(floats)),
        texts,
        floats,
        floats,
        st.dictionaries(texts, st.lists(st.tuples(texts, texts, floats, floats).map(list))),
        naturals,
    ),
    st.builds(events.Decided, texts, json_values, st.dictionaries(texts, floats), floats, floats, texts),
    st.builds(events.CommunicationMeasured, naturals, texts, st.dictionaries(texts, st.dictionaries(texts, floats))),
    st.builds(events.ArmTakenUp, naturals, texts, naturals, series, series, floats),
    st.builds(events.ForecastMade, st.builds(Forecast, naturals, floats, floats, naturals, floats, st.booleans())),
    st.builds(
        events.RateChosen,
        st.builds(Choice, naturals, floats, texts, naturals, st.lists(st.tuples(floats, floats, floats)).map(tuple)),
    ),
    st.builds(events.RangeChosen, st.builds(RangeFound, floats, floats, texts)),
    st.builds(events.StepsTrained, naturals, naturals, series, series, floats),
    st.builds(events.Validated, naturals, texts, st.dictionaries(texts, floats), floats),
    st.builds(events.Measured, naturals, st.dictionaries(texts, floats)),
    st.builds(events.Scored, naturals, st.dictionaries(texts, floats), st.lists(texts), floats),
    st.builds(events.SnapshotSaved, naturals, texts, floats),
    st.builds(events.Warned, texts),
    st.builds(events.RunEnded, texts, st.none() | texts, json_values),
)

THREE = [Warned("first"), StepsTrained(0, 0, [0.1], [math.inf], 0.5), Warned("third, with a ü and a\nline end")]


def write(path: Path, recorded: list[Event]) -> None:
    journal = Journal(path)
    for event in recorded:
        journal.record(event)
    journal.close()


@given(recorded=st.lists(some_events, max_size=4))
def test_every_event_comes_back_as_it_was(recorded: list[Event], tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("journal") / "journal.jsonl"
    write(path, recorded)
    assert repr(read_journal(path)) == repr(recorded)  # repr: NaN equals NaN, and 1 is not 1.0


def test_every_kind_of_event_is_covered() -> None:
    assert len(events.Event.__args__) == 22


def test_each_line_is_json_that_any_program_reads(tmp_path: Path) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    write(tmp_path / "journal.jsonl", [StepsTrained(0, 0, [0.1] * 3, [math.nan, math.inf, -math.inf], 0.5)])
    (line,) = (tmp_path / "journal.jsonl").read_text().splitlines()
    assert json.loads(line, parse_constant=refuse)["losses"] == [
        {"$float": "nan"},
        {"$float": "inf"},
        {"$float": "-inf"},
    ]


def test_a_kill_at_any_byte_loses_only_the_torn_line(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    write(path, THREE)
    whole = path.read_bytes()
    ends = [index + 1 for index, byte in enumerate(whole) if byte == ord("\n")]
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        intact = sum(end <= cut for end in ends)
        assert read_journal(path) == THREE[:intact]
        write(path, [Warned("after")])
        assert read_journal(path) == [*THREE[:intact], Warned("after")]
        assert [entry.n for entry in read_entries(path)] == list(range(intact + 1))


def test_time_goes_on_where_the_last_process_stopped(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    write(path, THREE)
    path.write_text(
        "".join(line.replace('"at":0.0', '"at":70.0') for line in path.read_text().splitlines(keepends=True))
    )
    journal = Journal(path)
    journal.record(Warned("later"))
    assert 70 <= journal.seconds < 80
    journal.close()
    assert read_entries(path)[-1].at >= 70


@pytest.mark.parametrize("damage", [b"{}\n", b"garbage\n", b"7\n", b'{"n":1,"at":0,"event":"os.system"}\n'])
def test_a_damaged_line_in_the_middle_is_named(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "journal.jsonl"
    write(path, THREE)
    first, _, third = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + damage + third)
    with pytest.raises(UserError, match="damaged at line 2"):
        read_journal(path)
    with pytest.raises(UserError, match="damaged at line 2"):
        Journal(path)
    assert path.read_bytes() == first + damage + third


def test_one_process_at_a_time(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    code = "import sys, pathlib; from orchestrator.recorders.journal import Journal; Journal(pathlib.Path(sys.argv[1]))"
    command = [sys.executable, "-c", code, str(tmp_path / "journal.jsonl")]
    second = subprocess.run(command, capture_output=True, text=True)
    assert f"being worked on by process {os.getpid()} on " in second.stderr
    journal.close()
    Journal(tmp_path / "journal.jsonl").close()


def test_a_disk_that_takes_no_more_is_said_in_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    write(path, THREE)
    journal = Journal(path)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 5, limits[1]))
    try:
        with pytest.raises(UserError, match=r"journal\.jsonl cannot be written \(File too large\): make room"):
            journal.record(Warned("x"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    journal.close()
    assert read_journal(path) == THREE


def test_no_journal_no_run_folder(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"is no run folder: it has no journal\.jsonl"):
        read_journal(tmp_path / "journal.jsonl")


def test_passwords_do_not_reach_the_file(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    write(
        path,
        [
            RunStarted("r", "f", {"tracking": {"uri": "postgresql://ann:hunter2@db/x"}}, {}, 0.0),
            Warned("https://a:hunter2@b"),
        ],
    )
    assert "hunter2" not in path.read_text()
    assert "postgresql://ann:***@db/x" in path.read_text()


def test_events_of_a_whole_run_survive(tmp_path: Path) -> None:
    recorded = read_journal(Path(__file__).parent.parent / "data" / "journal_autolrs.jsonl")
    assert sum(isinstance(event, Validated) for event in recorded) > 10
    write(tmp_path / "journal.jsonl", recorded)
    assert read_journal(tmp_path / "journal.jsonl") == recorded
