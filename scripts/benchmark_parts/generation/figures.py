"""The benchmark's figures: attention mass against tokens read by method, and a step's time against the context."""

from __future__ import annotations

from pathlib import Path
from statistics import median

from benchmark_parts.generation.kernels import DENSE
from benchmark_parts.generation.one_layer import SHARES, note_of
from benchmark_parts.generation.rows import Row as Measured

from orchestrator.attention_figure import draw
from orchestrator.recorders.style import LIGHT, dress, legend, new_figure, save_png
from trainers.generation.evaluation.comparison import Row
from trainers.generation.evaluation.side_by_side import Line


def draw_mass(rows: list[Measured], path: Path) -> None:
    """By method, one point a target, on the first text."""
    curve = [row for row in rows if row["part"] == "curve"]
    draw([_line(row) for row in curve], curve[0]["context"], path)


def draw_times(rows: list[Measured], path: Path) -> None:
    """One layer's dense attention in its fastest way, and Tactic's with the shares that it reads."""
    of_layer = [row for row in rows if row["part"] == "one layer"]
    contexts = sorted({row["context"] for row in of_layer})
    figure = new_figure(LIGHT, 7, 4.2, "Decode attention of one layer, choosing included")
    axes = figure.subplots()
    dress(axes, LIGHT, "tokens stored", "ms a step, one thread")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    ways = [("fastest dense", DENSE, SHARES[0])]
    ways += [(f"Tactic, {share:.0%} read", ("Tactic",), share) for share in reversed(SHARES)]
    for colour, (label, names, share) in zip(LIGHT.runs, ways, strict=False):
        here = [row for row in of_layer if row["note"] == note_of(share) and row["method"] in names]
        times = [min(median(row["milliseconds"]) for row in here if row["context"] == each) for each in contexts]
        axes.plot(contexts, times, label=label, color=colour, marker="o", linewidth=1.8)
    axes.set_xticks(contexts, [f"{each // 1024}k" for each in contexts])
    axes.set_yticks([0.5, 1, 2, 5, 10], minor=False)
    axes.set_yticks([], minor=True)
    axes.yaxis.set_major_formatter("{x:g}")
    legend(axes, LIGHT)
    save_png(figure, path)


def _line(row: Measured) -> Line:
    names = ("read", "needed", "mass_mean", "mass_p5", "kl", "perplexity", "top1_agreement")
    found = Row(row["method"], *(row[name] for name in names), seconds=row["milliseconds"][0] / 1e3)
    return Line(row["target"], found)
