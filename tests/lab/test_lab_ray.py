"""Ray on the lab: a node in each rank's namespace, reached from outside, and gone with the lab."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from lab.namespaces import processes

from comm_plans.lab_state import LabState

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("root")]
Command = Callable[..., "subprocess.CompletedProcess[str]"]
DRIVER = """
import json, sys, ray
ray.init(address=sys.argv[1], log_to_driver=False, configure_logging=False)

@ray.remote(num_cpus=1)
def addresses():
    import subprocess
    return json.loads(subprocess.check_output(["ip", "-j", "-4", "addr"]))

found = ray.get([addresses.options(resources={"rank:" + name: 1}).remote() for name in sys.argv[2:]])
print(json.dumps([[address["local"] for device in each for address in device["addr_info"]] for each in found]))
"""


def test_a_driver_outside_reaches_a_node_in_each_namespace(tmp_path: Path, network_lab: Command) -> None:
    file = tmp_path / "pair.yaml"
    file.write_text("{ranks: [left, right], cables: [[left, right, 0.01]]}")
    done = network_lab("up", file, "--ray", timeout=300)
    assert done.returncode == 0, done.stderr
    lab = LabState.load()
    assert lab.ray_address in done.stdout
    assert oct(Path(lab.ray_environment["RAY_AUTH_TOKEN_PATH"]).parent.stat().st_mode)[-3:] == "700"

    command = [sys.executable, "-c", DRIVER, str(lab.ray_address), *(node.name for node in lab.ranks)]
    answer = subprocess.run(command, env=os.environ | lab.ray_environment, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    expected = [{"127.0.0.1", node.address, node.management_address} for node in lab.ranks]
    assert [set(each) for each in json.loads(answer.stdout)] == expected

    assert network_lab("down").returncode == 0
    assert not processes(lab)
    assert not Path(str(lab.ray_folder)).exists()


def test_a_lab_without_ray_is_not_taken_for_one_with(star: Path, network_lab: Command) -> None:
    assert network_lab("up", star).returncode == 0
    done = network_lab("up", star, "--ray")
    assert (done.returncode, done.stdout) == (2, "")
    assert "the lab that is up has no Ray; run down, then up --ray" in done.stderr
