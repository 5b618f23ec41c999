"""A matrix of devices as tools print it, found in whatever was pasted around it: a header, and rows with labels.

Rows go by their labels and cells by their order, so that shifted, glued and wrapped columns do not matter.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from comm_plans.errors import TopologyError
from comm_plans.readers.pasted import Line, rejoined
from comm_plans.topology import MOST_NODES

_DEVICE = re.compile(r"(?:GPU|NIC|mlx\d+_(?:bond_)?)\d{1,6}")
_GLUED = re.compile(rf"(?:{_DEVICE.pattern})++(CPU|NUMA)?")
_HEADER_PART = re.compile(r"[\w.\s-]*")
_NAME = re.compile(r"(?=[\w.-]*[A-Za-z])[\w.-]{1,60}")
_HEADINGS = {"CPU", "NUMA", "GPU", "Node", "Affinity", "ID"}
MOST_WRAPPED = 40  # lines of a header, or of a row


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
    first = lines[start].text.split(maxsplit=1)[0]
    for place in range(start + 1, min(len(lines), start + MOST_WRAPPED)):
        text = lines[place].text
        if text.startswith(first) and (words := text.split(maxsplit=1))[0] == first:
            return _found(lines, (start, place), cell) if cell.match(words[-1]) else None
        if not _HEADER_PART.fullmatch(text):
            return None
    return None


def _found(lines: Sequence[Line], places: tuple[int, int], cell: re.Pattern[str]) -> Grid | None:
    """The matrix whose header and rows begin at `places`; None where there is no header but some other text."""
    start, place = places
    width = max(len(line.shown) for line in takewhile(lambda line: line.text, lines[start:]))
    devices = _devices(rejoined([line for line in lines[start:place] if line.text], width))
    return _filled(devices, lines, places, width, cell) if devices else None


def _devices(header: str) -> list[str] | None:
    """The devices that a header names; None for a line that is no header."""
    words = [word for glued in header.split() for word in _unglued(glued)]
    devices = list(takewhile(lambda word: word not in _HEADINGS, words))
    headings = words[len(devices) :]
    return devices if _HEADINGS.issuperset(headings) and all(map(_NAME.fullmatch, devices)) else None


def _unglued(word: str) -> list[str]:
    """`NIC10NIC11CPU` is three words."""
    glued = _GLUED.fullmatch(word)
    return [*_DEVICE.findall(word), *filter(None, glued.groups())] if glued else [word]


def _filled(
    devices: list[str], lines: Sequence[Line], places: tuple[int, int], width: int, cell: re.Pattern[str]
) -> Grid:
    """Take rows until a line belongs to none; what follows a row without being one was wrapped off it."""
    start, place = places
    _check(devices, lines[start].number)
    known, count = set(devices), len(devices)
    rows: dict[str, list[Line]] = {}
    label = ""
    for line in lines[place:]:
        first = line.text.split(maxsplit=1)[0] if line.text else ""
        if first in known and first not in rows:
            label = first
            rows[label] = [line]
        elif (
            line.text and len(rows[label]) < MOST_WRAPPED and _continues(line.text, rejoined(rows[label], width), count)
        ):
            rows[label].append(line)
        elif line.text or len(rows) == count:
            break
        place += 1
    found = {label: _row(wrapped, width, count, cell) for label, wrapped in rows.items()}
    return Grid(devices, found, start, place)


def _continues(text: str, row: str, count: int) -> bool:
    """Whether a line is what was wrapped off `row`: its missing cells, or no more than numbers behind them."""
    complete = len(row.split()) > count
    return bool(re.fullmatch(r"[\d,\s-]+|[\d,\s-]*N/A" if complete else r"[\w\s,/-]+", text))


def _check(devices: list[str], line: int) -> None:
    if len(devices) > MOST_NODES:
        raise TopologyError(f"line {line} names more than the {MOST_NODES} devices that a topology may have")
    if len(set(devices)) < len(devices):
        twice = Counter(devices).most_common(1)[0][0]
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
