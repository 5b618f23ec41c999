"""One transformer layer of tensor-parallel serving as operations, and how it is cut and rewritten.

NanoFlow, arXiv 2408.12757, sections 2 and 4. Tokens of the batch come in its order: those that decode, then chunks of
prompts.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from trainers.overlap.operations import Operation, OperationGraph, Resource
from trainers.overlap.rewriting import split

COMPUTE, MEMORY, NETWORK = Resource.COMPUTE, Resource.MEMORY, Resource.NETWORK
KQV, DECODE, PREFILL, OUT, UP_GATE, DOWN = "KQV", "decode attention", "prefill attention", "O", "up+gate", "down"
SUM_O, SUM_DOWN, GATHER_ATTENTION, GATHER_O = "sum O", "sum down", "gather attention", "gather O"


def layer(batch: int, prompts_from: int, network: bool = True) -> OperationGraph:
    """A layer in the form GEMM → all-reduce, uncut; chunks of prompts begin at token `prompts_from`.

    network: False on one device, where nothing is to be summed.
    """
    o, down = (SUM_O, SUM_DOWN) if network else (OUT, DOWN)
    sums = [Operation(SUM_O, NETWORK, (OUT,), duplicable=True), Operation(SUM_DOWN, NETWORK, (DOWN,), duplicable=True)]
    return OperationGraph(
        [
            Operation(KQV, COMPUTE, after=(down,), duplicable=True),
            Operation(DECODE, MEMORY, (KQV,), duplicable=True),
            Operation(PREFILL, MEMORY, (KQV,), tokens=(prompts_from, batch)),
            Operation(OUT, COMPUTE, (DECODE, PREFILL), duplicable=True),
            *(sums[:1] if network else []),
            Operation(UP_GATE, COMPUTE, (o,), duplicable=True),
            Operation(DOWN, COMPUTE, (UP_GATE,), duplicable=True),
            *(sums[1:] if network else []),
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
        gather = replace(operation, name=operation.name.replace(OUT, GATHER_ATTENTION, 1), resource=NETWORK)
        return [gather, replace(operation, inputs=(gather.name,))]

    return OperationGraph((each for operation in graph.operations for each in rewritten(operation)), graph.batch)


@dataclass(frozen=True)
class Pipeline:
    """How a layer is cut: the batch in two parts at token `half`; attention and KQV at the tokens `attention` too.

    gather: parts (0, 1) whose O has the form all-gather → O → all-gather. sums: further cuts of the last all-reduce.
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
