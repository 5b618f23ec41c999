"""One process of many on one plan cache: looks plans up, keeps them, verifies and prunes, until it is killed.

python planner.py FOLDER SEED
"""

import random
import sys
from pathlib import Path

from comm_plans import PlanCache, Topology, solve

COLLECTIVES = ("all_gather", "reduce_scatter", "all_reduce")


def main(folder: Path, seed: int) -> None:
    """A byte in a file of its own for each turn; an error ends it with what was wrong."""
    rng, cache = random.Random(seed), PlanCache(folder / "plans")
    rings = [_ring(size) for size in (3, 4, 5)]
    best = {(ring.name, each): solve(ring, each) for ring in rings for each in COLLECTIVES}
    with (folder / f"turns-{seed}").open("ab", buffering=0) as turns:
        while True:
            ring, collective = rng.choice(rings), rng.choice(COLLECTIVES)
            found = cache.get(ring, collective)
            if found is not None and found.algbw != best[ring.name, collective].algbw:
                raise SystemExit(f"{ring.name} {collective}: {found.algbw} is not what was kept")
            if found is None or rng.random() < 0.2:
                cache.put(best[ring.name, collective])
            if rng.random() < 0.05:
                cache.prune()
            if any(entry.fault for entry in cache.entries()):
                raise SystemExit("an entry is broken")
            turns.write(b".")


def _ring(size: int) -> Topology:
    names = [f"g{rank}" for rank in range(size)]
    cables = [[names[rank], names[(rank + 1) % size], 25] for rank in range(size)]
    return Topology.from_document({"name": f"ring{size}", "ranks": names, "cables": cables})


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
