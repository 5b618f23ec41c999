"""Sizes as people write them: 1GiB, 64MB, 1e9, 4096; sizes, times, rates and counts as people read them: 3.2 ms."""

from __future__ import annotations

import re

from comm_plans.errors import PlansError
from comm_plans.exact import exact

UNITS = {
    "": 1,
    "b": 1,
    **{f"{letter}b": 1000**power for power, letter in enumerate("kmgt", 1)},
    **{f"{letter}ib": 1024**power for power, letter in enumerate("kmgt", 1)},
}
FORM = re.compile(r"\s*([0-9.]+(?:e[+-]?[0-9]+)?)\s*([kmgt]?i?b?)\s*", re.IGNORECASE)
MOST_BYTES = 10**18


def parse_size(text: str) -> int:
    """A number of bytes. Raises PlansError for anything but a whole number of them from 1 to 10¹⁸."""
    matched = FORM.fullmatch(text)
    unit = UNITS.get(matched[2].lower()) if matched else None
    try:
        size = exact(matched[1]) * unit if matched and unit else None
    except ValueError:
        size = None
    if size is None or size.denominator != 1 or not 1 <= size <= MOST_BYTES:
        raise PlansError(f"{text[:40]!r} is no size of 1 to 10¹⁸ bytes; write 4096, 1e9, 64MB or 1GiB")
    return int(size)


def shown_bytes(size: float) -> str:
    """Three significant digits with the largest binary unit that fits."""
    units = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB"]
    power = 0
    while size >= 1024 and power < len(units) - 1:
        size, power = size / 1024, power + 1
    return f"{size:.4g} {units[power]}"


def shown_bandwidth(bandwidth: float) -> str:
    """GB/s with two decimals, or below one with three significant digits."""
    return f"{bandwidth:.2f} GB/s" if bandwidth >= 1 else f"{bandwidth:.3g} GB/s"


def counted(number: int, what: str) -> str:
    """`1 hop`, `2 hops`."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def shown_seconds(seconds: float) -> str:
    """Three significant digits of s, ms or µs."""
    for unit, factor in (("s", 1.0), ("ms", 1e3)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"
