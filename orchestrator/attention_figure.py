"""Attention mass against tokens read, by method: what a comparison of ways to attend looks like."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.recorders.style import LIGHT, dress, legend, logarithmic, new_figure, save_png

if TYPE_CHECKING:
    from trainers.generation.evaluation.side_by_side import Line

_MARKS = "osD^vP*Xd<>"


def draw(lines: "Sequence[Line]", context: int, path: Path) -> None:
    """Write the figure as a PNG: the mean mass at the left, the 5th percentile over heads and steps at the right."""
    figure = new_figure(LIGHT, 10, 4.4, f"Attention mass by tokens read, of {context:,}")
    panels = figure.subplots(1, 2, sharey=True)
    by_method = defaultdict(list)
    for line in lines:
        if line.target is not None:
            by_method[line.row.name].append(line.row)
    for axes, field, label in zip(panels, ("mass_mean", "mass_p5"), ("mean", "5th percentile"), strict=True):
        dress(axes, LIGHT, "tokens read by a key-value head, % of those stored", f"attention mass, {label}")
        logarithmic(axes, "x")
        for number, (name, rows) in enumerate(by_method.items()):
            style = {"color": LIGHT.runs[number % len(LIGHT.runs)], "marker": _MARKS[number % len(_MARKS)]}
            points = sorted((100 * row.read / context, getattr(row, field)) for row in rows)
            axes.plot(*zip(*points, strict=True), label=name, linewidth=1.6, markersize=5, **style)
    legend(panels[0], LIGHT, loc="lower right")
    save_png(figure, path)
