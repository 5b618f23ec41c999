"""Machines → one topology: what each needs of its own links, and a network that joins them by their nearest NICs."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from comm_plans.cabling import Cabling
from comm_plans.errors import TopologyError
from comm_plans.readers.contraction import Cables, contract, lay
from comm_plans.readers.machine import Machine
from comm_plans.readers.rates import Rates
from comm_plans.readers.shares import shares
from comm_plans.topology import Topology

NETWORKS = ("switch", "rails")


def topology_of(name: str, machines: Mapping[str, Machine], rates: Rates, network: str) -> Topology:
    """One topology of machines by their host names; with two or more, `network` is one switch, or one for each rail.

    Raises TopologyError where a machine shows no NIC, or rails do not fit.
    """
    ways = _ways_out(machines, network)
    net = Cabling(name)
    named = {host: f"{host}/" if len(machines) > 1 else "" for host in machines}
    for host, machine in machines.items():
        for gpu in machine.gpus:
            net.rank(named[host] + gpu, machine.homes.get(gpu, host))
    cables: Cables = {}
    for host, machine in machines.items():
        _add_fast_links(net, machine, named[host], rates)
        _lay_ways(cables, machine, named[host], rates, ways[host])
    fast = {named[host] + node for host, machine in machines.items() for node in (*machine.gpus, *machine.switches)}
    joints = {switch for cards in ways.values() for switch in cards.values()}
    contract(cables, ends=fast | joints)
    _add_cables(net, cables, fast)
    return net.topology()


def _ways_out(machines: Mapping[str, Machine], network: str) -> dict[str, dict[str, str]]:
    """For each host, the network switch behind each of its nearest NICs; none for a host that is alone."""
    if len(machines) == 1 and not any(machine.homes and machine.nics for machine in machines.values()):
        return {host: {} for host in machines}
    ways = {host: _cards(machine, network) for host, machine in machines.items()}
    for host, cards in ways.items():
        if not cards:
            raise TopologyError(f"{host} shows no network card, so nothing joins it to other hosts; read it alone")
    if network == "rails" and len({len(cards) for cards in ways.values()}) > 1:
        counts = ", ".join(f"{host} has {len(cards)}" for host, cards in list(ways.items())[:4])
        raise TopologyError(f"rails need equally many NICs near the GPUs of every host; {counts}; take one switch")
    return ways


def _cards(machine: Machine, network: str) -> dict[str, str]:
    near = {nic for nics in machine.nearest_nics().values() for nic in nics}
    cards = [nic for nic in machine.nics if nic in near]
    return {nic: f"rail{place}" if network == "rails" else "network" for place, nic in enumerate(cards)}


def _add_fast_links(net: Cabling, machine: Machine, prefix: str, rates: Rates) -> None:
    for switch in machine.switches:
        net.switch(prefix + switch)
    for source, target, rate in machine.links:
        net.link(prefix + source, prefix + target, rates.settled(rate))


def _lay_ways(cables: Cables, machine: Machine, prefix: str, rates: Rates, ways: Mapping[str, str]) -> None:
    """Into the network straight from GPUs that fast links join, else along the PCIe that joins them too."""
    if machine.fast_links_reach_all():
        for gpu, nic, bandwidth in shares(machine, rates) if ways else ():
            lay(cables, prefix + gpu, ways[nic], bandwidth)
        return
    steps = [step for leaf in (*machine.gpus, *ways) for step in machine.tree.way(leaf)]
    for step in dict.fromkeys(steps):
        lay(cables, prefix + step, prefix + machine.tree.parents[step], rates.settled(machine.tree.uplinks[step]))
    for nic, switch in ways.items():
        lay(cables, prefix + nic, switch, rates.settled(machine.nics[nic]))


def _add_cables(net: Cabling, cables: Cables, known: Collection[str]) -> None:
    """What is left of PCIe and network; nodes that are not known yet are switches."""
    for node in cables:
        if node not in known:
            net.switch(node)
    places = {node: place for place, node in enumerate(cables)}
    for one, ways in cables.items():
        for other, bandwidth in ways.items():
            if places[one] < places[other]:
                net.cable(one, other, bandwidth)
