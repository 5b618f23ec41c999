"""Feeds the readers of files and words from strangers with inputs near valid ones, and counts what they stand.

    python scripts/fuzz.py --inputs 100000 --seed 1
    python scripts/fuzz.py "plan file" journal --minutes 5

An input is a defect if reading it raises anything but a refusal in one sentence, takes more than 5 s of computing or
1 GB of memory, writes outside the folder it was given, starts a process, connects, or unpickles. Exit status 1 for
defects.
"""

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from fuzz_parts.targets import TARGETS
from fuzz_parts.watching import bound_memory, defect

ROW = "{:28} {:>9} {:>8} {:>8}"


def main() -> int:
    """Fuzz the targets one after another; a row each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", default=list(TARGETS), metavar="TARGET", help=", ".join(TARGETS))
    parser.add_argument("--inputs", type=int, default=100_000, help="of each target (default 100000)")
    parser.add_argument("--minutes", type=float, default=60.0, help="of each target at most (default 60)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="a folder for the first input of each defect")
    options = parser.parse_args()
    if unknown := set(options.targets) - set(TARGETS):
        parser.error(f"there is no target {', '.join(unknown)}")
    bound_memory()
    print(ROW.format("target", "inputs", "defects", "minutes"), flush=True)
    defects = [fuzz(name, options) for name in options.targets]
    return 1 if any(defects) else 0


def fuzz(name: str, options: argparse.Namespace) -> int:
    """One target; how many inputs were defects."""
    target, rng = TARGETS[name], random.Random(f"{options.seed} {name}")
    found: Counter[str] = Counter()
    begin, count = time.monotonic(), 0
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        while count < options.inputs and time.monotonic() - begin < options.minutes * 60:
            data, count = target.make(rng), count + 1
            fault = defect(lambda data=data: target.read(data, Path(folder)), target.refusals, Path(folder))
            if fault:
                found[fault] += 1
                _keep(options.keep, name, found, fault, data)
    minutes = (time.monotonic() - begin) / 60
    print(ROW.format(name, f"{count:,}", sum(found.values()), f"{minutes:.1f}"), flush=True)
    for fault, times in found.most_common(20):
        print(f"    {times} × {fault}", flush=True)
    return sum(found.values())


def _keep(folder: Path | None, name: str, found: Counter[str], fault: str, data: bytes) -> None:
    if folder is not None and found[fault] == 1:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name.replace(' ', '-').replace('/', '-')}-{len(found)}").write_bytes(data)


if __name__ == "__main__":
    sys.exit(main())
