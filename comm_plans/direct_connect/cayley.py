"""Cayley graphs: the nodes are the elements of a group, each joined to its products with some generators.

Groups are products of cyclic groups, `Z2xZ4`, and semidirect products `Z16:Z2:7`, in which
(a, b)·(c, e) = (a + 7ᵇ·c, b + e). All nodes of such a graph look alike, so one receiver tells the cost.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np

from comm_plans.direct_connect.graphs import Graph, check_size, graph_of
from comm_plans.errors import TopologyError

Element = tuple[int, ...]
CYCLIC = re.compile(r"Z\d{1,4}(xZ\d{1,4})*")
SEMIDIRECT = re.compile(r"Z(\d{1,4}):Z(\d{1,4}):(\d{1,4})")


@dataclass(frozen=True)
class Group:
    """A finite group on tuples of numbers; `orders` bounds each coordinate, `twist` is 1 for a direct product."""

    orders: tuple[int, ...]
    twist: int = 1

    @property
    def elements(self) -> Iterator[Element]:
        """All elements, the neutral one first."""
        return product(*(range(order) for order in self.orders))

    def times(self, one: Element, two: Element) -> Element:
        """The product of two elements."""
        turned = (two[0] * pow(self.twist, one[-1], self.orders[0]), *two[1:])
        return tuple((a + b) % order for a, b, order in zip(one, turned, self.orders, strict=True))

    def graph(self, generators: Sequence[Element]) -> Graph:
        """The Cayley graph: an arc g → g·s for every generator s."""
        index = {element: place for place, element in enumerate(self.elements)}
        arcs = [(index[g], index[self.times(g, s)]) for g in self.elements for s in generators]
        return graph_of(len(index), np.array(arcs, dtype=np.int64), transitive=True)

    def __str__(self) -> str:
        words = [f"Z{order}" for order in self.orders]
        return "x".join(words) if self.twist == 1 else f"{words[0]}:{words[1]}:{self.twist}"


def group(text: str) -> Group:
    """Read `Z2xZ4` or `Z16:Z2:7`. Raises TopologyError for anything else."""
    if CYCLIC.fullmatch(text):
        return Group(tuple(int(word[1:]) for word in text.split("x")))
    matched = SEMIDIRECT.fullmatch(text)
    if matched:
        order, turns, twist = map(int, matched.groups())
        if order and pow(twist, turns, order) == 1 % order:
            return Group((order, turns), twist)
        raise TopologyError(f"{text} is no group: {twist} to the power of {turns} is not 1 modulo {order}")
    raise TopologyError(f"{text[:40]!r} is no group; write Z2xZ4 for a product or Z16:Z2:7 for a semidirect one")


def cayley(text: str, *generators: str) -> Graph:
    """Cay(Z16:Z2:7,0.1,1.0,…): the Cayley graph of a group with generators written coordinate by coordinate."""
    within = group(text)
    check_size(prod(within.orders), len(generators))
    chosen = [_element(within, generator) for generator in generators]
    if not chosen or len(set(chosen)) < len(chosen) or not all(map(any, chosen)):
        raise TopologyError(f"the generators of Cay({text},…) must be distinct and other than the neutral element")
    if prod(within.orders) < 2:
        raise TopologyError(f"Cay({text},…) has one node only; take a larger group")
    return within.graph(chosen)


def _element(within: Group, text: str) -> Element:
    words = text.split(".")
    if len(words) != len(within.orders) or not all(word.isdecimal() for word in words):
        raise TopologyError(f"{text[:40]!r} is no element of {within}; write its {len(within.orders)} numbers as 1.0")
    return tuple(int(word) % order for word, order in zip(words, within.orders, strict=True))


CAYLEY: dict[str, Callable[..., Graph]] = {"Cay": cayley}
