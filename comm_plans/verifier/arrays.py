"""A plan's JSON form as checked arrays: what the verifier works on.

Nothing here knows the solver or the classes `Plan` and `Topology`: a plan from any program is read by these rules
alone (docs/plan-format.md), and whatever is not of the described form is refused with PlanError.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from comm_plans.errors import PlanError
from comm_plans.exact import exact

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

MOST_NODES = 4096
OPERATIONS = {
    "all_gather": {"broadcast"},
    "reduce_scatter": {"reduce"},
    "all_reduce": {"broadcast", "reduce"},
    "broadcast": {"broadcast"},
    "reduce": {"reduce"},
}


@dataclass(frozen=True)
class Network:
    """Nodes by index, ranks first; link `i` goes from `sources[i]` to `targets[i]` and is found by its sorted key."""

    names: list[str]
    ranks: int
    multicast: Flags
    reduces: Flags
    keys: Integers
    bandwidths: list[Fraction]

    @property
    def sources(self) -> Integers:
        """Node index of each link's sending end."""
        return self.keys // len(self.names)

    @property
    def targets(self) -> Integers:
        """Node index of each link's receiving end."""
        return self.keys % len(self.names)

    def ends(self, link: int) -> tuple[str, str]:
        """Names of the two ends of a link."""
        return self.names[self.sources[link]], self.names[self.targets[link]]


@dataclass(frozen=True)
class Forest:
    """All trees, flattened: tree `t` has `edges[t]` edges, edge `e` visits `lengths[e]` nodes in a row of `visits`."""

    broadcasts: Flags
    roots: Integers
    starts: list[Fraction]
    shares: list[Fraction]
    edges: Integers
    lengths: Integers
    visits: Integers
    steps: Integers | None


def need(condition: bool, sentence: str) -> None:
    """Raise PlanError with `sentence` unless `condition` holds."""
    if not condition:
        raise PlanError(sentence)


def number(value: object, what: str) -> Fraction:
    """Read an exact number. Raises PlanError that names `what`."""
    try:
        return exact(value)
    except ValueError as error:
        raise PlanError(f"{what}: {error}; write exact numbers as '13/3'") from error


def read_network(document: dict[str, Any]) -> Network:
    """Read the plan's topology. Raises PlanError."""
    topology = document.get("topology")
    if not isinstance(topology, dict):
        raise PlanError("the plan has no topology; it must carry the network it was made for")
    ranks, switches = _list(topology, "ranks"), [_switch(entry) for entry in _list(topology, "switches")]
    names = [*ranks, *(switch["name"] for switch in switches)]
    need(all(type(name) is str for name in names), "the plan's topology has a node whose name is not a string")
    need(len(names) <= MOST_NODES, f"the plan's topology has more than {MOST_NODES} nodes")
    need(len(set(names)) == len(names), "the plan's topology uses a node name twice")
    need(len(ranks) >= 2, "a plan needs at least two ranks")
    need(document.get("nodes") == names, "the plan's nodes are not its ranks followed by its switches")
    links = _links(_list(topology, "links"), {name: index for index, name in enumerate(names)})
    no_rank = [False] * len(ranks)
    return Network(
        names=names,
        ranks=len(ranks),
        multicast=np.array([*no_rank, *(switch.get("multicast", False) is True for switch in switches)]),
        reduces=np.array([*no_rank, *(switch.get("reduces", False) is True for switch in switches)]),
        keys=np.array(list(links), dtype=np.int64),
        bandwidths=list(links.values()),
    )


def _switch(entry: object) -> dict[str, Any]:
    if isinstance(entry, dict):
        need("name" in entry, "the plan's topology has a switch without a name")
        return entry
    return {"name": entry}


def _links(entries: list[Any], indices: dict[str, int]) -> dict[int, Fraction]:
    """Bandwidth by link key, source · nodes + target, in ascending order."""
    links: dict[int, Fraction] = {}
    for entry in entries:
        if isinstance(entry, dict):
            entry = [entry.get("from"), entry.get("to"), entry.get("bandwidth")]
        need(isinstance(entry, list) and len(entry) == 3, "the plan's topology has a link that is not [from, to, GB/s]")
        source, target, bandwidth = entry
        known = type(source) is str and type(target) is str and source in indices and target in indices
        need(known and source != target, f"the plan's topology has an impossible link {source!r:.40} → {target!r:.40}")
        key = indices[source] * len(indices) + indices[target]
        need(key not in links, f"the plan's topology has the link {source} → {target} twice")
        links[key] = number(bandwidth, f"link {source} → {target}")
        need(links[key] > 0, f"link {source} → {target} of the plan's topology has no bandwidth")
    return dict(sorted(links.items()))


def read_shards(document: dict[str, Any], ranks: int) -> list[Fraction]:
    """Read the part of the full buffer that belongs to each rank. Raises PlanError unless they make up the whole."""
    values = [number(value, "shards") for value in _list(document, "shards")]
    need(len(values) == ranks, f"the plan has {len(values)} shards for {ranks} ranks")
    need(min(values) >= 0 and sum(values) == 1, "the plan's shards do not add up to the whole buffer")
    return values


def read_forest(document: dict[str, Any], network: Network) -> Forest:
    """Flatten the trees. Raises PlanError where one is not of the described form or names a node that is not there."""
    trees = _list(document, "trees")
    need(len(trees) > 0, "the plan has no trees")
    need(all(type(tree) is dict for tree in trees), "the plan has a tree that is not an object")
    allowed = OPERATIONS[document["collective"]]
    kinds = [tree.get("operation") for tree in trees]
    need(set(map(str, kinds)) <= allowed, f"a tree of {document['collective']} must be one of {sorted(allowed)}")
    rows = [_list(tree, "paths") for tree in trees]
    paths = list(chain.from_iterable(rows))
    need(set(map(type, paths)) <= {list}, "the plan has a path that is not a list of node indices")
    return Forest(
        broadcasts=np.array([kind == "broadcast" for kind in kinds]),
        roots=_integers([tree.get("root") for tree in trees], "roots", network.ranks),
        starts=[number(tree.get("start"), "start of a tree") for tree in trees],
        shares=[number(tree.get("share"), "share of a tree") for tree in trees],
        edges=np.array([len(row) for row in rows], dtype=np.int64),
        lengths=np.array([len(path) for path in paths], dtype=np.int64),
        visits=_integers(list(chain.from_iterable(paths)), "paths", len(network.names)),
        steps=_steps(trees, rows),
    )


def _steps(trees: list[dict[str, Any]], rows: list[list[Any]]) -> Integers | None:
    if all(tree.get("steps") is None for tree in trees):
        return None
    need(all(type(tree.get("steps")) is list for tree in trees), "some trees have a list of steps and others have none")
    given: list[list[Any]] = [tree["steps"] for tree in trees]
    need([len(steps) for steps in given] == [len(row) for row in rows], "a tree has not one step for each path")
    return _integers(list(chain.from_iterable(given)), "steps", 2**31)


def _integers(values: list[Any], what: str, below: int) -> Integers:
    whole = set(map(type, values)) <= {int} and (not values or (min(values) >= 0 and max(values) < below))
    need(whole, f"the plan's {what} hold something other than whole numbers from 0 to {below - 1}")
    return np.array(values, dtype=np.int64)


def _list(document: dict[str, Any], key: str) -> list[Any]:
    value = document.get(key)
    if not isinstance(value, list):
        raise PlanError(f"the plan has no list {key!r}; docs/plan-format.md describes what a plan holds")
    return value
