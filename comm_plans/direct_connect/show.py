"""What `comm-plan wire` shows a person: the frontier as a table, advice for a message, small wirings as a picture."""

from __future__ import annotations

from collections.abc import Sequence

from comm_plans.direct_connect.expression import build
from comm_plans.direct_connect.frontier import Choice, envelope
from comm_plans.sizes import shown_bytes, shown_seconds

GIGA = 1e9


def show_frontier(choices: Sequence[Choice]) -> None:
    """A line a wiring: costs of all_gather and all_reduce, bound on all_to_all; times in M/B."""
    print(f"{choices[0].nodes} nodes of degree {choices[0].degree}")
    rows = [("wiring", "method", "steps", "bandwidth time", "all_reduce", "all_to_all")]
    for each in choices:
        exact = "" if each.bandwidth_time.denominator == 1 else f"{each.bandwidth_time} = "
        both = f"{each.steps + each.scatter_steps}; {float(each.bandwidth_time + each.scatter_time):.4f}"
        bound = "" if each.all_to_all_bound is None else f"≥ {float(each.all_to_all_bound):.4f}"
        time = f"{exact}{float(each.bandwidth_time):.4f}"
        rows.append((str(each.wiring), each.method, str(each.steps), time, both, bound))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        words = [word.ljust(width) for word, width in zip(row[:2], widths, strict=False)]
        words += [word.rjust(width) for word, width in zip(row[2:], widths[2:], strict=True)]
        print("  " + "  ".join(words).rstrip())


def show_advice(choices: Sequence[Choice], size_bytes: int, alpha: float, port: float) -> None:
    """The best for this size, and from which size on which wiring is; `port` in GB/s."""
    bandwidth = port * choices[0].degree * GIGA
    best = fastest(choices, size_bytes, alpha, port)
    time = shown_seconds(best.seconds(alpha, size_bytes, bandwidth))
    print(f"  all_gather of {shown_bytes(size_bytes)}: {time} on {best.wiring}")
    reducing = min(choices, key=lambda each: each.all_reduce_seconds(alpha, size_bytes, bandwidth))
    time = shown_seconds(reducing.all_reduce_seconds(alpha, size_bytes, bandwidth))
    print(f"  all_reduce of {shown_bytes(size_bytes)}: {time} on {reducing.wiring}")
    for choice, start in envelope(choices, alpha, bandwidth)[1:]:
        print(f"  all_gather from {shown_bytes(start)} on: {choice.wiring}")


def fastest(choices: Sequence[Choice], size_bytes: int, alpha: float, port: float) -> Choice:
    """The best wiring for an all_gather of this size; `alpha` seconds a step, `port` GB/s a port."""
    return min(choices, key=lambda each: each.seconds(alpha, size_bytes, port * each.degree * GIGA))


def show_pictures(choices: Sequence[Choice]) -> None:
    """Each wiring as a matrix: a dot in row u and column w where an arc leads from u to w."""
    for choice in choices:
        if choice.method == "published":
            continue
        graph = build(choice.wiring)
        arcs = {(source, target) for source, target in graph.arcs.tolist()}
        print(f"\n{choice.wiring}")
        for source in range(graph.nodes):
            dots = ("●" if (source, target) in arcs else "·" for target in range(graph.nodes))
            print(f"  g{source:<3} {' '.join(dots)}")
