"""XML as plain elements with their lines; nothing is declared, expanded or fetched, and size and depth have bounds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NoReturn
from xml.parsers import expat

from comm_plans.errors import TopologyError
from comm_plans.topology import MOST_NODES

DEEPEST = 64


@dataclass
class Element:
    """A tag with its attributes, what it holds, and the line where it begins."""

    tag: str
    attributes: dict[str, str]
    line: int
    children: list[Element] = field(default_factory=list)

    def get(self, name: str, otherwise: str = "") -> str:
        """An attribute without blanks around it."""
        return self.attributes.get(name, otherwise).strip()

    def every(self, *tags: str) -> Iterator[Element]:
        """The element and all below it that have one of the tags, in the order of the text."""
        if self.tag in tags:
            yield self
        for child in self.children:
            yield from child.every(*tags)


def parse_xml(text: str) -> Element:
    """The outermost element. What stands before the first `<`, such as a prompt, or after the last `>` is left out.

    Raises TopologyError that names the line for text that is cut or no XML, has a DOCTYPE, or is too large.
    """
    before, opening, _ = text.partition("<")
    end = text.rfind(">") + 1
    return _Reader(before.count("\n")).read(text[len(before) : end if opening and end > len(before) else None])


class _Reader:
    def __init__(self, skipped: int) -> None:
        self.skipped, self.count = skipped, 0
        self.top = Element("", {}, 0)
        self.open = [self.top]
        self.parser = expat.ParserCreate("utf-8")
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = lambda _tag: self.open.pop()
        self.parser.StartDoctypeDeclHandler = self._refuse_doctype

    def read(self, text: str) -> Element:
        try:
            self.parser.Parse(text.encode(errors="replace"), True)
        except expat.ExpatError as error:
            self._refuse(error)
        return self.top.children[0]

    @property
    def _line(self) -> int:
        return self.skipped + self.parser.CurrentLineNumber

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self.count += 1
        if self.count > MOST_NODES or len(self.open) > DEEPEST:
            raise TopologyError(f"line {self._line}: there are more than {MOST_NODES} elements, or {DEEPEST} levels")
        element = Element(tag, attributes, self._line)
        self.open[-1].children.append(element)
        self.open.append(element)

    def _refuse_doctype(self, *_: object) -> NoReturn:
        raise TopologyError(f"line {self._line}: a DOCTYPE is not read, as it can hide anything; take it out")

    def _refuse(self, error: expat.ExpatError) -> NoReturn:
        where, what = f"line {self._line}", expat.errors.messages[error.code]
        if len(self.open) > 1 and self.open[-1].line:
            inside = f"<{self.open[-1].tag[:40]}> of line {self.open[-1].line} is still open"
            raise TopologyError(f"{where}: {what}, and {inside}; give the whole file, it looks cut") from error
        raise TopologyError(f"{where} is not XML: {what}; give the file as NCCL wrote it") from error
