"""A schedule in synchronous steps as data: which chunks each rank hands to which other one in each step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby

from comm_plans.all_to_all.direct.flow_problem import Indices
from comm_plans.all_to_all.direct.routes import Routes
from comm_plans.topology import Topology


@dataclass(frozen=True)
class Transfer:
    """Chunks first … end − 1 of what rank `origin` sends rank `destination` go from rank to rank in a step.

    path: the nodes they pass, sender first and receiver last, with switches between.
    """

    step: int
    origin: int
    destination: int
    first: int
    end: int
    path: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class TimedSchedule:
    """Transfers by step; each pair's data is cut into `chunks`. durations: of each step, in units by GB/s, exact.

    demand: N × N units (bytes; 1 a pair for equal shards).
    """

    topology: Topology
    demand: Indices
    chunks: int
    transfers: tuple[Transfer, ...]
    durations: tuple[Fraction, ...]

    @property
    def steps(self) -> int:
        """Number of steps."""
        return len(self.durations)

    def seconds(self, latency: float, unit_bytes: int = 1) -> float:
        """Completion time when a step costs `latency` seconds and a unit of demand is so many bytes."""
        return latency * self.steps + float(sum(self.durations)) * unit_bytes / 1e9


def transfers_of(topology: Topology, routes: Routes, steps: int) -> tuple[Transfer, ...]:
    """What routes over the arcs of all steps mean; their denominator counts the chunks, their pairs are ranks."""
    links, found = list(topology.capacities), list[Transfer]()
    for places in routes.groups():
        first = 0
        for place in places.tolist():
            end = first + int(routes.share[place])
            found += _along(links, steps, routes, place, first, end)
            first = end
    return tuple(sorted(found, key=lambda each: (each.step, each.path, each.origin, each.destination, each.first)))


def _along(
    links: list[tuple[int, int]], steps: int, routes: Routes, place: int, first: int, end: int
) -> Iterator[Transfer]:
    """The transfers of one path: a step's links in a row are one, holding is none."""
    origin, destination = routes.pair[place].tolist()
    arcs = routes.arc[routes.begin[place] : routes.begin[place + 1]].tolist()
    moves = [divmod(arc, len(links)) for arc in arcs if arc < steps * len(links)]
    for step, taken in groupby(moves, key=lambda move: move[0]):
        ends = [links[link] for _, link in taken]
        yield Transfer(step, origin, destination, first, end, (ends[0][0], *(head for _, head in ends)))
