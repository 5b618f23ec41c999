"""One rank of a data-parallel group, run as a process by test_data_parallel.py: python rank.py RANK RANKS FOLDER

Rank 0 hosts the meeting point and leaves its port in the folder; every rank leaves what it saw as JSON.
"""

import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from torch import nn

from trainers import Snapshot, Splits, Task, Trainer, TrainerOptions
from trainers.communication import host_store, join_store, process_group
from trainers.models.mlp import Mlp
from trainers.models.transformer import Transformer
from trainers.tasks.image_classification import ImageClassification
from trainers.tasks.language_model import LanguageModel
from trainers.tasks.tabular import Tabular

SAMPLES_A_STEP = 12
RATES = [0.1, 0.05, 0.2, 0.1]
SGD = partial(torch.optim.SGD, momentum=0.9)
ADAMW = partial(torch.optim.AdamW, fused=True)
MAKE = Callable[..., Trainer]


def language_model() -> Task:
    """Learns the text of this very file."""
    model = partial(Transformer, width=16, layers=1, heads=2, key_value_heads=1)
    return LanguageModel(model, data=__file__, context=16)


class Uneven(Task):
    """A loss that explodes on the samples of rank 1 alone, before any gradient can tell rank 0."""

    def __init__(self, rank: int) -> None:
        self._rank = rank

    def build_model(self) -> nn.Module:
        return nn.Linear(1, 1)

    def build_data(self) -> Splits:
        ones = torch.ones(60, 1)
        return Splits(ones, ones, ones)

    def loss(self, model: nn.Module, batch: torch.Tensor) -> torch.Tensor:
        return model(batch).square().mean() + (1e9 if self._rank == 1 else 0)


def equal_batches(make: MAKE, ranks: int) -> dict:
    """Losses and weights that must equal those of one rank with the whole batch."""
    whole = make(language_model(), SGD, TrainerOptions(SAMPLES_A_STEP // ranks))
    parts = make(language_model(), SGD, TrainerOptions(SAMPLES_A_STEP // ranks // 2, accumulate=2))
    outcome = {"losses": whole.train(RATES), "validation": {}}
    parts.train(RATES)
    for samples in (1, 5, 9, 13):  # some leave a rank idle, some end on a short batch
        scored = make(language_model(), SGD, TrainerOptions(4, validation_samples=samples))
        outcome["validation"][samples] = scored.validate()
    outcome["accumulated"] = [parameter.flatten().tolist() for parameter in parts.model.parameters()]
    return outcome | {"weights": [parameter.flatten().tolist() for parameter in whole.model.parameters()]}


def batch_norm(make: MAKE) -> dict:
    """Running statistics differ between ranks during a step; whoever looks sees equal ones."""
    trainer = make(ImageClassification(), ADAMW, TrainerOptions(4, validation_samples=30))
    losses = trainer.train([1e-2] * 3)
    return {"losses": losses, "sha256": trainer.weights_sha256(), "validation": trainer.validate()}


def restores(make: MAKE, folder: Path, rank: int) -> dict:
    """Dropout: the same steps before a restore, after it, and in a new trainer that reads the state from a file."""
    make_one = partial(make, Tabular(partial(Mlp, width=700, dropout=0.3), "wine"), ADAMW, TrainerOptions(4, clip=1.0))

    def go_on(trainer: Trainer) -> list:
        return [trainer.train([1e-2] * 3), trainer.weights_sha256()]

    trainer = make_one()
    start = trainer.snapshot()
    from_start = go_on(trainer)
    kept = trainer.snapshot()
    outcomes = [go_on(trainer)]
    trainer.restore(kept)
    outcomes.append(go_on(trainer))
    kept.write(folder / f"state-{rank}")
    fresh = make_one()
    fresh.restore(Snapshot.read(folder / f"state-{rank}"))
    outcomes.append(go_on(fresh))
    trainer.restore(start)
    return {"again": [from_start, go_on(trainer)], "outcomes": outcomes}


def stops_together(make: MAKE, rank: int) -> int:
    return len(make(Uneven(rank), SGD, TrainerOptions(4)).train([1e-3] * 5, stop_above=1e6))


def meet(rank: int, ranks: int, folder: Path) -> torch.distributed.TCPStore:
    port = folder / "port"
    if rank == 0:
        store = host_store("127.0.0.1", ranks)
        (folder / "port.new").write_text(str(store.port))
        (folder / "port.new").rename(port)
        return store
    while not port.exists():
        time.sleep(0.02)
    return join_store("127.0.0.1", int(port.read_text()), ranks)


def main(rank: int, ranks: int, folder: Path) -> None:
    make = partial(Trainer, rank=rank, world_size=ranks)
    with process_group(meet(rank, ranks, folder), rank, ranks):
        seen = {
            "equal_batches": equal_batches(make, ranks),
            "batch_norm": batch_norm(make),
            "restores": restores(make, folder, rank),
            "stops_together": stops_together(make, rank),
        }
    (folder / f"seen-{rank}.json").write_text(json.dumps(seen))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
