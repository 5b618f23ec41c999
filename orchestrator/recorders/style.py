"""How figures look: one palette for light pages and one for dark ones, thin lines, no boxes.

matplotlib is imported when the first figure is made, not before.
"""

from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

Figure = Any  # matplotlib.figure.Figure
Axes = Any  # matplotlib.axes.Axes

_DPI = 160
_DECADES = 5


@dataclass(frozen=True)
class Palette:
    """The colours of one theme."""

    background: str
    text: str
    muted: str
    grid: str
    shade: str
    train: str
    validation: str
    probe: str
    forecast: str
    restoring: str
    runs: tuple[str, ...]  # one a run, in comparisons


LIGHT = Palette(
    background="#ffffff",
    text="#1d2733",
    muted="#66727f",
    grid="#e8ebef",
    shade="#f1f3f6",
    train="#1f6fb5",
    validation="#d9730d",
    probe="#a3adb8",
    forecast="#7b4fc4",
    restoring="#2a9d8f",
    runs=("#1f6fb5", "#d9730d", "#2a9d8f", "#c43d6b", "#7b4fc4", "#8a6d1f", "#4d5b69"),
)
DARK = Palette(
    background="#14181d",
    text="#e7ebef",
    muted="#98a4b0",
    grid="#272e36",
    shade="#1e242b",
    train="#6cb2f5",
    validation="#f3a55b",
    probe="#6f7c89",
    forecast="#b79cf7",
    restoring="#5fcfc0",
    runs=("#6cb2f5", "#f3a55b", "#5fcfc0", "#f07ba4", "#b79cf7", "#d8bd6a", "#a9b5c1"),
)


def new_figure(palette: Palette, width: float, height: float, title: str) -> Figure:
    """An empty figure, sizes in inches, with its title at the upper left."""
    from matplotlib.figure import Figure as MatplotlibFigure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    layout = ConstrainedLayoutEngine(h_pad=0.06, w_pad=0.08)
    figure = MatplotlibFigure(figsize=(width, height), layout=layout, facecolor=palette.background)
    figure.suptitle(title, x=0.012, ha="left", fontsize=12, fontweight="bold", color=palette.text)
    return figure


def dress(axes: Axes, palette: Palette, x_label: str = "", y_label: str = "") -> None:
    """Give axes the common look: a faint grid, no frame, small labels."""
    axes.set_facecolor(palette.background)
    axes.set_xlabel(x_label, fontsize=9, color=palette.muted)
    axes.set_ylabel(y_label, fontsize=9, color=palette.muted)
    axes.tick_params(which="both", length=0, labelsize=8, labelcolor=palette.muted)
    axes.grid(True, color=palette.grid, linewidth=0.8)
    axes.set_axisbelow(True)
    for spine in axes.spines.values():
        spine.set_visible(False)


def logarithmic(axes: Axes, axis: Literal["x", "y"]) -> None:
    """A log scale with ticks at whole decades; the others cannot be seen here but take time to draw."""
    axes.set(**{f"{axis}scale": "log"})
    axes.tick_params(axis=axis, which="minor", length=0)
    getattr(axes, f"{axis}axis").minorticks_off()


def cut_decades(axes: Axes) -> None:
    """Let a logarithmic y axis show the upper decades only: a rate that decays to nothing would take it all."""
    low, high = axes.get_ylim()
    axes.set_ylim(bottom=max(low, high * 10**-_DECADES))


def legend(axes: Axes, palette: Palette, **options: Any) -> None:
    """A frameless legend in the palette's colours."""
    axes.legend(frameon=False, fontsize=8, labelcolor=palette.muted, **options)


def png(figure: Figure) -> bytes:
    """The figure as a PNG file's bytes, the same for the same figure."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    buffer = BytesIO()
    FigureCanvasAgg(figure).print_figure(
        buffer, dpi=_DPI, facecolor=figure.get_facecolor(), metadata={"Software": None}
    )
    return buffer.getvalue()


def save_png(figure: Figure, path: Path) -> None:
    """Write the figure, making its folder if need be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(png(figure))
