"""`comm-plan all-to-all`: a schedule for a cluster of servers, or routes for a direct network."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from comm_plans.errors import PlansError

if TYPE_CHECKING:
    from comm_plans.all_to_all.cluster import Bytes

DEFAULT_SIZE = 2**20  # bytes a pair of ranks


def all_to_all(options: argparse.Namespace) -> None:
    """Plan, verify, show or print."""
    from comm_plans.all_to_all.cluster_file import is_cluster_file
    from comm_plans.all_to_all.traffic import read_traffic

    traffic = None if options.traffic is None else read_traffic(Path(options.traffic))
    if is_cluster_file(Path(options.network)):
        _on_cluster(options, traffic)
    else:
        _on_topology(options, traffic)


def _on_cluster(options: argparse.Namespace, traffic: Bytes | None) -> None:
    from comm_plans import terminal
    from comm_plans.all_to_all.cluster_file import read_cluster
    from comm_plans.all_to_all.on_cluster import cluster_all_to_all, load
    from comm_plans.all_to_all.schedule_file import check_schedule_file, save_schedule
    from comm_plans.all_to_all.show import show_schedule
    from comm_plans.all_to_all.traffic import uniform_traffic
    from comm_plans.sizes import shown_bytes, shown_seconds

    cluster = read_cluster(Path(options.network))
    if options.out is not None:
        check_schedule_file(Path(options.out))
    if traffic is None:
        traffic = uniform_traffic(cluster.ranks, DEFAULT_SIZE)
        terminal.note(f"assuming {shown_bytes(DEFAULT_SIZE)} from every GPU to every other (--traffic)")
    inside, between = shown_seconds(cluster.intra_latency), shown_seconds(cluster.nic_latency)
    terminal.note(f"a message costs {inside} inside a server and {between} between servers, beside its bytes")
    with terminal.progress() as report:
        report("load")  # so that plan_seconds tells of planning, not of loading compiled code
        load()
        report("plan")
        result = cluster_all_to_all(cluster, traffic, options.mode)
    if options.out is not None:
        save_schedule(result.schedule, Path(options.out))
        terminal.note(f"wrote {options.out}")
    if options.json:
        print(json.dumps(result.summary()))
    else:
        show_schedule(result, traffic)


def _on_topology(options: argparse.Namespace, traffic: Bytes | None) -> None:
    from comm_plans import terminal
    from comm_plans.all_to_all.direct import direct_all_to_all, load
    from comm_plans.all_to_all.direct.plan_files import check_file, save_plan
    from comm_plans.all_to_all.direct.show import show_routes
    from comm_plans.sources import topology_from

    if options.mode != "best":
        raise PlansError(f"--mode {options.mode} is for cluster files; leave it out for a topology")
    if options.out is not None:
        check_file(Path(options.out), traffic)
    topology = topology_from(options.network)
    with terminal.progress() as report:
        report("load")
        load()
        report("plan")
        result = direct_all_to_all(topology, traffic)
        if options.out is not None:
            report("write")
            save_plan(result, Path(options.out))
    if options.out is not None:
        terminal.note(f"wrote {options.out}")
    if options.json:
        print(json.dumps(result.summary()))
    else:
        show_routes(result)
