"""What the orchestrator carries: long journals, many points, many runs and one plan cache at once.

    python scripts/load.py journal --steps 10000
    python scripts/load.py points --points 1000000
    python scripts/load.py cache --processes 8 --seconds 20
    python scripts/load.py runs --runs 8
    python scripts/load.py sweep --runs 200
    python scripts/load.py trials --trials 200 --kills 3

Prints one line of JSON: what was carried and the seconds of each part, beside the machine's load.
"""

import argparse
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from load_parts.files import carry_cache, carry_journal, carry_points
from load_parts.sweeping import carry_trials
from load_parts.training import carry_runs, carry_sweep

Json = dict[str, object]
PARTS: dict[str, tuple[Callable[[Path, argparse.Namespace], Json], dict[str, int]]] = {
    "journal": (carry_journal, {"steps": 10_000}),
    "points": (carry_points, {"points": 1_000_000}),
    "cache": (carry_cache, {"processes": 8, "seconds": 20}),
    "runs": (carry_runs, {"runs": 8}),
    "sweep": (carry_sweep, {"runs": 200}),
    "trials": (carry_trials, {"trials": 200, "kills": 3}),
}


def main() -> None:
    """Carry one load."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(required=True, dest="part", metavar="PART")
    for name, (_, sizes) in PARTS.items():
        part = parts.add_parser(name)
        for size, usual in sizes.items():
            part.add_argument(f"--{size}", type=int, default=usual, help=f"default {usual}")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="load-") as folder:
        carried = PARTS[options.part][0](Path(folder), options)
    print(json.dumps({**vars(options), **carried, "load": round(os.getloadavg()[0], 1)}))


if __name__ == "__main__":
    main()
