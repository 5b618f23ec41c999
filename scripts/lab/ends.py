"""The two ends of each link of a lab: whose namespace, which interface, which rate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from comm_plans.lab_state import LabError, LabLink, LabNode, LabState


@dataclass(frozen=True)
class End:
    """One end of a link. interface: its name in the node's namespace. rate: bit/s that leave the node here."""

    node: LabNode
    peer: LabNode
    interface: str
    peer_interface: str
    rate: int


def ends(state: LabState) -> Iterator[End]:
    """Both ends of each link that is not cut."""
    for link in state.links:
        if not link.cut:
            yield from ends_of(state, link)


def ends_of(state: LabState, link: LabLink) -> tuple[End, End]:
    """The ends of one link, in its order."""
    indices = {node.name: index for index, node in enumerate(state.nodes)}
    first, second = (indices[name] for name in link.ends)
    there, back = link.rates
    one, two = state.nodes[first], state.nodes[second]
    return (
        End(one, two, interface(second), interface(first), there),
        End(two, one, interface(first), interface(second), back),
    )


def interface(peer: int) -> str:
    """Name of the interface that leads to the node of index `peer`."""
    return f"e{peer}"


def find_link(state: LabState, name: str) -> LabLink:
    """The link that a person writes as `h0-h1`, in either order. Raises LabError for one that is not there."""
    found = [link for link in state.links if name in {"-".join(link.ends), "-".join(link.ends[::-1])}]
    if len(found) > 1:
        raise LabError(f"{name} names {len(found)} links of {state.topology}; give its nodes names without -")
    if not found:
        names = ", ".join("-".join(link.ends) for link in state.links[:8])
        raise LabError(f"{name or 'nothing'} is no link of {state.topology}; name one as it has them, such as {names}")
    return found[0]
