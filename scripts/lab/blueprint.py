"""What a topology becomes in the lab, before anything is made: a namespace a node, an address, a rate for each end."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from secrets import token_hex

from comm_plans.lab_state import PATH, LabError, LabLink, LabNode, LabState
from comm_plans.topology import Topology

MOST_NODES = 250  # what one management network addresses, and more than one machine bears
INTERFACE = "id0"
SLOWEST, FASTEST = 1_000, 10**11  # bit/s
BITS = 8 * 10**9  # in a GB


def blueprint(file: Path, managed: bool = False) -> LabState:
    """The lab that the topology file asks for, with a management network if `managed`.

    Raises PlansError for a wrong file or a network that cannot be built.
    """
    topology = Topology.load(file)
    if len(topology.nodes) > MOST_NODES:
        raise LabError(f"{file}: {len(topology.nodes)} nodes are more than the {MOST_NODES} that a lab can hold")
    nodes = tuple(_node(index, name, managed) for index, name in enumerate(topology.nodes))
    return LabState(
        topology=str(file.resolve()),
        digest=digest(topology),
        complete=False,
        mark=token_hex(16),
        ranks=nodes[: len(topology.ranks)],
        switches=nodes[len(topology.ranks) :],
        links=tuple(_links(topology)),
        management=_management() if managed else None,
    )


def digest(topology: Topology) -> str:
    """SHA-256 of what a topology file says, however it is laid out."""
    return hashlib.sha256(json.dumps(topology.to_document()).encode()).hexdigest()


def prefix() -> str:
    """What all names of this lab begin with; a lab whose state lies elsewhere has other names and harms no other."""
    return "netlab" if LabState.path() == PATH else f"netlab{_distinction().hex()}"


def _distinction() -> bytes:
    """Two bytes that tell this lab's names and addresses from those of one whose state lies elsewhere."""
    return hashlib.sha256(str(LabState.path()).encode()).digest()[:2]


def _node(index: int, name: str, managed: bool) -> LabNode:
    readable = re.sub(r"[^A-Za-z0-9_.]+", "-", name)[:32]
    management_address = _management_address(index + 2) if managed else None
    return LabNode(name, f"{prefix()}-{index}-{readable}", INTERFACE, f"10.77.0.{index + 1}", management_address)


def _management() -> LabNode:
    return LabNode("management", f"{prefix()}-management", f"{prefix()}-host", _management_address(1))


def _management_address(number: int) -> str:
    """Of the range set apart for network benchmarks (RFC 2544), so that nobody else's addresses are hidden."""
    return f"198.19.{_distinction()[0]}.{number}"


def _links(topology: Topology) -> Iterator[LabLink]:
    bandwidths = {(link.source, link.target): link.bandwidth for link in topology.links}
    for source, target in bandwidths:
        if (target, source) not in bandwidths:
            raise LabError(f"link {source} → {target} has no way back, and TCP needs one; give {target} → {source} too")
        if topology.index(source) < topology.index(target):
            ends = source, target
            yield LabLink(ends, (_rate(bandwidths[ends], ends), _rate(bandwidths[ends[::-1]], ends[::-1])))


def _rate(bandwidth: Fraction, ends: tuple[str, str]) -> int:
    return checked_rate(round(bandwidth * BITS), f"link {ends[0]} → {ends[1]} of {float(bandwidth):g} GB/s")


def checked_rate(rate: int, what: str) -> int:
    """The rate in bit/s, if the kernel can shape to it. Raises LabError, which says `what` has that rate."""
    if not SLOWEST <= rate <= FASTEST:
        raise LabError(f"{what} cannot be shaped; use 1 kbit/s to 100 Gbit/s (0.000000125 to 12.5 GB/s)")
    return rate
