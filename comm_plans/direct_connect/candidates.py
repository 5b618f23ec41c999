"""What the finder weighs: a wiring with the exact cost of its all_gather; and fronts of those that nothing beats."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction

from comm_plans.direct_connect.breadth_first import breadth_first_cost, links_of
from comm_plans.direct_connect.expression import Wiring, build


@dataclass(frozen=True)
class Candidate:
    """T = `steps`·α + `bandwidth_time`·M/B for an all_gather of M bytes by `method`, B being the bandwidth of a node.

    `returns`: hops back along any arc, if equally many everywhere. The method `published` is a cost whose graph is not
    known.
    """

    wiring: Wiring
    nodes: int
    degree: int
    steps: int
    bandwidth_time: Fraction
    method: str = "breadth_first"
    returns: int | None = None
    has_loops: bool = False

    @property
    def is_optimal(self) -> bool:
        """Whether it reaches the least bandwidth time that any schedule can have."""
        return self.bandwidth_time == least_time(self.nodes)

    @property
    def is_factor(self) -> bool:
        """Whether products with it stay bandwidth-optimal: they do where breadth-first broadcast is optimal on it."""
        return self.is_optimal and self.method == "breadth_first" and not self.has_loops

    def beats(self, steps: int, time: Fraction) -> bool:
        """Whether it is as good in both respects."""
        return self.steps <= steps and self.bandwidth_time <= time


def least_time(nodes: int) -> Fraction:
    """(N − 1)/N: every node must take in all shards but its own."""
    return Fraction(nodes - 1, nodes)


def measured(wiring: Wiring) -> Candidate:
    """The exact cost of breadth-first broadcast on the wiring's graph."""
    graph = build(wiring)
    cost = breadth_first_cost(links_of(graph))
    time = cost.bandwidth_time(graph.nodes, graph.degree)
    return Candidate(
        wiring,
        graph.nodes,
        graph.degree,
        cost.steps,
        time,
        returns=cost.returns,
        has_loops=graph.has_loops,
    )


@dataclass
class Front:
    """Candidates of one size and degree that no other one beats in steps and bandwidth time.

    The line graph of a candidate with uniform returns of two or more may gain more than that of one that beats it:
    those are kept on a front of their own.
    """

    best: list[Candidate] = field(default_factory=list)
    returning: list[Candidate] = field(default_factory=list)

    def __iter__(self) -> Iterator[Candidate]:
        yield from self.best
        yield from (candidate for candidate in self.returning if candidate not in self.best)

    def add(self, candidate: Candidate) -> None:
        """Take it in where it belongs."""
        _add(self.best, candidate)
        if (candidate.returns or 0) > 1:
            _add(self.returning, candidate)

    def has_room(self, steps: int, time: Fraction) -> bool:
        """Whether a candidate of this cost, its returns uniform at best, would be taken in."""
        return not all(any(each.beats(steps, time) for each in front) for front in (self.best, self.returning))


def _add(front: list[Candidate], candidate: Candidate) -> None:
    if not any(each.beats(candidate.steps, candidate.bandwidth_time) for each in front):
        front[:] = [each for each in front if not candidate.beats(each.steps, each.bandwidth_time)] + [candidate]
        front.sort(key=lambda each: each.steps)
