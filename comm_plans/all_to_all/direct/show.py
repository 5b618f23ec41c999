"""What `comm-plan all-to-all` shows a person of a network: the rate of its routes, and what other routes reach."""

from __future__ import annotations

from operator import itemgetter

from comm_plans.all_to_all.bars import show_bars
from comm_plans.all_to_all.direct.baselines import rates_of_others
from comm_plans.all_to_all.direct.demands import is_uniform
from comm_plans.all_to_all.direct.solve import DirectResult
from comm_plans.sizes import counted, shown_bandwidth, shown_bytes, shown_seconds
from comm_plans.terminal import MOST_DIGITS

MOST_COMPARED = 64  # ranks


def show_routes(result: DirectResult) -> None:
    """The answer in two lines, then a bar for each way of routing."""
    print(f"all_to_all on {result.topology.name}: {_reached(result)}, {_proof(result)}")
    print(
        f"algbw {shown_bandwidth(float(result.algbw))}, solved in {shown_seconds(result.solve_seconds)}, "
        "verified: no link carries more than it can"
    )
    if len(result.demand) <= MOST_COMPARED:
        others = sorted(rates_of_others(result.topology, result.demand), key=itemgetter(1), reverse=True)
        show_bars([("these routes", float(result.pair_rate)), *others], shown_bandwidth)


def _reached(result: DirectResult) -> str:
    """The rate of all pairs; of unequal ones that of the largest, and how long all of them take."""
    brief = result.exact and result.pair_rate.denominator > 1 and len(str(result.pair_rate)) <= MOST_DIGITS
    rate = shown_bandwidth(float(result.pair_rate)) + (f" ({result.pair_rate})" if brief else "")
    if is_uniform(result.demand):
        return f"{rate} from each rank to each other one"
    total = shown_bytes(int(result.demand.sum(dtype=object)))
    ranks, seconds = counted(len(result.demand), "rank"), shown_seconds(float(result.seconds))
    return f"{total} among {ranks} in {seconds}, {rate} for the largest pair"


def _proof(result: DirectResult) -> str:
    return "the network's optimum" if result.exact else f"within {float(result.duality_gap):.2g} of the optimum"
