"""Rows of training steps on two ranks: over a link as slow as the computation, and over loopback."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import torch._dynamo  # noqa: F401 - which DDP loads: so it is loaded once and not on every rank
from benchmark_parts.overlap.on_ranks import (
    DDP,
    NO_OVERLAP,
    PLANNED,
    RANKS,
    compute_seconds,
    model_elements,
    step_seconds,
    sum_seconds,
)
from benchmark_parts.overlap.rows import Row, row
from lab.faults import degrade
from lab.launcher import run_ranks
from lab.life import standing

from comm_plans.lab_state import VARIABLE

SHAPED, LOOPBACK = "training, shaped link", "training, loopback"
PAIR = "name: pair\nranks: [a, b]\ncables: [[a, b, 0.1]]\n"
LARGE, SMALL = "9.5M", "0.8M"
PATIENCE = 600.0  # seconds


def training_rows(quick: bool) -> list[Row]:
    """Every arm on every network. Raises PlansError where there can be no lab."""
    rounds, steps = (2, 4) if quick else (5, 12)  # steps between two pauses, as a run makes when it scores
    cases = [(SMALL, 4)] if quick else [(LARGE, 4), (SMALL, 2), (SMALL, 8)]
    found = _shaped(LARGE, 8, rounds, steps)
    for size, batch in cases:
        measured = _on_loopback(lambda rank, size=size, batch=batch: step_seconds(rank, size, batch, 3 * rounds, steps))
        found += _rows(LOOPBACK, f"{size}, batch {batch}", measured, {})
    return found


def training_summary(rows: list[Row]) -> dict[str, Any]:
    """How much faster the planned step is, by medians."""
    shaped = _medians(rows, SHAPED)
    loopback = _medians(rows, LOOPBACK)
    every = shaped | loopback
    return {
        "training_over_no_overlap": _least(shaped, NO_OVERLAP),
        "training_over_ddp_default": _least(shaped, DDP),
        "training_loopback_over_no_overlap": _least(loopback, NO_OVERLAP),
        "training_loopback_over_ddp_default": _least(loopback, DDP),
        "worst_planned_over_serial": max(arms[PLANNED] / arms[NO_OVERLAP] for arms in every.values()),
        "training_planned_over_serial": {case: arms[PLANNED] / arms[NO_OVERLAP] for case, arms in every.items()},
        "training_load": {f"{each['kind']}: {each['case']}": each["load"] for each in rows if each["arm"] == PLANNED},
    }


def _shaped(size: str, batch: int, rounds: int, steps: int) -> list[Row]:
    """Over a link whose rate makes one sum of all gradients as long as a step's computation."""
    elements = model_elements(size)
    with TemporaryDirectory() as folder:
        file = Path(folder) / "pair.yaml"
        file.write_text(PAIR)
        kept = os.environ.get(VARIABLE)
        os.environ[VARIABLE] = str(Path(folder) / "state.json")  # beside any lab that is up
        try:
            with standing(file) as state:
                computing = _slowest(run_ranks(state, compute_seconds, size, batch, 7, seconds=PATIENCE))
                rate = round(4 * elements * 8 / computing)
                state = degrade(state, "a-b", rate)
                summing = _slowest(run_ranks(state, sum_seconds, elements, 3, seconds=PATIENCE))
                rate = round(rate * summing / computing)
                state = degrade(state, "a-b", rate)
                summing = _slowest(run_ranks(state, sum_seconds, elements, 3, seconds=PATIENCE))
                measured = run_ranks(state, step_seconds, size, batch, rounds, steps, seconds=PATIENCE)
        finally:
            _put_back(kept)
    facts = {"rate_mbit": rate / 1e6, "compute_seconds": computing, "sum_seconds": summing}
    return _rows(SHAPED, f"{size}, batch {batch}", measured, facts)


def _put_back(kept: str | None) -> None:
    if kept is None:
        del os.environ[VARIABLE]
    else:
        os.environ[VARIABLE] = kept


def _rows(kind: str, case: str, measured: list[dict[str, Any]], facts: dict[str, float]) -> list[Row]:
    decision = measured[0]["decision"]
    found = []
    for arm in measured[0]["samples"]:
        seconds = [max(each) for each in zip(*(rank["samples"][arm] for rank in measured), strict=True)]
        more = {
            "chosen": decision["chosen"],
            "predicted_seconds": decision["predicted_seconds"],
            "planning_seconds": measured[0]["planning_seconds"],
        }
        found.append(row(kind, case, arm, seconds=seconds, **facts, **(more if arm == PLANNED else {})))
    return found


def _medians(rows: list[Row], kind: str) -> dict[str, dict[str, float]]:
    """Seconds of a step by case and arm."""
    medians: dict[str, dict[str, float]] = {}
    for each in rows:
        if each["kind"] == kind:
            medians.setdefault(f"{kind}: {each['case']}", {})[each["arm"]] = median(each["seconds"])
    return medians


def _least(medians: dict[str, dict[str, float]], arm: str) -> float:
    """How many times faster than an arm, in the worst case."""
    return min(arms[arm] / arms[PLANNED] for arms in medians.values())


def _slowest(samples: list[list[float]]) -> float:
    """Median of the slowest rank's seconds."""
    return median(map(max, zip(*samples, strict=True)))


def _on_loopback(act: Callable[[int], Any]) -> list[Any]:
    """What each of two forked ranks returns."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    fork = get_context("fork")
    pipes = [fork.Pipe(duplex=False) for _ in range(RANKS)]
    processes = [fork.Process(target=_rank, args=(rank, port, act, pipe[1])) for rank, pipe in enumerate(pipes)]
    for process in processes:
        process.start()
    try:
        return [ours.recv() for ours, _ in pipes]
    finally:
        for process in processes:
            process.kill()
            process.join()


def _rank(rank: int, port: int, act: Callable[[int], Any], pipe: Any) -> None:
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(RANKS), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    pipe.send(act(rank))
