"""The replay: each rank is reached exactly once, from the root, by a sender that already holds the data."""

from __future__ import annotations

import numpy as np

from comm_plans.errors import PlanError
from comm_plans.verifier.arrays import Flags, Forest, Integers, Network


def check_replay(forest: Forest, network: Network) -> None:
    """Follow every edge of every tree in order. Raises PlanError that names the tree and node at fault."""
    short = forest.lengths < 2
    if len(short) == 0 or short.any():
        raise PlanError("the plan has a path of less than two nodes, or no path at all")
    replay = _Replay(forest, network)
    replay.check_paths()
    replay.check_arrivals()
    replay.check_order()
    replay.check_reach()


class _Replay:
    """Edges of all trees, side by side. A reduction is replayed backwards: then it, too, spreads from its root."""

    def __init__(self, forest: Forest, network: Network) -> None:
        self.forest, self.network = forest, network
        ends = np.cumsum(forest.lengths)
        self.first, self.last = forest.visits[ends - forest.lengths], forest.visits[ends - 1]
        self.inner = np.ones(len(forest.visits), dtype=bool)
        self.inner[ends - 1] = self.inner[ends - forest.lengths] = False
        self.tree = np.repeat(np.arange(len(forest.edges)), forest.edges)
        self.forwards = forest.broadcasts[self.tree]
        self.parent = np.where(self.forwards, self.first, self.last)
        self.child = np.where(self.forwards, self.last, self.first)
        # A vertex of a tree as one number, so that a lookup is a search in a sorted row.
        self.child_key = self.tree * len(network.names) + self.child
        self.parent_key = self.tree * len(network.names) + self.parent
        self.by_child = np.argsort(self.child_key, kind="stable")

    def check_paths(self) -> None:
        """Paths begin and end at vertices that can do their part, and only switches lie between."""
        network, visits = self.network, self.forest.visits
        for end in (self.first, self.last):
            able = (end < network.ranks) | np.where(self.forwards, network.multicast[end], network.reduces[end])
            self._refuse(~able, end, "a path ends at {}, a switch that cannot do more than forward")
        ranks = np.flatnonzero(self.inner & (visits < network.ranks))
        if len(ranks):
            raise PlanError(f"a path leads through the rank {network.names[visits[ranks[0]]]}; only switches forward")

    def check_arrivals(self) -> None:
        """No vertex is given the data twice, nor the root its own."""
        self._refuse(self.child == self.forest.roots[self.tree], self.child, "the root {} takes its own data")
        ordered = self.child_key[self.by_child]
        twice = np.zeros(len(ordered), dtype=bool)
        twice[self.by_child[1:]] = ordered[1:] == ordered[:-1]
        self._refuse(twice, self.child, "{} takes part twice")

    def check_order(self) -> None:
        """A vertex passes data on only after it came: in list order and, in a stepped plan, in a later step."""
        ordered = self.child_key[self.by_child]
        place = np.minimum(np.searchsorted(ordered, self.parent_key), len(ordered) - 1)
        arrival = self.by_child[place]
        sign = np.where(self.forwards, 1, -1)
        known = ordered[place] == self.parent_key
        known &= sign * arrival < sign * np.arange(len(sign))
        if self.forest.steps is not None:
            known &= sign * self.forest.steps[arrival] < sign * self.forest.steps
        own = self.parent == self.forest.roots[self.tree]
        self._refuse(~(own | known), self.parent, "{} sends or adds up data before it is there")

    def check_reach(self) -> None:
        """Every rank takes part in every tree, and no switch is the end of a branch."""
        ranks, trees = self.network.ranks, len(self.forest.edges)
        idle = (self.child >= ranks) & ~np.isin(self.child_key, self.parent_key)
        self._refuse(idle, self.child, "the switch {} ends a branch; branches end at ranks")
        reached = 1 + np.bincount(self.tree[self.child < ranks], minlength=trees)
        if (reached < ranks).any():
            tree = int(reached.argmin())
            raise PlanError(
                f"{self._name(tree)} joins {reached[tree]} of {ranks} ranks; each tree must join all of them"
            )

    def _refuse(self, bad: Flags, node: Integers, sentence: str) -> None:
        """Raise PlanError for the first bad edge, naming its tree and node."""
        if bad.any():
            edge = int(bad.argmax())
            raise PlanError(f"{self._name(int(self.tree[edge]))}: {sentence.format(self.network.names[node[edge]])}")

    def _name(self, tree: int) -> str:
        kind = "broadcast from" if self.forest.broadcasts[tree] else "reduce to"
        return f"tree {tree} ({kind} {self.network.names[self.forest.roots[tree]]})"
