"""The figure of the closed-loop benchmark: validation loss against wall-clock time of all arms, a panel a case.

python scripts/closed_loop_figure.py closed-loop.json docs/images/closed-loop.png
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from benchmark_parts.closed_loop.cases import ALL, NONE, WITHOUT
from benchmark_parts.closed_loop.summary import PLAIN, MissedError, best_peak
from matplotlib import pyplot
from matplotlib.axes import Axes

Row = dict[str, Any]
COLOURS = {ALL.name: "tab:blue", NONE.name: "tab:orange"} | dict(
    zip(
        (arm.name for arm in WITHOUT.values()),
        ("tab:green", "tab:purple", "tab:olive", "tab:brown", "tab:pink"),
        strict=True,
    )
)
LABELS = {ALL.name: "decide=all optimizer=muon", NONE.name: "decide=none"}
GREYS = ("0.8", "0.65", "0.5", "0.3")  # of the peaks, rising
POINTS = 200


def main(source: Path, target: Path) -> None:
    """Draw the rows of the lab that the benchmark's file holds."""
    rows = [row for row in json.loads(source.read_text())["rows"] if row["part"] == "lab" and row["curve_losses"]]
    cases = list(dict.fromkeys(row["case"] for row in rows))
    figure, panels = pyplot.subplots(1, len(cases), figsize=(5.5 * len(cases), 4.2), squeeze=False)
    for panel, case in zip(panels[0], cases, strict=True):
        _panel(panel, case, [row for row in rows if row["case"] == case])
    panels[0][0].set_ylabel("validation loss")
    handles = {
        label: handle for panel in panels[0] for handle, label in zip(*panel.get_legend_handles_labels(), strict=True)
    }
    figure.legend(handles.values(), handles.keys(), loc="lower center", ncols=5, frameon=False, fontsize=8)
    figure.tight_layout(rect=(0, 0.1, 1, 1))
    figure.savefig(target, dpi=110)


def _panel(panel: Axes, case: str, rows: Sequence[Row]) -> None:
    """One case; the dotted line is the mean loss to reach."""
    plain = [arm for arm in dict.fromkeys(row["arm"] for row in rows) if arm.startswith(PLAIN)]
    colours = dict(zip(plain, GREYS, strict=False)) | COLOURS
    for arm in dict.fromkeys(row["arm"] for row in rows):
        _arm(panel, [row for row in rows if row["arm"] == arm], colours[arm])
    if (target := _target(rows)) is not None:
        panel.axhline(target, color="black", lw=0.8, ls=":", label="what the best peak ends with")
    panel.set(title=case, xlabel="seconds since the launch", yscale="log", xlim=(0, None))
    panel.yaxis.set_major_formatter("{x:g}")
    panel.yaxis.set_minor_formatter("{x:g}")


def _arm(panel: Axes, rows: Sequence[Row], colour: str) -> None:
    """Each seed thin, and their median loss at each time at which all of them have one."""
    name = rows[0]["arm"]
    label = f"plain DDP, peak {name.removeprefix(PLAIN)}" if name.startswith(PLAIN) else LABELS.get(name, name)
    for row in rows:
        panel.plot(row["curve_seconds"], row["curve_losses"], color=colour, lw=0.6, alpha=0.6)
    begin, end = max(row["curve_seconds"][0] for row in rows), min(row["curve_seconds"][-1] for row in rows)
    times = np.linspace(begin, end, POINTS)
    middle = np.median([np.interp(times, row["curve_seconds"], row["curve_losses"]) for row in rows], axis=0)
    panel.plot(times, middle, color=colour, lw=2.2 if name == ALL.name else 1.5, label=label)


def _target(rows: Sequence[Row]) -> float | None:
    try:
        best = best_peak(rows)
    except MissedError:
        return None
    return float(np.mean([row["loss"] for row in rows if row["arm"] == best]))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
