"""Measured bandwidths as tools write them: p2pBandwidthLatencyTest, nvbandwidth, plain tables, CSV and `.npy`."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from comm_plans.errors import TopologyError
from comm_plans.readers.pasted import Line, lines_of
from comm_plans.topology import MOST_BANDWIDTH, MOST_NODES

NPY = b"\x93NUMPY"
_TOOL = re.compile(r"Bandwidth .{0,40}Matrix \(GB/s\)|GPU\(row\)")
_OTHERWISE = re.compile(r"bidirectional|<->|latency|CPU", re.IGNORECASE)
LEAST_BANDWIDTH = 1e-6  # GB/s
LONGEST = 40  # characters of a figure
_ABSENT = {"n/a", "nan", "-", "x", ""}


@dataclass(frozen=True)
class Measurements:
    """GB/s from each rank (row) to each other one (column); the diagonal means nothing."""

    names: tuple[str, ...]
    bandwidths: NDArray[np.float64]


def parse_measurements(text: str) -> Measurements | None:
    """The matrix in a text; None where it holds none. Raises TopologyError unless it has a bandwidth for every pair."""
    lines = lines_of(text)
    if any(_TOOL.search(line.text) for line in lines):
        return _of_tool(lines)
    rows = [_fields(line.text.partition("#")[0]) for line in lines]
    return _table([row for row in rows if row])


def saved_measurements(data: bytes) -> Measurements:
    """The matrix in what a `.npy` file holds. Raises TopologyError where that is cut, or no bandwidth of all pairs."""
    try:
        matrix = np.load(BytesIO(data), allow_pickle=False)
    except Exception as error:  # numpy reads the header as a Python literal, which can fail in any way
        raise TopologyError("it is no .npy file of numbers, or cut; write it with numpy.save") from error
    return _checked(matrix, ())


def _fields(text: str) -> list[str]:
    parts = re.split(r"[,;\t]", text) if re.search(r"[,;]", text) else text.split()
    return [part.strip().strip('"') for part in parts] if any(part.strip() for part in parts) else []


def _figure(word: str) -> float | None:
    """A number, NaN for what stands for none, None for other words."""
    if word.casefold() in _ABSENT:
        return math.nan
    return (
        float(word)
        if len(word) < LONGEST and re.fullmatch(r"\+?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", word, re.ASCII)
        else None
    )


def _table(rows: list[list[str]]) -> Measurements | None:
    """A table of numbers; the first line and the first column may name the ranks."""
    names = rows.pop(0) if rows and None in map(_figure, rows[0][1:]) else []
    labelled = len(rows) > 1 and len(rows[0]) == len(rows) + 1
    figures = [[_figure(word) for word in (row[1:] if labelled else row)] for row in rows]
    if len(figures) < 2 or any(None in row for row in figures):
        return None
    if any(len(row) != len(figures) for row in figures):
        wrong = next(place for place, row in enumerate(figures, 1) if len(row) != len(figures))
        raise TopologyError(
            f"row {wrong} of {len(figures)} has {len(figures[wrong - 1])} figures; give a square matrix"
        )
    labels = [row[0] for row in rows] if labelled else names[-len(figures) :]
    return _checked(np.array(figures, np.float64), labels)


def _of_tool(lines: Sequence[Line]) -> Measurements:
    """The first matrix of a tool that measures one way between GPUs, or the first with P2P enabled."""
    headers = [place for place, line in enumerate(lines) if place and _is_header(line) and _one_way(lines[place - 1])]
    if not headers:
        raise TopologyError("no bandwidths one way between GPUs are in it; let the tool measure unidirectional pairs")
    place = next((place for place in headers if "P2P=Enabled" in lines[place - 1].text), headers[0])
    count = len(_numbers(lines[place]))
    figures = [_row(line, number, count) for number, line in enumerate(lines[place + 1 : place + 1 + count])]
    if len(figures) < count:
        raise TopologyError(f"the text ends after {len(figures)} of {count} rows; give the whole output of the tool")
    return _checked(np.array(figures, np.float64), [f"GPU{number}" for number in range(count)])


def _numbers(line: Line) -> list[str]:
    return line.text.removeprefix("D\\D").split()


def _is_header(line: Line) -> bool:
    return bool(line.text) and _numbers(line) == [str(number) for number in range(len(_numbers(line)))]


def _one_way(title: Line) -> bool:
    return bool(_TOOL.search(title.text)) and not _OTHERWISE.search(title.text)


def _row(line: Line, number: int, count: int) -> list[float]:
    words = line.text.split()
    figures = [figure for word in words[1:] if (figure := _figure(word)) is not None]
    if words[:1] != [str(number)] or len(figures) != count:
        raise TopologyError(f"line {line.number} is not row {number} of {count} figures; give the tool's whole output")
    return figures


def _checked(matrix: Any, labels: Sequence[str]) -> Measurements:
    """Raise TopologyError unless there is a bandwidth above zero from each rank to each other one."""
    if not isinstance(matrix, np.ndarray) or matrix.dtype.kind not in "iuf" or matrix.ndim != 2:
        raise TopologyError("it holds no matrix of numbers; give GB/s from each rank (row) to each other one (column)")
    if matrix.shape[0] != matrix.shape[1] or not 0 < len(matrix) <= MOST_NODES:
        raise TopologyError(f"the matrix has the shape {matrix.shape}; give a square one of up to {MOST_NODES} ranks")
    bandwidths = matrix.astype(np.float64)
    wrong = ~((bandwidths > LEAST_BANDWIDTH) & (bandwidths <= MOST_BANDWIDTH)) & ~np.eye(len(matrix), dtype=bool)
    names = tuple(label[:60] for label in labels) or tuple(f"rank{number}" for number in range(len(matrix)))
    if len(set(names)) < len(names):
        raise TopologyError(f"the rank {Counter(names).most_common(1)[0][0]!r} is named twice; give each its own name")
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        figure = f"{bandwidths[row, column]:g}"
        raise TopologyError(f"from {names[row]} to {names[column]} stands {figure}; give GB/s above zero for each pair")
    return Measurements(names, bandwidths)
