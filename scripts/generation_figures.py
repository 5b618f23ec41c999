"""From the generation benchmark's file to its two figures.

python scripts/generation_figures.py generation.json docs/images
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from benchmark_parts.generation.figures import draw_mass, draw_times


def main() -> None:
    """Draw what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measurements", type=Path)
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    rows = json.loads(options.measurements.read_text())["rows"]
    draw_mass(rows, options.folder / "attention-mass.png")
    draw_times(rows, options.folder / "attention-time.png")


if __name__ == "__main__":
    main()
