"""One rank that trains the same things by DDP and overlapped: overlap_rank.py RANK RANKS FOLDER HOW CASE…

HOW: laid out: in given layouts; along plans: likewise, in a planned group; searched: as planning finds it.
"""

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import moe_rank
import torch
from averaging_rank import OPTIMIZER as SCHEDULE_FREE
from averaging_rank import Line
from prodigyopt import Prodigy
from rank import meet
from schedulefree import SGDScheduleFree

from comm_plans import Topology
from comm_plans.runtime import PlannedOptions
from trainers import Task, Trainer, TrainerOptions
from trainers.communication import process_group
from trainers.models.mlp import Mlp
from trainers.models.transformer import Transformer
from trainers.overlap.training.blocks import Blocks
from trainers.overlap.training.layout import Layout, serial
from trainers.overlap.training.recording import trainable
from trainers.tasks.image_classification import ImageClassification
from trainers.tasks.language_model import LanguageModel
from trainers.tasks.tabular import Tabular

RATES = [0.1, 0.05, 0.2, 0.1, 0.02]
SGD = partial(torch.optim.SGD, momentum=0.9)
ADAMW = partial(torch.optim.AdamW, fused=True)
Make = Callable[..., Trainer]


def transformer(**more: Any) -> Task:
    """Learns a text."""
    return LanguageModel(partial(Transformer, width=16, layers=2, heads=2, key_value_heads=1, **more), "kjv", 16)


def two_groups(parameters: Any) -> torch.optim.Optimizer:
    """An optimizer with a group of its own for vectors."""
    every = list(parameters)
    groups = [[each for each in every if (each.dim() > 1) == matrix] for matrix in (True, False)]
    return torch.optim.AdamW([{"params": groups[0]}, {"params": groups[1], "weight_decay": 0.0}], weight_decay=0.1)


CASES: dict[str, tuple[Callable[[], Task], Any, dict[str, Any]]] = {
    "tied": (transformer, SGD, {}),
    "untied": (partial(transformer, tied=False, dropout=0.1), ADAMW, {}),
    "accumulated": (transformer, ADAMW, {"accumulate": 3}),
    "clipped": (transformer, ADAMW, {"clip": 0.1}),
    "bfloat16": (transformer, SGD, {"precision": "bfloat16"}),
    "two groups": (transformer, two_groups, {}),
    "schedule-free": (transformer, SCHEDULE_FREE, {}),
    "schedule-free SGD": (partial(Line, norm=True), SGDScheduleFree, {}),
    "Prodigy": (transformer, Prodigy, {}),
    "batch norm": (ImageClassification, ADAMW, {}),
    "experts": (moe_rank.task, ADAMW, {}),
    "table": (partial(Tabular, partial(Mlp, width=30, dropout=0.3), "wine"), ADAMW, {}),
}
for _name in ("Adadelta", "Adagrad", "Adam", "Adamax", "ASGD", "NAdam", "RAdam", "RMSprop", "Rprop"):
    CASES[_name] = (partial(Line, norm=False), getattr(torch.optim, _name), {})


def layouts(trainer: Trainer) -> dict[str, Layout]:
    """Rank 0's: a bucket a block, sent as they come and with the last first; few buckets; everything at the end."""
    blocks = Blocks(trainer.trials.recorded(), {name: each.nbytes for name, each in trainable(trainer.model).items()})
    few = blocks.equal(3)
    many, last = tuple(range(len(blocks.all))), len(blocks.all) // 2
    found = {
        "blocks": Layout("overlapped", blocks.all, many),
        "last first": Layout("overlapped", blocks.all, (*many[:last], *reversed(many[last:]))),
        "few": Layout("overlapped", few, tuple(range(len(few)))),
        "serial": serial(blocks.all),
        "DDP again": Layout("ddp", (), ()),
    }
    said = [{name: layout.to_json() for name, layout in found.items()}]
    torch.distributed.broadcast_object_list(said)
    return {name: Layout.from_json(layout) for name, layout in said[0].items()}


def state(trainer: Trainer) -> list[Any]:
    """The optimizer's scalars, and a digest of each tensor there is."""
    snapshot = trainer.snapshot()
    _, groups = snapshot.values["optimizer"]["pairs"]
    return [groups, {name: hash(tuple(tensor.flatten().tolist())) for name, tensor in sorted(snapshot.tensors.items())}]


def outcome(trainer: Trainer) -> list[Any]:
    """Two stretches, one of which looks at the loss of all ranks after each step, and the whole state after them."""
    kept = trainer.snapshot()
    losses = [
        [*trainer.train(RATES[:1], more=True), *trainer.train(RATES[1:])],
        trainer.train(RATES[:2], stop_above=1e9),
    ]
    after = [trainer.weights_sha256(), trainer.validate(), state(trainer)]
    trainer.restore(kept)
    return [losses, after, trainer.train(RATES), trainer.weights_sha256(), trainer.rates()]


def case(make: Make, task: Callable[[], Task], optimizer: Any, options: dict[str, Any]) -> dict[str, Any]:
    """What comes of it under DDP, and overlapped in each way."""
    make_one = partial(make, optimizer=optimizer, options=TrainerOptions(4, validation_samples=5, **options))
    usual = make_one(task())
    found = {"DDP": outcome(usual)}
    for name, layout in layouts(usual).items():
        trainer = make_one(task())
        trainer.follow(layout)
        found[name] = outcome(trainer)
    return found


def searched(make: Make, task: Callable[[], Task], optimizer: Any, options: dict[str, Any]) -> dict[str, Any]:
    """What comes of it under DDP, and along the pipeline that is found; whether finding it left a trace."""
    make_one = partial(make, optimizer=optimizer, options=TrainerOptions(4, validation_samples=5, **options))
    trainer = make_one(task())
    before = state(trainer)
    decision = trainer.plan_overlap()
    found = {"DDP": outcome(make_one(task())), "before": before, "after": state(trainer), "searched": outcome(trainer)}
    return found | {"decision": {**decision.to_json(), "timelines": list(decision.timelines)}}


def main(rank: int, ranks: int, folder: Path, how: str, cases: list[str]) -> None:
    make = partial(Trainer, rank=rank, world_size=ranks)
    network = Topology.from_document({"name": "pair", "ranks": ["a", "b"], "cables": [["a", "b", 1]]})
    planned = PlannedOptions(topology=network, threshold_bytes=0, strict=True) if how == "along plans" else None
    with process_group(meet(rank, ranks, folder), rank, ranks, planned=planned):
        seen = {name: (searched if how == "searched" else case)(make, *CASES[name]) for name in cases}
    (folder / f"seen-{rank}.json").write_text(json.dumps(seen))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), sys.argv[4], sys.argv[5:])
