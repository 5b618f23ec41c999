"""The one place that decides what a word for a network means: a fabric by name, a wiring, or a topology file."""

from __future__ import annotations

from pathlib import Path

from comm_plans.direct_connect.words import is_wiring
from comm_plans.errors import TopologyError
from comm_plans.fabrics import FABRICS, fabric
from comm_plans.topology import Topology


def topology_from(text: str) -> Topology:
    """Make the network that `text` names: a fabric such as `dgx_a100:boxes=2`, a wiring such as `L^2(C(16,3,4))`, else
    a file (`./ring` is a file).

    Raises TopologyError where it is none of them.
    """
    if text.partition(":")[0] in FABRICS:
        return fabric(text)
    path = Path(text)
    if is_wiring(text) and not path.is_file():
        from comm_plans.direct_connect.fabric import wired

        return wired(text)
    if path.is_file() or path.suffix or path.name != text:
        return Topology.load(path)
    known = ", ".join(FABRICS)
    raise TopologyError(f"{text[:80]!r} is neither a file nor a fabric nor a wiring; the fabrics are {known}")
