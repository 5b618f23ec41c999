"""NCCL's or RCCL's topology XML (NCCL_TOPO_DUMP_FILE, or the file of a cloud) → a machine.

Read after NVIDIA/nccl src/graph/topo.cc and xml.cc: the same tree, but bandwidths are those of data sheets, one way, of
which NCCL takes about four fifths; between sockets they are NCCL's own, as there are no others.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

from comm_plans.errors import TopologyError
from comm_plans.readers.machine import Machine
from comm_plans.readers.nccl_links import Device, add_links
from comm_plans.readers.nccl_pci import is_gpu, is_nic, number, sockets_rate, uplink_of
from comm_plans.readers.rates import Rate
from comm_plans.readers.tree import Tree
from comm_plans.readers.xml_tree import Element, parse_xml

FASTEST = 1_600_000  # Mbit/s of a network card that can be meant
NO_SPEED = Rate("NIC", Fraction(25), "200 Gbit/s, as the file states no speed", family="NIC")
UNTOLD = "the file does not tell NVLink; --bandwidth NVLINK=GB/S gives every GPU that way into one switch"


def machine_of_xml(text: str, nvlink_said: bool = False) -> Machine:
    """The machine, or the machines, of a dump. `nvlink_said`: a person says how fast NVLink is where a file does not.

    Raises TopologyError that names the line.
    """
    top = parse_xml(text)
    _check_is_topology(top)
    reader = _Reader(top)
    for cpu in top.children:
        if cpu.tag == "cpu":
            reader.read_socket(cpu)
    if not reader.devices:
        raise TopologyError("it names no GPU: no <pci> has a <gpu> or the class of one; give a dump of NCCL itself")
    if reader.bare:
        _add_untold_switch(reader.machine, nvlink_said)
    else:
        add_links(reader.machine, reader.devices)
    return reader.machine


def _check_is_topology(top: Element) -> None:
    where = f"line {top.line}: it begins with <{top.tag[:40]}>"
    if top.tag == "graphs":
        rings = [graph for graph in top.children if graph.get("pattern") == "4"]
        ring = rings[0] if rings else Element("", {}, 0)
        found = f"{ring.get('nchannels', '0')} rings of {ring.get('speedintra', '0')} GB/s"
        raise TopologyError(
            f"{where}, so it is what NCCL searched out ({found}) and not what the machine has; "
            "give the file of NCCL_TOPO_DUMP_FILE instead of NCCL_GRAPH_DUMP_FILE"
        )
    if top.tag != "system":
        raise TopologyError(f"{where}, and a topology with <system>; give the whole file of NCCL_TOPO_DUMP_FILE")


def _add_untold_switch(machine: Machine, said: bool) -> None:
    if not said:
        machine.remarks.append(UNTOLD)
        return
    machine.switches.append("nvs")
    for gpu in machine.gpus:
        machine.cable(gpu, "nvs", Rate("NVLINK", Fraction(0)))


class _Reader:
    """Walks down from the sockets and hangs what it meets into the machine's tree."""

    def __init__(self, top: Element) -> None:
        self.sockets = Counter(cpu.get("host_hash") for cpu in top.children if cpu.tag == "cpu")
        gpus = _by_rank(list(top.every("gpu")))
        self.bare = not gpus
        self.names = {id(gpu): f"GPU{place}" for place, gpu in enumerate(gpus)}
        cards = (net.get("name") for net in top.every("net"))
        self.machine = Machine(list(self.names.values()), Tree(frozenset(cards)))
        self.devices: list[Device] = []
        self.bare_cards = not any(top.every("net"))
        self.cards: dict[tuple[str, ...], str] = {}
        self.roots = {host: self.machine.tree.name("sockets") for host, count in self.sockets.items() if count > 1}
        self.host, self.root = "", ""

    def read_socket(self, cpu: Element) -> None:
        """A socket below the crossing that joins it to the others of its host, if there are others."""
        identity = cpu.get("host_hash")
        self.host = f"host{list(self.sockets).index(identity)}" if len(self.sockets) > 1 else ""
        self.root = self.roots.get(identity, "")
        socket = self.machine.tree.name("cpu")
        if self.root:
            self.machine.tree.hang(socket, self.root, sockets_rate(cpu))
        self._read_below(cpu, socket)

    def _read_below(self, element: Element, parent: str) -> None:
        for child in element.children:
            if child.tag == "pci":
                self._read_device(child, parent)
            elif child.tag == "nic":
                self._read_below(child, parent)
            elif child.tag == "net":
                self._read_net(child, parent)

    def _read_device(self, pci: Element, parent: str) -> None:
        parts = [child for child in pci.children if child.tag == "gpu"]
        if parts or (self.bare and is_gpu(pci)):
            self._read_gpu(pci, parts, parent)
        elif self.bare_cards and is_nic(pci):
            card = f"NIC{len(self.machine.nics)}"
            self.machine.tree.hang(card, parent, uplink_of(pci))
            self.machine.nics[card] = NO_SPEED
        else:
            node = self.machine.tree.name("pci")
            self.machine.tree.hang(node, parent, uplink_of(pci))
            self._read_below(pci, node)

    def _read_gpu(self, pci: Element, parts: list[Element], parent: str) -> None:
        """A GPU, or a device of several parts, which are ranks of their own and share its ways out."""
        ranks = [self.names[id(part)] for part in parts]
        if self.bare:
            ranks = [f"GPU{len(self.machine.gpus)}"]
            self.machine.gpus += ranks
        node = ranks[0] if len(ranks) == 1 else self.machine.tree.name("device")
        self.machine.tree.hang(node, parent, _gpu_uplink(pci, parts))
        if len(ranks) > 1:
            self.machine.switches.append(node)
            for rank in ranks:
                self.machine.tree.hang(rank, node, uplink_of(pci))
        if self.host:
            self.machine.homes |= dict.fromkeys(ranks, self.host)
        self.devices.append(Device(node, self.host, pci, parts, ranks))

    def _read_net(self, net: Element, parent: str) -> None:
        """A network card; one that stands below two sockets, as containers show it, is one, and hangs between them."""
        name = net.get("name")[:60] or "net"
        identity = (self.host, name, net.get("dev"), net.get("guid"))
        if identity in self.cards:
            if self.root:
                self.machine.tree.hang(self.cards[identity], self.root, self.machine.nics[self.cards[identity]])
            return
        card = name if name not in (*self.machine.nics, *self.machine.gpus) else self.machine.tree.name(f"{name}.")
        rate = self._speed(net, card)
        self.cards[identity] = card
        self.machine.nics[card] = rate
        self.machine.tree.hang(card, parent, rate)

    def _speed(self, net: Element, card: str) -> Rate:
        speed = number(net, "speed", 0)
        if speed > FASTEST:
            said = f"speed={speed} Mbit/s, {speed / 8000:g} GB/s, which cannot be meant; say --bandwidth {card}=GB/S"
            self.machine.remarks.append(f"line {net.line}: {card} has {said}")
        why = "" if speed > 0 else "10 Gbit/s, as NCCL takes where the speed is missing"
        return Rate(card, Fraction(speed if speed > 0 else 10_000, 8000), why, family="NIC")


def _by_rank(gpus: list[Element]) -> list[Element]:
    """By their ranks where these are told and differ, else in the order of the text."""
    ranks = [number(gpu, "rank", -1) for gpu in gpus]
    return sorted(gpus, key=lambda gpu: number(gpu, "rank", -1)) if len(set(ranks)) == len(gpus) else gpus


def _gpu_uplink(pci: Element, parts: list[Element]) -> Rate:
    """By PCIe, or by C2C to a CPU in the same package, whose PCIe is a mere form."""
    chips = [link for part in parts[:1] for link in part.children if link.tag == "c2c"]
    if not chips:
        return uplink_of(pci)
    return Rate(
        "C2C", sum((Fraction(number(link, "bw") * number(link, "count", 1), 1000) for link in chips), Fraction(0))
    )
