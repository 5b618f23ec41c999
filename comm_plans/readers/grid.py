"""A matrix of devices as tools print it, found in whatever was pasted around it: a header, and rows with labels.

Rows go by their labels and cells by their order, so that shifted, glued and wrapped columns do not matter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from comm_plans.errors import TopologyError
from comm_plans.readers.pasted import Line, rejoined
from comm_plans.topology import MOST_NODES

_DEVICE = re.compile(r"(?:GPU|NIC|mlx\d+_(?:bond_)?)\d+")
_GLUED = re.compile(rf"(?:{_DEVICE.pattern})++(CPU|NUMA)?")
_NAME = re.compile(r"[\w.-]*[A-Za-z][\w.-]*")
_HEADINGS = {"CPU", "NUMA", "GPU", "Node", "Affinity", "ID"}
MOST_WRAPPED = 100  # lines of a header
_AFFINITY = r"[\d,-]+|N/A"


@dataclass(frozen=True)
class Row:
    """The cells of a device in the order of the header, and what follows them, column by column."""

    line: int
    cells: list[str]
    rest: tuple[str, ...]


@dataclass(frozen=True)
class Grid:
    """Devices in the order of the header, and the row of each that has one; `start` and `after` are its places."""

    devices: list[str]
    rows: dict[str, Row]
    start: int
    after: int


def grids(lines: Sequence[Line], cell: re.Pattern[str]) -> Iterator[Grid]:
    """Every matrix in the text whose cells are words of `cell`, one after the other."""
    place = 0
    while place < len(lines):
        found = _grid(lines, place, cell) if re.match(r"GPU\d", lines[place].text) else None
        if found:
            yield found
        place = found.after if found else place + 1


def _grid(lines: Sequence[Line], start: int, cell: re.Pattern[str]) -> Grid | None:
    """The matrix whose header begins at line `start`, if it is one: a row of the first device has to follow."""
    first = re.match(r"GPU\d+", lines[start].text)
    for place in range(start + 1, min(len(lines), start + MOST_WRAPPED)):
        words = lines[place].text.split(maxsplit=2)
        if first and words[:1] == [first[0]] and len(words) > 1 and cell.match(words[1]):
            block = takewhile(lambda line: line.text, lines[start:])
            width = max(len(line.shown) for line in block)
            devices = _devices(rejoined([line for line in lines[start:place] if line.text], width))
            return _filled(devices, lines, (start, place), width, cell)
        if words and (words[0] == lines[start].text.split()[0] or _devices(lines[place].text) is None):
            return None
    return None


def _devices(header: str) -> list[str] | None:
    """The devices that a header names, or a part of one that was wrapped; None for a line that is no such thing."""
    words = [word for glued in header.split() for word in _unglued(glued)]
    devices = list(takewhile(lambda word: word not in _HEADINGS, words))
    headings = words[len(devices) :]
    return devices if _HEADINGS.issuperset(headings) and all(map(_NAME.fullmatch, devices)) else None


def _unglued(word: str) -> list[str]:
    """`NIC10NIC11CPU` is three words."""
    glued = _GLUED.fullmatch(word)
    return [*_DEVICE.findall(word), *filter(None, glued.groups())] if glued else [word]


def _filled(
    devices: list[str] | None, lines: Sequence[Line], places: tuple[int, int], width: int, cell: re.Pattern[str]
) -> Grid | None:
    """Take rows until a line belongs to none; what follows a row without being one was wrapped off it."""
    if not devices:
        return None
    start, place = places
    _check(devices, lines[start].number)
    known = set(devices)
    continued = re.compile(rf"(?:{cell.pattern}|{_AFFINITY})(?:\s|$)")
    rows: dict[str, list[Line]] = {}
    label = ""
    for line in lines[place:]:
        first = line.text.split(maxsplit=1)[0] if line.text else ""
        if first in known and first not in rows:
            label = first
            rows[label] = [line]
        elif line.text and continued.match(line.text):
            rows[label].append(line)
        elif line.text or len(rows) == len(devices):
            break
        place += 1
    found = {label: _row(wrapped, width, len(devices), cell) for label, wrapped in rows.items()}
    return Grid(devices, found, start, place)


def _check(devices: list[str], line: int) -> None:
    if len(devices) > MOST_NODES:
        raise TopologyError(f"line {line} names more than the {MOST_NODES} devices that a topology may have")
    if len(set(devices)) < len(devices):
        twice = next(device for place, device in enumerate(devices) if device in devices[:place])
        raise TopologyError(f"line {line} names {twice} twice; paste the whole output as it was printed")


def _row(wrapped: list[Line], width: int, count: int, cell: re.Pattern[str]) -> Row:
    text = rejoined(wrapped, width)
    fields = [part.strip() for part in text.split("\t")]
    if len(fields) <= count or not all(map(cell.fullmatch, fields[1 : count + 1])):
        fields = [word for part in text.split() for word in _cells(part, cell)]
    rest = tuple(part for part in fields[count + 1 :] if part not in ("", "N/A"))
    return Row(wrapped[0].number, fields[1 : count + 1], rest)


def _cells(word: str, cell: re.Pattern[str]) -> list[str]:
    """`SYSSYS` is two cells, if words of `cell` make it up completely."""
    if cell.fullmatch(word) or not re.fullmatch(rf"(?:{cell.pattern})++", word):
        return [word]
    return cell.findall(word)
