"""Cayley graphs that a search found to be good base graphs, with their costs, kept in `cayley_seeds.txt`.

A line is `wiring nodes degree steps bandwidth_time returns lines`; scripts/cayley_search.py adds to them.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

from comm_plans.direct_connect.candidates import Candidate, Front
from comm_plans.direct_connect.expression import parse

SEEDS = Path(__file__).parent / "cayley_seeds.txt"


def read_seeds() -> dict[tuple[int, int], Front]:
    """The listed graphs by number of nodes and degree."""
    fronts: dict[tuple[int, int], Front] = {}
    for line in SEEDS.read_text().splitlines():
        candidate = _candidate(*line.split())
        fronts.setdefault((candidate.nodes, candidate.degree), Front()).add(candidate)
    return fronts


def seed_line(candidate: Candidate) -> str:
    """The line that lists a graph."""
    size = candidate.nodes, candidate.degree
    cost = candidate.steps, candidate.bandwidth_time, candidate.returns or "-", candidate.lines
    return " ".join(map(str, (candidate.wiring, *size, *cost))) + "\n"


def _candidate(wiring: str, nodes: str, degree: str, steps: str, time: str, returns: str, lines: str) -> Candidate:
    back = None if returns == "-" else int(returns)
    return Candidate(parse(wiring), int(nodes), int(degree), int(steps), Fraction(time), returns=back, lines=int(lines))
