"""Runs ip and tc, and says in one sentence what this machine lacks for a lab."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable

from comm_plans.lab_state import LabError

TOOLS = ("ip", "tc")
MEANINGS = {  # what ip and tc say → what it means
    "Unknown device type": "the kernel has no veth or bridge devices; load them with modprobe veth bridge",
    "kind is unknown": "the kernel cannot shape with tbf; load it with modprobe sch_tbf",
    "Cannot open network namespace": "a namespace of the lab is gone; run down, then up again",
    "Operation not permitted": "the system forbids making networks; a container must be started with --privileged",
}


def require() -> None:
    """Raise LabError unless this is Linux, with ip and tc, and we are root."""
    if sys.platform != "linux":
        raise LabError(f"the network lab needs Linux's network namespaces, this is {sys.platform}; use a Linux machine")
    for tool in TOOLS:
        if shutil.which(tool) is None:
            raise LabError(f"the command {tool} is not installed; install iproute2 (apt-get install iproute2)")
    if os.geteuid() != 0:
        raise LabError("the network lab makes network namespaces and needs root; run it with sudo")


def run(*words: str, lines: Iterable[str] = ()) -> None:
    """Run ip or tc, with `lines` on its standard input. Raises LabError with what it said."""
    done = subprocess.run(words, input="\n".join(lines), text=True, capture_output=True, check=False)
    if done.returncode:
        raise LabError(_meaning(" ".join(words), done.stderr or done.stdout))


def supports(*words: str) -> bool:
    """Whether the command succeeds."""
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


def _meaning(command: str, said: str) -> str:
    for words, meaning in MEANINGS.items():
        if words in said:
            return meaning
    return f"{command} failed: {said.strip().splitlines()[0] if said.strip() else 'without a word'}"
