"""`ibnetdiscover` (whole, or `-p`) → hosts as ranks and the switches between them, cable by cable.

Each cable is told from both of its ends, and counts once; parallel ones add up. Where its ends disagree, the slower
counts. Switches that aggregate (SHARP) show up as hosts of their own and are none.
"""

from __future__ import annotations

import re
from collections import Counter
from fractions import Fraction

from comm_plans.errors import TopologyError
from comm_plans.readers.machine import Machine
from comm_plans.readers.pasted import lines_of
from comm_plans.readers.rates import Rate
from comm_plans.sizes import counted

# GB/s of one lane; mostly four make a cable.
LANES = {
    "SDR": Fraction(1, 4), "DDR": Fraction(1, 2), "QDR": Fraction(1), "FDR10": Fraction(5, 4), "FDR": Fraction(17, 10),
    "EDR": Fraction(25, 8), "HDR": Fraction(25, 4), "NDR": Fraction(25, 2), "XDR": Fraction(25),
}  # fmt: skip
_OURS = re.compile(r'^(Switch|Ca)\s+\d+\s+"[SH]-|^(CA|SW)\s+\d+\s+\d+ 0x', re.MULTILINE)
_NODE = re.compile(r'(Switch|Ca)\s+\d+\s+"([^"]+)"\s*#\s*"([^"]*)"')
_PORT = re.compile(r'\[(\d{1,6})\](?:\([0-9a-f]+\))?\s+"([HS]-[^"]+)"\[(\d{1,6})\](.*)')
_END = r"(CA|SW)\s+\d+\s+(\d{1,6})\s+(0x[0-9a-f]+)\s+"
_PAIR = re.compile(rf"{_END}(\S+ +\S+) +- +{_END}\( *'([^']*)' +- +'([^']*)'")
_SPEED = re.compile(r"\b(\d{1,2})x\s?([A-Z]+(?:10)?)\b")
_AGGREGATES = "Aggregation Node"

End = tuple[str, int]
"""A node's identity and the number of its port."""


def machine_of_fabric(text: str) -> Machine | None:
    """The hosts that InfiniBand joins; None for other texts. Raises TopologyError where no host has a cable."""
    if not _OURS.search(text):
        return None
    fabric = _Fabric()
    for line in lines_of(text):
        fabric.read(line.text)
    machine = fabric.machine()
    if not machine.gpus:
        raise TopologyError("no host in it has a cable that is up; give the whole output of ibnetdiscover")
    return machine


class _Fabric:
    """What was met: each node's kind and description, and what the ends of each cable say."""

    def __init__(self) -> None:
        self.kinds: dict[str, str] = {}
        self.descriptions: dict[str, str] = {}
        self.cables: dict[frozenset[End], list[Rate]] = {}
        self.here = ""

    def read(self, text: str) -> None:
        """A line of either form; what is neither a node nor a cable tells nothing."""
        if node := _NODE.match(text):
            self.here = self._node(node[2], node[2][0], node[3])
        elif self.here and (port := _PORT.match(text)):
            there = port[2]
            if there not in self.kinds:
                self._node(there, there[0], next(iter(re.findall(r'"([^"]*)"', port[4])), there))
            self._cable((self.here, int(port[1])), (there, int(port[3])), port[4])
        elif pair := _PAIR.match(text):
            ends = [
                (self._node(pair[3], pair[1], pair[8]), int(pair[2])),
                (self._node(pair[7], pair[5], pair[9]), int(pair[6])),
            ]
            self._cable(ends[0], ends[1], pair[4])

    def _node(self, identity: str, kind: str, description: str) -> str:
        self.kinds[identity] = "switch" if kind.startswith("S") else "host"
        self.descriptions[identity] = description.strip()[:60] or identity
        return identity

    def _cable(self, one: End, other: End, text: str) -> None:
        """Note what one end says of a cable that is up."""
        speed = _SPEED.search(text)
        if speed and speed[2] in LANES and one != other:
            rate = Rate(f"{speed[1]}x{speed[2]}", int(speed[1]) * LANES[speed[2]])
            self.cables.setdefault(frozenset((one, other)), []).append(rate)

    def machine(self) -> Machine:
        """A rank for each host with a cable, whatever the number of its cards, in the order of the text."""
        names = self._names()
        cabled = {identity for ends in self.cables for identity, _ in ends}
        nodes = [identity for identity in self.kinds if identity in cabled and identity in names]
        hosts = dict.fromkeys(names[node] for node in nodes if self.kinds[node] == "host")
        machine = Machine(list(hosts), homes={host: host for host in hosts})
        machine.switches = [names[node] for node in nodes if self.kinds[node] == "switch"]
        for ends, rates in self.cables.items():
            one, other = (names.get(identity, "") for identity, _ in sorted(ends))
            if one and other and one != other:
                machine.cable(one, other, min(rates, key=lambda rate: rate.value))
        if narrow := sum(rates[0].word.startswith("1x") for rates in self.cables.values()):
            machine.remarks.append(f"{counted(narrow, 'cable')} with one lane instead of four; look at the plugs")
        return machine

    def _names(self) -> dict[str, str]:
        """Hosts by the first word of their cards; switches by what they are called, and if need be who they are."""
        hosts = {node: text.split()[0] for node, text in self.descriptions.items() if self._is_host(node)}
        called = Counter(text for node, text in self.descriptions.items() if self.kinds[node] == "switch")
        called.update(dict.fromkeys(hosts.values(), 2))
        switches = {
            node: text if called[text] == 1 else f"{text} {node}"
            for node, text in self.descriptions.items()
            if self.kinds[node] == "switch"
        }
        return hosts | switches

    def _is_host(self, node: str) -> bool:
        return self.kinds[node] == "host" and _AGGREGATES not in self.descriptions[node]
