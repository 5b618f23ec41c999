"""Tells wirings from other words for a network without loading what builds them."""

import re

WIRING = re.compile(r"\(*(L\^\d|[A-Z][A-Za-z]*\d*\()")


def is_wiring(text: str) -> bool:
    """Whether `text` looks like a wiring, such as `L^2(C(16,3,4))` or `(U(4)xU(8))^2`."""
    return WIRING.match(text) is not None
