"""Exact numbers in and out of text: `24.6` is 123/5 and never passes through a binary float."""

from __future__ import annotations

import re
from fractions import Fraction

LONGEST_DECIMAL = 1000
LONGEST_RATIO = 4000  # that of any decimal is shorter
DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?")
RATIO = re.compile(r"[+-]?\d+/0*[1-9]\d*")


def exact(value: object) -> Fraction:
    """Read an integer, a decimal or a ratio such as `"13/3"`.

    Floats are taken at their shortest decimal form. Raises ValueError for anything else, NaN and infinity included.
    """
    if isinstance(value, Fraction):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"{value!r} is not a number")
    return _from_text(str(value).strip())


def _from_text(text: str) -> Fraction:
    decimal = len(text) <= LONGEST_DECIMAL and DECIMAL.fullmatch(text)
    ratio = len(text) <= LONGEST_RATIO and RATIO.fullmatch(text)
    if not text.isascii() or not (decimal or ratio):
        raise ValueError(f"{text[:40]!r} is not a number")
    return Fraction(text)


def written(value: Fraction) -> int | str:
    """Give the form that JSON keeps exactly: a whole number as it is, anything else as `"13/3"`."""
    return value.numerator if value.denominator == 1 else str(value)
