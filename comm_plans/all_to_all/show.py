"""What `comm-plan all-to-all` shows a person: how long it takes, why not less, and what other ways would take."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from comm_plans.all_to_all.baselines import BASELINES, padded_seconds
from comm_plans.all_to_all.bounds import Fluid
from comm_plans.all_to_all.cluster import Bytes, Cluster
from comm_plans.all_to_all.fair_sharing import fair_fan_out_seconds
from comm_plans.all_to_all.flash import published
from comm_plans.all_to_all.on_cluster import ClusterResult
from comm_plans.all_to_all.step_times import completion_seconds
from comm_plans.sizes import counted, shown_bandwidth, shown_bytes, shown_seconds

if TYPE_CHECKING:
    from comm_plans.all_to_all.direct import DirectResult

MOST_SHARING = 64  # ranks up to which fair sharing of a fan-out is worked out
MOST_COMPARED = 512  # ranks
BAR = 40  # characters of the slowest


def show_schedule(result: ClusterResult, traffic: Bytes) -> None:
    """The answer in three lines, then a bar for each way of doing it."""
    cluster = result.schedule.cluster
    print(
        f"{shown_bytes(int(traffic.sum()))} among {counted(cluster.ranks, 'GPU')} "
        f"in {counted(cluster.servers, 'server')}: {shown_seconds(result.completion_seconds)}"
    )
    steps = f"{counted(result.stages, 'stage')} in {counted(len(result.schedule), 'step')}"
    print(f"{steps}, planned in {shown_seconds(result.plan_seconds)}, verified: every byte arrives exactly once")
    limit = Fluid(cluster, cluster.tiles(traffic)).bottleneck
    print(f"no schedule takes less than {shown_seconds(result.lower_bound_seconds)}: {limit}")
    if cluster.ranks <= MOST_COMPARED and result.completion_seconds > 0:
        _show_bars({result.mode: result.completion_seconds, **dict(_others(cluster, traffic, result.mode))})


def show_routes(result: DirectResult) -> None:
    """The rate in two lines."""
    rate, exact = float(result.pair_rate), f" ({result.pair_rate})" if result.exact else ""
    proof = "the network's optimum" if result.exact else f"within {float(result.duality_gap):.2g} of the optimum"
    print(
        f"all_to_all on {result.topology.name}: {shown_bandwidth(rate)}{exact} "
        f"from each rank to each other one, {proof}"
    )
    print(
        f"algbw {shown_bandwidth(float(result.algbw))}, solved in {shown_seconds(result.solve_seconds)}, "
        "verified: no link carries more than it can"
    )


def _others(cluster: Cluster, traffic: Bytes, mode: str) -> Iterator[tuple[str, float]]:
    """Other ways and their seconds, in the same simulator where it fits."""
    if mode != "faithful":
        yield "faithful", completion_seconds(cluster, published(cluster, traffic).steps())
    for name, steps in BASELINES.items():
        if name == "fan-out" and cluster.ranks <= MOST_SHARING:
            yield "fan-out, fair sharing", fair_fan_out_seconds(cluster, traffic)
        else:
            yield name, completion_seconds(cluster, steps(cluster, traffic))
    yield "padded to equal blocks", padded_seconds(cluster, traffic)


def _show_bars(seconds: dict[str, float]) -> None:
    width, longest = max(map(len, seconds)), max(seconds.values())
    for name, time in sorted(seconds.items(), key=lambda each: each[1]):
        bar = "█" * max(1, round(BAR * time / longest))
        print(f"  {name:<{width}}  {shown_seconds(time):>8}  {bar}")
