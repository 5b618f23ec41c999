"""What data sheets say of GPUs: how many fast lanes each generation has, how fast one is, and what it is plugged into.

Sources: NVIDIA's data sheets of P100, V100, A100, A800, RTX A6000, H100 and B200, AMD's of MI100, MI200 and MI300;
figures are theoretical GB/s one way.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from comm_plans.readers.rates import Rate

PCIE_VERSIONS = {"2.5": 1, "5": 2, "8": 3, "16": 4, "32": 5, "64": 6}  # GT/s: version
_MODEL = re.compile(r"^[ \t]*GPU ?\d+: (?:NVIDIA )?[^\n(]*?\b([A-Z]{0,2}\d{2,4})\b", re.MULTILINE)


@dataclass(frozen=True)
class Generation:
    """GPUs of one kind: lanes each, GB/s a lane, the PCIe version, and the GB/s of the NIC mostly bought with them."""

    name: str
    lanes: int
    lane: Fraction
    pcie: int
    nic: Fraction


P100 = Generation("a P100", 4, Fraction(20), 3, Fraction(25, 2))
V100 = Generation("a V100", 6, Fraction(25), 3, Fraction(25, 2))
A100 = Generation("an A100", 12, Fraction(25), 4, Fraction(25))
A800 = Generation("an A800", 8, Fraction(25), 4, Fraction(25))
A6000 = Generation("an RTX A6000", 4, Fraction("14.0625"), 4, Fraction(25))
H100 = Generation("an H100", 18, Fraction(25), 5, Fraction(50))
B200 = Generation("a B200", 18, Fraction(50), 5, Fraction(50))
UNKNOWN = Generation("a GPU whose model is not known", 18, Fraction(25), 4, Fraction(25))

MODELS = {
    "P100": P100, "V100": V100, "A100": A100, "A800": A800, "A6000": A6000, "3090": A6000,
    "H100": H100, "H200": H100, "H20": H100, "GH200": H100, "H800": A800,
    "B200": B200, "B300": B200, "GB200": B200, "GB300": B200,
}  # fmt: skip
BY_LANES = {6: V100, 8: A800, 12: A100, 18: H100}
XGMI = {"906": 46, "908": 46, "910": 50, "90a": 50}  # GB/s of a link, by architecture; later ones have 64


def named_in(text: str) -> Generation | None:
    """The generation that lines such as `GPU 0: NVIDIA A100-SXM4-80GB` name, where they agree on one."""
    found = {MODELS[name] for name in _MODEL.findall(text) if name in MODELS}
    return found.pop() if len(found) == 1 else None


def of_compute_capability(sm: int) -> Generation:
    """The generation by NVIDIA's compute capability, such as 80."""
    if sm >= 100:
        return B200
    return {60: P100, 70: V100, 80: A100, 86: A6000, 90: H100}.get(sm, UNKNOWN)


def xgmi_link(architecture: str) -> Fraction:
    """GB/s of one Infinity Fabric link between GPUs such as `gfx90a` or `908`."""
    return Fraction(XGMI.get(architecture.removeprefix("gfx"), 64))


def pcie(version: int, width: int = 16) -> Fraction:
    """GB/s one way of PCIe, as data sheets round it: 63/4 for version 3 and 16 lanes."""
    gigatransfers = Fraction(5, 2) * version if version < 3 else Fraction(2**version)
    return gigatransfers * width / 8 * (Fraction(4, 5) if version < 3 else Fraction(63, 64))


def pcie_rate(word: str, generation: Generation) -> Rate:
    """A crossing of PCIe that the input names without a figure."""
    why = f"PCIe {generation.pcie}.0 with 16 lanes, as {generation.name} has"
    return Rate(word, pcie(generation.pcie), why, family="PCIE")


def nvlink_rate(lanes: int, generation: Generation) -> Rate:
    """So many lanes of NVLink."""
    why = f"lanes of {float(generation.lane):g}, as {generation.name} has them"
    return Rate(f"NV{lanes}", lanes * generation.lane, why, "NV", lanes)
