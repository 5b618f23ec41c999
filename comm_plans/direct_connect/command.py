"""`comm-plan wire`: the best known wirings of some nodes and ports, advice for a message, a list to patch by."""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

from comm_plans.errors import PlansError
from comm_plans.files import check_folder, write_atomically

if TYPE_CHECKING:
    from comm_plans.direct_connect.frontier import Choice
    from comm_plans.terminal import Report

DEFAULT_ALPHA, DEFAULT_PORT = 10e-6, 1.0
NODES_A_REPORT = 64
MOST_DRAWN = 64  # nodes


def wire(options: argparse.Namespace) -> None:
    """Find the frontiers, print or show them, write the wiring list of the best choice."""
    from comm_plans import terminal
    from comm_plans.direct_connect.show import fastest, show_advice, show_frontier, show_pictures
    from comm_plans.sizes import parse_size

    sizes = _sizes(options)
    message = parse_size(options.bytes)
    alpha = DEFAULT_ALPHA if options.alpha is None else _positive(options.alpha, "--alpha")
    port = DEFAULT_PORT if options.bandwidth is None else _positive(options.bandwidth, "--bandwidth")
    check_folder(options.wiring)
    with terminal.progress() as report:
        frontiers = _frontiers(sizes, options.degree, options.formulas, report)
    if options.json:
        print(json.dumps([choice.document() for frontier in frontiers for choice in frontier]))
    else:
        for frontier in frontiers:
            show_frontier(frontier)
            show_advice(frontier, message, alpha, port)
            if options.show:
                show_pictures(frontier)
        if None in (options.alpha, options.bandwidth):
            terminal.note(f"assuming {alpha * 1e6:g} µs a step and {port:g} GB/s a port (--alpha, --bandwidth)")
    if options.wiring:
        best = fastest(frontiers[0], message, alpha, port)
        _write_list(options.wiring, best)
        terminal.note(f"wrote {options.wiring}: {best.wiring}")


def _sizes(options: argparse.Namespace) -> range:
    """The numbers of nodes asked for, each with a simple graph of that degree."""
    from comm_plans.direct_connect.frontier import check_size

    matched = re.fullmatch(r"(-?\d{1,9})(?:\.\.(\d{1,9}))?", options.nodes)
    if matched is None:
        raise PlansError(f"--nodes {options.nodes[:40]!r} is no number of nodes; write 1024, or 2..64 for several")
    first = int(matched[1])
    last = int(matched[2] or first)
    if last < first or (last > first and options.wiring):
        raise PlansError(
            f"--nodes {options.nodes} is no range from few to many, or --wiring is given, which takes one number"
        )
    if options.show and last > MOST_DRAWN:
        raise PlansError(f"{last} nodes are too many to draw; --show draws up to {MOST_DRAWN}")
    check_size(first, options.degree)
    check_size(last, options.degree)
    return range(first, last + 1)


def _frontiers(sizes: range, degree: int, formulas: bool, report: Report) -> list[list[Choice]]:
    from comm_plans.direct_connect.finder import Finder
    from comm_plans.direct_connect.found import Found
    from comm_plans.direct_connect.frontier import by_formula

    published, found, frontiers = Finder(real=False), Found(), []
    for nodes in sizes:
        if nodes == sizes[0] or nodes % NODES_A_REPORT == 0:
            report(f"search from {nodes} nodes on")
        if formulas:
            frontiers.append([by_formula(each) for each in published.frontier(nodes, degree)])
        else:
            frontiers.append(found.frontier(nodes, degree))
    return frontiers


def _write_list(path: str, choice: Choice) -> None:
    from comm_plans.direct_connect.cables import wiring_list
    from comm_plans.direct_connect.expression import build

    write_atomically(Path(path), wiring_list(build(choice.wiring)).encode())


def _positive(value: float, option: str) -> float:
    if not 0 < value < float("inf"):
        raise PlansError(f"{option} {value} makes no sense; give a number above zero")
    return value
