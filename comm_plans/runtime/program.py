"""What one rank does in one collective: the pure data that every transport carries out.

A program holds a part for every tree. A part needs no list of steps: whatever arrives from the reduce children is
added in their order to what the rank holds, the sum goes to the reduce parent, at the root it turns round, and what
comes from the broadcast parent goes on to the broadcast children; all of it piece by piece, as the pieces arrive.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from comm_plans.errors import PlansError
from comm_plans.streaming import GIGA, chunk_bytes, filling_seconds

SHARDED = ("all_gather", "reduce_scatter")


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
        """How many bytes of a full buffer of `size_bytes` move along the tree at a time; equal on all ranks."""
        return chunk_bytes(self._carried(tree, size_bytes), tree.levels)

    def seconds(self, size_bytes: int) -> float:
        """Predicted time of a full buffer of `size_bytes`, as `streamed_seconds` gives it for the plan."""
        filling = (filling_seconds(each.rate, each.levels, self._carried(each, size_bytes)) for each in self.trees)
        return float(size_bytes / self.algbw / GIGA) + max(filling)

    def _carried(self, tree: TreePart, size_bytes: int) -> int:
        return int(tree.rate / self.algbw * size_bytes)
