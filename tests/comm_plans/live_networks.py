"""Networks on which plans are run in tests: unequal hosts, two boxes, a torus with and without slow links."""

from __future__ import annotations

from comm_plans.topology import Topology


def unequal_star() -> Topology:
    """Four hosts around a switch at 200, 200, 100 and 50 Mbit/s: its best all_reduce has unequal trees."""
    rates = ["0.025", "0.025", "0.0125", "0.00625"]
    cables = [[f"h{host}", "sw", rate] for host, rate in enumerate(rates)]
    return _network("unequal star", 4, ["sw"], cables)


def two_boxes() -> Topology:
    """Two switches of four ranks at 200 Mbit/s, joined at 75."""
    cables = [[f"h{rank}", f"box{rank // 4}", "0.025"] for rank in range(8)]
    return _network("two boxes", 8, ["box0", "box1"], [*cables, ["box0", "box1", "0.009375"]])


def degraded_torus() -> Topology:
    """3×3 at 50 Mbit/s, of which two links at one rank have fallen to 10."""
    slow = {(0, 1), (0, 3)}
    pairs = [(rank, rank // 3 * 3 + (rank + 1) % 3) for rank in range(9)] + [(r, (r + 3) % 9) for r in range(9)]
    cables = [[f"h{one}", f"h{two}", "0.00125" if (one, two) in slow else "0.00625"] for one, two in pairs]
    return _network("degraded torus", 9, [], cables)


def _network(name: str, ranks: int, switches: list[str], cables: list[list[str]]) -> Topology:
    names = [f"h{rank}" for rank in range(ranks)]
    return Topology.from_document({"name": name, "ranks": names, "switches": switches, "cables": cables})
