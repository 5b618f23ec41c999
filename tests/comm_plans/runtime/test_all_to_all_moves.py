"""What each rank does of an all-to-all schedule, replayed on buffers in memory: every byte arrives, there and back."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comm_plans.all_to_all.cluster import Cluster
from comm_plans.all_to_all.flash import pipelined, published
from comm_plans.runtime.all_to_all.moves import Message, Moves, moves, starts, turned

Memory = dict[str, np.ndarray]


@st.composite
def clusters_and_traffic(draw: st.DrawFn) -> tuple[Cluster, np.ndarray]:
    """Servers of unequal sizes; most blocks are small or empty, some large."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    cluster = Cluster(tuple(sizes), 10.0, 1.0, intra_fabric=draw(st.sampled_from(["switch", "mesh"])))
    amounts = st.one_of(st.just(0), st.integers(0, 9), st.integers(0, 3000))
    rows = st.lists(amounts, min_size=cluster.ranks, max_size=cluster.ranks)
    return cluster, np.array(draw(st.lists(rows, min_size=cluster.ranks, max_size=cluster.ranks)), np.int64)


def block(origin: int, destination: int, size: int) -> np.ndarray:
    """Bytes that tell blocks apart, and places within a block."""
    return (np.arange(size) * 7 + origin * 31 + destination * 101).astype(np.uint8)


def memory_of(rank: int, sizes: np.ndarray, own: Moves, forwards: bool) -> Memory:
    blocks = [block(rank, peer, size) if forwards else block(peer, rank, size) for peer, size in enumerate(sizes[rank])]
    taken = np.zeros(sizes[:, rank].sum(), np.uint8)
    first = starts(sizes[:, rank])[rank]
    taken[first : first + sizes[rank, rank]] = blocks[rank]
    return {"given": np.concatenate(blocks), "relayed": np.zeros(own.relayed_bytes, np.uint8), "taken": taken}


def replay(all_moves: list[Moves], memories: list[Memory]) -> None:
    """Let every rank go through its steps at its own pace; a step's messages leave before any of them is unpacked."""
    under_way: dict[tuple[int, int], list[np.ndarray]] = {}
    sent = [0] * len(all_moves)
    done = [0] * len(all_moves)
    while any(count < len(own.steps) for count, own in zip(done, all_moves, strict=True)):
        before = sum(sent) + sum(done)
        for rank, own in enumerate(all_moves):
            if sent[rank] == done[rank] < len(own.steps):
                for message in own.steps[sent[rank]].sends:
                    under_way.setdefault((rank, message.peer), []).append(read(message, memories[rank]))
                sent[rank] += 1
            if done[rank] < sent[rank]:
                receives = own.steps[done[rank]].receives
                if all(under_way.get((message.peer, rank)) for message in receives):
                    for message in receives:
                        write(message, under_way[message.peer, rank].pop(0), memories[rank])
                    done[rank] += 1
        assert sum(sent) + sum(done) > before, "every rank waits for another"
    assert not any(under_way.values())


def read(message: Message, memory: Memory) -> np.ndarray:
    return np.concatenate([memory[buffer][low:high] for buffer, low, high in message.parts])


def write(message: Message, content: np.ndarray, memory: Memory) -> None:
    assert len(content) == sum(high - low for _, low, high in message.parts)
    for buffer, low, high in message.parts:
        memory[buffer][low:high], content = content[: high - low], content[high - low :]


@pytest.mark.parametrize("schedule", [pipelined, published])
@settings(max_examples=60)
@given(case=clusters_and_traffic())
def test_every_byte_arrives_there_and_back(schedule, case):
    cluster, traffic = case
    steps = list(schedule(cluster, traffic).steps())
    for forwards, sizes, way in ((True, traffic, steps), (False, traffic.T, turned(steps))):
        all_moves = [moves(rank, sizes, way) for rank in range(cluster.ranks)]
        memories = [memory_of(rank, sizes, own, forwards) for rank, own in enumerate(all_moves)]
        replay(all_moves, memories)
        for rank, memory in enumerate(memories):
            ends = [(rank, peer) if not forwards else (peer, rank) for peer in range(cluster.ranks)]
            expected = [block(*pair, traffic[pair]) for pair in ends]
            assert np.array_equal(memory["taken"], np.concatenate(expected))


def test_what_lies_side_by_side_travels_as_one_part():
    cluster = Cluster((1, 1), 10.0, 1.0)
    own = moves(0, np.array([[5, 1000], [0, 0]]), pipelined(cluster, np.array([[5, 1000], [0, 0]])).steps())
    parts = [message.parts for step in own.steps for message in step.sends]
    assert all(len(part) == 1 for part in parts)
    assert sum(part[0].high - part[0].low for part in parts) == 1000
    assert own.relayed_bytes == 0
