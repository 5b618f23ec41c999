"""One rank of a group that trains a mixture of experts: python moe_rank.py RANK RANKS FOLDER; see test_moe_ranks.py."""

import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

import torch
from rank import meet

from trainers import Snapshot, Trainer, TrainerOptions
from trainers.communication import process_group
from trainers.models.moe_transformer import MoeTransformer
from trainers.tasks.moe_language_model import MoeLanguageModel

SAMPLES_A_STEP = 12
RATES = [0.1, 0.05, 0.2, 0.1]
SGD = partial(torch.optim.SGD, momentum=0.9)
ADAMW = partial(torch.optim.AdamW, weight_decay=0.1)
LINKS = {"intra_bandwidth": 10, "nic_bandwidth": 1}
CLUSTERS: dict[int, dict[str, Any]] = {
    2: {"servers": 2, "gpus_per_server": 1, **LINKS},
    3: {"servers": 2, "gpus_per_server": [2, 1], **LINKS},
    4: {"servers": 2, "gpus_per_server": 2, **LINKS},
}


def task(cluster: dict[str, Any] | None = None, experts: int = 5, **sizes: int) -> MoeLanguageModel:
    """Learns the text of this very file; five experts spread unevenly over any number of ranks but one and five."""
    model = partial(MoeTransformer, width=16, layers=2, heads=2, key_value_heads=1, experts=experts, **sizes)
    return MoeLanguageModel(model, data=__file__, context=16, balance=0.1, cluster=cluster)


def main(rank: int, ranks: int, folder: Path) -> None:
    make = partial(Trainer, rank=rank, world_size=ranks)
    seen: dict[str, Any] = {}
    with process_group(meet(rank, ranks, folder), rank, ranks):
        options = partial(TrainerOptions, SAMPLES_A_STEP // ranks, clip=0.5, validation_samples=5)
        for name, cluster in (("backend", None), ("planned", CLUSTERS[ranks])):
            trainer = make(task(cluster), SGD, options())
            losses = trainer.train(RATES)
            seen[name] = {
                "losses": losses,
                "measured": trainer.measurements(),
                "sha256": trainer.weights_sha256(),
                "validation": trainer.validate(),
                "evaluation": trainer.evaluate(),
                "parameters": trainer.parameters_count,
            }
            trainer.save_weights(folder / f"weights-{name}")
        seen["lonely"] = lonely(make, ranks)
        seen["halves"] = halves(make, ranks)
        seen["overflow"] = overflow(make, rank, ranks)
        seen["restored"] = restored(make, folder, rank, ranks)
    (folder / f"seen-{rank}.json").write_text(json.dumps(seen))


def lonely(make: Any, ranks: int) -> list[list[float]]:
    """One expert gets everything, so that most ranks get nothing."""
    losses = []
    for cluster in (None, CLUSTERS[ranks]):
        trainer = make(task(cluster, experts=ranks, top_k=1), SGD, TrainerOptions(2))
        with torch.no_grad():
            for block in trainer.model.blocks:
                block.feed_forward.router.weight.zero_()  # ties go to one expert
        losses.append(trainer.train([0.0, 0.0]))
    return losses


def halves(make: Any, ranks: int) -> list[list[Any]]:
    """In low precision tokens travel as such; a plan changes no bit there either."""
    outcomes = []
    for precision in ("bfloat16", "float16"):
        for cluster in (None, CLUSTERS[ranks]):
            trainer = make(task(cluster), SGD, TrainerOptions(2, precision=precision))
            outcomes.append([trainer.train([0.1] * 2), trainer.measurements()["experts/dispatched_bytes"]])
    return outcomes


def overflow(make: Any, rank: int, ranks: int) -> list[Any]:
    """The experts of the last rank alone overflow in float16: no rank may take the step."""
    trainer = make(task(CLUSTERS[ranks]), SGD, TrainerOptions(2, precision="float16"))
    before = trainer.weights_sha256()
    if rank == ranks - 1:
        trainer.model.blocks[0].feed_forward.experts.up.register_hook(lambda gradient: gradient * torch.inf)
    trainer.train([0.1])
    return [before, trainer.weights_sha256(), trainer.snapshot().values["scaler"]["scale"]]


def restored(make: Any, folder: Path, rank: int, ranks: int) -> list[Any]:
    """The same steps once more after a restore, and in a new trainer that reads shared and own parts from files."""
    make_one = partial(make, task(CLUSTERS[ranks]), ADAMW, TrainerOptions(2, clip=1.0, accumulate=2))
    trainer = make_one()
    trainer.train([1e-2] * 2)
    kept = trainer.snapshot()
    kept.own().write(folder / f"own-{rank}")
    if rank == 0:
        kept.shared().write(folder / "shared")
    outcomes = [[trainer.train([1e-2] * 2), trainer.weights_sha256()]]
    trainer.restore(kept)
    outcomes.append([trainer.train([1e-2] * 2), trainer.weights_sha256()])
    fresh = make_one()
    fresh.restore(Snapshot.read(folder / "shared").joined(Snapshot.read(folder / f"own-{rank}")))
    outcomes.append([fresh.train([1e-2] * 2), fresh.weights_sha256()])
    return outcomes


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
