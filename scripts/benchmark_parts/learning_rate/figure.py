"""The benchmark's figure: test loss against steps in all, one panel a task, one curve a family."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from benchmark_parts.learning_rate.arm import Row
from benchmark_parts.learning_rate.summary import METHOD, Results
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.ticker import NullFormatter

COLUMNS = 3
LEGEND = 0.6  # inches below the panels
CROWDED = 5  # a panel over more than this factor has ticks at powers of ten alone
MARGIN = 0.95  # panels reach from a little below the lowest loss to a little above the method's first after its search


def draw(results: Results, file: Path) -> None:
    """Mean curves over seeds; of a tuned family those that validation picked. The dotted line is the budget."""
    lines = -(-len(results.tasks) // COLUMNS)
    height = 2.9 * lines + LEGEND
    figure, panels = pyplot.subplots(lines, COLUMNS, figsize=(4 * COLUMNS, height), squeeze=False)
    for panel, task in zip(panels.flat, results.tasks, strict=False):
        _panel(panel, results, task)
    for panel in panels.flat[len(results.tasks) :]:
        panel.set_axis_off()
    handles, labels = panels.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=4, frameon=False)
    figure.supylabel("test loss, first samples of the split")
    figure.tight_layout(rect=(0, LEGEND / height, 1, 1))
    figure.savefig(file, dpi=110)
    pyplot.close(figure)


def _panel(panel: Axes, results: Results, task: str) -> None:
    curves = {family: _mean_curve(results.chosen(task, family)) for family in (*results.peers, METHOD)}
    for family, (steps, losses) in curves.items():
        ours = family == METHOD
        panel.plot(steps, losses, label=family, lw=2.4 if ours else 1.1, color="black" if ours else None)
    panel.axvline(results.steps(task), color="grey", ls=":", lw=1)
    panel.set_yscale("log")
    low, high = MARGIN * min(min(losses) for _, losses in curves.values()), curves[METHOD][1][0] / MARGIN
    panel.set_ylim(low, high)
    panel.yaxis.set_major_formatter("{x:.3g}")
    panel.yaxis.set_minor_formatter("{x:.3g}" if high < CROWDED * low else NullFormatter())
    panel.tick_params(which="both", labelsize=7)
    panel.set_title(task)
    panel.set_xlabel("steps, search included")


def _mean_curve(rows: list[Row]) -> tuple[list[int], list[float]]:
    """Over the steps that all rows have."""
    curves = [dict(zip(row["curve_steps"], row["test_curve"], strict=True)) for row in rows]
    shared = sorted(set.intersection(*map(set, curves)))
    return shared, [float(np.mean([curve[step] for curve in curves])) for step in shared]
