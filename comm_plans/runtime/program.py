"""What one rank does in one collective: the pure data that every transport carries out.

A program holds a part for every tree. A part needs no list of steps: whatever arrives from the reduce children is
added in their order to what the rank holds, the sum goes to the reduce parent, at the root it turns round, and what
comes from the broadcast parent goes on to the broadcast children; all of it piece by piece, as the pieces arrive.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from comm_plans.errors import PlansError

GIGA = 10**9
SHARDED = ("all_gather", "reduce_scatter")
REDUCING = ("all_reduce", "reduce_scatter", "reduce")
FEWEST_BYTES, MOST_BYTES = 8 << 10, 128 << 10  # smaller chunks cost more work than they save time, larger ones no less
CHUNKS_A_LEVEL = 128  # filling the pipeline then adds less than one per cent for large buffers


@dataclass(frozen=True)
class TreePart:
    """One rank's part in one tree.

    The tree carries `[start, start + share)` of what it is cut from: the shard of its root in an all_gather or
    reduce_scatter, else the whole buffer. `rate` is what each of its edges is planned to carry, in GB/s; `levels`
    counts the rank-to-rank hops that the first byte makes one after the other. Parents and children are ranks;
    children are added up in the order given.
    """

    index: int
    root: int
    start: Fraction
    share: Fraction
    rate: Fraction
    levels: int
    reduce_children: tuple[int, ...]
    reduce_parent: int | None
    broadcast_parent: int | None
    broadcast_children: tuple[int, ...]


@dataclass(frozen=True)
class RankProgram:
    """One rank's part in one collective of one plan.

    `algbw` is the plan's, in GB/s of the full buffer. `digest` is equal exactly where ranks follow the same plan.
    """

    collective: str
    root: int | None
    rank: int
    world_size: int
    algbw: Fraction
    digest: str
    trees: tuple[TreePart, ...]

    def __hash__(self) -> int:
        return hash((self.digest, self.rank))

    def piece(self, tree: TreePart, elements: int) -> tuple[int, int]:
        """Elements `[low, high)` of a full buffer of `elements` that the tree carries; the trees tile it exactly.

        Raises PlansError where the collective shares the buffer out and `elements` is no multiple of the world size.
        """
        if self.collective not in SHARDED:
            return int(tree.start * elements), int((tree.start + tree.share) * elements)
        shard, rest = divmod(elements, self.world_size)
        if rest:
            raise PlansError(
                f"{self.collective} of {elements} elements among {self.world_size} ranks leaves {rest} over; "
                f"give a multiple of {self.world_size}"
            )
        first = tree.root * shard
        return first + int(tree.start * shard), first + int((tree.start + tree.share) * shard)

    def chunk_bytes(self, tree: TreePart, size_bytes: int) -> int:
        """How many bytes of a full buffer of `size_bytes` move along the tree at a time; equal on all ranks.

        A multiple of 16, so that no element of any type is cut.
        """
        wanted = self._carried(tree, size_bytes) // (CHUNKS_A_LEVEL * max(1, tree.levels - 1))
        return min(max(wanted, FEWEST_BYTES), MOST_BYTES) & ~15

    def seconds(self, size_bytes: int) -> float:
        """Predicted time of a full buffer of `size_bytes`: all bytes at `algbw`, and filling the slowest pipeline."""
        filling = max(self._filling(tree, size_bytes) for tree in self.trees)
        return float((size_bytes / self.algbw + filling) / GIGA)

    def _filling(self, tree: TreePart, size_bytes: int) -> Fraction:
        """Nanoseconds from the first byte's departure to its last arrival, but for its first hop."""
        chunk = min(self.chunk_bytes(tree, size_bytes), self._carried(tree, size_bytes))
        return (tree.levels - 1) * chunk / tree.rate

    def _carried(self, tree: TreePart, size_bytes: int) -> int:
        return int(tree.rate / self.algbw * size_bytes)
