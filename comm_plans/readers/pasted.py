"""Text as it is pasted: colours, prompts, quotes and line ends taken away, line numbers kept."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from comm_plans.errors import TopologyError

_COLOUR = re.compile(r"\x1b\[[\d;]*[mK]")
_LINE_END = re.compile(r"\r+\n|\r|\n")
_BLANK = " \t\v\f\u00a0|"
_QUOTE = _BLANK + ">#"


class Line(NamedTuple):
    """A line: `text` without colours and quotes, `shown` as it stood on a terminal."""

    number: int
    text: str
    shown: str


def lines_of(text: str) -> list[Line]:
    """The lines of a paste. Raises TopologyError for a terminal command that is more than a colour."""
    lines = []
    for number, raw in enumerate(_LINE_END.split(text), 1):
        plain = _COLOUR.sub("", raw)
        if "\x1b" in plain:
            raise TopologyError(f"line {number} moves a terminal's cursor; copy the output as plain text")
        lines.append(Line(number, plain.lstrip(_QUOTE).rstrip(_BLANK), plain))
    return lines


def rejoined(lines: Sequence[Line], width: int) -> str:
    """The text of lines that a terminal wrapped: it cuts where its `width` ends, be that in the middle of a word."""
    text = lines[0].text
    for before, line in pairwise(lines):
        within_word = len(before.shown) == width and not (before.shown[-1:] + line.shown[:1]).count(" ")
        text += ("" if within_word else " ") + line.text
    return text
