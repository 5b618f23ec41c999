"""What a transport costs beside the network's own time: constants of the α–β rule, measured on one core."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Costs:
    """Seconds to start a collective, to pass one hop, to handle one byte that a rank sends or receives."""

    start: float
    hop: float
    byte: float


STREAMS = Costs(start=4e-4, hop=1e-4, byte=1 / 0.3e9)
P2P = Costs(start=2e-3, hop=4e-4, byte=1 / 0.18e9)
GLOO = Costs(start=1e-4, hop=1e-4, byte=1 / 1.2e9)
