"""Functions on every rank of a lab: what comes back, and what is said of a rank that fails, dies or hangs."""

from __future__ import annotations

import os
import signal
import socket
import time
from pathlib import Path
from typing import Any

import pytest
from lab import life
from lab.launcher import run_ranks
from lab.namespaces import processes

from comm_plans.lab_state import LabError, LabState

pytestmark = pytest.mark.usefixtures("root")


def where(rank: int, word: str) -> tuple[str, dict[str, str], list[str]]:
    names = [name for _, name in socket.if_nameindex()]
    return word * rank, {key: os.environ[key] for key in ("RANK", "WORLD_SIZE", "GLOO_SOCKET_IFNAME")}, names


def test_each_rank_is_in_its_namespace_and_results_come_in_rank_order(star: Path) -> None:
    own = socket.if_nameindex()
    with life.standing(star) as lab:
        results = run_ranks(lab, where, "ab")
    for rank, (words, environment, interfaces) in enumerate(results):
        assert words == "ab" * rank
        assert environment == {"RANK": str(rank), "WORLD_SIZE": "4", "GLOO_SOCKET_IFNAME": "id0"}
        assert sorted(interfaces) == ["e4", "id0", "lo"]
    assert socket.if_nameindex() == own


def speak(rank: int) -> None:
    print(f"rank {rank} was here")


def test_what_ranks_print_is_not_lost(star: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with life.standing(star) as lab:
        run_ranks(lab, speak)
    assert sorted(capfd.readouterr().out.splitlines()) == [f"rank {rank} was here" for rank in range(4)]


def fail(rank: int) -> None:
    if rank == 2:
        raise ValueError("no such thing")
    time.sleep(1000)


def die(rank: int) -> None:
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(1000)


def hang(rank: int) -> None:
    if rank == 3:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(1000)


@pytest.mark.parametrize(
    ("function", "seconds", "words"),
    [
        (fail, 60, r"rank h2 failed:(?s:.)*ValueError: no such thing"),
        (die, 60, "rank h1 died without a word"),
        (hang, 1, "rank h3 did not return within 1 s"),
    ],
)
def test_trouble_names_its_rank_and_ends_the_others(star: Path, function: Any, seconds: float, words: str) -> None:
    with life.standing(star) as lab:
        with pytest.raises(LabError, match=words):
            run_ranks(lab, function, seconds=seconds)
        assert not processes(lab)


def summed(rank: int, size: int) -> float:
    import torch
    from torch import distributed

    distributed.init_process_group("gloo")
    values = torch.full((size,), float(rank + 1))
    distributed.all_reduce(values)
    distributed.barrier()
    assert LabState.load().ranks[rank].address == f"10.77.0.{rank + 1}"
    return float(values.unique().item())


@pytest.mark.slow
def test_gloo_sums_on_each_shipped_network(shipped: Path) -> None:
    import torch.distributed  # noqa: F401 - here once, not in every rank

    with life.standing(shipped) as lab:
        ranks = len(lab.ranks)
        assert run_ranks(lab, summed, 1000) == [ranks * (ranks + 1) / 2] * ranks
