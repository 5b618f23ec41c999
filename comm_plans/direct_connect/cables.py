"""The list by which someone patches a wiring: from which port of which host to which port of which host."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator

from comm_plans.direct_connect.graphs import Graph

Cable = tuple[int, int, int, int, str]
HEADER = ("from_host", "from_port", "to_host", "to_port", "direction")


def wiring_list(graph: Graph) -> str:
    """CSV with a line a cable. In an undirected graph a cable serves both directions of a port; otherwise each line is
    one way, from a sending port to a receiving port. Hosts and ports count from 0; loops stay unpatched."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADER)
    for source, port, target, other_port, direction in cables(graph):
        writer.writerow((f"g{source}", port, f"g{target}", other_port, direction))
    return text.getvalue()


def cables(graph: Graph) -> Iterator[Cable]:
    """Source, its port, target, its port and `both` or `one way` for each cable."""
    arcs = [(source, target) for source, target in graph.arcs.tolist() if source != target]
    if Counter(arcs) == Counter((target, source) for source, target in arcs):
        used: Counter[int] = Counter()
        for source, target in sorted(arc for arc in arcs if arc[0] < arc[1]):
            yield source, used[source], target, used[target], "both"
            used.update((source, target))
        return
    sending: Counter[int] = Counter()
    receiving: Counter[int] = Counter()
    for source, target in sorted(arcs):
        yield source, sending[source], target, receiving[target], "one way"
        sending[source] += 1
        receiving[target] += 1
