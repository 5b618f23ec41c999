"""`rocm-smi --showtopo` → a matrix of links: its blocks for the kind of link and the hops, and its lines on NUMA."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from comm_plans.errors import TopologyError
from comm_plans.readers.grid import Grid, Row, grids
from comm_plans.readers.link_matrix import LinkMatrix, checked_matrix
from comm_plans.readers.pasted import lines_of

_BLOCK = re.compile(r"(Hops|Link Type) between two GPUs")
_CELL = re.compile(r"XGMI|PCIE|\d{1,4}")
_NUMA = re.compile(r"GPU\s*\[?(\d+)\]?\s*:\s*\(Topology\) Numa Node:\s*(\d+)")
_ONE_SOCKET = {"1", "2"}  # hops


def parse_showtopo(text: str) -> LinkMatrix | None:
    """The matrix that the blocks describe together; None where there is no block. Raises TopologyError."""
    if not re.search(r"(Weight|Hops|Link Type) between two GPUs", text):
        return None
    lines = lines_of(text)
    blocks: dict[str, Grid] = {}
    for grid in grids(lines, _CELL):
        title = next((line.text for line in reversed(lines[: grid.start]) if line.text), "")
        if found := _BLOCK.search(title):
            blocks.setdefault(found[1], grid)
    if "Link Type" not in blocks:
        raise TopologyError("“Link Type between two GPUs” is missing; give the whole output of rocm-smi --showtopo")
    numa = {f"GPU{number}": (node,) for number, node in _NUMA.findall(text)}
    return checked_matrix(_as_crossings(blocks["Link Type"], blocks.get("Hops"), numa))


def _as_crossings(links: Grid, hops: Grid | None, numa: Mapping[str, tuple[str, ...]]) -> Grid:
    """PCIE within a socket is NODE and beyond it SYS, as hops tell, else NUMA nodes; the diagonal is X."""
    rows = {}
    for label, row in links.rows.items():
        cells = list(row.cells)
        for place, (other, cell) in enumerate(zip(links.devices, row.cells, strict=False)):
            if other == label and cell == "0":
                cells[place] = "X"
            elif cell == "PCIE":
                counted = hops.rows[label].cells[place : place + 1] if hops and label in hops.rows else []
                near = counted[0] in _ONE_SOCKET if counted else numa.get(label) == numa.get(other)
                cells[place] = "NODE" if near else "SYS"
        rows[label] = Row(row.line, cells, numa.get(label, ()))
    return replace(links, rows=rows)
