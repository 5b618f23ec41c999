"""What a person does to a lab that is up: slow a link down, pull a cable."""

from __future__ import annotations

from dataclasses import replace

from comm_plans.lab_state import LabError, LabLink, LabState
from lab.build import lay_routes
from lab.ends import ends_of, find_link
from lab.rates import change_rate
from lab.shell import run
from lab.state_file import save


def degrade(state: LabState, name: str, rate: int) -> LabState:
    """Give both directions of a link `rate` bit/s, at once; also faster ones."""
    link = _whole(state, name)
    change_rate(state, link, rate)
    return save(_with(state, link, replace(link, rates=(rate, rate))))


def cut(state: LabState, name: str) -> LabState:
    """Pull the cable of a link, and route around it where there is a way, as a fabric's manager does."""
    link = _whole(state, name)
    for end in ends_of(state, link):
        run("ip", "-n", end.node.namespace, "link", "set", end.interface, "down")
    state = _with(state, link, replace(link, cut=True))
    lay_routes(state)
    return save(state)


def _whole(state: LabState, name: str) -> LabLink:
    link = find_link(state, name)
    if link.cut:
        raise LabError(f"link {name} is cut; take the lab down and up again to mend it")
    return link


def _with(state: LabState, old: LabLink, new: LabLink) -> LabState:
    return replace(state, links=tuple(new if link is old else link for link in state.links))
