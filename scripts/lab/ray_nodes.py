"""Ray on a lab: a head without processors in the root namespace, where drivers run, and one node a rank.

Ray's own traffic crosses the management network. A rank's node has one processor and the resource `rank:NAME`. Nodes
start one after another: at once, some never join. They carry the lab's mark, by which `down` ends them; `ray stop`
would end every Ray of the machine.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from secrets import token_hex
from subprocess import DEVNULL, STDOUT

from comm_plans.lab_state import LabError, LabNode, LabState
from lab.namespaces import MARK, free_port, inside
from lab.state_file import save

START_SECONDS = 120  # for one node; some twenty are usual for the first, on two cores
STORE = f"--object-store-memory={100 * 1024**2}"


def start_ray(state: LabState, management: LabNode) -> LabState:
    """Start head and nodes; returns the state with Ray's address. Raises LabError when one does not start in time."""
    address = f"{management.address}:{free_port(management.address)}"
    folder = tempfile.mkdtemp(prefix="netlab-ray-")  # ours alone, and with it the token
    state = save(replace(state, ray_address=address, ray_folder=folder))
    Path(folder, "token").write_text(token_hex(32))
    _start(state, "the head", *_head_options(state, management))
    for node in state.ranks:
        with inside(node.namespace):
            _start(state, node.name, *_node_options(state, node))
    return state


def _head_options(state: LabState, management: LabNode) -> list[str]:
    port = str(state.ray_address).rpartition(":")[2]
    return [
        "--head",
        f"--port={port}",
        f"--node-ip-address={management.address}",
        "--num-cpus=0",
        STORE,
        f"--temp-dir={state.ray_folder}/ray",  # which Ray opens to all
        "--include-dashboard=false",
        f"--ray-client-server-port={free_port(management.address)}",  # the usual one may be another Ray's
    ]


def _node_options(state: LabState, node: LabNode) -> list[str]:
    return [
        f"--address={state.ray_address}",
        f"--node-ip-address={node.management_address}",
        "--num-cpus=1",
        STORE,
        f"--resources={json.dumps({f'rank:{node.name}': 1})}",
        "--include-log-monitor=false",  # the head's sees the logs of all
    ]


def _start(state: LabState, what: str, *options: str) -> None:
    print(f"network_lab: starting Ray on {what}", file=sys.stderr)
    command = [sys.executable, "-m", "ray.scripts.scripts", "start", *options]
    environment = os.environ | state.ray_environment | {MARK: state.mark, "RAY_USAGE_STATS_ENABLED": "0"}
    with tempfile.TemporaryFile() as said:  # a pipe would stay open in what is started
        try:
            subprocess.run(
                command, env=environment, stdin=DEVNULL, stdout=said, stderr=STDOUT, timeout=START_SECONDS, check=True
            )
        except subprocess.TimeoutExpired:
            raise LabError(f"Ray on {what} did not start within {START_SECONDS} s; use fewer ranks") from None
        except subprocess.CalledProcessError:
            said.seek(0)
            raise LabError(f"Ray on {what} did not start: {_last_line(said.read().decode())}") from None


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["it said nothing"])[-1]
