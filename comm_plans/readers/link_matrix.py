"""`nvidia-smi topo -m` (or `mx-smi topo`): which GPUs and NICs there are, and what a GPU crosses to reach another."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from comm_plans.errors import TopologyError
from comm_plans.readers.grid import Grid, grids
from comm_plans.readers.pasted import lines_of

CROSSINGS = ("PIX", "PXB", "PHB", "NODE", "SYS")  # of PCIe, from near to far
_CELL = re.compile(r"X|PIX|PXB|PHB|NODE|SYS|SOC|NV\d{1,3}|MX|XGMI|OK|NS|CNS|GNS|TNS|DR|U")
_ROW = re.compile(r"GPU\d+\s+(?:X|PIX|PXB|PHB|NODE|SYS|SOC|NV\d+)\b")
_GPU = re.compile(r"GPU\d+")
_OF_CARDS = {"X", "SOC", *CROSSINGS}
_PEER_ACCESS = {"OK", "NS", "CNS", "GNS", "TNS", "DR", "U"}  # what `topo -p2p` says
_WHOLE = "give the whole output as it was printed"


@dataclass(frozen=True)
class LinkMatrix:
    """`cells` hold what lies between a GPU and any other device; `places` the CPUs near a GPU, empty where untold."""

    gpus: list[str]
    nics: list[str]
    cells: dict[tuple[str, str], str]
    places: dict[str, tuple[str, ...]]
    remarks: list[str]


def parse_link_matrix(text: str) -> LinkMatrix | None:
    """The first matrix in the text; None where there is none. Raises TopologyError that names the line."""
    lines = lines_of(text)
    found = list(islice(grids(lines, _CELL), 2))
    if not found:
        for line in lines:
            if _ROW.match(line.text):
                raise TopologyError(f"line {line.number}: rows of a matrix lack the header that names them; {_WHOLE}")
        return None
    matrix = checked_matrix(found[0])
    if len(found) > 1:
        matrix.remarks.append("the text holds more than one matrix; the first was read, give each host its own file")
    if re.search(r"^[ \t]*MIG \S+[ \t]+Device", text, re.MULTILINE):
        matrix.remarks.append("MIG parts share the links of their GPU; one rank stands for each whole GPU")
    return matrix


def checked_matrix(grid: Grid) -> LinkMatrix:
    """The matrix in a grid of words. Raises TopologyError unless it is whole, symmetric and made of known words."""
    gpus = [device for device in grid.devices if _GPU.fullmatch(device)]
    nics = [device for device in grid.devices if device not in {*gpus}]
    whole = {nic for nic in nics if nic in grid.rows and len(grid.rows[nic].cells) == len(grid.devices)}
    for device in (*gpus, *whole):
        _check_row(device, grid)
    cells = dict(_cells(grid, gpus))
    _check_symmetry(grid, cells, {*gpus, *whole})
    cut = ["rows of NICs are missing or cut; the columns of the GPUs say the same"] if len(whole) < len(nics) else []
    return LinkMatrix(gpus, nics, cells, {gpu: grid.rows[gpu].rest for gpu in gpus}, cut)


def _check_row(device: str, grid: Grid) -> None:
    """Raise TopologyError unless the row is there, complete, made of known words, and X on the diagonal alone."""
    row = grid.rows.get(device)
    if row is None:
        raise TopologyError(f"the row of {device} is missing, though the header names it; {_WHOLE}")
    if len(row.cells) < len(grid.devices):
        have = f"{len(row.cells)} of {len(grid.devices)} cells"
        raise TopologyError(f"line {row.line}: the row of {device} is cut, it has {have}; {_WHOLE}")
    for other, cell in zip(grid.devices, row.cells, strict=True):
        where = f"line {row.line}: between {device} and {other} stands {cell[:20]}"
        if not _CELL.fullmatch(cell):
            raise TopologyError(f"{where}, which is no known kind of link; {_WHOLE}")
        if cell in _PEER_ACCESS:
            raise TopologyError(f"{where}, which tells whether and not how they are joined; {_WHOLE}")
        if cell not in _OF_CARDS and not (_GPU.fullmatch(device) and _GPU.fullmatch(other)):
            raise TopologyError(f"{where}, which joins GPUs alone; {_WHOLE}")
        if (cell == "X") != (device == other):
            raise TopologyError(f"{where}; X belongs between a device and itself, and nowhere else; {_WHOLE}")


def _cells(grid: Grid, gpus: list[str]) -> Iterator[tuple[tuple[str, str], str]]:
    for gpu in gpus:
        for other, cell in zip(grid.devices, grid.rows[gpu].cells, strict=True):
            if other != gpu:
                yield (gpu, other), "SYS" if cell == "SOC" else cell


def _check_symmetry(grid: Grid, cells: dict[tuple[str, str], str], whole: set[str]) -> None:
    places = {device: place for place, device in enumerate(grid.devices)}
    for (gpu, other), cell in cells.items():
        back = grid.rows[other].cells[places[gpu]].replace("SOC", "SYS") if other in whole else cell
        if back != cell:
            where = f"line {grid.rows[gpu].line} and line {grid.rows[other].line}"
            raise TopologyError(f"{where}: {gpu} to {other} is {cell}, and back it is {back}; {_WHOLE}")
