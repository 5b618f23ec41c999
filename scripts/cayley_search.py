"""Searches Cayley graphs for base graphs of the wiring finder, and merges what is new into its list of seeds.

    python scripts/cayley_search.py --nodes 5..64 --degrees 2 3 4 --tries 2000
    python scripts/cayley_search.py --nodes 256 --degrees 4 --tries 200000

For each group of that order (products of cyclic groups, and semidirect products of two) random generator sets are
tried; kept are, for each number of nodes and degree, those that nothing found beats in steps and bandwidth time, and
among the bandwidth-optimal those whose line graphs stay optimal longest.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from math import comb, lcm
from typing import Any

import numpy as np

from comm_plans.compiled import compiled
from comm_plans.direct_connect.candidates import Front, measured
from comm_plans.direct_connect.cayley import Group
from comm_plans.direct_connect.expression import Base
from comm_plans.direct_connect.seeds import SEEDS, read_seeds, seed_line

MOST_WEIGHED = 40  # generator sets a group and number of steps whose lines of lines are looked at


def main() -> None:
    """Search what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", required=True, metavar="N", help="one number, or 5..64 for several")
    parser.add_argument("--degrees", required=True, type=int, nargs="+", metavar="D")
    parser.add_argument("--tries", type=int, default=2000, help="generator sets a group")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    first, _, last = options.nodes.partition("..")
    for nodes in range(int(first), int(last or first) + 1):
        for degree in options.degrees:
            if degree < nodes - 1:
                _search(nodes, degree, options.tries, random.Random(f"{options.seed} {nodes} {degree}"))


def _search(nodes: int, degree: int, tries: int, chance: random.Random) -> None:
    """Look for better graphs than those listed; the list is written anew where one is found."""
    fronts = read_seeds()
    front = fronts.setdefault((nodes, degree), Front())
    before = list(front)
    best: dict[int, int] = {}
    for group in groups(nodes):
        for generators in _promising(group, degree, tries, chance, best):
            words = [".".join(map(str, generator)) for generator in generators]
            front.add(measured(Base("Cay", (str(group), *words))).with_lines())
    if list(front) != before:
        SEEDS.write_text("".join(seed_line(each) for key in sorted(fronts) for each in fronts[key]))
        print(nodes, degree, *(f"{each.steps};{each.bandwidth_time};{each.lines} {each.wiring}" for each in front))


def groups(order: int) -> Iterator[Group]:
    """The groups that are tried: direct products of cyclic groups, and semidirect products of two."""
    yield from (Group(sizes) for sizes in _chains(order, order))
    for turns in range(2, order // 2 + 1):
        size = order // turns
        if order % turns == 0:
            yield from (Group((size, turns), twist) for twist in range(2, size) if pow(twist, turns, size) == 1)


def _chains(order: int, largest: int) -> Iterator[tuple[int, ...]]:
    """Sizes whose product is the order, each a divisor of the one before, smallest first."""
    if order == 1:
        yield ()
    for size in range(2, order + 1):
        if order % size == 0 and largest % size == 0:
            yield from ((*rest, size) for rest in _chains(order // size, size))


def _promising(
    group: Group, degree: int, tries: int, chance: random.Random, best: dict[int, int]
) -> Iterator[list[tuple[int, ...]]]:
    """Generator sets that improve on `best`, the least load found by number of steps, and some whose line graphs are
    optimal."""
    elements, table = list(group.elements), _table(group)
    inverse = np.argmin(table, axis=1)
    scale = lcm(*range(1, degree + 1))
    weighed: Counter[int] = Counter()
    for chosen in _sets(len(elements), degree, tries, chance):
        steps, load, lasts = appraised(table, inverse, np.array(chosen, dtype=np.int64), scale)
        better = all(load < least for most, least in best.items() if most <= steps)
        if steps and (better or (lasts and weighed[steps] < MOST_WEIGHED)):
            best[steps] = min(load, best.get(steps, load))
            weighed[steps] += lasts
            yield [elements[place] for place in chosen]


def _table(group: Group) -> Any:
    """[g, h] → g·h, elements by their place in `group.elements`."""
    places = np.array(list(group.elements), dtype=np.int64)
    powers = np.array([pow(group.twist, turn, group.orders[0]) for turn in range(group.orders[-1])], dtype=np.int64)
    table = np.zeros((len(places), len(places)), dtype=np.int64)
    for axis, order in enumerate(group.orders):
        factor = powers[places[:, -1]] if axis == 0 else np.ones(len(places), dtype=np.int64)
        table = table * order + (places[:, None, axis] + factor[:, None] * places[None, :, axis]) % order
    return table


def _sets(order: int, degree: int, tries: int, chance: random.Random) -> Iterator[tuple[int, ...]]:
    """All sets of generators if they are few, else random ones."""
    if comb(order - 1, degree) <= tries:
        yield from combinations(range(1, order), degree)
    else:
        yield from (tuple(chance.sample(range(1, order), degree)) for _ in range(tries))


@compiled
def appraised(table: Any, inverse: Any, generators: Any, scale: int) -> tuple[int, int, bool]:
    """Steps (0 if the generators do not reach all), summed load times `scale`, and whether graph and line graph are
    optimal: the closed form of breadth-first broadcast at the neutral element, which stands for all."""
    order, degree = len(table), len(generators)
    hops = np.full(order, -1, np.int64)
    queue = np.zeros(order, np.int64)
    hops[0] = 0
    head, tail = 0, 1
    while head < tail:
        for generator in generators:
            following = table[queue[head], generator]
            if hops[following] < 0:
                hops[following] = hops[queue[head]] + 1
                queue[tail] = following
                tail += 1
        head += 1
    if tail < order:
        return 0, 0, False
    steps = hops[queue[tail - 1]]
    able = np.zeros(order, np.int64)
    counts = np.zeros((steps + 1, 1 << degree), np.int64)
    for element in range(1, order):
        for bit in range(degree):
            if hops[table[element, inverse[generators[bit]]]] == hops[element] - 1:
                able[element] |= 1 << bit
        counts[hops[element], able[element]] += 1
    sizes = np.zeros(1 << degree, np.int64)
    for bit in range(degree):
        for chosen in range(1 << degree):
            if chosen >> bit & 1:
                sizes[chosen] += 1
                for step in range(steps + 1):
                    counts[step, chosen] += counts[step, chosen ^ 1 << bit]
    load = 0
    for step in range(1, steps + 1):
        worst = 0
        for chosen in range(1, 1 << degree):
            worst = max(worst, counts[step, chosen] * scale // sizes[chosen])
        load += worst
    lasts = load * degree == scale * (order - 1)
    # In the line graph the node of an arc misses one shard, its own, in the step in which the arc's head reaches back.
    back = hops[inverse[generators[0]]]
    full = (1 << degree) - 1
    for generator in generators:
        own = inverse[generator]
        lasts &= hops[own] == back
        for chosen in range(1, 1 << degree):
            missed = 1 if able[own] & ~chosen == 0 else 0
            lasts &= (degree * counts[back, chosen] - missed) * degree <= sizes[chosen] * (
                degree * counts[back, full] - 1
            )
    return steps, load, lasts


if __name__ == "__main__":
    main()
