"""What stands, as a person reads it."""

from __future__ import annotations

from comm_plans.lab_state import LabState
from lab.build import rates_between
from lab.rates import shown_rate
from lab.routes import next_hops

FAST = 2 * 10**9  # bit/s, beyond which one machine's processors, and not the rates, set the time


def report(state: LabState) -> str:
    """A line for the lab, each rank and each link."""
    standing = "is up" if state.complete else "is half built (run down)"
    lines = [f"{state.topology} {standing}: {len(state.ranks)} ranks, {len(state.links)} links"]
    lines += [f"  {node.name:<12} {node.address:<14} ip netns exec {node.namespace}" for node in state.ranks]
    lines += [f"  {'-'.join(link.ends):<27} {'cut' if link.cut else _rates(*link.rates)}" for link in state.links]
    if state.ray_address:
        lines.append(f"  Ray          {state.ray_address}")
    if any(rate > FAST for link in state.links for rate in link.rates):
        lines.append(f"rates beyond {shown_rate(FAST)} are more than one machine moves: its processors set the time")
    return "\n".join(lines)


def reachability(state: LabState) -> str:
    """Which ranks still reach each other."""
    parts = {frozenset({target, *next_hops(rates_between(state), target)}) for target in range(len(state.ranks))}
    if len(parts) == 1:
        return "all ranks still reach each other"
    names = (", ".join(node.name for index, node in enumerate(state.ranks) if index in part) for part in parts)
    return f"the ranks are in {len(parts)} parts now: {' | '.join(sorted(names))}"


def _rates(there: int, back: int) -> str:
    return shown_rate(there) if there == back else f"{shown_rate(there)} there, {shown_rate(back)} back"
