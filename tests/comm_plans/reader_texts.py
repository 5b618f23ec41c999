"""Texts for the readers: the fixtures by name, and matrices of links in all the shapes in which people paste them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path

from comm_plans.readers.reading import Reading, read_cluster
from comm_plans.topology import Topology

FOLDER = Path(__file__).parent.parent / "data" / "topology_inputs"
FIXTURES = sorted(path.name for path in FOLDER.iterdir())


def fixture(name: str) -> str:
    return (FOLDER / name).read_text()


def read(*names: str, said: Mapping[str, int] | None = None, network: str = "switch") -> Reading:
    """Fixtures, one a host."""
    files = [(name, (FOLDER / name).read_bytes()) for name in names]
    return read_texts(files, said, network)


def read_texts(
    files: Sequence[tuple[str, bytes]], said: Mapping[str, int] | None = None, network: str = "switch"
) -> Reading:
    reading = read_cluster(files, {word: Fraction(value) for word, value in (said or {}).items()}, network)
    assert reading is not None
    return reading


def read_text(text: str) -> Topology:
    return read_texts([("box.txt", text.encode())]).topology


def cables(topology: Topology) -> dict[tuple[str, str], Fraction]:
    """Each cable once, by its ends in node order; links that do not lead both ways alike make the test fail."""
    ways = {(link.source, link.target): link.bandwidth for link in topology.links}
    assert all(ways[target, source] == bandwidth for (source, target), bandwidth in ways.items())
    return {ends: ways[ends] for ends in ways if topology.index(ends[0]) < topology.index(ends[1])}


def matrix(gpus: int, pairs: Mapping[tuple[int, int], str], otherwise: str, places: Sequence[str] = ()) -> str:
    """What `nvidia-smi topo -m` prints for GPUs alone, with tabs."""
    names = [f"GPU{gpu}" for gpu in range(gpus)]
    lines = ["\t" + "\t".join([*names, "CPU Affinity", "NUMA Affinity"])]
    for one in range(gpus):
        cells = (
            " X " if one == other else pairs.get((min(one, other), max(one, other)), otherwise) for other in range(gpus)
        )
        lines.append("\t".join([names[one], *cells, places[one] if places else "0-63", "N/A"]))
    return "\n".join(lines) + "\n"


def wrapped(text: str, width: int) -> str:
    """As a terminal of `width` columns shows it, and as it is copied from there."""
    shown = []
    for line in text.expandtabs(8).splitlines():
        shown += [line[start : start + width] for start in range(0, max(len(line), 1), width)]
    return "\n".join(shown) + "\n"
