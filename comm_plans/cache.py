"""PlanCache: plans on disk, one file each, found by what the network is like and not by what its nodes are called.

A file is three lines: the checksum of the rest, a summary for listing, the plan. Files are replaced as a whole, so that
any number of processes may read and write at once. Whatever is not exactly as it was written, or was written by
another version of the solver, is a miss; and a plan is verified on the asker's own network before it is returned.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import time
from typing import Any

from comm_plans.errors import PlanError, PlansError
from comm_plans.files import write_atomically
from comm_plans.plan import SOLVER_VERSION, Plan
from comm_plans.question import Question
from comm_plans.solve import solve
from comm_plans.topology import Topology
from comm_plans.verifier import verify

HEADER = "comm-plan-cache 1"
ABANDONED = 3600.0
SHOWN = ("collective", "network", "algbw")  # of a summary, in a list


@dataclass(frozen=True)
class Entry:
    """One file of the cache as a list shows it; `fault` says why it is of no use, if it is not."""

    key: str
    path: Path
    size_bytes: int
    saved: float
    summary: dict[str, Any]
    fault: str | None = None


class PlanCache:
    """A folder of plans; by default `comm-plans` in the user's cache folder (XDG_CACHE_HOME, else ~/.cache)."""

    def __init__(self, folder: str | Path | None = None) -> None:
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        self.folder = Path(folder) if folder is not None else Path(home) / "comm-plans"

    def get(self, topology: Topology, collective: str, **options: Any) -> Plan | None:
        """The verified plan for this network in its own numbering, or None; options are those of `solve`."""
        question = Question.of(topology, collective, **options)
        try:
            return question.answered_by(*_read(self._path(question.key)))
        except (OSError, PlansError, ValueError, LookupError, TypeError, RecursionError):
            return None

    def put(self, plan: Plan, **options: Any) -> Path:
        """Keep what `solve` gave under these options. Raises PlanError for a wrong plan, OSError for the disk."""
        options = {"root": plan.root} | options
        document = plan.to_document()
        verify(document)
        question = Question.of(plan.topology, plan.collective, **options)
        body = f"{json.dumps(_summary(plan, question))}\n{json.dumps(document, separators=(',', ':'))}\n".encode()
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._path(question.key)
        write_atomically(path, f"{HEADER} {hashlib.sha256(body).hexdigest()}\n".encode() + body, 0o600)
        return path

    def solve(self, topology: Topology, collective: str, **options: Any) -> tuple[Plan, str]:
        """The plan and where it came from: "cache" or "solved". A disk that cannot be written costs only time."""
        asked = {name: value for name, value in options.items() if name != "progress"}
        plan = self.get(topology, collective, **asked)
        if plan is not None:
            return plan, "cache"
        plan = solve(topology, collective, **options)
        with suppress(OSError):
            self.put(plan, **asked)
        return plan, "solved"

    def entries(self) -> list[Entry]:
        """All files of the cache, by key, without reading the plans in them."""
        return [_entry(path, None) for path in self._paths()]

    def verified(self) -> Iterator[Entry]:
        """All files again, each plan replayed; `fault` tells which ones are of no use and why."""
        for path in self._paths():
            yield _entry(path, _fault(path))

    def show(self, key: str) -> Plan:
        """The plan whose key begins with `key`. Raises PlanError where there is none, several or a broken one."""
        found = [path for path in self._paths() if path.stem.startswith(key)]
        if len(found) != 1:
            several = "more than one plan" if found else "no plan"
            raise PlanError(f"{several} in {self.folder} has a key that begins with {key[:40]!r}; see `cache list`")
        return Plan.from_document(_read(found[0])[1])

    def prune(self) -> list[Path]:
        """Remove what is of no use: broken files, plans of another solver version, leftovers of killed writers."""
        useless = [entry.path for entry in self.verified() if entry.fault]
        if self.folder.is_dir():
            useless += [path for path in sorted(self.folder.glob(".*.json.*")) if time() - _saved(path) > ABANDONED]
        for path in useless:
            path.unlink(missing_ok=True)
        return useless

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.json"

    def _paths(self) -> list[Path]:
        found = (path for path in self.folder.glob("*.json") if not path.name.startswith("."))
        return sorted(path for path in found if not path.is_dir())


def solve_cached(
    topology: Topology, collective: str, *, cache: PlanCache | None = None, **options: Any
) -> tuple[Plan, str]:
    """`solve`, through the user's cache or the one given; also "cache" or "solved"."""
    return (cache or PlanCache()).solve(topology, collective, **options)


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Summary and plan of a file. Raises OSError, or PlanError where it is not as it was written."""
    header, _, body = path.read_bytes().partition(b"\n")
    if header != f"{HEADER} {hashlib.sha256(body).hexdigest()}".encode():
        raise PlanError(f"{path} is not as it was written; remove it with `comm-plan cache prune`")
    first, _, rest = body.partition(b"\n")
    summary, document = json.loads(first), json.loads(rest)
    if summary["solver_version"] != SOLVER_VERSION:
        raise PlanError(f"{path} was written by another version of the solver; `comm-plan cache prune` removes it")
    return summary, document


def _fault(path: Path) -> str | None:
    try:
        verify(_read(path)[1])
    except (OSError, PlansError, ValueError, LookupError, TypeError, RecursionError) as error:
        return str(error)
    return None


def _entry(path: Path, fault: str | None) -> Entry:
    summary: Any = None
    with suppress(OSError, ValueError, RecursionError), path.open("rb") as file:
        file.readline(200)
        summary = json.loads(file.readline(100_000))
    if not (isinstance(summary, dict) and all(_shows(summary.get(key)) for key in SHOWN)):
        summary, fault = {}, fault or f"{path} has no summary; remove it with `comm-plan cache prune`"
    return Entry(path.stem, path, _size(path), _saved(path), summary, fault)


def _shows(text: object) -> bool:
    return isinstance(text, str) and text.isprintable()


def _summary(plan: Plan, question: Question) -> dict[str, Any]:
    return {
        "network": plan.topology.name,
        "collective": plan.collective,
        "ranks": len(plan.topology.ranks),
        "algbw": str(plan.algbw),
        "optimal": plan.optimal,
        "root": plan.root,
        "options": question.options,
        "solver_version": SOLVER_VERSION,
    }


def _saved(path: Path) -> float:
    with suppress(OSError):
        return path.stat().st_mtime
    return 0.0


def _size(path: Path) -> int:
    with suppress(OSError):
        return path.stat().st_size
    return 0
