"""The life of a lab: up, found standing, down. Its state is on disk before anything is made, so `down` finds it all."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from comm_plans.lab_state import LabError, LabState
from comm_plans.topology import Topology
from lab.blueprint import blueprint, digest
from lab.build import build
from lab.latency import add_latencies
from lab.management import build_management
from lab.namespaces import end_processes, present, remove
from lab.ray_nodes import start_ray
from lab.shell import require, run, supports
from lab.state_file import claim, save


def up(file: Path, ray: bool = False) -> LabState:
    """Build the lab that the topology file asks for, with a Ray node in each rank's namespace if `ray`.

    Whatever stops it half way, nothing is left. Raises PlansError, also where another lab is up.
    """
    require()
    state = blueprint(file, managed=ray)
    _claim(state)
    try:
        _make(state)
        if state.management:
            build_management(state, state.management)
            state = start_ray(state, state.management)
        return save(replace(state, complete=True))
    except BaseException:
        down()
        raise


def ensure(file: Path, ray: bool = False) -> LabState:
    """The lab of this topology file, which may be up already. Raises PlansError where another one is."""
    if not LabState.path().exists():
        return up(file, ray)
    state = load_for(file)
    if ray and not state.ray_address:
        raise LabError("the lab that is up has no Ray; run down, then up --ray")
    return state


def down() -> bool:
    """Take the lab down, whole or half built, and end every process in it. Returns whether there was one."""
    if not LabState.path().exists():
        return False
    require()
    state = LabState.load()
    end_processes(state)
    if state.management and _has_interface(state.management.interface):
        run("ip", "link", "del", state.management.interface)
    for name in sorted(_namespaces(state) & present()):
        remove(name)
    if state.ray_folder:
        shutil.rmtree(state.ray_folder, ignore_errors=True)
    LabState.path().unlink(missing_ok=True)  # another `down` may be at work
    return True


@contextmanager
def standing(file: Path) -> Iterator[LabState]:
    """The lab of this topology file within the block: the one that is up already, or one that goes with the block."""
    stood = LabState.path().exists()
    state = ensure(file)
    try:
        yield state
    finally:
        if not stood:
            down()


def load_for(file: Path) -> LabState:
    """The state of the lab that is up. Raises LabError where it is half built, or was built from something else."""
    require()
    state = LabState.load()
    if not state.complete:
        raise LabError(
            f"the lab of {state.topology} is half built: another up is at work or was killed; run down first"
        )
    if state.digest != digest(Topology.load(file)):
        raise LabError(f"the lab that is up was built from {state.topology}, not {file} as it is now; run down first")
    return state


def _make(state: LabState) -> None:
    build(state)
    if remark := add_latencies(state, Topology.load(state.topology)):
        print(f"network_lab: {remark}", file=sys.stderr)


def _claim(state: LabState) -> None:
    if LabState.path().exists():
        raise LabError(f"a lab is up already, of {LabState.load().topology}; run down first")
    if foreign := sorted(_namespaces(state) & present()):
        raise LabError(f"namespace {foreign[0]} exists and no lab knows it; remove it with ip netns del {foreign[0]}")
    if state.management and _has_interface(state.management.interface):
        raise LabError(f"interface {state.management.interface} exists and no lab knows it; remove it with ip link del")
    claim(state)


def _has_interface(name: str) -> bool:
    return supports("ip", "link", "show", name)


def _namespaces(state: LabState) -> set[str]:
    management = (state.management,) if state.management else ()
    return {node.namespace for node in (*state.nodes, *management)}
