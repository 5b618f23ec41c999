"""The lab on this machine: what its links carry, what a person does to it, and that nothing of it is left."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest
from lab import life
from lab.blueprint import blueprint, prefix
from lab.faults import cut
from lab.namespaces import present, processes, remove
from lab.report import reachability
from lab.shell import run
from lab_flows import BURST, Pair, goodputs

from comm_plans.lab_state import LabError, LabState

pytestmark = pytest.mark.usefixtures("root")
Command = Callable[..., "subprocess.CompletedProcess[str]"]
TRIES = 8
SCRIPT = Path(__file__).parents[2] / "scripts/network_lab.py"


def own_namespaces() -> set[str]:
    return {name for name in present() if name.startswith(f"{prefix()}-")}


def until(happened: Callable[[], Any]) -> None:
    deadline = monotonic() + 30
    while not happened():
        assert monotonic() < deadline
        sleep(0.02)


def assert_carries(lab: LabState, megabits: dict[Pair, float], size: int) -> None:
    """All pairs at once: never more than the link's rate, and within some tries, if the machine is busy, most of it."""
    best = dict.fromkeys(megabits, 0.0)
    for _ in range(TRIES):
        for pair, rate in goodputs(lab, list(megabits), size).items():
            assert rate < megabits[pair]
            best[pair] = max(best[pair], rate)
        if all(best[pair] > 0.6 * megabits[pair] for pair in megabits):
            return
    pytest.fail(f"at best {best} Mbit/s of {megabits}")


def test_links_carry_what_the_file_says(star: Path) -> None:
    with life.standing(star) as lab:
        for pair, megabits in (((0, 1), 200), ((2, 0), 100), ((0, 3), 50)):
            assert_carries(lab, {pair: megabits}, 1_000_000)
        assert_carries(lab, {(0, 1): 200, (1, 0): 200, (2, 3): 50}, 1_000_000)


def test_direct_links_of_a_rank_carry_at_once(torus: Path) -> None:
    with life.standing(torus) as lab:
        assert_carries(lab, dict.fromkeys([(0, 1), (0, 2), (0, 3), (0, 6), (4, 8)], 50), 1_000_000)


def test_between_rail_boxes_each_rank_has_its_own_card(star: Path) -> None:
    with life.standing(star.with_name("rail_boxes.yaml")) as lab:
        assert_carries(lab, {(0, 4): 25, (1, 5): 25, (2, 3): 200}, 600_000)


def test_a_direction_has_its_own_rate(tmp_path: Path) -> None:
    file = tmp_path / "two.yaml"
    file.write_text("{ranks: [a, b], links: [[a, b, 0.01], [b, a, 0.00125]]}")
    with life.standing(file) as lab:
        assert_carries(lab, {(0, 1): 80, (1, 0): 10}, 400_000)


def test_a_degraded_link_is_slow_at_once_and_remembered(star: Path, network_lab: Command) -> None:
    with life.standing(star) as lab:
        assert_carries(lab, {(0, 1): 200}, 1_000_000)
        assert "h1-switch has 10 Mbit/s" in network_lab("degrade", star, "h1-switch", "10mbit").stdout
        assert_carries(lab, {(0, 1): 10, (1, 0): 10}, 200_000)
        assert "switch                   10 Mbit/s" in network_lab("status").stdout
        network_lab("degrade", star, "h1-switch", "0.025")
        assert LabState.load() == lab


def test_what_can_goes_around_a_cut(torus: Path, network_lab: Command) -> None:
    with life.standing(torus) as lab:
        assert "all ranks still reach each other" in network_lab("cut", torus, "h0-h1").stdout
        assert_carries(lab, {(0, 1): 50}, 400_000)
        again = network_lab("cut", torus, "h0-h1")
        assert (again.returncode, again.stdout) == (2, "")
        assert "link h0-h1 is cut" in again.stderr
        lab = LabState.load()
        for peer in ("h2", "h3", "h6"):
            lab = cut(lab, f"h0-{peer}")
        assert reachability(lab) == "the ranks are in 2 parts now: h0 | h1, h2, h3, h4, h5, h6, h7, h8"
        assert_carries(lab, {(4, 1): 50}, 400_000)


def test_run_starts_the_command_on_each_rank(star: Path, network_lab: Command) -> None:
    words = "echo $RANK of $WORLD_SIZE, $MASTER_ADDR, $GLOO_SOCKET_IFNAME; ip -4 -o addr show dev id0 | cut -c1-40"
    done = network_lab("run", star, "--", "sh", "-c", words)
    assert done.returncode == 0, done.stderr
    for rank in range(4):
        assert f"[h{rank}] {rank} of 4, 10.77.0.1, id0" in done.stdout
        assert any(f"[h{rank}]" in line and f"inet 10.77.0.{rank + 1}/32" in line for line in done.stdout.splitlines())
    assert not own_namespaces()
    assert not LabState.path().exists()


def test_run_ends_the_others_when_one_fails(star: Path, network_lab: Command) -> None:
    begin = monotonic()
    done = network_lab("run", star, "--", "sh", "-c", "test $RANK != 2 || exit 7; sleep 1000")
    assert done.returncode == 7
    assert monotonic() - begin < 100
    assert not own_namespaces()


def test_run_in_a_lab_that_is_up_leaves_it_up(star: Path, network_lab: Command) -> None:
    with life.standing(star) as lab:
        assert network_lab("run", star, "--", "true").returncode == 0
        assert LabState.load() == lab
        assert "is up: 4 ranks, 4 links" in network_lab("up", star).stdout


def test_a_second_lab_is_refused(star: Path, torus: Path, network_lab: Command) -> None:
    with life.standing(star) as lab:
        for arguments in (("up", torus), ("run", torus, "--", "true"), ("cut", torus, "h0-h1")):
            done = network_lab(*arguments)
            assert (done.returncode, done.stdout) == (2, "")
            assert "the lab that is up was built from" in done.stderr
            assert done.stderr.count("\n") == 1
        with pytest.raises(LabError, match="a lab is up already"):
            life.up(torus)
        assert LabState.load() == lab


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_run_that_is_told_to_end_cleans_up(star: Path, number: signal.Signals) -> None:
    command = [sys.executable, str(SCRIPT), "run", str(star), "--", "sleep", "1000"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as ours:
        until(lambda: LabState.path().exists() and len(processes(LabState.load())) >= 4)
        lab = LabState.load()
        ours.send_signal(number)
        assert ours.wait(60) == 128 + number
        assert ours.stderr
        assert not ours.stderr.read()
    assert not own_namespaces()
    assert not LabState.path().exists()
    assert not processes(lab)


def test_a_lab_can_be_taken_down_while_a_run_is_about_to(star: Path, network_lab: Command) -> None:
    command = [sys.executable, str(SCRIPT), "run", str(star), "--", "sleep", "1000"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as ours:
        until(lambda: LabState.path().exists() and len(processes(LabState.load())) >= 4)
        assert (network_lab("down").returncode, ours.wait(60)) == (0, 128 + signal.SIGTERM)
        assert ours.stderr
        assert not ours.stderr.read()
    assert not own_namespaces()


@pytest.mark.parametrize("made", [1, 25])
def test_down_clears_what_a_killed_up_left(tmp_path: Path, network_lab: Command, made: int) -> None:
    file = tmp_path / "ring.yaml"
    ring = [[str(rank), str((rank + 1) % 40), 0.01] for rank in range(40)]
    file.write_text(f'{{"ranks": {[str(rank) for rank in range(40)]}, "cables": {ring}}}'.replace("'", '"'))
    with subprocess.Popen([sys.executable, str(SCRIPT), "up", str(file)], stdout=subprocess.DEVNULL) as ours:
        until(lambda: len(own_namespaces()) >= made)
        ours.kill()
    refused = network_lab("up", file)
    assert refused.returncode == 2 or LabState.load().complete
    assert network_lab("down").returncode == 0
    assert not own_namespaces()
    assert network_lab("down").stdout == "no lab is up\n"


def test_a_failing_up_leaves_nothing_and_touches_nobody_elses(star: Path, network_lab: Command) -> None:
    foreign = blueprint(star).ranks[2].namespace
    run("ip", "netns", "add", foreign)
    try:
        done = network_lab("up", star)
        assert done.returncode == 2
        assert f"namespace {foreign} exists and no lab knows it" in done.stderr
        assert own_namespaces() == {foreign}
        assert not LabState.path().exists()
    finally:
        run("ip", "netns", "del", foreign)


def test_down_ends_what_runs_in_the_lab_and_nothing_else(star: Path) -> None:
    lab = life.up(star)
    with (
        subprocess.Popen(["ip", "netns", "exec", lab.ranks[0].namespace, "sleep", "1000"]) as inside,
        subprocess.Popen(["sleep", "1000"]) as outside,
    ):
        until(lambda: processes(lab) == {inside.pid})
        life.down()
        assert inside.wait() == -signal.SIGTERM
        assert outside.poll() is None
        outside.kill()


def test_one_that_will_not_end_is_ended(star: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lab.namespaces.GRACE", 0.3)
    lab = life.up(star)
    stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(1000)"
    command = ["ip", "netns", "exec", lab.ranks[0].namespace, sys.executable, "-c", stubborn]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as inside:
        assert inside.stdout
        assert inside.stdout.readline()
        life.down()
        assert inside.wait() == -signal.SIGKILL


def test_latencies_are_kept_or_remarked_on(tmp_path: Path, network_lab: Command) -> None:
    file = tmp_path / "slow.yaml"
    file.write_text("{ranks: [a, b], cables: [{from: a, to: b, bandwidth: 0.01, latency: 0.25}]}")
    done = network_lab("up", file)
    assert done.returncode == 0
    if "latencies are left out" not in done.stderr:
        assert goodputs(LabState.load(), [(0, 1)], 8)[0, 1] < (8 + BURST) * 8 / 0.25 / 1e6


def test_the_lab_stays_out_of_the_machines_own_network(star: Path) -> None:
    before = socket.if_nameindex()
    with life.standing(star):
        assert socket.if_nameindex() == before


def test_degrading_what_is_not_there_is_a_sentence(star: Path, network_lab: Command) -> None:
    with life.standing(star):
        done = network_lab("degrade", star, "h0-h1", "10mbit")
        assert (done.returncode, done.stdout) == (2, "")
        assert "h0-h1 is no link of" in done.stderr


def test_a_lab_that_lacks_a_part_is_a_sentence_and_can_be_taken_down(star: Path, network_lab: Command) -> None:
    lab = life.up(star)
    for _ in range(2):
        remove(lab.ranks[0].namespace)
    for arguments in (
        ("run", star, "--", "true"),
        ("degrade", star, "h0-switch", "10mbit"),
        ("cut", star, "h0-switch"),
    ):
        done = network_lab(*arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert "; run down, then up again\n" in done.stderr
        assert done.stderr.count("\n") == 1
    assert network_lab("down").returncode == 0
    assert not own_namespaces()
