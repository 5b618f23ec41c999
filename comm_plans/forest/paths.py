"""Logical trees led back to physical links: every logical arc becomes paths through the switches it replaced.

One logical arc may need several physical paths; a batch of trees is then split so that each part has one path per
edge. Recorded amounts are consumed, so no physical link is used beyond its capacity (ForestColl).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from comm_plans.forest.bold_trees import TreeBatch
from comm_plans.forest.switch_removal import Splits

Path = tuple[int, ...]
Portion = tuple[int, Path]


@dataclass(frozen=True)
class PathBatch:
    """`multiplicity` equal trees from `root`; one physical path per edge, parents before children."""

    root: int
    multiplicity: int
    paths: tuple[Path, ...]


def physical_batches(batches: Sequence[TreeBatch], splits: Splits) -> list[PathBatch]:
    """The batches over physical paths; total multiplicities per root stay as they are."""
    through = {arc: dict(amounts) for arc, amounts in splits.through.items()}
    result = []
    for batch in batches:
        edges = [_portions(parent, node, batch.multiplicity, through) for node, parent in batch.parents.items()]
        result += [PathBatch(batch.root, amount, paths) for amount, paths in _aligned(batch.multiplicity, edges)]
    return result


def _portions(u: int, t: int, amount: int, through: dict[tuple[int, int], dict[int, int]]) -> list[Portion]:
    """`amount` units of the logical arc u→t as physical paths; what no switch carried is the link itself."""
    portions: list[Portion] = []
    recorded = through.get((u, t), {})
    while amount and recorded:
        switch = min(recorded)
        part = min(amount, recorded[switch])
        recorded[switch] -= part
        if recorded[switch] == 0:
            del recorded[switch]
        halves = [_portions(u, switch, part, through), _portions(switch, t, part, through)]
        portions += [(share, _joined(first, second)) for share, (first, second) in _aligned(part, halves)]
        amount -= part
    if amount:
        portions.append((amount, (u, t)))
    return portions


def _joined(first: Path, second: Path) -> Path:
    """One path after the other; a loop that meets the first path again is cut out."""
    path = first
    for node in second[1:]:
        path = path[: path.index(node) + 1] if node in path else (*path, node)
    return path


def _aligned(total: int, columns: Sequence[Sequence[Portion]]) -> list[tuple[int, tuple[Path, ...]]]:
    """Cut [0, total) wherever any column changes its path; one row of paths per piece."""
    if all(len(column) == 1 for column in columns):
        return [(total, tuple(column[0][1] for column in columns))]
    position, taken = [0] * len(columns), [0] * len(columns)
    rows, done = [], 0
    while done < total:
        piece = min(column[p][0] - t for column, p, t in zip(columns, position, taken, strict=True))
        rows.append((piece, tuple(column[p][1] for column, p in zip(columns, position, strict=True))))
        done += piece
        for index, column in enumerate(columns):
            taken[index] += piece
            if taken[index] == column[position[index]][0]:
                position[index] += 1
                taken[index] = 0
    return rows
