"""What is run in which order: seed by seed and network by network, plain DDP before Ray is there, launches after it.

What an earlier process has kept is not run again, and a lab in which all is known is not built.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from time import monotonic
from typing import Any

from benchmark_parts.closed_loop.cases import (
    ALL,
    CASES,
    LANGUAGE,
    NONE,
    PEAKS,
    SHIPPED,
    SHIPPED_ARMS,
    WITHOUT,
    Arm,
    Case,
    Workload,
)
from benchmark_parts.closed_loop.launches import RayLab, lab_row, local_row, plain_row
from benchmark_parts.kept_rows import KeptRows, Key, Row
from lab.life import down, standing, up


@dataclass(frozen=True)
class Extent:
    """How much is measured. arms: the launches of a case; peaks: plain DDP's; shipped: tasks on this machine.

    shipped_seeds: more of these short runs, whose start takes a second more or less.
    """

    cases: Sequence[Case]
    arms: Sequence[Arm]
    peaks: Sequence[float]
    shipped: Sequence[Workload]
    seeds: int
    shipped_seeds: int


FULL = Extent(CASES, (ALL, NONE, *WITHOUT.values()), PEAKS, SHIPPED, seeds=2, shipped_seeds=5)
SMALL = (Case("star", replace(LANGUAGE, steps=400)),)
QUICK = Extent(SMALL, (ALL, WITHOUT["communication"]), PEAKS[1:3], (Workload("tabular"),), seeds=1, shipped_seeds=1)


@dataclass(frozen=True)
class Todo:
    """A row to be: what it is known by, and how it is measured once the place for it stands."""

    key: Key
    measure: Callable[[Any], Row]


def measured(extent: Extent) -> list[Row]:
    """All rows, in the order in which they are measured. Raises PlansError where there can be no lab."""
    kept = KeptRows()
    keys: list[Key] = []
    for seed in range(extent.seeds):
        for file, cases in groupby(extent.cases, key=lambda case: case.file):
            own = list(cases)
            keys += _done(kept, _tuned(extent, own, seed), lambda file=file: standing(file))  # type: ignore[misc]
            keys += _done(kept, _launches(extent, own, seed), lambda file=file: ray_lab(file))  # type: ignore[misc]
    for seed in range(extent.shipped_seeds):
        keys += _done(kept, _on_this_machine(extent, seed), nullcontext)
    return [kept[key] for key in keys]


@contextmanager
def ray_lab(file: Path) -> Iterator[RayLab]:
    """The lab with Ray on each rank, within the block."""
    begin = monotonic()
    state = up(file, ray=True)
    try:
        yield RayLab(len(state.ranks), monotonic() - begin)
    finally:
        down()


def _tuned(extent: Extent, cases: Sequence[Case], seed: int) -> list[Todo]:
    return [
        Todo(["plain", case.name, case.workload.to_json(), peak, seed], partial(plain_row, case, peak, seed))
        for case in cases
        for peak in extent.peaks
    ]


def _launches(extent: Extent, cases: Sequence[Case], seed: int) -> list[Todo]:
    return [
        Todo(["lab", case.name, case.workload.to_json(), arm.overrides, seed], partial(lab_row, case, arm, seed))
        for case in cases
        for arm in extent.arms
    ]


def _on_this_machine(extent: Extent, seed: int) -> list[Todo]:
    return [
        Todo(["local", workload.to_json(), arm.overrides, seed], partial(local_row, workload, arm, seed))
        for workload in extent.shipped
        for arm in SHIPPED_ARMS
    ]


def _done(kept: KeptRows, todos: Sequence[Todo], place: Callable[[], AbstractContextManager[Any]]) -> list[Key]:
    """Measure what is missing, all of it in one place; returns the keys of all."""
    missing = [todo for todo in todos if todo.key not in kept]
    if missing:
        with place() as standing_place:
            for todo in missing:
                row = kept[todo.key] = todo.measure(standing_place)
                print(f"{row['case']}, {row['arm']}, seed {row['seed']}: {_outcome(row)}", flush=True)
    return [todo.key for todo in todos]


def _outcome(row: Row) -> str:
    if row["loss"] is None:
        return f"failed, {row['failed']}"
    return f"loss {row['loss']:.4g} after {row['seconds']:.0f} s" + (f", {row['failed']}" if row["failed"] else "")
