"""Frontiers kept on disk: the search is slow, measuring what it found is not.

A file holds wirings and methods only. Costs are worked out anew from the graphs when it is read, so that nobody needs
to trust it; what does not fit or cannot be read is searched for again.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path

from comm_plans.direct_connect.expression import parse
from comm_plans.direct_connect.finder import Finder
from comm_plans.direct_connect.frontier import Choice, surveyed
from comm_plans.errors import PlansError
from comm_plans.files import write_atomically

VERSION = 1  # of the finder and its catalogue: what another one found is searched for again


class Found:
    """Frontiers by nodes and degree, in `comm-plans/wirings` in the user's cache folder unless told otherwise."""

    def __init__(self, folder: Path | None = None) -> None:
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        self.folder = folder or Path(home) / "comm-plans" / "wirings"
        self.finder = Finder()

    def frontier(self, nodes: int, degree: int) -> list[Choice]:
        """The frontier from disk, else from a search whose outcome is kept. A disk that fails costs only time."""
        kept = self._kept(nodes, degree)
        if kept is not None:
            return kept
        found = [surveyed(each.wiring, each.method) for each in self.finder.frontier(nodes, degree)]
        with suppress(OSError):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            rows = [[str(each.wiring), each.method] for each in found]
            write_atomically(self._path(nodes, degree), json.dumps({"version": VERSION, "wirings": rows}).encode())
        return found

    def _kept(self, nodes: int, degree: int) -> list[Choice] | None:
        try:
            document = json.loads(self._path(nodes, degree).read_bytes())
            if document["version"] != VERSION:
                return None
            kept = [surveyed(parse(wiring), method) for wiring, method in document["wirings"]]
        except (OSError, PlansError, ValueError, LookupError, TypeError, RecursionError):
            return None
        fits = all((each.nodes, each.degree) == (nodes, degree) for each in kept)
        return kept if kept and fits else None

    def _path(self, nodes: int, degree: int) -> Path:
        return self.folder / f"{nodes}-{degree}.json"
