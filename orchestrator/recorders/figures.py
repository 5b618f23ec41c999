"""The three figures of a run: its rates and losses, its searches, what it cost. All from its events alone."""

import math
from collections.abc import Sequence
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from orchestrator.history import History, Segment, Stage
from orchestrator.recorders.style import Axes, Figure, Palette, cut_decades, dress, legend, logarithmic, new_figure
from orchestrator.summary import ACTIVITIES, Summary
from orchestrator.words import duration_text, rate_text

FloatArray = NDArray[np.float64]

_PANELS_A_ROW = 4
_BAND = 2.0  # standard deviations


def rates_and_losses(story: History, palette: Palette) -> Figure:
    """The learning rate (log axis) above the losses, over all steps taken; searches are shaded, forecasts hollow."""
    figure = new_figure(palette, 10, 5.6, "Learning rate and losses")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[2, 3])
    dress(above, palette, y_label="learning rate")
    dress(below, palette, "steps taken, those of the search included", "loss")
    for axes in (above, below):
        _shade_searches(axes, story, palette)
    _draw_rates(above, story, palette)
    _draw_losses(below, story, palette)
    _draw_forecasts(below, story, palette)
    below.set_ylim(*_loss_range(story))
    below.set_xlim(0, 1.008 * max((segment.end for segment in story.segments), default=1))
    legend(below, palette, loc="upper right", ncols=4)
    figure.align_ylabels([above, below])
    return figure


def searches(story: History, palette: Palette) -> Figure | None:
    """One panel a stage: rates probed, losses forecast, the surrogate's band. None if nothing was searched."""
    stages = [stage for stage in story.stages.values() if stage.forecasts]
    if not stages:
        return None
    columns = min(_PANELS_A_ROW, len(stages))
    rows = math.ceil(len(stages) / columns)
    figure = new_figure(palette, 10, 0.9 + 2.1 * rows, "The search of each stage")
    panels = figure.subplots(rows, columns, squeeze=False, sharex=True).flatten()
    for panel, stage in zip(panels, stages, strict=False):
        dress(panel, palette)
        panel.tick_params(labelbottom=True)  # also above a place that stays empty
        _draw_search(panel, stage, palette)
    for panel in panels[len(stages) :]:
        panel.set_visible(False)
    figure.supxlabel("learning rate", fontsize=9, color=palette.muted)
    figure.supylabel("loss at the stage's end", fontsize=9, color=palette.muted)
    _legend_of_searches(figure, panels[0], palette)
    return figure


def cost(summary: Summary, palette: Palette) -> Figure:
    """Steps and seconds, by what they were spent on."""
    figure = new_figure(palette, 10, 2.1, "What it took")
    steps = {"search": float(summary["probe_steps"]), "training": float(summary["train_steps"])}
    seconds = {name: summary["seconds"][name] for name in ACTIVITIES}
    upper, lower = figure.subplots(2, 1)
    _draw_bar(upper, steps, [f"{name} {value:,.0f}" for name, value in steps.items()], "steps", palette)
    _draw_bar(lower, seconds, [f"{name} {duration_text(value)}" for name, value in seconds.items()], "time", palette)
    return figure


def _shade_searches(axes: Axes, story: History, palette: Palette) -> None:
    for kind, run in groupby(story.segments, key=lambda segment: segment.kind):
        segments = list(run)
        if kind == "probe":
            axes.axvspan(segments[0].start, segments[-1].end, color=palette.shade, linewidth=0, zorder=0)


def _draw_rates(axes: Axes, story: History, palette: Palette) -> None:
    logarithmic(axes, "y")
    for segment in story.segments:
        real = segment.kind == "train"
        colour, width = (palette.train, 2.2) if real else (palette.probe, 1.4)
        axes.plot(_steps(segment), segment.rates, color=colour, linewidth=width, solid_capstyle="butt")
        if real and len(set(segment.rates)) == 1:
            middle = (segment.start + segment.end) / 2
            axes.annotate(rate_text(segment.rates[0]), (middle, segment.rates[0]), (0, 5), textcoords="offset points",
                          ha="center", fontsize=8, color=palette.train)  # fmt: skip
    cut_decades(axes)


def _draw_losses(axes: Axes, story: History, palette: Palette) -> None:
    label: dict[str, str] = {"train": "training loss", "probe": "probe"}  # each once in the legend
    for segment in story.segments:
        if segment.kind == "probe":
            axes.plot(
                _steps(segment), segment.losses, color=palette.probe, linewidth=0.9, label=label.pop("probe", None)
            )
            continue
        axes.plot(_steps(segment), segment.losses, color=palette.train, linewidth=0.6, alpha=0.3)
        smooth = _smoothed(segment.losses, story.train_steps // 100)
        axes.plot(_steps(segment), smooth, color=palette.train, linewidth=1.8, label=label.pop("train", None))
    validated = [each for each in story.validations if each.split == "validation"]
    axes.plot([story.total_steps(each.step) for each in validated], [each.metrics["loss"] for each in validated],
              color=palette.validation, linewidth=1.2, marker="o", markersize=3.2, label="validation loss")  # fmt: skip


def _draw_forecasts(axes: Axes, story: History, palette: Palette) -> None:
    """Each at the step it is about; the one that was followed is bolder."""
    label: str | None = "forecast"
    for stage in story.stages.values():
        for forecast in stage.forecasts:
            if forecast.diverged:
                continue
            followed = stage.choice is not None and forecast.chosen_by(stage.choice)
            axes.scatter(_stage_start(story, stage) + forecast.horizon, forecast.loss, s=34 if followed else 16,
                         facecolors="none", edgecolors=palette.forecast, linewidths=1.6 if followed else 0.8,
                         alpha=1.0 if followed else 0.55, zorder=4, label=label if followed else None)  # fmt: skip
            label = None if followed else label


def _stage_start(story: History, stage: Stage) -> int:
    """Where the stage's real steps begin, or will begin, among all steps."""
    own = [segment for segment in story.segments if segment.stage == stage.number]
    trained = [segment.start for segment in own if segment.kind == "train"]
    return trained[0] if trained else max((segment.end for segment in own), default=0)


def _draw_search(axes: Axes, stage: Stage, palette: Palette) -> None:
    logarithmic(axes, "x")
    kept = [forecast for forecast in stage.forecasts if not forecast.diverged]
    if stage.choice is not None:
        _draw_surrogate(axes, stage.choice.surrogate, palette)
        axes.axvline(stage.choice.rate, color=palette.train, linewidth=1.4, label="chosen", zorder=1)
    ends = [(probe.rates[-1], probe.train_losses[-1]) for probe in stage.probes if probe.rates]
    axes.scatter(*_columns(ends), s=26, marker="_", color=palette.probe, label="loss at the probe's end", zorder=3)
    axes.scatter([each.rate for each in kept], [each.loss for each in kept], s=24, facecolors=palette.background,
                 edgecolors=palette.forecast, linewidths=1.4, label="forecast", zorder=4)  # fmt: skip
    low, high = _search_range(stage)
    lost = [forecast.rate for forecast in stage.forecasts if forecast.diverged]
    axes.scatter(lost, [high] * len(lost), marker="x", s=22, color=palette.validation, label="diverged", clip_on=False)
    axes.set_ylim(low, high)
    title = f"stage {stage.number}" + (f"  {rate_text(stage.choice.rate)}" if stage.choice else "")
    axes.set_title(title, fontsize=9, color=palette.text, loc="left")


def _draw_surrogate(axes: Axes, rows: Sequence[tuple[float, float, float]], palette: Palette) -> None:
    if not rows:
        return
    rates, means, deviations = zip(*rows, strict=True)
    lower = [mean - _BAND * sd for mean, sd in zip(means, deviations, strict=True)]
    upper = [mean + _BAND * sd for mean, sd in zip(means, deviations, strict=True)]
    axes.fill_between(rates, lower, upper, color=palette.forecast, alpha=0.13, linewidth=0, label="surrogate ±2 sd")
    axes.plot(rates, means, color=palette.forecast, linewidth=1.0, alpha=0.7)


def _legend_of_searches(figure: Figure, panel: Axes, palette: Palette) -> None:
    handles, labels = panel.get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper right", ncols=5, frameon=False, fontsize=8, labelcolor=palette.muted)


def _draw_bar(axes: Axes, parts: dict[str, float], labels: list[str], name: str, palette: Palette) -> None:
    colours = {
        "search": palette.forecast,
        "training": palette.train,
        "validation": palette.validation,
        "restoring": palette.restoring,
        "waiting": palette.probe,
    }
    begin = 0.0
    for (part, value), label in zip(parts.items(), labels, strict=True):
        axes.barh(0, value, left=begin, height=0.6, color=colours[part], edgecolor=palette.background, label=label)
        begin += value
    axes.set_xlim(0, begin or 1)
    axes.set_ylim(-0.9, 0.3)
    axes.set_axis_off()
    axes.text(-0.01, 0.75, name, transform=axes.transAxes, ha="right", va="center", fontsize=9, color=palette.muted)
    legend(axes, palette, loc="upper left", bbox_to_anchor=(0, 0.45), ncols=len(parts), borderpad=0, handlelength=0.8,
           handleheight=0.8, columnspacing=1.6)  # fmt: skip


def _loss_range(story: History) -> tuple[float, float]:
    """Room for every real loss and for the run's first; probes and forecasts worse than that may leave the picture."""
    real = [loss for segment in story.segments if segment.kind == "train" for loss in segment.losses]
    first = [segment.losses[0] for segment in story.segments[:1] if segment.losses]
    foreseen = [each.loss for stage in story.stages.values() for each in stage.forecasts if not each.diverged]
    return _padded([*real, *first, *(loss for loss in foreseen if loss < max([*real, *first], default=math.inf))])


def _search_range(stage: Stage) -> tuple[float, float]:
    seen = [each.loss for each in stage.forecasts if not each.diverged]
    ends = [probe.train_losses[-1] for probe in stage.probes if probe.train_losses]
    ceiling = 2 * max(seen, default=math.inf)
    return _padded([*seen, *(loss for loss in ends if loss < ceiling)])


def _padded(values: Sequence[float]) -> tuple[float, float]:
    finite = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
    room = 0.08 * (max(finite) - min(finite)) or 0.1
    return min(finite) - room, max(finite) + room


def _steps(segment: Segment) -> list[int]:
    return list(range(segment.start + 1, segment.end + 1))


def _smoothed(values: Sequence[float], reach: int) -> FloatArray:
    """Mean of each value and its finite neighbours up to `reach` away; NaN where there is none."""
    losses = np.asarray(values, dtype=float)
    finite = np.isfinite(losses)
    sums = np.concatenate(([0.0], np.cumsum(np.where(finite, losses, 0.0))))
    counts = np.concatenate(([0], np.cumsum(finite)))
    places = np.arange(len(losses))
    first, behind = np.maximum(places - reach, 0), np.minimum(places + reach + 1, len(losses))
    held = counts[behind] - counts[first]
    return np.where(held > 0, (sums[behind] - sums[first]) / np.maximum(held, 1), np.nan)


def _columns(points: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [point[0] for point in points], [point[1] for point in points]
