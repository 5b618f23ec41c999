"""Graphs that several tests of overlapping plan: random ones, and a training step's."""

from __future__ import annotations

from random import Random

from trainers.overlap.operations import Operation, OperationGraph, Resource


def random_graph(seed: int, size: int, periodic: bool = True) -> tuple[OperationGraph, dict[str, float]]:
    """Operations on three resources with random dependencies and whole seconds; the last one joins iterations."""
    random = Random(seed)
    names = [f"op{place}" for place in range(size)]
    resources = [random.choice([Resource.COMPUTE, Resource.MEMORY, Resource.NETWORK]) for _ in names]
    inputs = [tuple(random.sample(names[:place], random.randint(0, min(2, place)))) for place in range(size)]
    after = [
        tuple(random.sample(names[place:], 1)) if periodic and random.random() < 0.5 else () for place in range(size)
    ]
    graph = OperationGraph(
        (Operation(*each) for each in zip(names, resources, inputs, [None] * size, [False] * size, after, strict=True)),
        1,
    )
    return graph, {name: float(random.randint(1, 6)) for name in names}


def training_step(
    blocks: int, compute: float, network: float, optimizer: float
) -> tuple[OperationGraph, dict[str, float]]:
    """Forward and backward block by block, a sum and an optimizer step a block, the next forward after that step."""
    operations, times = [], {}
    for block in range(blocks):
        inputs = (f"forward {block - 1}",) if block else ()
        operations.append(Operation(f"forward {block}", Resource.COMPUTE, inputs, after=(f"optimizer {block}",)))
        times[f"forward {block}"] = compute / 3
    for block in reversed(range(blocks)):
        inputs = (f"backward {block + 1}",) if block < blocks - 1 else (f"forward {block}",)
        operations += [
            Operation(f"backward {block}", Resource.COMPUTE, inputs),
            Operation(f"reduce {block}", Resource.NETWORK, (f"backward {block}",)),
            Operation(f"optimizer {block}", Resource.MEMORY, (f"reduce {block}",)),
        ]
        times |= {f"backward {block}": compute * 2 / 3, f"reduce {block}": network, f"optimizer {block}": optimizer}
    return OperationGraph(operations, 1), times
