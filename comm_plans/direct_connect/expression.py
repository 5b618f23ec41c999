"""A wiring as a word: `L^2(L^2(DiC(8,1,3))*2)` — read, written, and built.

wiring   = factor {"x" factor}                    Cartesian product
factor   = part {"^" number | "*" number}         power, degree expansion
part     = "L" ["^" number] "(" wiring ")"        line graph, so many times
         | "Edges" "(" wiring ")"                 undirected line graph
         | family "(" arguments ")"               a base graph
         | "(" wiring ")"
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from functools import lru_cache, reduce

from comm_plans.direct_connect.cayley import CAYLEY
from comm_plans.direct_connect.distance_regular import DISTANCE_REGULAR, edges
from comm_plans.direct_connect.families import FAMILIES
from comm_plans.direct_connect.graphs import Graph
from comm_plans.errors import TopologyError

BASES = FAMILIES | DISTANCE_REGULAR | CAYLEY
LONGEST = 300


@dataclass(frozen=True)
class Base:
    """A graph of a family, such as C(16,3,4)."""

    family: str
    arguments: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.family}({','.join(self.arguments)})"


@dataclass(frozen=True)
class Line:
    """L^times(of)."""

    of: Wiring
    times: int = 1

    def __str__(self) -> str:
        return f"L{'' if self.times == 1 else f'^{self.times}'}({self.of})"


@dataclass(frozen=True)
class Edges:
    """The undirected line graph of an undirected graph."""

    of: Wiring

    def __str__(self) -> str:
        return f"Edges({self.of})"


@dataclass(frozen=True)
class Copies:
    """Degree expansion of*count."""

    of: Wiring
    count: int

    def __str__(self) -> str:
        return f"{_bracketed(self.of)}*{self.count}"


@dataclass(frozen=True)
class Power:
    """Cartesian power of^exponent."""

    of: Wiring
    exponent: int

    def __str__(self) -> str:
        return f"{_bracketed(self.of)}^{self.exponent}"


@dataclass(frozen=True)
class Product:
    """Cartesian product of unequal factors."""

    factors: tuple[Wiring, ...]

    def __str__(self) -> str:
        return "x".join(map(_bracketed, self.factors))


Wiring = Base | Line | Edges | Copies | Power | Product


def line(wiring: Wiring) -> Line:
    """The line graph, lines of lines counted up."""
    return Line(wiring.of, wiring.times + 1) if isinstance(wiring, Line) else Line(wiring)


def build(wiring: Wiring) -> Graph:
    """The graph that the word stands for. Raises TopologyError where a number in it makes no sense."""
    return _built(str(wiring), wiring)


@lru_cache(maxsize=512)
def _built(text: str, wiring: Wiring) -> Graph:
    match wiring:
        case Base(family, arguments):
            return _base(family, arguments)
        case Line(of, times):
            return reduce(lambda graph, _: graph.line(), range(times), build(of))
        case Edges(of):
            return edges(build(of))
        case Copies(of, count):
            return build(of).multiplied(count)
        case Power(of, exponent):
            return build(of).power(exponent)
        case Product(factors):
            return reduce(Graph.product, map(build, factors))


def parse(text: str) -> Wiring:
    """Read a word. Raises TopologyError that shows where it stops making sense."""
    if len(text) > LONGEST:
        raise TopologyError(f"a wiring of {len(text)} characters is too long; write at most {LONGEST}")
    return _Reader(text).whole()


def _base(family: str, arguments: tuple[str, ...]) -> Graph:
    make = BASES[family]
    try:
        values = arguments if family in CAYLEY else tuple(map(int, arguments))
        inspect.signature(make).bind(*values)
    except (TypeError, ValueError) as error:
        form = (inspect.getdoc(make) or "").partition(":")[0]
        raise TopologyError(
            f"{family}({','.join(arguments)}) is not of the form {form}; correct its numbers"
        ) from error
    return make(*values)


def _bracketed(wiring: Wiring) -> str:
    return f"({wiring})" if isinstance(wiring, Copies | Power | Product) else str(wiring)


class _Reader:
    """Takes one token after the other."""

    def __init__(self, text: str) -> None:
        self.text, self.place = text.replace(" ", "").replace("[]", "x"), 0

    def whole(self) -> Wiring:
        wiring = self.wiring()
        if self.place < len(self.text):
            raise self.fault()
        return wiring

    def wiring(self) -> Wiring:
        factors = [self.factor()]
        while self.takes("x"):
            factors.append(self.factor())
        return factors[0] if len(factors) == 1 else Product(tuple(factors))

    def factor(self) -> Wiring:
        wiring = self.part()
        while True:
            if self.takes("^"):
                wiring = Power(wiring, self.count())
            elif self.takes("*"):
                wiring = Copies(wiring, self.count())
            else:
                return wiring

    def part(self) -> Wiring:
        if self.takes("("):
            return self.closed()
        name = self.match(r"[A-Z][A-Za-z]*\d*")
        if name == "L":
            times = self.count() if self.takes("^") else 1
            self.needs("(")
            return Line(self.closed(), times)
        self.needs("(")
        if name == "Edges":
            return Edges(self.closed())
        if name not in BASES:
            raise TopologyError(f"there is no base graph {name!r}; those known are {', '.join(BASES)}")
        arguments = self.match(r"[^()]*")
        self.needs(")")
        return Base(name, tuple(arguments.split(",")) if arguments else ())

    def closed(self) -> Wiring:
        wiring = self.wiring()
        self.needs(")")
        return wiring

    def count(self) -> int:
        return int(self.match(r"[1-9]\d{0,3}"))

    def match(self, pattern: str) -> str:
        matched = re.compile(pattern).match(self.text, self.place)
        if matched is None:
            raise self.fault()
        self.place = matched.end()
        return matched.group()

    def takes(self, sign: str) -> bool:
        taken = self.text.startswith(sign, self.place)
        self.place += taken
        return taken

    def needs(self, sign: str) -> None:
        if not self.takes(sign):
            raise self.fault()

    def fault(self) -> TopologyError:
        rest = self.text[self.place :][:20] or "its end"
        return TopologyError(f"the wiring {self.text[:60]!r} makes no sense at {rest!r}; write it as L^2(C(16,3,4)*2)")
