"""Virtual layers that keep source routes from deadlock on fabrics that lose nothing.

A packet that waits for link b while it occupies link a makes a depend on b. Routes of one layer must give dependencies
without a cycle (Dally and Seitz, "Deadlock-free message routing", 1987); each route, long ones first, is put into the
first layer that stays so (as LASH does: Skeie, Lysne, Theiss, 2002).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from comm_plans.all_to_all.direct.flow_problem import Indices, links_of
from comm_plans.all_to_all.direct.routes import Routes
from comm_plans.compiled import compiled
from comm_plans.errors import PlanError
from comm_plans.topology import Topology


def virtual_layers(topology: Topology, routes: Routes) -> Indices:
    """The layer of each route, 0 and up."""
    links = links_of(topology)
    begins = np.searchsorted(links[:, 0], np.arange(len(topology.nodes) + 1))
    follows, ends = begins[links[:, 1]], begins[links[:, 1] + 1]
    # Dependencies of a link lie side by side: one for each link that leaves its head.
    offset = np.concatenate([[0], np.cumsum(ends - follows)])
    order = np.argsort(-routes.hops, kind="stable")
    layers = np.full(len(routes), -1, dtype=np.int64)
    waiting = order
    while len(waiting):
        depends = np.zeros(offset[-1], dtype=np.bool_)
        taken = _fill_layer(waiting, routes.begin, routes.arc, follows, offset, depends)
        layers[waiting[taken]] = layers.max() + 1
        waiting = waiting[~taken]
    return layers


def check_layers(topology: Topology, routes: Routes, layers: Indices) -> None:
    """Raise PlanError where the routes of a layer could block each other for good."""
    links = len(topology.capacities)
    for layer in np.unique(layers):
        inside = np.repeat(layers == layer, routes.hops)
        inside[routes.begin[1:] - 1] = False
        one = np.flatnonzero(inside)
        arcs = np.unique(routes.arc[one] * links + routes.arc[one + 1])
        held, wanted = arcs // links, arcs % links
        while len(held):
            on = np.isin(wanted, held)
            if on.all():
                raise PlanError(f"routes of layer {layer} can block each other; put some into another layer")
            held, wanted = held[on], wanted[on]


@compiled
def _fill_layer(
    waiting: Indices, begin: Indices, arc: Indices, follows: Indices, offset: Indices, depends: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Put routes into an empty layer, in order, each if no cycle comes of it; says which went in."""
    taken = np.zeros(len(waiting), np.bool_)
    for turn in range(len(waiting)):
        route = waiting[turn]
        added = [0][:0]
        fits = True
        for place in range(begin[route], begin[route + 1] - 1):
            one, other = arc[place], arc[place + 1]
            dependency = offset[one] + other - follows[one]
            if depends[dependency]:
                continue
            if _leads_to(other, one, follows, offset, depends):
                fits = False
                break
            depends[dependency] = True
            added.append(dependency)
        if not fits:
            for dependency in added:
                depends[dependency] = False
        taken[turn] = fits
    return taken


@compiled
def _leads_to(start: int, end: int, follows: Indices, offset: Indices, depends: NDArray[np.bool_]) -> bool:
    """Whether dependencies lead from one link to another."""
    seen = np.zeros(len(follows), np.bool_)
    seen[start] = True
    stack = [start]
    while len(stack):
        link = stack.pop()
        if link == end:
            return True
        for place in range(offset[link], offset[link + 1]):
            following = follows[link] + place - offset[link]
            if depends[place] and not seen[following]:
                seen[following] = True
                stack.append(following)
    return False
