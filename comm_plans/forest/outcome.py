"""What a solver of one collective hands to `solve`: trees, and the proof of how good they are."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from comm_plans.forest.optimum import Arc
from comm_plans.forest.paths import PathBatch
from comm_plans.plan import Tree


@dataclass(frozen=True)
class Outcome:
    """Trees of a collective; `optimum` is the best algbw in GB/s that any plan can reach on the network (or a bound),
    `cut` the nodes on the sending side of the cut that limits it, `trees_per_rank` counts equal trees one by one."""

    trees: tuple[Tree, ...]
    shards: tuple[Fraction, ...]
    optimum: Fraction
    cut: tuple[int, ...]
    trees_per_rank: int | None


def broadcast_trees(batches: Iterable[PathBatch], unit: Fraction, starts: Sequence[Fraction]) -> tuple[Tree, ...]:
    """Trees that each carry `multiplicity · unit` of the buffer, laid one after the other from `starts[root]` on."""
    position, trees = list(starts), []
    for batch in batches:
        share = batch.multiplicity * unit
        trees.append(Tree("broadcast", batch.root, position[batch.root], share, batch.paths))
        position[batch.root] += share
    return tuple(trees)


def played_backwards(
    gather: Callable[[Mapping[Arc, Fraction]], Outcome], bandwidths: Mapping[Arc, Fraction], nodes: int
) -> Outcome:
    """The reduce_scatter that mirrors an all_gather: `gather` on the network with every link reversed, undone."""
    mirror = gather({(v, u): bandwidth for (u, v), bandwidth in bandwidths.items()})
    senders = tuple(node for node in range(nodes) if node not in mirror.cut)
    return Outcome(reversed_trees(mirror.trees), mirror.shards, mirror.optimum, senders, mirror.trees_per_rank)


def reversed_trees(trees: Iterable[Tree]) -> tuple[Tree, ...]:
    """The same trees with every link reversed: a broadcast becomes the reduction that mirrors it."""
    return tuple(
        Tree("reduce", tree.root, tree.start, tree.share, tuple(path[::-1] for path in reversed(tree.paths)))
        for tree in trees
    )


def reached_algbw(bandwidths: Mapping[Arc, Fraction], trees: Iterable[Tree]) -> Fraction:
    """algbw in GB/s of fully pipelined trees: 1 / the longest time that a link needs for all that crosses it."""
    crossings: dict[tuple[int, ...], Fraction] = {}
    for share, paths in _by_share(trees).items():
        for path, times in paths.items():
            crossings[path] = crossings.get(path, Fraction(0)) + times * share
    loads: dict[Arc, Fraction] = dict.fromkeys(bandwidths, Fraction(0))
    for path, amount in crossings.items():
        for link in pairwise(path):
            loads[link] += amount
    return 1 / max(loads[link] / bandwidth for link, bandwidth in bandwidths.items())


def _by_share(trees: Iterable[Tree]) -> dict[Fraction, dict[tuple[int, ...], int]]:
    """How often each path is used by trees of each share: few shares and few paths, however many trees."""
    counts: dict[Fraction, dict[tuple[int, ...], int]] = {}
    for tree in trees:
        times = counts.setdefault(tree.share, {})
        for path in tree.paths:
            times[path] = times.get(path, 0) + 1
    return counts
