"""The nodes of a Ray cluster: what they are called, what they hold, and how fast their network links are."""

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

_Answer = TypeVar("_Answer")

PATIENCE = 20  # seconds for nvidia-smi, which wakes sleeping GPUs first


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


def ranks_held(cpus: float, gpus: float) -> int:
    """How many ranks that need so much each the living nodes can hold, if nobody else is there."""
    needs = {name: need for name, need in (("CPU", cpus), ("GPU", gpus)) if need}
    return sum(
        int(min(node.resources.get(name, 0.0) // need for name, need in needs.items())) for node in living_nodes()
    )


def link_speeds(nodes: tuple[Node, ...], interface: str | None) -> list[Fraction | None]:
    """GB/s one way of each node's data link, as its system reports it; None where it reports none."""
    return _asked(nodes, _reported_speed, interface)


def link_matrices(nodes: tuple[Node, ...]) -> list[str | None]:
    """What `nvidia-smi topo -m` prints on each node; None where it does not run."""
    return _asked(nodes, reported_matrix)


def _asked(nodes: tuple[Node, ...], question: Callable[..., _Answer], *words: object) -> list[_Answer]:
    """What a function returns on each node."""
    import ray

    def asked(node: Node) -> Any:
        return ray.remote(question).options(num_cpus=0, resources={node.pin: 0.001}).remote(*words)

    answers: list[_Answer] = ray.get([asked(node) for node in nodes])
    return answers


def reported_matrix() -> str | None:
    """What `nvidia-smi topo -m` prints here; None where it does not run or takes too long."""
    try:
        done = subprocess.run(["nvidia-smi", "topo", "-m"], capture_output=True, timeout=PATIENCE, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode(errors="replace")


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
