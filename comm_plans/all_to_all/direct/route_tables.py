"""Routes as tables for source routing, in JSON and CSV; `docs/all-to-all.md` describes both."""

from __future__ import annotations

import csv
import json
from io import StringIO
from typing import Any

from comm_plans.all_to_all.direct.flow_problem import bandwidths_of
from comm_plans.all_to_all.direct.rounding import default_chunks, in_chunks
from comm_plans.all_to_all.direct.route_check import replayed
from comm_plans.all_to_all.direct.routes import Routes
from comm_plans.all_to_all.direct.solve import DirectResult
from comm_plans.all_to_all.direct.virtual_layers import check_layers, virtual_layers
from comm_plans.errors import PlansError
from comm_plans.exact import written
from comm_plans.topology import Topology

HEADINGS = ("from", "to", "route", "layer", "chunks", "path")
VERSION = 1
MOST_ROUTES = 300_000


def route_table(result: DirectResult, chunks: int | None = None) -> dict[str, Any]:
    """The table of all pairs with their data in whole chunks, replayed; `pair_rate` is what the rounding leaves of it.

    chunks: pieces of each pair's data; by default those of the exact optimum if they are few, else 32.
    Raises PlansError for more routes than a table holds.
    """
    topology, demand = result.topology, result.demand
    _check_size(result)
    chunks = default_chunks(result.routes) if chunks is None else chunks
    most = int(demand.max())
    routes = in_chunks(result.routes, demand, bandwidths_of(topology) * float(most / result.pair_rate), chunks)
    rate = most / replayed(topology, demand, [routes])
    layers = virtual_layers(topology, routes)
    check_layers(topology, routes, layers)
    return {
        "format": "all-to-all-routes",
        "version": VERSION,
        "topology": topology.to_document(),
        "chunks": chunks,
        "layers": int(layers.max()) + 1,
        "pair_rate": written(rate),
        "routes": _rows(topology, routes, layers.tolist()),
    }


def _check_size(result: DirectResult) -> None:
    count = len(result.representatives) * len(result.translations.elements)
    if count > MOST_ROUTES:
        raise PlansError(f"{count} routes are more than the {MOST_ROUTES} that a table holds; take a smaller network")


def _rows(topology: Topology, routes: Routes, layers: list[int]) -> list[dict[str, Any]]:
    names, links = topology.nodes, list(topology.capacities)
    rows = []
    for places in routes.groups():
        for number, place in enumerate(places.tolist()):
            sender, receiver = routes.pair[place].tolist()
            arcs = routes.arc[routes.begin[place] : routes.begin[place + 1]].tolist()
            path = [names[sender], *(names[links[arc][1]] for arc in arcs)]
            values = names[sender], names[receiver], number, layers[place], int(routes.share[place]), path
            rows.append(dict(zip(HEADINGS, values, strict=True)))
    return rows


def as_json(table: dict[str, Any]) -> str:
    """The table as JSON, a line a route."""
    head = json.dumps({key: value for key, value in table.items() if key != "routes"}, ensure_ascii=False)
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in table["routes"])
    return f'{head[:-1]}, "routes": [\n{lines}\n]}}\n'


def as_csv(table: dict[str, Any]) -> str:
    """The routes as CSV; the path is one field, its nodes joined by ` > `."""
    text = StringIO()
    writer = csv.DictWriter(text, HEADINGS, lineterminator="\n")
    writer.writeheader()
    writer.writerows({**row, "path": " > ".join(row["path"])} for row in table["routes"])
    return text.getvalue()
