"""The topology file: JSON or YAML with the same keys, read without evaluating anything and without binary floats.

name: two-boxes
ranks: [g0, g1, g2, g3]                    # in global rank order
switches: [sw0]                            # or {name: sw0, multicast: true, reduces: true}
hosts: {box0: [g0, g1], box1: [g2, g3]}    # optional
links:                                     # one way: [from, to, GB/s] or {from, to, bandwidth, latency}
  - [g0, g1, 300]
cables:                                    # both ways, same forms
  - [g0, sw0, 25]
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

from comm_plans.errors import TopologyError
from comm_plans.exact import exact
from comm_plans.readers.foreign import foreign
from comm_plans.readers.plain_document import LARGEST, parse_document
from comm_plans.topology import Link, Switch, Topology

KEYS = ("name", "ranks", "switches", "hosts", "links", "cables")
LINK_KEYS = ("from", "to", "bandwidth", "latency")
SWITCH_KEYS = ("name", "multicast", "reduces")
ANSWERS = {"true": True, "false": False}


def read_topology_file(path: Path) -> Topology:
    """Read a file of up to 1 MB. Raises TopologyError where it is missing, too large or wrong."""
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise TopologyError(f"{path} cannot be read: {error.strerror}") from error
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        if len(data) <= LARGEST:
            raise TopologyError(f"{path} is not text in UTF-8; a topology file is JSON or YAML") from error
        text = data.decode(errors="replace")
    try:
        return parse_topology(text, str(path))
    except TopologyError as error:
        sentence = foreign(text, str(path))
        raise (TopologyError(sentence) if sentence else error) from error


def parse_topology(text: str, where: str) -> Topology:
    """Read the text of a topology file; `where` names it in errors. Raises TopologyError."""
    return topology_from_document(parse_document(text, where), where)


def topology_from_document(document: object, where: str) -> Topology:
    """Build a topology from the mapping in a topology file. Raises TopologyError, which begins with `where`."""
    try:
        return _topology(document)
    except TopologyError as error:
        raise TopologyError(f"{where}: {error}") from error


def _topology(document: object) -> Topology:
    if not isinstance(document, dict):
        raise TopologyError(f"a topology is a mapping with the keys {', '.join(KEYS)}")
    _only(document, KEYS, "the topology")
    return Topology(
        name=_name(document.get("name", "topology"), "name"),
        ranks=tuple(_name(rank, "ranks") for rank in _list(document, "ranks")),
        switches=tuple(_switch(switch) for switch in _list(document, "switches")),
        links=(*_links(document), *_cables(document)),
        hosts=_hosts(document.get("hosts")),
    )


def _links(document: dict[str, object]) -> Iterator[Link]:
    for number, entry in enumerate(_list(document, "links"), 1):
        yield _link(entry, f"links, entry {number}")


def _cables(document: dict[str, object]) -> Iterator[Link]:
    for number, entry in enumerate(_list(document, "cables"), 1):
        link = _link(entry, f"cables, entry {number}")
        yield link
        yield Link(link.target, link.source, link.bandwidth, link.latency)


def _link(entry: object, where: str) -> Link:
    if isinstance(entry, list) and len(entry) == 3:
        entry = dict(zip(LINK_KEYS, entry, strict=False))
    if not isinstance(entry, dict) or not {"from", "to", "bandwidth"} <= entry.keys():
        raise TopologyError(f"{where} is neither [from, to, GB/s] nor {{from, to, bandwidth, latency}}")
    _only(entry, LINK_KEYS, where)
    source, target = _name(entry["from"], where), _name(entry["to"], where)
    where = f"link {source} → {target}"
    latency = entry.get("latency")
    return Link(
        source,
        target,
        bandwidth=_number(entry["bandwidth"], f"{where}: bandwidth", "GB/s"),
        latency=None if latency is None else _number(latency, f"{where}: latency", "seconds"),
    )


def _switch(entry: object) -> Switch:
    if not isinstance(entry, dict):
        return Switch(_name(entry, "switches"))
    _only(entry, SWITCH_KEYS, "a switch")
    if "name" not in entry:
        raise TopologyError("a switch has no name; write it as {name: sw0, multicast: true}")
    name = _name(entry["name"], "the name of a switch")
    return Switch(name, _answer(entry, "multicast", name), _answer(entry, "reduces", name))


def _answer(entry: dict[str, object], key: str, switch: str) -> bool:
    said = str(entry.get(key, False)).lower()
    if said not in ANSWERS:
        raise TopologyError(f"switch {switch}: {key} is {said[:40]!r}; say true or false")
    return ANSWERS[said]


def _hosts(entry: object) -> dict[str, tuple[str, ...]]:
    if entry is None or entry == "":
        return {}
    if not isinstance(entry, dict):
        raise TopologyError("hosts is not a mapping from each host to the list of its ranks")
    return {
        _name(host, "hosts"): tuple(_name(rank, f"host {host}") for rank in _list(entry, host, "host "))
        for host in entry
    }


def _list(document: dict[str, object], key: str, what: str = "") -> list[object]:
    value = document.get(key)
    if value is None or value == "":
        return []
    if not isinstance(value, list | tuple):
        raise TopologyError(f"{what}{key} is not a list")
    return list(value)


def _name(value: object, where: str) -> str:
    """Names become strings: `0` is `"0"`."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise TopologyError(f"{where}: {str(value)[:40]!r} is no name; names are text or numbers")
    return str(value)


def _number(value: object, where: str, unit: str) -> Fraction:
    try:
        return exact(value)
    except ValueError as error:
        raise TopologyError(f"{where}: {error}; give {unit} as 25, 24.6 or '13/3'") from error


def _only(entry: dict[str, object], keys: tuple[str, ...], where: str) -> None:
    unknown = [str(key)[:40] for key in entry if key not in keys]
    if unknown:
        raise TopologyError(f"{where} has the unknown key {unknown[0]!r}; the keys are {', '.join(keys)}")
