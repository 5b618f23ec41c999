"""What happens to streams when a rank dies, hangs, follows another plan, or a stranger knocks."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from dataclasses import replace

import pytest
import torch
from live_networks import two_boxes
from live_ranks import open_files, run_ranks
from torch import distributed as dist

from comm_plans import solve
from comm_plans.fabrics import fabric
from comm_plans.runtime.lowering import lower
from comm_plans.runtime.program import RankProgram
from comm_plans.runtime.streams import StreamTransport
from comm_plans.runtime.streams.handshake import GREETING_BYTES, greeting
from comm_plans.runtime.streams.meeting import MOST_STRANGERS
from comm_plans.runtime.streams.wires import Phase, Wire
from comm_plans.runtime.transport import Job, TransportError

Programs = tuple[RankProgram, ...]
PACED = lower(solve(two_boxes(), "all_reduce"))  # 10 MB take about a second
RING = lower(solve(fabric("ring:ranks=4"), "all_reduce"))
MESH = lower(solve(fabric("full_mesh:ranks=4"), "all_reduce"))


def summed(transport: StreamTransport, program: RankProgram, size: int = 1000) -> None:
    buffer = torch.ones(size)
    transport.submit(program, buffer).wait(30)
    assert buffer.eq(program.world_size).all()


def failing(transport: StreamTransport, program: RankProgram, size: int) -> tuple[str, float]:
    """The error of two jobs, and how long after the start; the lost rank may have done its part in the first one."""
    begun = time.monotonic()
    first, second = (transport.submit(program, torch.ones(size)) for _ in range(2))
    with pytest.raises(TransportError) as caught:
        second.wait(30)
    assert second.error is caught.value
    assert first.done()
    assert first.error in (None, second.error)
    passed = time.monotonic() - begun
    with pytest.raises(TransportError):
        transport.submit(program, torch.ones(size))
    before = threading.active_count()
    transport.close()
    assert threading.active_count() <= before
    assert not [each for each in threading.enumerate() if "streams" in each.name]
    return str(caught.value), passed


def vanish(rank: int, store: dist.Store, programs: Programs, size: int, how: signal.Signals) -> tuple[str, float]:
    """Rank 2 vanishes while it takes part in a collective of `size`, or before it comes to one if that is small."""
    transport = StreamTransport(store, deadline=1.5)
    summed(transport, programs[rank])
    if rank == 2:
        if size > 1000:
            transport.submit(programs[rank], torch.ones(size))
            time.sleep(0.1)
        os.kill(os.getpid(), how)
    return failing(transport, programs[rank], size)


def without_2(results: list[tuple[str, float]]) -> list[tuple[str, float]]:
    return results[:2] + results[3:]


@pytest.mark.parametrize("size", [pytest.param(2_500_000, id="in the middle"), pytest.param(1000, id="before")])
def test_a_killed_rank_is_an_error_everywhere_within_a_second(size: int) -> None:
    for message, seconds in without_2(run_ranks(8, vanish, PACED, size, signal.SIGKILL, lost={2})):
        assert "rank 2 " in message
        assert "start again from the last snapshot" in message
        assert seconds < 5


@pytest.mark.parametrize(
    "size", [pytest.param(600_000, id="in the middle", marks=pytest.mark.slow), pytest.param(1000, id="before")]
)
def test_a_stopped_rank_is_an_error_everywhere_after_the_deadline(size: int) -> None:
    for message, seconds in without_2(run_ranks(8, vanish, PACED, size, signal.SIGSTOP, lost={2})):
        assert message.startswith(("rank 2 has given no sign of life for", "rank 2 stopped in the middle"))
        assert 1 < seconds < 15


def lag(rank: int, store: dist.Store, programs: Programs) -> None:
    transport = StreamTransport(store, deadline=1.5, timeout=20.0)
    summed(transport, programs[rank])
    if rank == 1:
        time.sleep(3)
    summed(transport, programs[rank])
    transport.close()


@pytest.mark.slow
def test_a_rank_that_lives_but_lags_behind_is_waited_for() -> None:
    run_ranks(4, lag, MESH)


def never_come(rank: int, store: dist.Store, programs: Programs) -> str:
    transport = StreamTransport(store, timeout=1.5)
    summed(transport, programs[rank])
    if rank == 1:
        time.sleep(20)
    return failing(transport, programs[rank], 1000)[0]


@pytest.mark.slow
def test_a_rank_that_never_comes_is_given_up() -> None:
    results = run_ranks(4, never_come, MESH, lost={1})
    for message in results[:1] + results[2:]:
        assert message.startswith("rank 1 did not come to the collective within 1.5 s")


def come_one_by_one(rank: int, store: dist.Store, programs: Programs) -> str:
    transport = StreamTransport(store, timeout=1.5)
    summed(transport, programs[rank])
    if rank in (1, 3):
        time.sleep(20)
    time.sleep(rank / 4)  # 0 gives up first and tells 1 and 3, which have nothing to do and close; 2 sees but them
    return failing(transport, programs[rank], 1000)[0]


def test_a_rank_with_nothing_to_do_passes_on_what_it_was_told() -> None:
    for message in run_ranks(4, come_one_by_one, RING, lost={1, 3})[::2]:
        assert message.startswith("rank 1, 3 did not come to the collective within 1.5 s")


def disagree(rank: int, store: dist.Store) -> str:
    transport = StreamTransport(store, timeout=10)
    program = MESH[rank] if rank != 3 else replace(MESH[rank], digest="ab" * 32)
    with pytest.raises(TransportError) as caught:
        transport.submit(program, torch.ones(10))
    with pytest.raises(TransportError):
        transport.submit(program, torch.ones(10))
    return str(caught.value)


def test_ranks_with_different_plans_refuse() -> None:
    messages = run_ranks(4, disagree)
    assert set(messages) == {
        f"rank 0 follows the all_reduce plan {MESH[0].digest[:12]} and rank 3 the plan {'ab' * 6}; "
        "give all ranks the same plan"
    }


def stay_away(rank: int, store: dist.Store) -> str:
    transport = StreamTransport(store, timeout=1.0)
    with pytest.raises(TransportError) as caught:
        transport.submit(MESH[rank], torch.ones(10))
    return str(caught.value)


def test_a_rank_that_does_not_come_to_the_first_collective_is_given_up() -> None:
    three = run_ranks(3, stay_away)
    assert all(message.startswith("not all 4 ranks came to start all_reduce within 1 s") for message in three)


def knock(port: int, said: bytes) -> socket.socket:
    caller = socket.create_connection(("127.0.0.1", port), timeout=10)
    caller.sendall(said)
    return caller


def besieged(rank: int, store: dist.Store) -> int:
    """Rank 1 comes late, so that strangers can knock at the listener of rank 0 meanwhile."""
    transport = StreamTransport(store)
    refused = 0
    if rank == 1:
        keys = [f"rank{peer}" for peer in (0, 2, 3)]
        meeting = dist.PrefixStore("meeting1", store)
        meeting.wait(keys)
        port = int(meeting.get("rank0").decode().rstrip("]").split(",")[-1])
        secret = bytes.fromhex(meeting.get("secret").decode())
        wire = Wire(Phase.REDUCE, 0, 1, 0)
        wrong = [b"GET / HTTP/1.1\r\n\r\n", b"\0" * 100_000, greeting(b"guess", MESH[0].digest, wire)]
        wrong += [greeting(secret, "00" * 32, wire), greeting(secret, MESH[0].digest, Wire(Phase.REDUCE, 9, 1, 0))]
        silent = [knock(port, b"") for _ in range(2 * MOST_STRANGERS)]
        callers = [knock(port, said) for said in wrong] + [knock(port, b"half")]
        callers[-1].close()
        summed(transport, MESH[rank])
        for caller in callers[:-1] + silent:
            caller.settimeout(10)
            try:
                refused += caller.recv(GREETING_BYTES) == b""
            except ConnectionResetError:
                refused += 1
    else:
        summed(transport, MESH[rank])
    summed(transport, MESH[rank], 100_000)
    transport.close()
    return refused


def test_strangers_are_refused_and_harm_nothing() -> None:
    assert run_ranks(4, besieged)[1] == 5 + 2 * MOST_STRANGERS


def nobody_listens(rank: int, store: dist.Store) -> list[int]:
    transport = StreamTransport(store)
    summed(transport, MESH[rank])
    port = int(dist.PrefixStore("meeting1", store).get("rank0").decode().rstrip("]").split(",")[-1])
    with socket.socket() as caller:
        error = caller.connect_ex(("127.0.0.1", port))
    summed(transport, MESH[rank])
    transport.close()
    return error


def test_nobody_listens_after_the_meeting() -> None:
    assert all(run_ranks(4, nobody_listens))


def another_listens(rank: int, store: dist.Store) -> str:
    """Rank 3's port is that of a program which is none of the job's."""
    other = socket.create_server(("127.0.0.1", 0))
    if rank == 3:
        meeting = dist.PrefixStore("meeting1", store)
        place = other.getsockname()
        meeting.set("rank3", f'["{MESH[3].digest}", "127.0.0.1", {place[1]}]')
        callers = [other.accept()[0] for _ in range(9)]  # reduce, broadcast and lifeline of three ranks
        for caller in callers:
            caller.send(b"220 ESMTP welcome, whoever you are, to this mail server")
        return ""
    transport = StreamTransport(store)
    with pytest.raises(TransportError) as caught:
        transport.submit(MESH[rank], torch.ones(10))
    return str(caught.value)


def test_a_stale_port_where_another_program_listens_is_an_error() -> None:
    messages = run_ranks(4, another_listens)
    assert any(
        message.startswith("rank 3 cannot be reached (it does not know this job's secret)") for message in messages
    )


def swap(rank: int, store: dist.Store, others: Programs) -> list[int]:
    files = []
    transport = StreamTransport(store)
    for programs in (MESH, others, MESH):
        summed(transport, programs[rank], 5000)
        files.append(open_files())
        transport.release(programs[rank])
    transport.close()
    return files


def test_plans_are_swapped_between_jobs() -> None:
    for first, _, third in run_ranks(4, swap, lower(solve(fabric("ring:ranks=4"), "all_reduce"))):
        assert first == third


def tidy(rank: int, store: dist.Store) -> None:
    before = None
    for turn in range(3):
        transport = StreamTransport(dist.PrefixStore(f"turn{turn}", store))
        summed(transport, MESH[rank])
        transport.close()
        transport.close()
        with pytest.raises(TransportError, match="the transport was closed"):
            transport.submit(MESH[rank], torch.ones(3))
        before = before or open_files()
    assert threading.active_count() == 1
    assert open_files() == before


def test_nothing_is_left_after_close() -> None:
    run_ranks(4, tidy)


def idle(rank: int, store: dist.Store) -> float:
    transport = StreamTransport(store)
    summed(transport, MESH[rank])
    if rank == 0:
        transport.submit(MESH[rank], torch.ones(1000))
    begun = time.process_time()
    time.sleep(2)
    spent = time.process_time() - begun
    transport.close()
    return spent


@pytest.mark.slow
def test_waiting_costs_nothing() -> None:
    assert max(run_ranks(4, idle)) < 0.4


@pytest.mark.parametrize(
    "buffer", [torch.ones(4, 4), torch.ones(8)[::2], torch.ones(4, device="meta")], ids=["shape", "gaps", "device"]
)
def test_buffers_that_are_not_flat_are_refused(buffer: torch.Tensor) -> None:
    transport = StreamTransport(dist.HashStore())
    with pytest.raises(TransportError, match="pass a flat copy"):
        transport.submit(MESH[0], buffer)
    transport.close()


def test_an_interface_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "nosuch0")
    with pytest.raises(TransportError, match=r"interface nosuch0 has no IPv4 address.*lo"):
        StreamTransport(dist.HashStore())
    StreamTransport(dist.HashStore(), interface="lo").close()


def on_another_machine(rank: int, store: dist.Store) -> str:
    if rank == 3:
        meeting = dist.PrefixStore("meeting1", store)
        meeting.set("rank3", f'["{MESH[3].digest}", "192.0.2.7", 4711]')
        return ""
    with pytest.raises(TransportError) as caught:
        StreamTransport(store).submit(MESH[rank], torch.ones(10))
    return str(caught.value)


def test_a_rank_that_others_cannot_reach_is_named() -> None:
    for message in run_ranks(4, on_another_machine)[:3]:
        assert message.startswith("rank 0 listens on 127.0.0.1, where other machines cannot reach it")


def chained(rank: int, store: dist.Store) -> bool:
    """A callback that fails, and one that submits."""
    transport = StreamTransport(store)
    first, second = torch.ones(1000), torch.ones(2000)
    summed(transport, MESH[rank])
    started: list[Job] = []
    job = transport.submit(MESH[rank], first)
    job.add_done_callback(lambda _: started.append(transport.submit(MESH[rank], second)))
    job.add_done_callback(lambda _: 1 / 0)
    job.wait(10)
    while not started:
        time.sleep(0.01)
    started[0].wait(10)
    summed(transport, MESH[rank])
    transport.close()
    return bool(first.eq(4).all() and second.eq(4).all() and not second.is_inference())


def test_callbacks_may_submit_and_may_fail() -> None:
    assert all(run_ranks(4, chained))
