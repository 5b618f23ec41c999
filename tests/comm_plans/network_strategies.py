"""Random networks and renumbered ones, for tests of everything that must not depend on numbering."""

from __future__ import annotations

import random
from fractions import Fraction

from hypothesis import strategies as st

from comm_plans.topology import Link, Switch, Topology

BANDWIDTHS = [Fraction(1), Fraction(2), Fraction(25), Fraction(123, 5), Fraction(300)]


@st.composite
def networks(draw: st.DrawFn, most_ranks: int = 7) -> Topology:
    """Networks of a few ranks and switches, with any links between them."""
    ranks = tuple(f"g{i}" for i in range(draw(st.integers(1, most_ranks))))
    kinds = draw(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=3))
    switches = tuple(Switch(f"s{i}", *kind) for i, kind in enumerate(kinds))
    nodes = [*ranks, *(switch.name for switch in switches)]
    pairs = [(one, other) for one in nodes for other in nodes if one != other]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=20)) if pairs else []
    links = tuple(Link(*pair, draw(st.sampled_from(BANDWIDTHS))) for pair in chosen)
    return Topology("random", ranks, switches, links)


def renumbered(topology: Topology, seed: int, noise: float = 0.0) -> Topology:
    """The same network with other names, ranks, switches and links in another order, and measured with some noise."""
    chance = random.Random(seed)
    ranks = chance.sample(topology.ranks, len(topology.ranks))
    switches = chance.sample(topology.switches, len(topology.switches))
    names = {name: f"n{place}" for place, name in enumerate([*ranks, *(switch.name for switch in switches)])}
    links = [
        Link(names[link.source], names[link.target], link.bandwidth * Fraction(1 + chance.uniform(-noise, noise)))
        for link in chance.sample(topology.links, len(topology.links))
    ]
    return Topology(
        "renumbered",
        tuple(names[rank] for rank in ranks),
        tuple(Switch(names[switch.name], switch.multicast, switch.reduces) for switch in switches),
        tuple(links),
    )
