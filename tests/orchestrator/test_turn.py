"""Rays of one machine start one after another, and nobody waits for a process that is gone."""

import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from orchestrator.cluster import turn as turns
from orchestrator.cluster.turn import turn

HOLDS = """
import sys, time
from orchestrator.cluster.turn import turn
with turn():
    print("mine", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder() -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as it:
        yield it
        it.kill()


@pytest.mark.parametrize("way", ["it is through", "it was killed"])
def test_one_waits_for_the_other(holder: subprocess.Popen[str], way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert holder.stdout is not None
    assert holder.stdout.readline() == "mine\n"
    monkeypatch.setattr(turns, "PATIENCE", 0.5)
    begun = time.monotonic()
    with turn():
        assert time.monotonic() - begun >= 0.5
    if way == "it was killed":
        holder.kill()
    holder.communicate()
    monkeypatch.setattr(turns, "PATIENCE", 60.0)
    begun = time.monotonic()
    with turn():
        assert time.monotonic() - begun < 30
