"""What each command of `comm-plan` does, as one function that reads like it.

Imports wait for the command that needs them. Results go to standard output, remarks to standard error; an error that
leaves a function here is shown as one sentence.
"""

from __future__ import annotations

import argparse
import json
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from comm_plans.errors import PlansError
from comm_plans.files import check_folder

if TYPE_CHECKING:
    from comm_plans.plan import Plan
    from comm_plans.simulator import LinkLoad
    from comm_plans.topology import Topology


def solve(options: argparse.Namespace) -> None:
    """Solve a collective, show or print the answer, write the plan."""
    from comm_plans import terminal
    from comm_plans.fabrics import fabric
    from comm_plans.solve import solve as solved
    from comm_plans.sources import topology_from

    topology = topology_from(options.topology)
    check_folder(options.out)
    with terminal.progress() as report:
        if options.method == "forest":  # so that solve_seconds tells of solving, not of loading compiled code
            report("load")
            solved(fabric("path:ranks=2"), "all_reduce")
        plan = solved(
            topology,
            options.collective,
            method=options.method,
            trees_per_rank=options.trees_per_rank,
            root=_rank(topology, options.root),
            tolerance=_tolerance(options.tolerance),
            trim=options.trim,
            progress=report,
        )
    if options.out is not None:
        plan.save(options.out)
        terminal.note(f"wrote {options.out}")
    if options.json:
        print(json.dumps(_summary(plan)))
    else:
        terminal.show_plan(plan)


def verify(options: argparse.Namespace) -> None:
    """Replay a plan file, on its own network or on the one given; what passes here every other command takes."""
    from comm_plans.plan import read_document
    from comm_plans.sizes import shown_bandwidth
    from comm_plans.sources import topology_from
    from comm_plans.topology import Topology
    from comm_plans.verifier import verify as verified

    document = read_document(Path(options.plan))
    if options.topology:
        document = _moved_to(document, topology_from(options.topology))
    verdict = verified(document)
    Topology.from_document(document["topology"], "the plan's topology")
    print(
        f"{verdict.collective} among {verdict.ranks} ranks: every byte arrives exactly once, "
        f"at {shown_bandwidth(float(verdict.algbw))} within the capacity of every link"
    )


def simulate(options: argparse.Namespace) -> None:
    """Say how long a plan takes for a message, and which link is busiest."""
    from comm_plans import terminal
    from comm_plans.plan import Plan
    from comm_plans.simulator import DEFAULT_LATENCY
    from comm_plans.simulator import simulate as simulated
    from comm_plans.sizes import parse_size, shown_seconds

    plan = Plan.load(options.plan)
    latency = DEFAULT_LATENCY if options.latency is None else options.latency
    outcome = simulated(plan, parse_size(options.bytes), latency=latency, chunks=options.chunks)
    if any(link.latency is None for link in plan.topology.links):
        terminal.note(f"assuming {shown_seconds(latency)} a hop where the topology states no latency")
    if not options.json:
        terminal.show_simulation(plan, outcome)
        return
    answer = {
        "bytes": outcome.size_bytes,
        "seconds": outcome.seconds,
        "fluid_seconds": str(outcome.fluid_seconds),
        "algbw": outcome.algbw,
        "chunks": outcome.chunks,
        "steps": outcome.steps,
        "latency": outcome.latency,
        "busiest": _link(outcome.busiest),
        "links": [_link(link) for link in outcome.links],
    }
    print(json.dumps(answer))


def export(options: argparse.Namespace) -> None:
    """Write a plan as MSCCL XML or as a picture."""
    from comm_plans import terminal
    from comm_plans.exports.msccl_xml import msccl_xml
    from comm_plans.exports.svg import svg
    from comm_plans.files import write_atomically
    from comm_plans.plan import Plan
    from comm_plans.sizes import counted

    plan = Plan.load(options.plan)
    check_folder(options.out)
    text, report = (svg(plan), None) if options.format == "svg" else msccl_xml(plan)
    write_atomically(Path(options.out), text.encode())
    if report:
        terminal.note(
            f"{counted(report.channels, 'channel')}, {counted(report.thread_blocks, 'thread block')} a GPU at most, "
            f"{counted(report.chunks, 'chunk')} a loop, {report.scratch_chunks} of scratch"
        )
        for host, connections in report.connections_by_host.items():
            terminal.note(f"connections that leave {host}: {connections}")
    terminal.note(f"wrote {options.out}")


def cache_list(options: argparse.Namespace) -> None:
    """List the plans kept on this machine."""
    from comm_plans.cache import PlanCache
    from comm_plans.terminal import show_entries

    entries = PlanCache().entries()
    if options.json:
        print(json.dumps([{"key": each.key, "bytes": each.size_bytes, **each.summary} for each in entries]))
    else:
        show_entries(entries)


def cache_show(options: argparse.Namespace) -> None:
    """Show one plan of the cache as `solve` does."""
    from comm_plans import terminal
    from comm_plans.cache import PlanCache

    plan = PlanCache().show(options.key)
    if options.json:
        print(json.dumps(_summary(plan)))
    else:
        terminal.show_plan(plan)


def cache_verify(options: argparse.Namespace) -> int:
    """Replay every plan of the cache; exit code 1 if one is of no use."""
    from comm_plans.cache import PlanCache

    faults = 0
    for entry in PlanCache().verified():
        print(f"{entry.key}  {entry.fault or 'verified'}")
        faults += entry.fault is not None
    return 1 if faults else 0


def cache_prune(options: argparse.Namespace) -> None:
    """Remove what is of no use."""
    from comm_plans.cache import PlanCache

    for path in PlanCache().prune():
        print(f"removed {path}")


def _summary(plan: Plan) -> dict[str, Any]:
    """What `solve --json` prints; `solve` returns verified plans only."""
    return {
        "topology": plan.topology.name,
        "collective": plan.collective,
        "root": plan.root,
        "ranks": len(plan.topology.ranks),
        "method": plan.method,
        "algbw": str(plan.algbw),
        "optimum": str(plan.optimum),
        "optimal": plan.optimal,
        "trees_per_rank": plan.trees_per_rank,
        "trees": len(plan.trees),
        "depth": plan.depth,
        "bottleneck": list(plan.bottleneck),
        "verified": True,
        "solve_seconds": plan.solve_seconds,
    }


def _link(link: LinkLoad) -> dict[str, Any]:
    return {
        "from": link.source,
        "to": link.target,
        "bytes": float(link.bytes),
        "utilisation": link.utilisation,
    }


def _rank(topology: Topology, root: str | None) -> int | None:
    """A rank by its name, else by its number."""
    if root is None:
        return None
    if root in topology.ranks:
        return topology.ranks.index(root)
    if root.isdecimal() and int(root) < len(topology.ranks):
        return int(root)
    raise PlansError(f"--root {root!r} is neither the name nor the number of one of {len(topology.ranks)} ranks")


def _tolerance(text: str) -> Fraction:
    from comm_plans.exact import exact

    try:
        return exact(text)
    except ValueError as error:
        raise PlansError(f"--tolerance {text[:40]!r} is no number; write 0.02 to accept 2 % less") from error


def _moved_to(document: dict[str, Any], topology: Topology) -> dict[str, Any]:
    """The plan's document on another network with the same nodes."""
    if document.get("nodes") != list(topology.nodes):
        raise PlansError(f"the plan's nodes are not those of {topology.name}, name by name and in the same order")
    return {**document, "topology": topology.to_document()}
