"""From parts of data to whole chunks: every pair's data is cut into K chunks, and each path gets some of them.

Each path first gets the whole chunks of its part; what is left of a pair goes, chunk by chunk, to the path on which the
busiest link then is least busy, pairs with most left first. A link so exceeds its exact load by a few chunks at most.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from comm_plans.all_to_all.direct.flow_problem import Floats, Indices
from comm_plans.all_to_all.direct.routes import Routes, loads, without_empty
from comm_plans.compiled import compiled
from comm_plans.errors import PlansError

MOST_EXACT_CHUNKS = 64
CHUNKS = 32
MOST_CHUNKS = 2**16


def default_chunks(routes: Routes) -> int:
    """As many as make the parts exact, if those are few."""
    return routes.denominator if routes.denominator <= MOST_EXACT_CHUNKS else CHUNKS


def in_chunks(routes: Routes, demand: Indices, room: Floats, chunks: int) -> Routes:
    """The routes with parts of 1/chunks; paths that get none are left out.

    room: what each arc can carry in the time there is, in units; infinite where nothing limits it.
    Raises PlansError for less than one chunk and for more than 2¹⁶.
    """
    if not 1 <= chunks <= MOST_CHUNKS:
        raise PlansError(f"data cannot be cut into {chunks} chunks; ask for 1 to {MOST_CHUNKS}")
    whole = routes.share * chunks // routes.denominator
    floored = replace(routes, share=whole, denominator=chunks)
    groups = list(routes.groups())
    missing = np.array([chunks - whole[places].sum() for places in groups])
    order = np.argsort(-missing, kind="stable")
    bounds = np.array([(places[0], places[-1] + 1) for places in groups])[order]
    units = demand[routes.pair[:, 0], routes.pair[:, 1]].astype(float)
    load = loads(floored, demand, len(room)).astype(float)
    _hand_out(whole, units, load, room, routes.begin, routes.arc, bounds, missing[order])
    return without_empty(floored)


@compiled
def _hand_out(
    whole: Indices,
    units: Floats,
    load: Floats,
    room: Floats,
    begin: Indices,
    arc: Indices,
    bounds: Indices,
    missing: Indices,
) -> None:
    """Add `missing[i]` chunks to the paths bounds[i, 0] to bounds[i, 1], each where it makes the least busy link."""
    for pair in range(len(bounds)):
        for _ in range(missing[pair]):
            best, least = -1, np.inf
            for path in range(bounds[pair, 0], bounds[pair, 1]):
                busiest = 0.0
                for place in range(begin[path], begin[path + 1]):
                    busiest = max(busiest, (load[arc[place]] + units[path]) / room[arc[place]])
                if busiest < least:
                    best, least = path, busiest
            whole[best] += 1
            for place in range(begin[best], begin[best + 1]):
                load[arc[place]] += units[best]
