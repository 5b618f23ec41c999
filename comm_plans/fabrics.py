"""Networks that have a name: `fabric("dgx_a100:boxes=2")`. Bandwidths are in GB/s one way.

Each function below is a fabric and its parameters are the words that a person may use. The abstract ones (ring,
torus …) have links of 1 GB/s unless told otherwise. Boxes of GPUs are joined by a network only if there are several.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations, pairwise, product
from math import prod
from typing import get_type_hints

from comm_plans.cabling import Cabling
from comm_plans.errors import TopologyError
from comm_plans.exact import exact
from comm_plans.topology import MOST_NODES, Topology

Shape = tuple[int, ...]
ONE = Fraction(1)

# NVLinks between the GPUs of one DGX-1V, and Infinity Fabric links between the dies (GCDs) of one MI250 box.
DGX1_NVLINKS = "01:1 02:1 03:2 04:2 12:2 13:1 15:2 23:2 26:1 37:1 45:1 46:1 47:2 56:2 57:1 67:2"
MI250_LINKS = (
    "01:4 04:2 08:1 15:1 19:1 1a:1 23:4 26:1 29:1 2a:1 37:2 3b:1 45:4 46:1 56:1 57:1 67:4 "
    "89:4 8c:2 9d:1 ab:4 ae:1 bf:2 cd:4 ce:1 de:1 df:1 ef:4"
)


def dgx1_v100(boxes: int = 1, nvlink: Fraction = Fraction(25), nic: Fraction = Fraction(25, 4)) -> Topology:
    """DGX-1V: 8 V100 in a hybrid cube mesh, `nvlink` a link; `nic` a GPU into one switch between boxes.

    Source: NVIDIA's DGX-1 with V100 system description (NVLink 2 at 25 GB/s a link, 4 NICs of 100 Gb/s a box).
    """
    net = Cabling("dgx1_v100")
    boxed = [_box(net, box, 8) for box in range(boxes)]
    for gpus in boxed:
        _wire(net, gpus, DGX1_NVLINKS, nvlink)
    _join(net, boxed, nic)
    return net.topology()


def dgx_a100(boxes: int = 1, nvlink: Fraction = Fraction(300), nic: Fraction = Fraction(25)) -> Topology:
    """DGX A100: 8 GPUs on one NVSwitch at `nvlink` a GPU; `nic` a GPU into one InfiniBand switch between boxes.

    Source: NVIDIA DGX A100 data sheet (12 NVLink 3 of 25 GB/s a GPU; a NIC of 200 Gb/s a GPU); ForestColl, evaluation.
    """
    net = Cabling("dgx_a100")
    boxed = [_box(net, box, 8) for box in range(boxes)]
    _nvswitches(net, boxed, nvlink)
    _join(net, boxed, nic)
    return net.topology()


def dgx_h100(boxes: int = 1, nvlink: Fraction = Fraction(450), nic: Fraction = Fraction(50)) -> Topology:
    """DGX H100, rail-optimised: 8 GPUs on one NVSwitch at `nvlink`; GPU i of every box into rail switch i at `nic`.

    Source: NVIDIA DGX H100 data sheet (18 NVLink 4 of 25 GB/s a GPU; a NIC of 400 Gb/s a GPU).
    """
    net = Cabling("dgx_h100")
    boxed = [_box(net, box, 8) for box in range(boxes)]
    _nvswitches(net, boxed, nvlink)
    if boxes > 1:
        for number, gpus in enumerate(zip(*boxed, strict=True)):
            _attach(net, f"rail{number}", list(gpus), nic)
    return net.topology()


def mi250(boxes: int = 1, gcds: int = 16, link: Fraction = Fraction(50), nic: Fraction = Fraction(16)) -> Topology:
    """MI250 boxes: `gcds` dies (16, or the first 8) on Infinity Fabric, `link` a link; `nic` a die into one switch.

    Source: the networks that ForestColl's authors evaluate (their public topology files).
    """
    if gcds not in (8, 16):
        raise TopologyError(f"mi250 has no boxes of gcds={gcds}; say gcds=16 or gcds=8")
    net = Cabling("mi250")
    boxed = [_box(net, box, gcds) for box in range(boxes)]
    for dies in boxed:
        _wire(net, dies, MI250_LINKS, link)
    _join(net, boxed, nic)
    return net.topology()


def nvl(ranks: int = 72, bandwidth: Fraction = Fraction(900)) -> Topology:
    """A rack of GPUs on one NVLink switch, such as NVL72. Source: NVIDIA GB200 NVL72 data sheet (NVLink 5)."""
    net = Cabling("nvl")
    _attach(net, "nvs", [net.rank(f"g{rank}", "rack") for rank in range(ranks)], bandwidth)
    return net.topology()


def fat_tree(
    leaves: int = 4, ranks: int = 4, spines: int = 2, oversubscription: Fraction = ONE, bandwidth: Fraction = ONE
) -> Topology:
    """Two levels: `ranks` a leaf at `bandwidth`, each leaf to each spine; uplinks are 1/`oversubscription` of them.

    Source: Leiserson, "Fat-trees", 1985, in the folded-Clos form of today's data centres.
    """
    net = Cabling("fat_tree")
    tops = [net.switch(f"spine{spine}") for spine in range(spines)]
    for number in range(leaves):
        leaf = f"leaf{number}"
        _attach(net, leaf, [net.rank(f"l{number}g{rank}", f"host{number}") for rank in range(ranks)], bandwidth)
        for top in tops:
            net.cable(leaf, top, ranks * bandwidth / oversubscription / spines)
    return net.topology()


def dragonfly(
    groups: int = 4,
    routers: int = 3,
    ranks: int = 2,
    bandwidth: Fraction = ONE,
    local: Fraction = ONE,
    between: Fraction = ONE,
) -> Topology:
    """Groups of routers joined all to all at `local`; one cable `between` each two groups, dealt out over routers.

    `ranks` a router at `bandwidth`. Source: Kim, Dally, Scott, Abts, "Technology-driven, highly-scalable dragonfly
    topology", ISCA 2008.
    """
    net = Cabling("dragonfly")
    for group, router in product(range(groups), range(routers)):
        names = [net.rank(f"d{group}r{router}g{rank}", f"d{group}r{router}") for rank in range(ranks)]
        _attach(net, f"router{group}.{router}", names, bandwidth)
    for group in range(groups):
        for one, other in combinations(range(routers), 2):
            net.cable(f"router{group}.{one}", f"router{group}.{other}", local)
    for one, other in combinations(range(groups), 2):
        net.cable(f"router{one}.{(other - 1) % routers}", f"router{other}.{one % routers}", between)
    return net.topology()


def torus(shape: Shape = (4, 4), bandwidth: Fraction = ONE) -> Topology:
    """A grid that wraps around in every dimension; a dimension of 2 has one cable, one of 1 has none."""
    net = Cabling("torus")
    places = list(product(*(range(size) for size in shape)))
    names = {place: net.rank("g" + "_".join(map(str, place))) for place in places}
    for place, (axis, size) in product(places, enumerate(shape)):
        following = (*place[:axis], (place[axis] + 1) % size, *place[axis + 1 :])
        if size > 2 or place[axis] < following[axis]:
            net.cable(names[place], names[following], bandwidth)
    return net.topology()


def hypercube(dimensions: int = 3, bandwidth: Fraction = ONE) -> Topology:
    """2 to the power of `dimensions` ranks; those whose numbers differ in one bit are joined."""
    if dimensions > MOST_NODES.bit_length() - 1:
        raise TopologyError(f"hypercube:dimensions={dimensions} has more than {MOST_NODES} nodes")
    net = Cabling("hypercube")
    names = _ranks(net, 2**dimensions)
    for rank, bit in product(range(len(names)), range(dimensions)):
        if not rank >> bit & 1:
            net.cable(names[rank], names[rank | 1 << bit], bandwidth)
    return net.topology()


def ring(ranks: int = 8, bandwidth: Fraction = ONE, directions: int = 2) -> Topology:
    """Each rank joined to the next, both ways or (`directions=1`) forwards only."""
    if directions not in (1, 2):
        raise TopologyError(f"a ring has 1 or 2 directions, not directions={directions}")
    net = Cabling("ring")
    names = _ranks(net, ranks)
    for one, other in zip(names, (*names[1:], *names[:1]), strict=True):
        if one != other and directions == 1:
            net.link(one, other, bandwidth)
        elif one != other:
            net.cable(one, other, bandwidth)
    return net.topology()


def full_mesh(ranks: int = 8, bandwidth: Fraction = ONE) -> Topology:
    """Every two ranks joined by a cable of their own."""
    net = Cabling("full_mesh")
    for one, other in combinations(_ranks(net, ranks), 2):
        net.cable(one, other, bandwidth)
    return net.topology()


def star(ranks: int = 8, bandwidth: Fraction = ONE) -> Topology:
    """All ranks around one switch."""
    net = Cabling("star")
    _attach(net, "sw", _ranks(net, ranks), bandwidth)
    return net.topology()


def path(ranks: int = 4, bandwidth: Fraction = ONE) -> Topology:
    """Ranks in a row, each joined to the next both ways."""
    net = Cabling("path")
    names = _ranks(net, ranks)
    for one, other in pairwise(names):
        net.cable(one, other, bandwidth)
    return net.topology()


MAKERS: tuple[Callable[..., Topology], ...] = (
    dgx1_v100, dgx_a100, dgx_h100, mi250, nvl, fat_tree, dragonfly, torus, hypercube, ring, full_mesh, star, path,
)  # fmt: skip
FABRICS = {maker.__name__: maker for maker in MAKERS}


def fabric(text: str) -> Topology:
    """Make the network that `name` or `name:parameter=value,…` describes, such as `torus:shape=4x4`.

    Raises TopologyError that lists the fabrics, or the fabric's parameters, where one is unknown.
    """
    name, _, settings = text.partition(":")
    if name not in FABRICS:
        raise TopologyError(f"there is no fabric {name[:40]!r}; the fabrics are {', '.join(FABRICS)}")
    known = get_type_hints(FABRICS[name])
    values: dict[str, object] = {}
    for setting in settings.split(",") if settings else ():
        key, _, value = setting.partition("=")
        if key not in inspect.signature(FABRICS[name]).parameters or key in values:
            again = "more than once" if key in values else "as one of its parameters"
            raise TopologyError(f"{name} does not take {setting[:40]!r} {again}; it takes {_usage(name)}")
        values[key] = _value(known[key], value, f"{name}:{setting[:40]}")
    topology = FABRICS[name](**values)
    return Topology(text, topology.ranks, topology.switches, topology.links, topology.hosts)


def _usage(name: str) -> str:
    parameters = inspect.signature(FABRICS[name]).parameters.values()
    return ", ".join(f"{parameter.name}={_text(parameter.default)}" for parameter in parameters)


def _text(value: object) -> str:
    return "x".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _value(kind: object, text: str, where: str) -> int | Fraction | Shape:
    if kind is Fraction:
        return _bandwidth(text, where)
    if kind is int:
        return _sizes(text, where, r"\d{1,4}", "a whole number")[0]
    return _sizes(text, where, r"\d{1,4}(x\d{1,4})*", "a shape such as 4x4x2")


def _sizes(text: str, where: str, pattern: str, form: str) -> Shape:
    sizes = tuple(map(int, text.split("x"))) if re.fullmatch(pattern, text, re.ASCII) else ()
    if not sizes or not 0 < prod(sizes) <= MOST_NODES:
        raise TopologyError(f"{where}: {text[:40]!r} is not {form} of 1 to {MOST_NODES}")
    return sizes


def _bandwidth(text: str, where: str) -> Fraction:
    try:
        value = exact(text)
    except ValueError as error:
        raise TopologyError(f"{where}: {error}; give a number such as 25 or 24.6") from error
    if value <= 0:
        raise TopologyError(f"{where}: {text[:40]} is not above zero")
    return value


def _ranks(net: Cabling, count: int) -> list[str]:
    return [net.rank(f"g{rank}") for rank in range(count)]


def _box(net: Cabling, box: int, count: int) -> list[str]:
    return [net.rank(f"b{box}g{gpu}", f"box{box}") for gpu in range(count)]


def _nvswitches(net: Cabling, boxed: list[list[str]], nvlink: Fraction) -> None:
    for box, gpus in enumerate(boxed):
        _attach(net, f"b{box}nvs", gpus, nvlink)


def _join(net: Cabling, boxed: list[list[str]], nic: Fraction) -> None:
    """Join boxes by one switch; a single box needs none."""
    if len(boxed) > 1:
        _attach(net, "ib", [gpu for gpus in boxed for gpu in gpus], nic)


def _attach(net: Cabling, switch: str, ranks: list[str], bandwidth: Fraction) -> None:
    net.switch(switch)
    for rank in ranks:
        net.cable(rank, switch, bandwidth)


def _wire(net: Cabling, names: list[str], wires: str, bandwidth: Fraction) -> None:
    """Lay cables from a list of `ends:links`, ends being two hexadecimal digits; those to absent nodes stay out."""
    for wire in wires.split():
        one, other, links = int(wire[0], 16), int(wire[1], 16), int(wire[3])
        if other < len(names):
            net.cable(names[one], names[other], links * bandwidth)
