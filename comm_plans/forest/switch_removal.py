"""Switches removed from a network by edge splitting, without lowering any cut that matters (ForestColl).

Replacing γ units of u→w→t by γ units of u→t keeps "every terminal can receive all data"; the largest such γ has a
closed form over two families of max-flows. Even splits are tried first: of all switches at once, then of one switch
after the other. What is removed is remembered, so that logical arcs can be led back to physical paths.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from comm_plans.forest.even_splits import distances, even_amounts
from comm_plans.forest.optimum import Arc, flow_network

EVEN_ROUNDS = 2
"""Even splits of a switch: once between the nodes that need it most, once with what is left."""


@dataclass
class Splits:
    """Logical capacities between terminals, and how much of each logical arc was led through which switch."""

    capacities: dict[Arc, int]
    through: dict[Arc, dict[int, int]] = field(default_factory=dict)


class _Splitter:
    """The network while its switches disappear."""

    def __init__(self, capacities: Mapping[Arc, int], weights: Mapping[int, int], nodes: int) -> None:
        self.source, self.terminals, self.need = nodes, list(weights), sum(weights.values())
        self.unit = min(weight for weight in weights.values() if weight)
        self.network = flow_network(capacities, weights, nodes)
        self.splits = Splits({arc: capacity for arc, capacity in capacities.items() if capacity})
        self.out: list[set[int]] = [set() for _ in range(nodes)]
        self.into: list[set[int]] = [set() for _ in range(nodes)]
        for u, v in self.splits.capacities:
            self.out[u].add(v)
            self.into[v].add(u)

    def carries(self) -> bool:
        """Whether every terminal can still receive all data."""
        return self.network.least_excess([self.source], self.terminals, self.need, 0) >= 0

    def remove(self, switch: int, boldly: bool) -> None:
        """Replace every path through the switch by logical arcs; capacity left over on its way in is dropped.

        `boldly`: split evenly without asking whether all terminals can bear it.
        """
        for _ in range(EVEN_ROUNDS):
            amounts = even_amounts(switch, self.out, self.into, self.splits.capacities, self.unit)
            if boldly:
                self._split_all(switch, amounts, 1)
            else:
                self._split_bearably(switch, amounts)
        if not boldly:
            self._split_pairwise(switch)
        for u in list(self.into[switch]):
            self._change(u, switch, -self.splits.capacities[u, switch])
        for t in list(self.out[switch]):
            self._change(switch, t, -self.splits.capacities[switch, t])

    def _split_bearably(self, switch: int, amounts: dict[Arc, int]) -> None:
        """Make these splits as far as all terminals together can bear, by halving."""
        while amounts:
            self._split_all(switch, amounts, 1)
            if self.carries():
                return
            self._split_all(switch, amounts, -1)
            amounts = {pair: amount // 2 for pair, amount in amounts.items() if amount > 1}

    def _split_all(self, switch: int, amounts: Mapping[Arc, int], sign: int) -> None:
        for (u, t), amount in amounts.items():
            self._split(u, switch, t, sign * amount)

    def _split_pairwise(self, switch: int) -> None:
        """Make the largest possible split of one pair after the other; a pair never gains from later ones."""
        for u in sorted(self.into[switch]):
            for t in self._targets(u, switch):
                if (u, switch) not in self.splits.capacities:
                    break
                if (switch, t) in self.splits.capacities:
                    self._split(u, switch, t, self._splittable(u, switch, t))

    def _targets(self, u: int, switch: int) -> list[int]:
        """Nodes behind the switch, those farthest from u without it first: they need it most; u itself comes last."""
        nodes, distance = len(self.out), distances(u, switch, self.out)
        return sorted(self.out[switch], key=lambda t: (-distance.get(t, nodes), (t - u) % nodes or nodes))

    def _splittable(self, u: int, switch: int, t: int) -> int:
        """γ: the most that can be led from u to t directly with every terminal still able to receive all data."""
        most = min(self.splits.capacities[u, switch], self.splits.capacities[switch, t])
        others = [v for v in self.terminals if v not in (u, t)]
        most = self.network.least_excess([self.source, u, t], others, self.need, most, kept=[switch])
        if most <= 0:
            return 0
        if u in self.terminals or t in self.terminals:
            sinks, kept = [u], [t] if t != u else []
        else:
            sinks, kept = self.terminals, [u, t]
        return max(0, self.network.least_excess([self.source, switch], sinks, self.need, most, kept))

    def _split(self, u: int, switch: int, t: int, amount: int) -> None:
        """Lead `amount` from u to t directly; a negative amount takes an earlier split back."""
        if amount == 0:
            return
        self._change(u, switch, -amount)
        self._change(switch, t, -amount)
        if u != t:
            self._change(u, t, amount)
            through = self.splits.through.setdefault((u, t), {})
            through[switch] = through.get(switch, 0) + amount

    def _change(self, u: int, v: int, amount: int) -> None:
        capacity = self.splits.capacities.get((u, v), 0) + amount
        self.network.set_capacity(u, v, capacity)
        if capacity:
            self.splits.capacities[u, v] = capacity
            self.out[u].add(v)
            self.into[v].add(u)
        else:
            del self.splits.capacities[u, v]
            self.out[u].discard(v)
            self.into[v].discard(u)


def remove_switches(capacities: Mapping[Arc, int], weights: Mapping[int, int], nodes: int) -> Splits:
    """Integer capacities between the terminals `weights` (node → multiplicity as a root) with the same optimum.

    Needs max-flow ≥ sum of the weights from the weights to every terminal, and no switch that sends more than it
    receives.
    """
    for boldly in (True, False):
        splitter = _Splitter(capacities, weights, nodes)
        for switch in removal_order(capacities, weights):
            splitter.remove(switch, boldly)
        if boldly and splitter.carries():
            break
    return splitter.splits


def removal_order(capacities: Mapping[Arc, int], weights: Mapping[int, int]) -> Sequence[int]:
    """Switches with most links first: splitting the spine early leaves the local choices to the local switches."""
    links: dict[int, int] = {}
    for arc in capacities:
        for node in arc:
            if node not in weights:
                links[node] = links.get(node, 0) + 1
    return sorted(links, key=lambda switch: (-links[switch], switch))
