"""Routes of the lab against every path there is, and against the paths that plans take."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import inf
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lab.blueprint import blueprint
from lab.build import rates_between
from lab.routes import Rates, next_hops

from comm_plans import Topology, solve

NODES = 6
PAIRS = [(one, other) for one in range(NODES) for other in range(NODES) if one != other]
networks = st.dictionaries(st.sampled_from(PAIRS), st.sampled_from([10, 25, 200]), max_size=18)


def paths(rates: Rates, source: int, target: int, seen: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    """All paths without loops."""
    if source == target:
        yield (*seen, target)
        return
    for tail, head in rates:
        if tail == source and head not in (*seen, source):
            yield from paths(rates, head, target, (*seen, source))


def route(rates: Rates, source: int, target: int) -> tuple[int, ...]:
    hops = next_hops(rates, target)
    way = [source]
    while way[-1] != target:
        way.append(hops[way[-1]])
    return tuple(way)


def merit(rates: Rates, path: tuple[int, ...]) -> tuple[int, float]:
    """Smaller is better: fewer hops, then a wider bottleneck."""
    return len(path), -min((rates[link] for link in pairwise(path)), default=inf)


@given(networks, st.integers(0, NODES - 1))
def test_each_route_is_a_shortest_path_and_the_widest_of_those(rates: Rates, target: int) -> None:
    hops = next_hops(rates, target)
    for source in range(NODES):
        best = min((merit(rates, path) for path in paths(rates, source, target)), default=None)
        assert (best is not None) == (source in hops or source == target)
        if best is not None:
            assert merit(rates, route(rates, source, target)) == best


def test_targets_are_spread_over_equal_ways() -> None:
    leaves, spines, ranks = (4, 5), (6, 7), {0: 4, 1: 4, 2: 5, 3: 5}
    cables = [*ranks.items(), *((leaf, spine) for leaf in leaves for spine in spines)]
    rates = {pair: 10 for one, other in cables for pair in ((one, other), (other, one))}
    assert {next_hops(rates, target)[4] for target in (2, 3)} == set(spines)


@pytest.mark.parametrize("collective", ["all_gather", "all_reduce"])
def test_the_lab_sends_each_hop_of_a_plan_the_way_the_plan_says(shipped: Path, collective: str) -> None:
    rates = rates_between(blueprint(shipped))
    for tree in solve(Topology.load(shipped), collective).trees:
        for path in tree.paths:
            assert route(rates, path[0], path[-1]) == path
