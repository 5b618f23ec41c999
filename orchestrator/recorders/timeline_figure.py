"""The figure of an overlapped step: what each stream does when, in turn and overlapped, predicted and measured."""

from collections.abc import Sequence
from typing import Any

from orchestrator.events import OverlapPlanned
from orchestrator.recorders.style import Axes, Figure, Palette, dress, new_figure

_LANES = ("compute", "memory", "network")
_THICK = 0.72
_AXIS = "milliseconds since the step began; what comes after its last backward pass runs beside the next step"
_PARTS = {"forward": "forward", "passes": "forward", "backward": "backward", "update": "memory"}  # others: by stream


def timelines(event: OverlapPlanned, palette: Palette) -> Figure:
    """A panel a timeline, all on one axis of milliseconds; every second operation of a lane is paler."""
    figure = new_figure(palette, 10, 0.9 + 1.25 * len(event.timelines), "A training step")
    panels = figure.subplots(len(event.timelines), 1, sharex=True, squeeze=False).flatten()
    for panel, (title, rows) in zip(panels, event.timelines.items(), strict=True):
        dress(panel, palette, _AXIS if panel is panels[-1] else "")
        _draw(panel, title, rows, palette)
    panels[0].set_xlim(0, 1000 * max((end for rows in event.timelines.values() for *_, end in rows), default=1.0))
    _explain(figure, palette)
    return figure


def _draw(axes: Axes, title: str, rows: Sequence[Sequence[Any]], palette: Palette) -> None:
    for height, stream in enumerate(reversed(_LANES)):
        own = [row for row in rows if row[0] == stream]
        for number, (_, name, begin, end) in enumerate(own):
            axes.barh(height, 1000 * (end - begin), left=1000 * begin, height=_THICK, linewidth=0,
                      color=_colour(stream, name, palette), alpha=0.62 if number % 2 else 1.0)  # fmt: skip
    axes.set_yticks(range(len(_LANES)), reversed(_LANES))
    axes.set_ylim(-0.6, len(_LANES) - 0.4)
    axes.grid(False, axis="y")
    axes.set_title(title, fontsize=9, color=palette.text, loc="left")


def _colour(stream: str, name: str, palette: Palette) -> str:
    colours = {
        "forward": palette.forecast,
        "backward": palette.train,
        "compute": palette.probe,
        "memory": palette.validation,
        "network": palette.restoring,
    }
    return colours[_PARTS.get(name.split()[0], stream)]


def _explain(figure: Figure, palette: Palette) -> None:
    from matplotlib.patches import Patch

    words = {"forward": "forward", "backward": "backward", "memory": "optimizer", "network": "sum over ranks"}
    handles = [Patch(color=_colour(key, key, palette), label=label) for key, label in words.items()]
    figure.legend(handles=handles, loc="upper right", ncols=len(handles), frameon=False, fontsize=8,
                  labelcolor=palette.muted)  # fmt: skip
