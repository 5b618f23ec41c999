"""A matrix of measured bandwidths → a machine: as few switches as explain what every pair reached.

Pairs are mostly measured one after the other, so that a matrix cannot tell links from ports: a GPU that is as fast
towards seven others may have seven links or one. What is read has one port a GPU, and promises no pair more than it
reached, but for noise.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from comm_plans.readers.machine import Machine, groups
from comm_plans.readers.measured_text import Measurements
from comm_plans.readers.rates import Rate
from comm_plans.readers.tree import Tree

NOISE = 0.1
DEEPEST = 8  # switches above one another
ONE_PORT = "pairs are taken to share one port a rank, as pairs measured one by one cannot tell ports from links"
OWN_LINKS = "no arrangement of ports explains these figures, so that fast pairs are taken to have links of their own"


def machine_of_measurements(measured: Measurements) -> Machine:
    """Ranks below a tree of switches; where no tree explains the figures, fast pairs joined directly."""
    machine = Machine(list(measured.names))
    slower = np.minimum(measured.bandwidths, measured.bandwidths.T)
    np.fill_diagonal(slower, 0)
    if len(slower) > 1:
        explained = _Trees(machine, slower).explain(list(range(len(slower))))
        if not explained:
            _join_directly(machine, slower)
        machine.remarks.append(ONE_PORT if explained else OWN_LINKS)
        if (np.abs(measured.bandwidths - measured.bandwidths.T) > 2 * NOISE * measured.bandwidths).any():
            machine.remarks.append("some pairs are faster one way than back; the slower way counts for both")
    return machine


class _Trees:
    """Hangs ranks below switches as long as that explains what each pair reached."""

    def __init__(self, machine: Machine, slower: NDArray[np.float64]) -> None:
        self.machine, self.slower = machine, slower
        machine.tree = Tree(frozenset(machine.gpus))

    def explain(self, ranks: list[int], levels: int = DEEPEST) -> str | None:
        """The switch above `ranks`; None where neither ports on one switch nor switches below it explain the pairs."""
        among = self.slower[np.ix_(ranks, ranks)]
        ports = among.max(axis=1)
        expected = np.minimum.outer(ports, ports) * (1 - NOISE)
        np.fill_diagonal(expected, 0)
        if (among >= expected).all():
            return self._switch({self.machine.gpus[rank]: port for rank, port in zip(ranks, ports, strict=True)})
        parts = self._parts(ranks, among)
        uplinks = [
            float(self.slower[np.ix_(part, [rank for rank in ranks if rank not in part])].max()) for part in parts
        ]
        if not levels or not self._uplinks_explain(parts, uplinks):
            return None
        tops = [self.machine.gpus[part[0]] if len(part) == 1 else self.explain(part, levels - 1) for part in parts]
        return None if None in tops else self._switch({str(top): up for top, up in zip(tops, uplinks, strict=True)})

    def _uplinks_explain(self, parts: list[list[int]], uplinks: list[float]) -> bool:
        """Whether pairs of different parts are as fast as the slower uplink of the two."""
        return all(
            (self.slower[np.ix_(parts[one], parts[other])] >= min(uplinks[one], uplinks[other]) * (1 - NOISE)).all()
            for one, other in combinations(range(len(parts)), 2)
        )

    def _parts(self, ranks: list[int], among: NDArray[np.float64]) -> list[list[int]]:
        """What falls apart first if the slowest pairs are taken away, as far as noise cannot tell them from others."""
        limit = _slowest_needed(among) * (1 + NOISE)
        pairs = [(str(one), str(other)) for one, other in np.argwhere(among > limit)]
        parts = groups([str(place) for place in range(len(ranks))], pairs)
        return [[ranks[int(place)] for place in part] for part in parts]

    def _switch(self, below: dict[str, float]) -> str:
        name = self.machine.tree.name("switch")
        for node, bandwidth in zip(below, _alike(list(below.values())), strict=True):
            self.machine.tree.hang(node, name, Rate(node, bandwidth))
        return name


def _join_directly(machine: Machine, slower: NDArray[np.float64]) -> None:
    """Pairs that are faster than the slowest by more than noise get a link of their own; one switch joins all."""
    least = float(slower[slower > 0].min())
    pairs = np.argwhere(np.triu(slower > least * (1 + NOISE) ** 2))
    values = _alike([float(slower[one, other]) for one, other in pairs])
    for (one, other), bandwidth in zip(pairs, values, strict=True):
        machine.cable(machine.gpus[one], machine.gpus[other], Rate("measured", bandwidth))
    machine.tree = Tree(frozenset(machine.gpus))
    switch = machine.tree.name("switch")
    for gpu in machine.gpus:
        machine.tree.hang(gpu, switch, Rate(gpu, _alike([least])[0]))


def _slowest_needed(among: NDArray[np.float64]) -> float:
    """The slowest pair of the fastest tree that reaches all (Prim)."""
    reached, best = among[0].copy(), np.inf
    open_ = np.ones(len(among), bool)
    open_[0] = False
    while open_.any():
        following = int(np.where(open_, reached, -1).argmax())
        best = min(best, float(reached[following]))
        open_[following] = False
        reached = np.maximum(reached, among[following])
    return float(best)


def _alike(values: list[float]) -> list[Fraction]:
    """Values that noise alone tells apart become the slowest of them, to three digits."""
    result = [Fraction(0)] * len(values)
    floor = 0.0
    for place in sorted(range(len(values)), key=values.__getitem__):
        if values[place] > floor * (1 + NOISE):
            floor = values[place]
        result[place] = Fraction(f"{floor:.3g}")
    return result
