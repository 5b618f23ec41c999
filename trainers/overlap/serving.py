"""One transformer layer of tensor-parallel serving as operations, and how it is cut and rewritten.

NanoFlow, arXiv 2408.12757, sections 2 and 4. Tokens of the batch come in its order: those that decode, then chunks of
prompts.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from trainers.overlap.operations import Operation, OperationGraph, Resource
from trainers.overlap.rewriting import split

KQV, DECODE, PREFILL, OUT, UP_GATE, DOWN = "KQV", "decode attention", "prefill attention", "O", "up+gate", "down"
SUM_O, SUM_DOWN, GATHER_ATTENTION, GATHER_O = "sum O", "sum down", "gather attention", "gather O"


def layer(batch: int, prompts_from: int, network: bool = True) -> OperationGraph:
    """A layer in the form GEMM → all-reduce, uncut; chunks of prompts begin at token `prompts_from`.

    network: False on one device, where nothing is to be summed.
    """

    def operation(name: str, resource: Resource, *inputs: str, **options: object) -> Operation:
        return replace(Operation(name, resource, inputs, duplicable=name != PREFILL), **options)  # type: ignore[arg-type]

    before, after = (SUM_O, SUM_DOWN) if network else (OUT, DOWN)
    sums = [operation(SUM_O, Resource.NETWORK, OUT), operation(SUM_DOWN, Resource.NETWORK, DOWN)] if network else []
    return OperationGraph(
        [
            operation(KQV, Resource.COMPUTE, after=(after,)),
            operation(DECODE, Resource.MEMORY, KQV),
            operation(PREFILL, Resource.MEMORY, KQV, tokens=(prompts_from, batch)),
            operation(OUT, Resource.COMPUTE, DECODE, PREFILL),
            *sums[:1],
            operation(UP_GATE, Resource.COMPUTE, before),
            operation(DOWN, Resource.COMPUTE, UP_GATE),
            *sums[1:],
        ],
        batch,
    )


def gathered(graph: OperationGraph, pieces: Collection[str]) -> OperationGraph:
    """Rewrite O → all-reduce as all-gather → O → all-gather for the given pieces of O: as many bytes, other times."""
    sums = {each.name: each for each in graph.operations if each.family == SUM_O and each.inputs[0] in pieces}
    renamed = {name: name.replace(SUM_O, GATHER_O) for name in sums}

    def rewritten(operation: Operation) -> list[Operation]:
        operation = replace(
            operation,
            name=renamed.get(operation.name, operation.name),
            inputs=tuple(renamed.get(name, name) for name in operation.inputs),
        )
        if operation.name not in pieces:
            return [operation]
        gather = replace(operation, name=operation.name.replace(OUT, GATHER_ATTENTION, 1), resource=Resource.NETWORK)
        return [gather, replace(operation, inputs=(gather.name,))]

    return OperationGraph((each for operation in graph.operations for each in rewritten(operation)), graph.batch)


@dataclass(frozen=True)
class Pipeline:
    """How a layer is cut: the batch in two halves at token `half`, attention and KQV at `attention` too.

    gather: halves (0, 1) whose O has the form all-gather → O → all-gather. sums: further cuts of the last all-reduce.
    """

    batch: int
    half: int
    attention: tuple[int, ...]
    gather: tuple[int, ...] = ()
    sums: tuple[int, ...] = ()

    def graph(self, whole: OperationGraph) -> OperationGraph:
        """Nano-operations of the layer `whole`."""
        fine, coarse = sorted({self.half, *self.attention}), [self.half]
        cuts = {name: fine if name in (KQV, DECODE) else coarse for name in whole.names if name != PREFILL}
        cuts |= {name: sorted({self.half, *self.sums}) for name in whole.names if name == SUM_DOWN}
        cut = split(whole, cuts)
        bounds = ((0, self.half), (self.half, self.batch))
        return gathered(cut, {f"{OUT}[{begin}:{end}]" for begin, end in (bounds[half] for half in self.gather)})


SHIPPED = {
    "70B, 2048 tokens": Pipeline(2048, 640, (256, 1408), gather=(0,), sums=(1408,)),
    "70B, 1024 tokens": Pipeline(1024, 384, (256, 640), gather=(0,), sums=(640,)),
    "8B, 1024 tokens": Pipeline(1024, 384, ()),
    "Mixtral, 4096 tokens": Pipeline(4096, 2048, (1024, 3072), gather=(0,), sums=(3072,)),
}
"""Pipelines as NanoFlow's public repository ships them for one device or eight."""
