"""NVLink and Infinity Fabric in NCCL's topology XML → links of a machine: between two GPUs, or into one switch.

Lanes towards several NVSwitches add up: each GPU reaches all of them, so that together they are one (topo.cc).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from comm_plans.errors import TopologyError, listed
from comm_plans.readers.generations import nvlink_rate, of_compute_capability, xgmi_link
from comm_plans.readers.machine import Machine
from comm_plans.readers.nccl_pci import bus_of, number
from comm_plans.readers.rates import Rate
from comm_plans.readers.xml_tree import Element

_NVSWITCH, _CPU_BRIDGE = "0x0680", "0x068001"  # PCI classes of a link's far end
_SWITCH, _CPU = "nvs", "cpu"
_UNSEEN = "fffffff"  # where the switch belongs to another machine, the host of this virtual one


@dataclass(frozen=True)
class Device:
    """A GPU in the tree: its node, its host, its elements, and the ranks on it, mostly one."""

    node: str
    host: str
    pci: Element
    parts: list[Element]
    ranks: list[str]


def add_links(machine: Machine, devices: Sequence[Device]) -> None:
    """Join the GPUs as their links say. Raises TopologyError where two tell different numbers of lanes."""
    nodes = {(device.host, bus_of(device.pci.get("busid"))): device.node for device in devices}
    lanes = {device.node: _lanes(device, nodes, machine) for device in devices}
    for device in devices:
        for far, count in lanes[device.node].items():
            back = lanes[far][device.node] if far in lanes else count
            if back != count:
                raise TopologyError(
                    f"line {device.pci.line}: {device.node} tells {count} lanes to {far}, which tells {back} back; "
                    "dump the topology again with all links up"
                )
            _join(machine, device, far, count, far in lanes)
        for rank in device.ranks if len(device.ranks) > 1 else ():
            machine.cable(rank, device.node, _rate(device, lanes[device.node].total()))
    bare = [device.ranks[0] for device in devices if not lanes[device.node]]
    if 0 < len(bare) < len(devices):
        machine.remarks.append(f"{listed(bare)} shows no fast link, as others do; it may be down")


def _lanes(device: Device, nodes: Mapping[tuple[str, str], str], machine: Machine) -> Counter[str]:
    """How many lanes lead from a GPU to each other one, to a switch or to its CPU; one to itself is none."""
    found: Counter[str] = Counter()
    for link in device.parts[0].children:
        if link.tag in ("nvlink", "xgmi"):
            found[_far_end(link, device, nodes)] += number(link, "count", 1)
    if found.pop("", 0):
        machine.remarks.append(f"some links of {device.node} lead to no GPU that is there, and were left out")
    found.pop(device.node, 0)
    return +found


def _far_end(link: Element, device: Device, nodes: Mapping[tuple[str, str], str]) -> str:
    """The node at the end of a link; empty where there is none."""
    target, kind = link.get("target").lower(), link.get("tclass")
    if target.startswith(_UNSEEN):
        return _SWITCH
    if kind.startswith(_CPU_BRIDGE):
        return _CPU
    if kind.startswith(_NVSWITCH):
        return device.host + _SWITCH
    return nodes.get((device.host, bus_of(target)), "")


def _join(machine: Machine, device: Device, far: str, count: int, is_gpu: bool) -> None:
    rate = _rate(device, count)
    if far == _CPU:
        machine.tree.uplinks[device.node] = rate
    elif is_gpu:
        machine.links.append((device.node, far, rate))
    else:
        machine.cable(device.node, far, rate)
        if far not in machine.switches:
            machine.switches.append(far)


def _rate(device: Device, lanes: int) -> Rate:
    gpu = device.parts[0]
    if any(link.tag == "xgmi" for link in gpu.children):
        link = xgmi_link(gpu.get("gcn"))
        return Rate(f"XGMI{lanes}", lanes * link, f"links of {link}, as data sheets have them", "XGMI", lanes)
    return nvlink_rate(lanes, of_compute_capability(number(gpu, "sm", 0)))
