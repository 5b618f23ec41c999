"""From the learning-rate benchmark's file to its tables in Markdown, printed, and its figure.

python scripts/learning_rate_report.py learning-rate.json docs/images/learning-rate.png
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from benchmark_parts.learning_rate.figure import draw
from benchmark_parts.learning_rate.summary import Results
from benchmark_parts.learning_rate.table import brief, markdown


def main() -> None:
    """Report what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measurements", type=Path)
    parser.add_argument("figure", type=Path)
    options = parser.parse_args()
    rows = json.loads(options.measurements.read_text())["rows"]
    parts = {part: Results([row for row in rows if row["part"] == part]) for part in ("usual", "long")}
    print(*(table(part) for table in (brief, markdown) for part in parts.values()), sep="\n\n")
    draw(parts["usual"], options.figure)


if __name__ == "__main__":
    main()
