"""Which ports a run on this machine opens, as the kernel tells: besides Ray's and torch's own, none to the outside."""

from pathlib import Path

import psutil
import pytest
from harness import CONSTANT, Run, trained

RAYS_OWN = 1  # a process: it speaks with others of the cluster through it
TORCHS_OWN = 1  # a job: the store through which ranks find each other, on one of them


@pytest.mark.slow
def test_beside_the_ports_of_ray_and_torch_all_are_this_machines_own(tmp_path: Path) -> None:
    run = Run(tmp_path, *CONSTANT, "communication=planned", "topology=ring:ranks=2", "+task.pause=0.2").start()
    try:
        run.wait_for(trained(3))
        open_ports = {pid: _addresses(pid) for pid in (run.pid, *run.workers())}
    finally:
        run.close()
    outside = {pid: [each for each in found if each not in ("127.0.0.1", "::1")] for pid, found in open_ports.items()}
    assert len(outside[run.pid]) <= RAYS_OWN
    assert sum(map(len, outside.values())) <= RAYS_OWN * len(outside) + TORCHS_OWN, outside
    assert any(len(found) > len(outside[pid]) for pid, found in open_ports.items())  # gloo's were seen


def _addresses(pid: int) -> list[str]:
    connections = psutil.Process(pid).net_connections("tcp")
    return [each.laddr.ip for each in connections if each.status == psutil.CONN_LISTEN]
