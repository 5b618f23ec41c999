"""A matrix of links → a machine: what NVLink joins, whether by a switch, and the PCIe tree behind the other words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from comm_plans.readers.generations import B200, BY_LANES, H100, UNKNOWN, Generation, named_in, nvlink_rate, pcie_rate
from comm_plans.readers.link_matrix import CROSSINGS, LinkMatrix
from comm_plans.readers.machine import Machine, groups
from comm_plans.readers.rates import Rate
from comm_plans.readers.tree import Tree

Cells = Mapping[tuple[str, str], str]

SAME_SOCKET, OTHER_SOCKET = CROSSINGS.index("NODE"), CROSSINGS.index("SYS")
SOCKETS = Rate("SYS", Fraction(16), "what NCCL takes between two AMD EPYC; the text does not tell which CPUs these are")
UNCOUNTED = {
    "XGMI": Rate("XGMI", Fraction(50), "one Infinity Fabric link, as an MI200 has it; the text does not count them"),
    "MX": Rate("MX", Fraction(25), "a guess, as no figure is published"),
}
GRACE_CORES = 72


def machine_of(matrix: LinkMatrix, text: str) -> Machine:
    """The machine that a matrix describes; `text`, around it, may name the model of its GPUs."""
    fast = {ends: cell for ends, cell in matrix.cells.items() if cell.startswith("NV") or cell in UNCOUNTED}
    generation = named_in(text) or _guessed(matrix, fast)
    machine = Machine(list(matrix.gpus), remarks=list(matrix.remarks))
    for joined in groups(matrix.gpus, fast):
        _join(machine, joined, fast, generation)
    nics = _nearest_nics(matrix)
    why = f"{float(generation.nic * 8):g} Gbit/s, as mostly bought with {generation.name}"
    machine.nics = {nic: Rate(nic, generation.nic, why, family="NIC") for nic in nics}
    machine.tree = _tree(matrix, nics, fast, generation)
    return machine


def _lanes(gpus: Sequence[str], fast: Cells) -> dict[str, list[int]]:
    """For each GPU the lanes that it shows towards each other one."""
    counts = {one: [fast[one, other] for other in gpus if (one, other) in fast] for one in gpus}
    return {gpu: [int(cell[2:]) if cell.startswith("NV") else 1 for cell in cells] for gpu, cells in counts.items()}


def _guessed(matrix: LinkMatrix, fast: Cells) -> Generation:
    """The generation with as many lanes as the GPUs here; behind a switch, a GPU shows all of them to every other."""
    lanes = _lanes(matrix.gpus, fast).values()
    totals = (sum(counts) if sum(counts) <= UNKNOWN.lanes else max(counts) for counts in lanes if counts)
    guess = BY_LANES.get(max(totals, default=0), UNKNOWN)
    return B200 if guess is H100 and _beside_grace(matrix) else guess


def _beside_grace(matrix: LinkMatrix) -> bool:
    """Whether the CPUs are Grace's: by their count, or as NICs are NODE and not SYS from GPUs of two NUMA nodes."""
    ranges = (re.match(r"(\d+)-(\d+)", place[0]) for place in matrix.places.values() if place)
    if any(found and int(found[2]) - int(found[1]) + 1 == GRACE_CORES for found in ranges):
        return True
    nics = [matrix.cells[gpu, nic] for gpu in matrix.gpus for nic in matrix.nics]
    return len(set(matrix.places.values())) > 1 and set(nics) == {"NODE"}


def _join(machine: Machine, gpus: Sequence[str], fast: Cells, generation: Generation) -> None:
    """More lanes than a GPU has are a switch, to which each GPU has as many as it shows; fewer are its own links."""
    lanes = _lanes(gpus, fast)
    if max(map(sum, lanes.values())) > generation.lanes:
        switch = f"nvs{len(machine.switches)}"
        machine.switches.append(switch)
        for gpu in gpus:
            machine.cable(gpu, switch, nvlink_rate(max(lanes[gpu]), generation))
        return
    for ends, cell in fast.items():
        if ends[0] in gpus:
            rate = UNCOUNTED[cell] if cell in UNCOUNTED else nvlink_rate(int(cell[2:]), generation)
            machine.links.append((*ends, rate))


def _nearest_nics(matrix: LinkMatrix) -> list[str]:
    """The NICs that are as near to some GPU as any; the others, for storage or management, take no part."""
    near = set()
    for gpu in matrix.gpus:
        distances = {nic: _distance(matrix.cells[gpu, nic]) for nic in matrix.nics}
        near |= {nic for nic, distance in distances.items() if distance == min(distances.values())}
    return [nic for nic in matrix.nics if nic in near]


def _distance(cell: str) -> int:
    return CROSSINGS.index(cell) if cell in CROSSINGS else SAME_SOCKET


def _tree(matrix: LinkMatrix, nics: Sequence[str], fast: Cells, generation: Generation) -> Tree:
    """What is joined by a near crossing hangs below one switch, that switch with others below one for a farther."""
    tree = Tree(frozenset((*matrix.gpus, *nics)))
    tops = {device: device for device in (*matrix.gpus, *nics)}
    distances = dict(_distances(matrix, set(nics), fast))
    for level, word in enumerate(CROSSINGS):
        pairs = [(tops[one], tops[other]) for (one, other), distance in distances.items() if distance == level]
        uplink = SOCKETS if level == OTHER_SOCKET else pcie_rate(word, generation)
        above = {}
        for joined in (group for group in groups(tops.values(), pairs) if len(group) > 1):
            switch = tree.name(word.lower())
            for node in joined:
                above[node] = switch
                tree.hang(node, switch, uplink)
        tops = {device: above.get(top, top) for device, top in tops.items()}
    return tree


def _distances(matrix: LinkMatrix, nics: set[str], fast: Cells) -> Iterator[tuple[tuple[str, str], int]]:
    """NVLink hides what PCIe there is between two GPUs: their CPUs tell whether it is one socket's."""
    for (gpu, other), cell in matrix.cells.items():
        if (gpu, other) in fast:
            near = matrix.places[gpu] == matrix.places[other] != ()
            yield (gpu, other), SAME_SOCKET if near else OTHER_SOCKET
        elif other in nics or other in matrix.places:
            yield (gpu, other), _distance(cell)
