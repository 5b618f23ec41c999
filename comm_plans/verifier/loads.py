"""What each link carries, and the bandwidth that follows from it, in exact arithmetic."""

from __future__ import annotations

from fractions import Fraction
from math import lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from comm_plans.errors import PlanError
from comm_plans.verifier.arrays import Forest, Integers, Network, need

SAFE = 2**62
Slowest = tuple[Fraction, int]


def bandwidth(forest: Forest, network: Network) -> tuple[Fraction, int]:
    """Bandwidth in GB/s of the full buffer, and the link that takes longest (in the slowest step).

    Without steps everything flows at once and the fullest link decides; steps follow one another.
    """
    edges, links = _crossings(forest, network)
    steps = np.zeros(len(edges), dtype=np.int64) if forest.steps is None else forest.steps[edges]
    scale = lcm(*(share.denominator for share in forest.shares))
    amounts = _whole([share * scale for share in forest.shares], len(edges))
    slots, slot = np.unique(steps * len(network.keys) + links, return_inverse=True)
    loads = np.zeros(len(slots), dtype=amounts.dtype)
    np.add.at(loads, slot, np.repeat(amounts, forest.edges)[edges])
    slowest = _slowest(slots // len(network.keys), slots % len(network.keys), loads, network.bandwidths)
    seconds = sum((time for time, _ in slowest), Fraction(0)) / scale
    return 1 / seconds, max(slowest)[1]


def _crossings(forest: Forest, network: Network) -> tuple[Integers, Integers]:
    """For each crossing of a link: the edge (over all trees) that crosses, and the link."""
    inside = np.ones(len(forest.visits), dtype=bool)
    inside[np.cumsum(forest.lengths) - 1] = False
    at = np.flatnonzero(inside)
    source, target = forest.visits[at], forest.visits[at + 1]
    need(len(network.keys) > 0, "the plan's topology has no links")
    wanted = source * len(network.names) + target
    links = np.minimum(np.searchsorted(network.keys, wanted), len(network.keys) - 1)
    missing = network.keys[links] != wanted
    if missing.any():
        worst = int(missing.argmax())
        names = f"{network.names[source[worst]]} → {network.names[target[worst]]}"
        raise PlanError(f"the plan uses the link {names}, which the network does not have")
    return np.repeat(np.arange(len(forest.lengths)), forest.lengths - 1), links


def _whole(amounts: list[Fraction], crossings: int) -> NDArray[Any]:
    """Whole numbers in 64 bits where no sum over the crossings can overflow, else in Python's own."""
    fits = max(amounts) * crossings < SAFE
    return np.array([int(amount) for amount in amounts], dtype=np.int64 if fits else object)


def _slowest(steps: Integers, links: Integers, loads: NDArray[Any], bandwidths: list[Fraction]) -> list[Slowest]:
    """Longest time of each step and its link. Among links of one bandwidth only the fullest is weighed."""
    classes = {value: index for index, value in enumerate(dict.fromkeys(bandwidths))}
    of_link = np.array([classes[value] for value in bandwidths])
    groups, group = np.unique(steps * len(classes) + of_link[links], return_inverse=True)
    most = np.zeros(len(groups), dtype=loads.dtype)
    np.maximum.at(most, group, loads)
    full = np.flatnonzero(loads == most[group])
    times: dict[int, Slowest] = {}
    for slot in full[np.unique(group[full], return_index=True)[1]]:
        step, link = int(steps[slot]), int(links[slot])
        candidate = Fraction(int(loads[slot])) / bandwidths[link], link
        times[step] = max(times.get(step, candidate), candidate)
    return list(times.values())
