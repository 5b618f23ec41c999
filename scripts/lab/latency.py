"""Latencies that a topology states, where the kernel can delay packets (netem); elsewhere a remark."""

from __future__ import annotations

from fractions import Fraction

from comm_plans.lab_state import LabState
from comm_plans.topology import Topology
from lab.build import MTU
from lab.ends import End, ends
from lab.shell import run, supports

QUEUE_SECONDS = Fraction(40, 1000)


def add_latencies(state: LabState, topology: Topology) -> str | None:
    """Delay what leaves each end by its link's latency. Returns a remark where the kernel cannot."""
    latencies = {(link.source, link.target): link.latency for link in topology.links if link.latency}
    if not latencies:
        return None
    probe = state.nodes[0].namespace
    if not supports("tc", "-n", probe, "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms"):
        return "latencies are left out: the kernel cannot delay packets (modprobe sch_netem)"
    run("tc", "-n", probe, "qdisc", "del", "dev", "lo", "root")
    for end in ends(state):
        latency = latencies.get((end.node.name, end.peer.name))
        if latency:
            run("tc", "-n", end.node.namespace, "-batch", "-", lines=[_delay(end, latency)])
    return None


def _delay(end: End, latency: Fraction) -> str:
    packets = int(end.rate * (QUEUE_SECONDS + latency) / 8 / MTU) + 8
    microseconds = round(latency * 10**6)
    return f"qdisc add dev {end.interface} parent 1: netem delay {microseconds}us limit {packets}"
