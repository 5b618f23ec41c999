"""What must hold before a collective can be solved on a network, said in one sentence where it does not."""

from collections.abc import Iterable, Mapping

from comm_plans.errors import Disconnected, TopologyError, UnbalancedSwitch, listed
from comm_plans.forest.optimum import Arc
from comm_plans.topology import Topology

SPREADS = ("all_gather", "all_reduce", "broadcast")
GATHERS = ("reduce_scatter", "all_reduce", "reduce")


def check_ranks(topology: Topology) -> None:
    """Raise TopologyError for a network of one rank."""
    if len(topology.ranks) < 2:
        raise TopologyError(f"{topology.name} has one rank only; a collective needs two or more")


def check_connected(topology: Topology, collective: str, root: int | None = None) -> None:
    """Raise Disconnected unless data gets where the collective takes it; `root` for broadcast and reduce."""
    start = 0 if root is None else root
    if root is None or collective in SPREADS:
        _check_reached(topology, start, forward=True)
    if root is None or collective in GATHERS:
        _check_reached(topology, start, forward=False)


def check_balanced(topology: Topology, collective: str) -> None:
    """Raise UnbalancedSwitch where a plain switch sends more than it receives; reductions run the other way."""
    for switch in topology.switches:
        node = topology.index(switch.name)
        leaving = sum(b for (u, _), b in topology.capacities.items() if u == node)
        entering = sum(b for (_, v), b in topology.capacities.items() if v == node)
        if (leaving > entering and collective in SPREADS) or (entering > leaving and collective in GATHERS):
            raise UnbalancedSwitch(
                f"switch {switch.name} of {topology.name} receives {entering} GB/s and sends {leaving} GB/s, so the "
                f"bound on {collective} cannot be reached; correct its links or trim them (--trim)"
            )


def _check_reached(topology: Topology, start: int, forward: bool) -> None:
    links = topology.capacities if forward else [(v, u) for u, v in topology.capacities]
    reached = _reach(links, start)
    lost = [name for rank, name in enumerate(topology.ranks) if rank not in reached]
    if not lost:
        return
    first, verb = topology.ranks[start], "cannot reach" if forward else "cannot be reached from"
    raise Disconnected(
        f"{first} {verb} {listed(lost)} over the links of {topology.name}; add the missing links, in both directions"
    )


def _reach(links: Mapping[Arc, object] | Iterable[Arc], start: int) -> set[int]:
    behind: dict[int, list[int]] = {}
    for u, v in links:
        behind.setdefault(u, []).append(v)
    reached, waiting = {start}, [start]
    while waiting:
        for node in behind.get(waiting.pop(), []):
            if node not in reached:
                reached.add(node)
                waiting.append(node)
    return reached
