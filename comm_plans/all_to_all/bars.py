"""Bars that compare ways of doing an all-to-all."""

from __future__ import annotations

from collections.abc import Callable, Sequence

LONGEST = 40  # characters


def show_bars(amounts: Sequence[tuple[str, float]], shown: Callable[[float], str]) -> None:
    """A line for each name: its amount, above zero, as `shown` writes it, and a bar as long."""
    texts = [shown(amount) for _, amount in amounts]
    names, numbers = max(len(name) for name, _ in amounts), max(map(len, texts))
    most = max(amount for _, amount in amounts)
    for (name, amount), text in zip(amounts, texts, strict=True):
        print(f"  {name:<{names}}  {text:>{numbers}}  {'█' * max(1, round(LONGEST * amount / most))}")
