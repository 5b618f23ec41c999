"""A timed all-to-all as MSCCL XML: a thread block sends and one receives for each pair of ranks that exchange anything.

Both go through their transfers in the order of the schedule, so that they agree; whatever is passed on waits in scratch
memory and is sent once the thread block that receives it is through with it. Steps of the schedule only give the order:
nobody waits for a step to end elsewhere.
"""

from __future__ import annotations

from comm_plans.all_to_all.direct.demands import is_uniform
from comm_plans.all_to_all.direct.flow_problem import Indices
from comm_plans.all_to_all.direct.timed_schedule import TimedSchedule, Transfer
from comm_plans.errors import PlansError
from comm_plans.exports.msccl_lowering import MOST_CHUNKS_A_STEP
from comm_plans.exports.msccl_program import Place, Program, Wait
from comm_plans.exports.msccl_xml import MscclReport, excess_of, program_text, report_of


def all_to_all_xml(schedule: TimedSchedule) -> tuple[str, MscclReport]:
    """The XML text of a schedule whose pairs all send the same, and what it costs.

    Chunk k of what rank a sends rank b is chunk b·K + k of a's input and chunk a·K + k of b's output. The output must
    not be the input. Raises PlansError for unequal pairs and beyond the interpreters' limits.
    """
    ranks = len(schedule.topology.ranks)
    check_equal(schedule.demand)
    program = _Lowering(schedule).program
    report = report_of(schedule.topology, program)
    if excess := excess_of(report):
        raise PlansError(f"{excess}; cut the data into fewer chunks")
    sizes = [program.chunks] * ranks
    name = f"{schedule.topology.name}_all_to_all"
    return program_text(program, name, "alltoall", sizes, sizes, in_place=False), report


def check_equal(demand: Indices) -> None:
    """Raise PlansError unless all pairs send the same."""
    if not is_uniform(demand):
        raise PlansError("the pairs send different amounts, which MSCCL cannot say; leave traffic out, or write routes")


class _Lowering:
    """Builds the program transfer by transfer."""

    def __init__(self, schedule: TimedSchedule) -> None:
        ranks = len(schedule.topology.ranks)
        self.chunks = schedule.chunks
        self.program = Program(ranks, ranks * schedule.chunks, share=False)
        self.channels: dict[tuple[int, int], int] = {}
        self.held: dict[tuple[int, int, int, int], tuple[Place, Wait]] = {}
        for rank in range(ranks):
            self.keep_own(rank)
        for transfer in schedule.transfers:
            self.move(transfer)

    def keep_own(self, rank: int) -> None:
        """A rank's share of its own data goes from its input to its output."""
        block = self.program.block(rank, 0)
        own = rank * self.chunks
        for first in range(0, self.chunks, MOST_CHUNKS_A_STEP):
            size = min(MOST_CHUNKS_A_STEP, self.chunks - first)
            block.add("cpy", Place("i", own + first), Place("o", own + first), size)

    def move(self, transfer: Transfer) -> None:
        """One transfer as a step on either side; long ones as several."""
        for first in range(transfer.first, transfer.end, MOST_CHUNKS_A_STEP):
            self.move_piece(transfer, first, min(MOST_CHUNKS_A_STEP, transfer.end - first))

    def move_piece(self, transfer: Transfer, first: int, size: int) -> None:
        """Send a run of chunks from where it lies, and receive it where it belongs or may wait."""
        sender, receiver = transfer.path[0], transfer.path[-1]
        channel = self.channel(sender, receiver)
        piece = transfer.origin, transfer.destination, first
        if sender == transfer.origin:
            source, wait = Place("i", transfer.destination * self.chunks + first), None
        else:
            source, wait = self.held[sender, *piece]
        target = self.resting_place(transfer, receiver, first, size)
        self.program.block(sender, channel, send_to=receiver).add("s", source, target, size, wait)
        received = self.program.block(receiver, channel, receive_from=sender).add("r", target, target, size)
        self.held[receiver, *piece] = target, received

    def resting_place(self, transfer: Transfer, receiver: int, first: int, size: int) -> Place:
        """The output of the rank that the data is for, scratch memory elsewhere."""
        if receiver == transfer.destination:
            return Place("o", transfer.origin * self.chunks + first)
        return self.program.claim_scratch(receiver, size)

    def channel(self, sender: int, receiver: int) -> int:
        """The channel of a pair of ranks, claimed once."""
        if (sender, receiver) not in self.channels:
            self.channels[sender, receiver] = self.program.claim_channel([sender, receiver])
        return self.channels[sender, receiver]
