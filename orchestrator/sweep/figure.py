"""The figure of a sweep: each trial's loss in the order of trials, and which values go with low losses."""

import math
from collections.abc import Sequence
from itertools import accumulate

from orchestrator.recorders.style import Axes, Figure, Palette, dress, legend, new_figure
from orchestrator.run_state import RunState
from orchestrator.sweep.book import Trial, best_of
from orchestrator.sweep.space import Dimension, value_text

_HIGHEST = 0.9  # quantile of losses that is shown whole: few diverged trials would flatten all the others
_TICKS = 5


def sweep_figure(space: Sequence[Dimension], trials: Sequence[Trial], palette: Palette) -> Figure:
    """Left the loss by trial, right parallel coordinates; the best trial stands out."""
    figure = new_figure(palette, 11, 4.4, "Trials of the sweep")
    left, right = figure.subplots(1, 2, width_ratios=[2, 3])
    _losses(left, trials, palette)
    _coordinates(right, space, trials, palette)
    return figure


def _losses(axes: Axes, trials: Sequence[Trial], palette: Palette) -> None:
    dress(axes, palette, "trial", "validation loss")
    axes.xaxis.get_major_locator().set_params(integer=True)
    styles = {RunState.FINISHED: ("o", palette.train, "finished"), RunState.KILLED: ("v", palette.probe, "ended early")}
    for state, (marker, colour, label) in styles.items():
        shown = [trial for trial in trials if trial.state == state and trial.loss is not None]
        if shown:
            numbers, losses = [trial.number + 1 for trial in shown], [trial.loss for trial in shown]
            axes.plot(numbers, losses, marker, color=colour, markersize=5, label=label)
    finished = [trial for trial in trials if trial.state == RunState.FINISHED and trial.loss is not None]
    lowest = list(accumulate((trial.loss or 0.0 for trial in finished), min))
    numbers = [trial.number + 1 for trial in finished]
    axes.step(numbers, lowest, where="post", color=palette.validation, label="best so far")
    if finished:
        _cut(axes, [trial.loss for trial in trials if trial.loss is not None])
        legend(axes, palette, loc="upper right")


def _coordinates(axes: Axes, space: Sequence[Dimension], trials: Sequence[Trial], palette: Palette) -> None:
    dress(axes, palette)
    axes.grid(False)
    best = best_of(trials)
    ranked = sorted((trial for trial in trials if trial.state == RunState.FINISHED), key=_loss, reverse=True)
    for rank, trial in enumerate(ranked):
        is_best = best is not None and trial.number == best.number
        heights = [each.share(trial.values[each.key]) for each in space] + [_height(rank, len(ranked))]
        strength = 1.0 if is_best else 0.15 + 0.55 * rank / max(len(ranked), 1)
        colour = palette.validation if is_best else palette.train
        axes.plot(range(len(heights)), heights, color=colour, alpha=strength, linewidth=2.4 if is_best else 1.2)
    for place, each in enumerate(space):
        _axis(axes, place, each, palette)
    axes.set_xticks(range(len(space) + 1), [*(each.key for each in space), "rank of the loss\n(best on top)"])
    axes.set_yticks([])
    axes.set_ylim(-0.05, 1.05)


def _axis(axes: Axes, place: int, each: Dimension, palette: Palette) -> None:
    """A vertical line with the values that lie along it."""
    axes.axvline(place, color=palette.grid, linewidth=1.0, zorder=0)
    shares = [each.share(choice) for choice in each.choices] or [tick / (_TICKS - 1) for tick in range(_TICKS)]
    for share in shares:
        text = value_text(each.value(share))
        beside = {"xytext": (4, 0), "textcoords": "offset points", "fontsize": 7, "color": palette.muted}
        axes.annotate(text, (place, share), va="center", **beside)


def _loss(trial: Trial) -> float:
    return math.inf if trial.loss is None else trial.loss


def _height(rank: int, of: int) -> float:
    return rank / (of - 1) if of > 1 else 1.0


def _cut(axes: Axes, losses: Sequence[float]) -> None:
    """Leave the highest losses out of sight."""
    ordered = sorted(losses)
    low, high = ordered[0], ordered[min(int(_HIGHEST * len(ordered)), len(ordered) - 1)]
    margin = 0.08 * (high - low) or 0.05 * abs(high) or 1.0
    axes.set_ylim(low - margin, high + margin)
