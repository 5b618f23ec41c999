"""What `comm-plan all-to-all` shows a person of a cluster: the time it takes, why not less, and other ways."""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter

from comm_plans.all_to_all.bars import show_bars
from comm_plans.all_to_all.baselines import BASELINES, padded_seconds
from comm_plans.all_to_all.bounds import Fluid
from comm_plans.all_to_all.cluster import Bytes, Cluster
from comm_plans.all_to_all.fair_sharing import fair_fan_out_seconds
from comm_plans.all_to_all.flash import published
from comm_plans.all_to_all.on_cluster import ClusterResult
from comm_plans.all_to_all.step_times import completion_seconds
from comm_plans.sizes import counted, shown_bytes, shown_seconds

MOST_SHARING = 64  # ranks up to which fair sharing of a fan-out is worked out
MOST_COMPARED = 512  # ranks


def show_schedule(result: ClusterResult, traffic: Bytes) -> None:
    """The answer in three lines, then a bar for each way of doing it."""
    cluster = result.schedule.cluster
    fluid = Fluid(cluster, cluster.tiles(traffic))
    print(
        f"{shown_bytes(int(fluid.tiles.sum()))} among {counted(cluster.ranks, 'GPU')} "
        f"in {counted(cluster.servers, 'server')}: {shown_seconds(result.completion_seconds)}"
    )
    steps = f"{counted(result.stages, 'stage')} in {counted(len(result.schedule), 'step')}"
    print(f"{steps}, planned in {shown_seconds(result.plan_seconds)}, verified: every byte arrives exactly once")
    if result.completion_seconds == 0:
        return
    print(f"no schedule takes less than {shown_seconds(result.lower_bound_seconds)}: {fluid.bottleneck}")
    if cluster.ranks <= MOST_COMPARED:
        seconds = {result.mode: result.completion_seconds, **dict(_others(cluster, traffic, result.mode))}
        show_bars(sorted(seconds.items(), key=itemgetter(1)), shown_seconds)


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
