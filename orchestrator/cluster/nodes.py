"""The nodes of a Ray cluster: what they are called, what they hold, and how fast their network links are."""

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Node:
    """One machine of the cluster. `resources` are its totals, such as {"CPU": 2.0}."""

    address: str
    hostname: str
    resources: dict[str, float]

    @property
    def pin(self) -> str:
        """The resource that only this node has."""
        return f"node:{self.address}"


def living_nodes() -> tuple[Node, ...]:
    """Every node that is up, the head first, then by address."""
    import ray

    found = [
        Node(node["NodeManagerAddress"], node["NodeManagerHostname"], node["Resources"])
        for node in ray.nodes()
        if node["Alive"]
    ]
    return tuple(sorted(found, key=lambda node: ("node:__internal_head__" not in node.resources, node.address)))


def link_speeds(nodes: tuple[Node, ...], interface: str | None) -> list[Fraction | None]:
    """GB/s one way of each node's data link, as its system reports it; None where it reports none."""
    import ray

    def asked(node: Node) -> Any:
        task = ray.remote(_reported_speed).options(num_cpus=0, resources={node.pin: 0.001})
        return task.remote(interface)

    speeds: list[Fraction | None] = ray.get([asked(node) for node in nodes])
    return speeds


def _reported_speed(interface: str | None) -> Fraction | None:
    """GB/s of an interface, by default of the one that the default route takes; None where the system does not say."""
    try:
        name = interface or _default_interface()
        megabits = int((Path("/sys/class/net") / name / "speed").read_text())
    except (OSError, ValueError, StopIteration):
        return None
    return Fraction(megabits, 8000) if megabits > 0 else None


def _default_interface() -> str:
    routes = [line.split() for line in Path("/proc/net/route").read_text().splitlines()[1:]]
    return next(route[0] for route in routes if route[1] == "00000000")
