"""Rates of links: as people write them, and as tc shapes them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from comm_plans.exact import exact
from comm_plans.lab_state import LabError, LabLink, LabState
from lab.blueprint import BITS, checked_rate
from lab.ends import ends_of
from lab.shell import run

UNITS = {"bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9, None: BITS}
FORM = re.compile(r"([0-9.]+(?:e[+-]?[0-9]+)?)([kmg]?bit)?")


def parse_rate(text: str) -> int:
    """Bit/s of `10mbit` (kbit, mbit, gbit) or of a number in GB/s as in a topology file. Raises LabError."""
    matched = FORM.fullmatch(text.lower())
    try:
        amount = exact(matched[1]) if matched else None
    except ValueError:
        amount = None
    if matched is None or amount is None:
        raise LabError(f"{text[:40]!r} is no rate; write 10mbit, or GB/s as in a topology file: 0.00125")
    return checked_rate(round(amount * UNITS[matched[2]]), f"a rate of {text[:40]}")


def shaper(rate: int) -> str:
    """The kernel's token bucket, with the queue that TCP in incast gets on best with (10 ms drop too much)."""
    return f"root handle 1: tbf rate {rate}bit burst 64kb latency 40ms"


def change_rate(state: LabState, link: LabLink, rate: int) -> None:
    """Shape both directions of a link to `rate` bit/s from now on."""
    for namespace, line in _changes(state, link, rate):
        run("tc", "-n", namespace, "-batch", "-", lines=[line])


def _changes(state: LabState, link: LabLink, rate: int) -> Iterator[tuple[str, str]]:
    for end in ends_of(state, link):
        yield end.node.namespace, f"qdisc change dev {end.interface} {shaper(rate)}"


def shown_rate(rate: int) -> str:
    """`200 Mbit/s`."""
    for unit, size in (("Gbit/s", 10**9), ("Mbit/s", 10**6), ("kbit/s", 10**3)):
        if rate >= size:
            return f"{rate / size:g} {unit}"
    return f"{rate} bit/s"
