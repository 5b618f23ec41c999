"""What moves where and in which order: the one data type that every collective's plan is, and its JSON form."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

from comm_plans.errors import PlanError, TopologyError
from comm_plans.exact import exact
from comm_plans.files import write_atomically
from comm_plans.topology import Topology

FORMAT = "comm-plan"
VERSION = 1
SOLVER_VERSION = 1
COLLECTIVES = ("all_gather", "reduce_scatter", "all_reduce", "broadcast", "reduce")


@dataclass(frozen=True)
class Tree:
    """One spanning tree and the part `[start, start + share)` of the collective's full buffer (size 1) that it carries.

    A `broadcast` tree sends from its root to every rank, parents before children; a `reduce` tree adds up towards its
    root, children before parents. Each path is one edge of the tree: node indices from sender to receiver with only
    forwarding switches between. `steps`, where given, is the synchronous step in which each edge is used.
    """

    operation: str
    root: int
    start: Fraction
    share: Fraction
    paths: tuple[tuple[int, ...], ...]
    steps: tuple[int, ...] | None = None

    def depth(self, ranks: int) -> int:
        """Rank-to-rank hops between the root and the farthest rank, of which there are `ranks` in the network."""
        broadcast = self.operation == "broadcast"
        depths = {self.root: 0}
        for path in self.paths if broadcast else reversed(self.paths):
            parent, child = (path[0], path[-1]) if broadcast else (path[-1], path[0])
            depths[child] = depths[parent] + (child < ranks)
        return max(depths.values())


@dataclass(frozen=True)
class Plan:
    """A collective on a network, as trees.

    `algbw` is in GB/s of the full buffer (nccl-tests' definition); `optimum` is the most that any plan could reach, or
    the best upper bound known where `optimal` is false; `bottleneck` names the nodes on one side of the tight cut.
    `shards` is the part of the full buffer that each rank contributes (all_gather) or ends with (reduce_scatter).
    """

    collective: str
    topology: Topology
    trees: tuple[Tree, ...]
    shards: tuple[Fraction, ...]
    algbw: Fraction
    optimal: bool
    optimum: Fraction
    bottleneck: tuple[str, ...] = ()
    trees_per_rank: int | None = None
    method: str = "forest"
    root: int | None = None
    solver_version: int = SOLVER_VERSION
    solve_seconds: float = 0.0

    @cached_property
    def depth(self) -> int:
        """Rank-to-rank hops of the deepest tree."""
        return max(tree.depth(len(self.topology.ranks)) for tree in self.trees)

    def to_document(self) -> dict[str, Any]:
        """Give the JSON form that docs/plan-format.md describes."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "collective": self.collective,
            "root": self.root,
            "topology": self.topology.to_document(),
            "nodes": list(self.topology.nodes),
            "shards": [str(shard) for shard in self.shards],
            "trees": [_tree_document(tree) for tree in self.trees],
            "algbw": str(self.algbw),
            "optimal": self.optimal,
            "optimum": str(self.optimum),
            "bottleneck": list(self.bottleneck),
            "trees_per_rank": self.trees_per_rank,
            "method": self.method,
            "solver_version": self.solver_version,
            "solve_seconds": self.solve_seconds,
        }

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> Plan:
        """Verify a plan's JSON form and build the plan from it. Raises PlanError where it is not what it claims."""
        from comm_plans.verifier import verify

        verify(document)
        return cls(
            collective=document["collective"],
            topology=_topology(document),
            trees=tuple(_tree(tree) for tree in document["trees"]),
            shards=tuple(exact(shard) for shard in document["shards"]),
            algbw=exact(document["algbw"]),
            optimal=document["optimal"],
            optimum=exact(document["optimum"]),
            bottleneck=tuple(document["bottleneck"]),
            trees_per_rank=document.get("trees_per_rank"),
            method=document["method"],
            root=document.get("root"),
            solver_version=document["solver_version"],
            solve_seconds=document["solve_seconds"],
        )

    def save(self, path: str | Path) -> None:
        """Write the plan's JSON form to a file, whole or not at all."""
        write_atomically(Path(path), json.dumps(self.to_document(), separators=(",", ":")).encode())

    @classmethod
    def load(cls, path: str | Path) -> Plan:
        """Read and verify a plan file. Raises PlanError where it is missing, no plan, or not what it claims."""
        return cls.from_document(read_document(Path(path)))

    def relabelled(self, topology: Topology, mapping: Sequence[int]) -> Plan:
        """Move the plan to `topology`, whose node `mapping[i]` plays the part of node `i` here.

        Names and numbers change, `algbw` and `optimum` are kept; the caller answers for the two networks being alike.
        """
        ranks = len(self.shards)
        shards = [Fraction(0)] * ranks
        for rank, shard in enumerate(self.shards):
            shards[mapping[rank]] = shard
        moves = _shifts(self.collective, self.shards, shards, mapping)
        return replace(
            self,
            topology=topology,
            shards=tuple(shards),
            trees=tuple(_moved(tree, mapping, moves[tree.root]) for tree in self.trees),
            bottleneck=tuple(topology.nodes[mapping[self.topology.index(name)]] for name in self.bottleneck),
            root=None if self.root is None else mapping[self.root],
        )


def read_document(path: Path) -> dict[str, Any]:
    """Read the JSON form of a plan from a file without judging it. Raises PlanError where there is none."""
    try:
        document = json.loads(path.read_bytes())
    except OSError as error:
        raise PlanError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise PlanError(f"{path} is no plan: it does not hold JSON ({str(error)[:80]})") from error
    if not isinstance(document, dict):
        raise PlanError(f"{path} is no plan: its JSON is not an object")
    return document


def shard_starts(shards: Sequence[Fraction]) -> tuple[Fraction, ...]:
    """Where each rank's shard begins in the full buffer of size 1."""
    return (Fraction(0), *accumulate(shards))[: len(shards)]


def _shifts(
    collective: str, before: Sequence[Fraction], after: Sequence[Fraction], mapping: Sequence[int]
) -> list[Fraction]:
    """How far the shard of each rank moves within the buffer when ranks are renumbered."""
    if collective not in ("all_gather", "reduce_scatter"):
        return [Fraction(0)] * len(before)
    old, new = shard_starts(before), shard_starts(after)
    return [new[mapping[rank]] - old[rank] for rank in range(len(before))]


def _moved(tree: Tree, mapping: Sequence[int], shift: Fraction) -> Tree:
    paths = tuple(tuple(mapping[node] for node in path) for path in tree.paths)
    return replace(tree, root=mapping[tree.root], start=tree.start + shift, paths=paths)


def _topology(document: dict[str, Any]) -> Topology:
    try:
        return Topology.from_document(document["topology"], "the plan's topology")
    except TopologyError as error:
        raise PlanError(str(error)) from error


def _tree_document(tree: Tree) -> dict[str, Any]:
    document: dict[str, Any] = {
        "operation": tree.operation,
        "root": tree.root,
        "start": str(tree.start),
        "share": str(tree.share),
        "paths": [list(path) for path in tree.paths],
    }
    if tree.steps is not None:
        document["steps"] = list(tree.steps)
    return document


def _tree(document: dict[str, Any]) -> Tree:
    steps = document.get("steps")
    return Tree(
        operation=document["operation"],
        root=document["root"],
        start=exact(document["start"]),
        share=exact(document["share"]),
        paths=tuple(tuple(path) for path in document["paths"]),
        steps=None if steps is None else tuple(steps),
    )
