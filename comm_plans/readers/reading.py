"""The face of the readers: files in a cluster's own words in, one topology out, and a remark for all it assumes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import PurePath

from comm_plans.errors import TopologyError
from comm_plans.readers.cluster import topology_of
from comm_plans.readers.ibnetdiscover import machine_of_fabric
from comm_plans.readers.link_matrix import parse_link_matrix
from comm_plans.readers.machine import Machine
from comm_plans.readers.matrix_machine import machine_of
from comm_plans.readers.measured import machine_of_measurements
from comm_plans.readers.measured_text import NPY, parse_measurements, saved_measurements
from comm_plans.readers.nccl_xml import machine_of_xml
from comm_plans.readers.plain_document import LARGEST
from comm_plans.readers.rates import Rates
from comm_plans.readers.rocm_smi import parse_showtopo
from comm_plans.topology import Topology

ENDINGS = (".txt", ".xml", ".log", ".out", ".csv", ".npy")  # of files; others are parts of a host's name
_XML = re.compile(r"^[ \t]*<(\?xml|!--|!DOCTYPE|system|graphs|topology|pci|cpu)\b", re.MULTILINE)


@dataclass(frozen=True)
class Reading:
    """What was read, and a sentence for each figure that the text does not hold, or each part that was left out."""

    topology: Topology
    remarks: tuple[str, ...]


def read_cluster(
    files: Sequence[tuple[str, bytes]], said: Mapping[str, Fraction] | None = None, network: str = "switch"
) -> Reading | None:
    """The topology of one machine, or of several that their NICs join; None where no file is in a cluster's own words.

    files: name and content, one for each host. said: GB/s by word, such as NV12, NIC or mlx5_0. network: how NICs are
    joined: one `switch`, or `rails`. Raises TopologyError that names the file and mostly the line.
    """
    hosts = _host_names([name for name, _ in files])
    said = said or {}
    nvlink_said = "nvlink" in map(str.casefold, said)
    found = {host: _machine(name, data, nvlink_said) for host, (name, data) in zip(hosts, files, strict=True)}
    machines = {host: machine for host, machine in found.items() if machine}
    if not machines:
        return None
    if unknown := [name for host, (name, _) in zip(hosts, files, strict=True) if host not in machines]:
        raise TopologyError(f"{unknown[0]} is in none of the forms that can be joined; leave it out")
    rates = Rates(said)
    topology = topology_of(hosts[0] if len(hosts) == 1 else "cluster", machines, rates, network)
    remarks = [f"{host}: {remark}" for host, machine in machines.items() for remark in machine.remarks]
    if len(machines) > 1:
        remarks.append("assuming a network that is as fast as all NICs together (--network switch or rails)")
    return Reading(topology, (*remarks, *rates.remarks()))


def _host_names(names: Sequence[str]) -> list[str]:
    """What the files are called, without folder and ending; the second of a name gets a number."""
    hosts: list[str] = []
    for name in names:
        file = PurePath(name)
        stem = (file.stem if file.suffix in ENDINGS else file.name).strip("- ") or "host"
        hosts.append(stem if stem not in hosts else f"{stem}-{sum(host.startswith(stem) for host in hosts) + 1}")
    return hosts


def _machine(name: str, data: bytes, nvlink_said: bool) -> Machine | None:
    if len(data) > LARGEST:
        raise TopologyError(f"{name} is larger than 1 MB; give only the output that tells the topology")
    try:
        return _recognised(data, nvlink_said)
    except TopologyError as error:
        raise TopologyError(f"{name}: {error}") from error


def _recognised(data: bytes, nvlink_said: bool) -> Machine | None:
    """The machine in the first form that fits; None where none does."""
    if data.startswith(NPY):
        return machine_of_measurements(saved_measurements(data))
    text = _text(data)
    if _XML.search(text):
        return machine_of_xml(text, nvlink_said)
    matrix = parse_showtopo(text) or parse_link_matrix(text)
    if matrix:
        return machine_of(matrix, text)
    if fabric := machine_of_fabric(text):
        return fabric
    measured = parse_measurements(text)
    return machine_of_measurements(measured) if measured else None


def _text(data: bytes) -> str:
    """UTF-8, or UTF-16 as PowerShell writes it; a byte that is neither does no harm outside the matrix."""
    encoding = "utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    return data.decode(encoding, errors="replace")
