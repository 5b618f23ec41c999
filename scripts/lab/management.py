"""The unshaped network beside a lab: a bridge in a namespace of its own, to each rank, and to the root namespace.

In a namespace of its own no firewall of the machine filters what crosses the bridge.
"""

from __future__ import annotations

from collections.abc import Iterator

from comm_plans.lab_state import LabNode, LabState
from lab.shell import run

INTERFACE = "mgmt0"


def build_management(state: LabState, management: LabNode) -> None:
    """Make the bridge and connect each rank and the root namespace. Raises LabError with what the kernel lacks."""
    run("ip", "-batch", "-", lines=_cables(state, management))
    run("ip", "-n", management.namespace, "-batch", "-", lines=_ports(state))
    for node in state.ranks:
        run("ip", "-n", node.namespace, "-batch", "-", lines=_joining(INTERFACE, node.management_address))
    run("ip", "-batch", "-", lines=_joining(management.interface, management.address))


def _cables(state: LabState, management: LabNode) -> Iterator[str]:
    home = management.namespace
    yield f"netns add {home}"
    yield f"link add {management.interface} type veth peer name host netns {home}"
    for index, node in enumerate(state.ranks):
        yield f"link add {INTERFACE} netns {node.namespace} type veth peer name rank{index} netns {home}"


def _ports(state: LabState) -> Iterator[str]:
    yield "link add bridge type bridge"
    yield "link set bridge up"
    for port in ("host", *(f"rank{index}" for index in range(len(state.ranks)))):
        yield f"link set {port} master bridge up"


def _joining(interface: str, address: str | None) -> list[str]:
    return [f"addr add {address}/24 dev {interface}", f"link set {interface} up"]
