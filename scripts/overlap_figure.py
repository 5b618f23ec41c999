"""The timeline of a serving layer: one operation after another, and overlapped as searched.

python scripts/overlap_figure.py docs/images/overlap-timeline.svg
"""

from __future__ import annotations

import sys
from pathlib import Path

from benchmark_parts.overlap.published import LAYER_SECONDS, PIPELINES, PROMPTS_FROM, TOKENS

from trainers.overlap.interference import PUBLISHED
from trainers.overlap.layer_search import LayerSearch
from trainers.overlap.search import serial_plan
from trainers.overlap.serving import layer
from trainers.overlap.timeline import Lanes, predicted, svg

INFLATION = 0.1


def main(target: Path) -> None:
    """Two layers one after another, and as many as are overlapped in that time."""
    search = LayerSearch(layer(TOKENS, PROMPTS_FROM), LAYER_SECONDS, PUBLISHED, INFLATION)
    serial = serial_plan(search.whole, LAYER_SECONDS)
    overlapped = search.planned(PIPELINES["70B, 2048 tokens"]).plan
    until = 2 * serial.period_seconds
    each = f"{serial.period_seconds * 1e3:.2f}", f"{overlapped.period_seconds * 1e3:.2f}"
    pictures = [
        Lanes(f"One after another: {each[0]} ms a layer", predicted(serial, until)),
        Lanes(f"Overlapped as searched: {each[1]} ms a layer", predicted(overlapped, until)),
    ]
    target.write_text(svg(pictures, until))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
