"""Attention mass against tokens read, by method: what a comparison of ways to attend looks like."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.recorders.style import LIGHT, dress, legend, new_figure, save_png

if TYPE_CHECKING:
    from trainers.generation.evaluation.side_by_side import Line

_MARKS = "osD^vP*Xd<>"
_TICKS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100)  # per cent


def draw(lines: "Sequence[Line]", context: int, path: Path) -> None:
    """Write the figure as a PNG: the mean mass at the left, the 5th percentile over heads and steps at the right."""
    figure = new_figure(LIGHT, 11, 4.4, f"Attention mass by tokens read, of {context:,}")
    panels = figure.subplots(1, 2, sharey=True)
    by_method = defaultdict(list)
    for line in lines:
        if line.target is not None:
            by_method[line.row.name].append(line.row)
    for axes, field, label in zip(panels, ("mass_mean", "mass_p5"), ("mean", "5th percentile"), strict=True):
        dress(axes, LIGHT, "tokens read by a key-value head, % of those stored", f"attention mass, {label}")
        axes.set_xscale("log")
        for number, (name, rows) in enumerate(by_method.items()):
            style = {"color": LIGHT.runs[number % len(LIGHT.runs)], "marker": _MARKS[number % len(_MARKS)]}
            style["linestyle"] = "-" if number < len(LIGHT.runs) else "--"
            points = sorted((100 * row.read / context, getattr(row, field)) for row in rows)
            axes.plot(*zip(*points, strict=True), label=name, linewidth=1.6, markersize=5, **style)
        low, high = axes.get_xlim()
        axes.set_xticks([each for each in _TICKS if low <= each <= high], minor=False)
        axes.set_xticks([], minor=True)
        axes.xaxis.set_major_formatter("{x:g}")
    legend(panels[1], LIGHT, loc="center left", bbox_to_anchor=(1.02, 0.5))
    save_png(figure, path)
