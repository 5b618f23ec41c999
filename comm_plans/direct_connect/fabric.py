"""A wiring as a network: `L^2(C(16,3,4))` or, with a bandwidth in GB/s an arc, `L^2(C(16,3,4)):bandwidth=25`."""

from __future__ import annotations

from fractions import Fraction

from comm_plans.direct_connect.expression import Wiring, build, parse
from comm_plans.errors import TopologyError
from comm_plans.exact import exact
from comm_plans.topology import Topology


def wired(text: str) -> Topology:
    """The network of ranks g0, g1 … that a wiring describes, 1 GB/s an arc unless given. Raises TopologyError."""
    wiring, bandwidth = read_wired(text)
    return build(wiring).topology(text, bandwidth)


def read_wired(text: str) -> tuple[Wiring, Fraction]:
    """The wiring and the bandwidth of its arcs in GB/s."""
    word, _, setting = text.partition(":bandwidth=")
    try:
        bandwidth = exact(setting or "1")
    except ValueError as error:
        raise TopologyError(f"{text[:60]}: {error}; give GB/s such as :bandwidth=25") from error
    if bandwidth <= 0:
        raise TopologyError(f"{text[:60]}: the bandwidth {setting} is not above zero")
    return parse(word), bandwidth
