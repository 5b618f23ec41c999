"""Runs one benchmark, prints its table and writes what it measured.

    python scripts/bench.py forest --json forest.json
    python scripts/bench.py forest --json forest.json --quick

A benchmark is a module of scripts/benchmarks with `run(quick) -> (rows, summary)`: rows keep every sample, the summary
is worked out from them. The file written holds name, machine, rows and summary.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

FOLDER = Path(__file__).parent / "benchmarks"


def main() -> None:
    """Run the benchmark that the command line names."""
    names = sorted(path.stem.replace("_", "-") for path in FOLDER.glob("*.py"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--json", required=True, type=Path, metavar="FILE", help="where to write the measurements")
    parser.add_argument("--quick", action="store_true", help="end within a minute or two, with fewer and smaller cases")
    options = parser.parse_args()
    rows, summary = import_module(f"benchmarks.{options.name.replace('-', '_')}").run(options.quick)
    print_table(options.name, rows)
    result = {"name": options.name, "machine": machine(), "rows": rows, "summary": summary}
    options.json.write_text(json.dumps(result, indent=1) + "\n")
    print(f"wrote {options.json}")


def machine() -> dict[str, Any]:
    """What the numbers were measured on."""
    from trainers.overlap.machine import processor

    return {
        "processor": processor(),
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
    }


def print_table(name: str, rows: list[dict[str, Any]]) -> None:
    """A column a key; samples are shown by their median."""
    lines = [[key.replace("_", " ") for key in rows[0]], *([_shown(value) for value in row.values()] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    print(name)
    for line in lines:
        print("  ".join(word.rjust(width) for word, width in zip(line, widths, strict=True)))


def _shown(value: Any) -> str:
    if isinstance(value, list) and value and all(isinstance(each, int | float) for each in value):
        value = median(value)
    if isinstance(value, float):
        return f"{value:.4g}"
    return "" if value is None else str(value)


if __name__ == "__main__":
    main()
