"""Where no lab can be built: one sentence, what to install or do, exit code 2, and nothing written."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from lab.shell import require

from comm_plans.lab_state import LabError

Command = Callable[..., "subprocess.CompletedProcess[str]"]


def assert_refused(done: subprocess.CompletedProcess[str], words: str, state: Path) -> None:
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    assert not state.exists()


def test_without_iproute2(network_lab: Command, star: Path, own_state: Path) -> None:
    done = network_lab("up", star, env=os.environ | {"PATH": "/nowhere"})
    assert_refused(done, "the command ip is not installed; install iproute2 (apt-get install iproute2)", own_state)


def test_without_tc(network_lab: Command, star: Path, own_state: Path, tmp_path: Path) -> None:
    (tmp_path / "ip").symlink_to("/bin/true")
    done = network_lab("up", star, env=os.environ | {"PATH": str(tmp_path)})
    assert_refused(done, "the command tc is not installed", own_state)


def required_as_nobody(pipe: Connection) -> None:
    os.setuid(65534)
    with pytest.raises(LabError) as refusal:
        require()
    pipe.send(str(refusal.value))


@pytest.mark.usefixtures("root")
def test_without_root() -> None:
    ours, theirs = get_context("fork").Pipe(duplex=False)
    get_context("fork").Process(target=required_as_nobody, args=(theirs,)).start()
    theirs.close()
    assert ours.recv() == "the network lab makes network namespaces and needs root; run it with sudo"


@pytest.mark.usefixtures("root")
@pytest.mark.parametrize(
    ("said", "meant"),
    [
        (
            "Error: Unknown device type.",
            "the kernel has no veth or bridge devices; load them with modprobe veth bridge",
        ),
        ("Error: Specified qdisc kind is unknown.", "the kernel cannot shape with tbf; load it with modprobe sch_tbf"),
        ("mount failed: Operation not permitted", "a container must be started with --privileged"),
        ("RTNETLINK answers: No buffer space available", "failed: RTNETLINK answers: No buffer space available"),
    ],
)
def test_what_the_kernel_lacks(
    network_lab: Command, star: Path, own_state: Path, tmp_path: Path, said: str, meant: str
) -> None:
    for tool in ("ip", "tc"):
        script = tmp_path / tool
        script.write_text(f"#!/bin/sh\necho '{said}' >&2\nexit 1\n")
        script.chmod(0o755)
    done = network_lab("up", star, env=os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert_refused(done, meant, own_state)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["up", "nothing.yaml"], "nothing.yaml cannot be read"),
        (["up"], "the following arguments are required: FILE"),
        (["fly"], "invalid choice: 'fly'"),
        (["degrade", "star.yaml", "h0-switch", "fast"], "'fast' is no rate"),
        (["status"], "no network lab is up"),
    ],
)
def test_what_was_meant_is_not_clear(network_lab: Command, own_state: Path, arguments: list[str], words: str) -> None:
    if os.geteuid() and arguments == ["up", "nothing.yaml"]:
        words = "needs root"
    assert_refused(network_lab(*arguments), words, own_state)


@pytest.mark.usefixtures("root")
def test_a_command_that_is_not_there(network_lab: Command, star: Path, own_state: Path) -> None:
    assert_refused(network_lab("run", star, "--", "no-such-thing"), "the command no-such-thing is not there", own_state)
