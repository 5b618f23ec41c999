"""A verified plan as MSCCL XML, which the interpreters in MSCCL and RCCL run in place of NCCL's own algorithms.

The dialect is the one both parsers accept: `inplace`, `outofplace`, `minBytes` and `maxBytes` always present, one
dependency a step, counts below 72. Input buffers are never written. The full buffer is `nchunksperloop` chunks; the
interpreter repeats the program over a long message, slice by slice. Every tree has thread blocks of its own if a GPU
holds them all; otherwise trees take turns in shared ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

from comm_plans.errors import PlansError
from comm_plans.exports.msccl_lowering import lower
from comm_plans.exports.msccl_program import Program, Step, ThreadBlock
from comm_plans.plan import Plan
from comm_plans.topology import Topology
from comm_plans.verifier import verify

NAMES = {
    "all_gather": "allgather",
    "reduce_scatter": "reduce_scatter",
    "all_reduce": "allreduce",
    "broadcast": "broadcast",
    "reduce": "reduce",
}
MOST_CHANNELS = 32
MOST_STEPS = 256  # in a thread block
MOST_BLOCKS = 108  # on a GPU: all must be resident at once, and an A100 has 108 multiprocessors
MOST_CHUNKS = 2**15 - 1  # offsets are 16-bit integers in the interpreter
ANY_SIZE = 2**63 - 1


@dataclass(frozen=True)
class MscclReport:
    """What the program costs: the most thread blocks, steps and scratch chunks anywhere, channels, chunks a loop, and
    connections that leave each host (many of them through one network card are slow, whatever the plan says)."""

    chunks: int
    channels: int
    thread_blocks: int
    steps: int
    scratch_chunks: int
    connections_by_host: dict[str, int]


def msccl_xml(plan: Plan) -> tuple[str, MscclReport]:
    """The XML text of `plan` and what it costs.

    Raises PlanError if the plan fails verification, and PlansError if MSCCL cannot express it (switches that multicast
    or reduce, unequal shards) or it exceeds a limit of the interpreters.
    """
    verify(plan.to_document())
    program = lower(plan, share=False)
    if excess_of(report_of(plan.topology, program)):
        program = lower(plan, share=True)
    report = report_of(plan.topology, program)
    if excess := excess_of(report):
        raise PlansError(f"{excess}; solve again with fewer trees, such as --trees-per-rank 1")
    return written(plan, program), report


def written(plan: Plan, program: Program) -> str:
    """The XML text of a plan's program."""
    shard, full = program.chunks // program.ranks, program.chunks
    at_root = [full if rank == plan.root else 0 for rank in range(program.ranks)]
    all_full, all_shard = [full] * program.ranks, [shard] * program.ranks
    inputs = {"all_gather": all_shard, "broadcast": at_root}.get(plan.collective, all_full)
    outputs = {"reduce_scatter": all_shard, "reduce": at_root}.get(plan.collective, all_full)
    name = f"{plan.topology.name}_{plan.collective}"
    return program_text(program, name, NAMES[plan.collective], inputs, outputs, in_place=True)


def program_text(
    program: Program, name: str, collective: str, inputs: Sequence[int], outputs: Sequence[int], in_place: bool
) -> str:
    """The XML text of a program; inputs, outputs: chunks of each rank's buffers. collective: in MSCCL's words."""
    root = ElementTree.Element(
        "algo",
        name=name,
        proto="Simple",
        nchannels=str(program.channels),
        nchunksperloop=str(program.chunks),
        ngpus=str(program.ranks),
        coll=collective,
        inplace=str(int(in_place)),
        outofplace="1",
        minBytes="0",
        maxBytes=str(ANY_SIZE),
    )
    for rank in range(program.ranks):
        root.append(_gpu(program, rank, inputs[rank], outputs[rank]))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def report_of(topology: Topology, program: Program) -> MscclReport:
    """What a program on a network costs."""
    host_of = {rank: host for host, members in topology.hosts.items() for rank in members}
    names = topology.ranks
    leaving: Counter[str] = Counter(dict.fromkeys(topology.hosts, 0))
    for (sender, receiver), channels in program.connections.items():
        host = host_of.get(names[sender], names[sender])
        if host != host_of.get(names[receiver], names[receiver]):
            leaving[host] += channels
    return MscclReport(
        chunks=program.chunks,
        channels=program.channels,
        thread_blocks=max(len(blocks) for blocks in program.blocks),
        steps=max(len(block.steps) for blocks in program.blocks for block in blocks),
        scratch_chunks=max(program.scratch.values(), default=0),
        connections_by_host=dict(leaving),
    )


def excess_of(report: MscclReport) -> str:
    """Which limit is exceeded, in words; empty if none is."""
    limits = (
        ("channels", report.channels, MOST_CHANNELS),
        ("thread blocks on a GPU", report.thread_blocks, MOST_BLOCKS),
        ("steps in a thread block", report.steps, MOST_STEPS),
        ("chunks a loop", report.chunks, MOST_CHUNKS),
        ("scratch chunks on a GPU", report.scratch_chunks, MOST_CHUNKS),
    )
    for what, needed, allowed in limits:
        if needed > allowed:
            return f"this plan needs {needed} {what} as MSCCL XML, which allows {allowed}"
    return ""


def _gpu(program: Program, rank: int, inputs: int, outputs: int) -> ElementTree.Element:
    gpu = ElementTree.Element(
        "gpu", id=str(rank), i_chunks=str(inputs), o_chunks=str(outputs), s_chunks=str(program.scratch[rank])
    )
    for block in program.blocks[rank]:
        gpu.append(_thread_block(block))
    return gpu


def _thread_block(block: ThreadBlock) -> ElementTree.Element:
    element = ElementTree.Element(
        "tb", id=str(block.number), send=str(block.send_to), recv=str(block.receive_from), chan=str(block.channel)
    )
    for number, step in enumerate(block.steps):
        element.append(_step(number, step, number in block.awaited))
    return element


def _step(number: int, step: Step, awaited: bool) -> ElementTree.Element:
    return ElementTree.Element(
        "step",
        s=str(number),
        type=step.kind,
        srcbuf=step.source.buffer,
        srcoff=str(step.source.offset),
        dstbuf=step.target.buffer,
        dstoff=str(step.target.offset),
        cnt=str(step.chunks),
        depid=str(step.wait.block.number if step.wait else -1),
        deps=str(step.wait.step if step.wait else -1),
        hasdep=str(int(awaited)),
    )
