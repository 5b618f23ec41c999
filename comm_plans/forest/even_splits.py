"""How to split a switch evenly: from every node before it a little to each of the nodes behind it that need it most.

Many thin logical arcs make shallow trees possible; a few thick ones only long chains. Whether a proposal keeps the
optimum is not asked here.
"""

from collections.abc import Mapping, Sequence, Set

from comm_plans.forest.optimum import Arc

Neighbours = Sequence[Set[int]]


def even_amounts(
    switch: int, out: Neighbours, into: Neighbours, capacities: Mapping[Arc, int], unit: int
) -> dict[Arc, int]:
    """Amounts of u→switch→t to replace by u→t: u's capacity in even parts over the farthest nodes behind the switch.

    Parts of the network that only the switch joins get even shares first. Shares are whole multiples of `unit` (trees
    of that multiplicity fit through) but for one; which nodes get more rotates with u, so that networks of equal boxes
    are split into equal patterns.
    """
    left = {t: capacities[switch, t] for t in out[switch]}
    part_of = _parts(switch, out, into)
    amounts: dict[Arc, int] = {}
    for u in sorted(into[switch]):
        groups = _farthest_groups(u, switch, left, part_of, out)
        for group, share in zip(groups, _evenly(capacities[u, switch], unit, len(groups), u), strict=True):
            for t, part in zip(group, _evenly(share, unit, len(group), u), strict=True):
                amount = min(part, left[t])
                if amount:
                    amounts[u, t] = amount
                    left[t] -= amount
    return amounts


def distances(u: int, without: int, out: Neighbours) -> dict[int, int]:
    """Links from u to each node that it reaches without a switch."""
    distance, level, hops = {u: 0}, {u}, 0
    while level:
        hops += 1
        level = set().union(*(out[node] for node in level)) - distance.keys() - {without}
        distance.update(dict.fromkeys(level, hops))
    return distance


def _farthest_groups(
    u: int, switch: int, left: Mapping[int, int], part: Mapping[int, int], out: Neighbours
) -> list[list[int]]:
    """The nodes behind the switch farthest from u without it, by their part; full ones keep their place."""
    distance = distances(u, switch, out)
    far = {t: distance.get(t, len(out)) for t in sorted(left) if t != u}
    farthest = max((hops for t, hops in far.items() if left[t]), default=None)
    groups: dict[int, list[int]] = {}
    for t, hops in far.items():
        if hops == farthest:
            groups.setdefault(part[t], []).append(t)
    return list(groups.values())


def _parts(without: int, out: Neighbours, into: Neighbours) -> dict[int, int]:
    """For each node the first node that it stays connected to, in either direction, without a switch."""
    part: dict[int, int] = {without: without}
    for start in range(len(out)):
        if start not in part:
            level = {start}
            while level:
                part.update(dict.fromkeys(level, start))
                level = set().union(*(out[node] | into[node] for node in level)) - part.keys()
    return part


def _evenly(amount: int, unit: int, places: int, first: int) -> list[int]:
    """The amount in parts of as equal numbers of units as possible, more units spread out from place `first` on."""
    if not places:
        return []
    units, rest = divmod(amount, unit)
    parts = [units // places * unit] * places
    for extra in range(units % places):
        parts[(first + extra * places // (units % places)) % places] += unit
    parts[(first - 1) % places] += rest
    return parts
