"""What NCCL's topology XML says about PCIe: which device an element is, how wide its way up, how sockets are joined.

Read after NVIDIA/nccl src/graph/topo.cc and topo.h; speeds are any `N GT/s`, where NCCL knows a list of spellings.
"""

from __future__ import annotations

import re
from fractions import Fraction

from comm_plans.errors import TopologyError
from comm_plans.readers.generations import PCIE_VERSIONS, pcie
from comm_plans.readers.rates import Rate
from comm_plans.readers.xml_tree import Element

_SPEED = re.compile(r"(\d+(?:\.5)?)(?:\.0)? ?GT/s.*")
_GPU_CLASSES = ("0x03", "0x12")
_AMD_SOCKETS = Fraction(16)
_OTHER_SOCKETS = {"arm64": 6, "ppc64": 32}  # GB/s
# From the newest: the first model number of Intel's family 6 with this speed between sockets, in GB/s.
_INTEL_SOCKETS = ((0xCF, 40), (0x8F, 22), (0x55, 10), (0, 6))


def number(element: Element, name: str, otherwise: int | None = None) -> int:
    """A whole number that an attribute holds. Raises TopologyError where it holds none and there is no other."""
    text = element.get(name)
    if re.fullmatch(r"\d{1,12}(\.0*)?", text, re.ASCII):
        return int(text.partition(".")[0])
    if otherwise is None or text.strip("-.0123456789"):
        where = f"line {element.line}: <{element.tag}>"
        raise TopologyError(f"{where} has {name}={text[:20]!r}, which is no whole number; write it as NCCL does")
    return otherwise


def bus_of(text: str) -> str:
    """Domain, bus and device, by which NCCL tells devices apart; their function does not count."""
    found = re.fullmatch(r"(?:([0-9a-f]+):)?([0-9a-f]+):([0-9a-f]+)(?:\.\w+)?", text.strip().lower())
    return ":".join(f"{int(part or '0', 16):x}" for part in found.groups()) if found else text.strip().lower()


def is_gpu(pci: Element) -> bool:
    """A device with a `<gpu>`, or by its class."""
    return any(child.tag == "gpu" for child in pci.children) or pci.get("class").startswith(_GPU_CLASSES)


def is_nic(pci: Element) -> bool:
    """A device that is a network card by its class."""
    return pci.get("class").startswith("0x02")


def uplink_of(pci: Element) -> Rate:
    """The way from a device to what is above it. A width of 0 means 16 lanes, an empty speed PCIe 3.0, as for NCCL."""
    width = number(pci, "link_width", 16) or 16
    speed = _SPEED.fullmatch(pci.get("link_speed"))
    version = PCIE_VERSIONS.get(speed[1]) if speed else None
    why = "" if version else f"PCIe 3.0 with {width} lanes, as NCCL takes where the speed is missing"
    return Rate("PCIE", pcie(version or 3, width), why)


def sockets_rate(cpu: Element) -> Rate:
    """The way between sockets, which no file states."""
    model = number(cpu, "modelid", 0)
    if cpu.get("arch", "x86_64") != "x86_64":
        value, kind = Fraction(_OTHER_SOCKETS.get(cpu.get("arch"), 6)), cpu.get("arch")
    elif cpu.get("vendor") == "AuthenticAMD":
        value, kind = _AMD_SOCKETS, "AMD"
    else:
        value = Fraction(next(speed for first, speed in _INTEL_SOCKETS if model >= first))
        kind = f"Intel model {model}"
    return Rate("SYS", value, f"what NCCL takes between sockets of {kind}")
