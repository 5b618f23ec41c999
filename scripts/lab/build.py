"""Makes what a blueprint says: namespaces, the cables between them, addresses, routes and shaped ends.

Every node, switches too, is a small router with one address on a device of its own (`id0`), which all links share, and
a route to each rank. So any network can be built, loops and direct links included, and one interface name serves every
rank of every lab.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from comm_plans.lab_state import LabNode, LabState
from lab.ends import End, ends, interface
from lab.namespaces import inside
from lab.rates import shaper
from lab.routes import next_hops
from lab.shell import run

MTU = 9000  # 1500 costs several times the processor time
SETTINGS = {
    "net/ipv4/ip_forward": "1",
    "net/ipv4/conf/all/rp_filter": "0",
    "net/ipv4/conf/default/rp_filter": "0",
    "net/ipv4/tcp_congestion_control": "reno",  # fair on a shared token bucket, as BBR is not
    "net/ipv4/tcp_no_metrics_save": "1",  # or a connection would start from what an earlier one learnt
}


def build(state: LabState) -> None:
    """Make the network. Raises LabError with what the kernel lacks; what is half made then is for `down` to remove."""
    run("ip", "-batch", "-", lines=[f"netns add {node.namespace}" for node in state.nodes])
    run("ip", "-batch", "-", lines=_cables(state))
    own = _by_namespace(state)
    for node in state.nodes:
        with inside(node.namespace):
            _settle()
        run("ip", "-n", node.namespace, "-batch", "-", lines=_devices(node, own[node.namespace]))
        run("tc", "-n", node.namespace, "-batch", "-", lines=_shapers(own[node.namespace]))
    lay_routes(state)


def lay_routes(state: LabState) -> None:
    """Give each node its way to each rank over the links that are not cut, and none where there is no way."""
    hops = {target: next_hops(rates_between(state), target) for target in range(len(state.ranks))}
    for index, node in enumerate(state.nodes):
        ways = {target: hop.get(index) for target, hop in hops.items() if target != index}
        run("ip", "-n", node.namespace, "-batch", "-", lines=_routes(state, node, ways))


def _cables(state: LabState) -> list[str]:
    return [
        f"link add {end.interface} netns {end.node.namespace} "
        f"type veth peer name {end.peer_interface} netns {end.peer.namespace}"
        for end in list(ends(state))[::2]
    ]


def _by_namespace(state: LabState) -> defaultdict[str, list[End]]:
    own: defaultdict[str, list[End]] = defaultdict(list)
    for end in ends(state):
        own[end.node.namespace].append(end)
    return own


def _settle() -> None:
    """Settings of the namespace that this thread is in."""
    for key, value in SETTINGS.items():
        Path("/proc/sys", key).write_text(value)


def _devices(node: LabNode, own: list[End]) -> Iterator[str]:
    yield "link set lo up"
    yield f"link add {node.interface} type bridge"  # without ports: a device that every kernel has
    yield f"addr add {node.address}/32 dev {node.interface}"
    yield f"link set {node.interface} up"
    for end in own:
        yield f"link set {end.interface} mtu {MTU} up"


def _shapers(own: list[End]) -> list[str]:
    return [f"qdisc add dev {end.interface} {shaper(end.rate)}" for end in own]


def rates_between(state: LabState) -> dict[tuple[int, int], int]:
    """Bit/s of each link that is not cut, by the indices of its ends."""
    indices = {node.name: index for index, node in enumerate(state.nodes)}
    return {(indices[end.node.name], indices[end.peer.name]): end.rate for end in ends(state)}


def _routes(state: LabState, node: LabNode, ways: dict[int, int | None]) -> Iterator[str]:
    for target, hop in ways.items():
        address = state.nodes[target].address
        if hop is None:
            yield f"route replace unreachable {address}"
        else:
            through = f"via {state.nodes[hop].address} dev {interface(hop)}"
            yield f"route replace {address} {through} src {node.address} onlink"
