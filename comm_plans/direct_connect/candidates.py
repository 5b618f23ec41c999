"""What the finder weighs: a wiring with the exact cost of its all_gather; and fronts of those that nothing beats."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction

from comm_plans.direct_connect.breadth_first import breadth_first_cost, links_of
from comm_plans.direct_connect.expression import Wiring, build, line

MOST_LINED = 1024  # nodes up to which it is found out how long line graphs stay optimal


@dataclass(frozen=True)
class Candidate:
    """T = `steps`·α + `bandwidth_time`·M/B for an all_gather of M bytes by `method`, B being the bandwidth of a node.

    `returns`: hops back along any arc, if equally many everywhere and known. `lines`: how often in a row the line graph
    of an optimal one is optimal again. The method `published` is a cost whose graph is not known.
    """

    wiring: Wiring
    nodes: int
    degree: int
    steps: int
    bandwidth_time: Fraction
    method: str = "breadth_first"
    returns: int | None = None
    lines: int = 0
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

    def with_lines(self) -> Candidate:
        """The same, knowing how long its line graphs stay optimal: not at all unless ways back are equally long."""
        if not self.is_factor or self.degree == 1 or (self.returns or 0) < 2:
            return self
        lines, grown = 0, self
        while grown.nodes * self.degree <= MOST_LINED:
            grown = measured(line(grown.wiring))
            if not grown.is_optimal:
                break
            lines += 1
        return replace(self, lines=lines)


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

    One that is beaten may still have better line graphs: optimal ones whose line graphs stay optimal longer than those
    of any with as few steps are kept beside.
    """

    best: list[Candidate] = field(default_factory=list)
    lasting: list[Candidate] = field(default_factory=list)

    def __iter__(self) -> Iterator[Candidate]:
        yield from self.best
        yield from (candidate for candidate in self.lasting if candidate not in self.best)

    def add(self, candidate: Candidate) -> None:
        """Take it in where it belongs."""
        if not any(each.beats(candidate.steps, candidate.bandwidth_time) for each in self.best):
            rest = [each for each in self.best if not candidate.beats(each.steps, each.bandwidth_time)]
            self.best = sorted([*rest, candidate], key=lambda each: each.steps)
        if candidate.lines and not any(_lasts(each, candidate) for each in self.lasting):
            rest = [each for each in self.lasting if not _lasts(candidate, each)]
            self.lasting = sorted([*rest, candidate], key=lambda each: each.steps)

    def has_room(self, steps: int, time: Fraction) -> bool:
        """Whether one of this cost would be among the best."""
        return not any(each.beats(steps, time) for each in self.best)


def _lasts(one: Candidate, other: Candidate) -> bool:
    """Whether line graphs of the first are as good for as long."""
    return one.steps <= other.steps and one.lines >= other.lines
