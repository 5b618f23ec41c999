"""Plain data-parallel PyTorch under a cosine with warm-up, as one writes it without this project: what is to be beaten.

Started on every rank with torchrun's environment and one argument, the options below as JSON. Rank 0 appends to the
file `curve` a line [seconds since the epoch, validation loss] after each validation. Model, data, their order and what
is held out are those of a launch, so that only the ways to train differ.
"""

import json
import math
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import time

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils import clip_grad_norm_
from torch.optim.lr_scheduler import LambdaLR

from trainers.data.order import DataOrder
from trainers.models.convnet import ConvNet
from trainers.models.transformer import Transformer
from trainers.tasks.image_classification import ImageClassification
from trainers.tasks.language_model import LanguageModel
from trainers.tasks.task import Batch, DataSet, Task
from trainers.validation import evaluation_mode, evenly_spaced, mean_scores

WARM_UP = 0.05  # of the steps
CLIP = 1.0  # the largest norm of all gradients together


@dataclass
class Options:
    """batch: samples a rank. peak: of the cosine. validate_every: steps. samples: held out, at most."""

    task: str
    model: Mapping[str, int]
    context: int | None
    steps: int
    batch: int
    peak: float
    seed: int
    validate_every: int
    samples: int
    curve: str


def main(options: Options) -> None:
    """Train, and validate now and then."""
    os.environ["TORCH_CPP_LOG_LEVEL"] = "ERROR"  # hosts of the lab have no names, which c10d remarks on
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    torch.manual_seed(options.seed)
    task = make_task(options)
    splits = task.build_data()
    model = DistributedDataParallel(task.build_model(), gradient_as_bucket_view=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.peak, betas=(0.9, 0.95), weight_decay=0.01)
    schedule = LambdaLR(optimizer, lambda step: cosine(step, options.steps))
    order = DataOrder(len(splits.train), options.batch, dist.get_world_size(), options.seed)
    for step in range(options.steps):
        batch = splits.train[torch.from_numpy(order.indices(step, dist.get_rank()))]
        task.loss(model, batch).backward()
        clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
        if (step + 1) % options.validate_every == 0 or step + 1 == options.steps:
            note(validation_loss(task, model, splits.validation, options), Path(options.curve))
    dist.destroy_process_group()


def make_task(options: Options) -> Task:
    """One of the two tasks that are compared."""
    if options.task == "language_model":
        return LanguageModel(partial(Transformer, **options.model), context=options.context or 128)
    return ImageClassification(partial(ConvNet, **options.model))


def cosine(step: int, steps: int) -> float:
    """The share of the peak at a step: a linear rise, then half a cosine down to 0."""
    warm_up = int(WARM_UP * steps)
    if step < warm_up:
        return (step + 1) / warm_up
    return 0.5 * (1 + math.cos(math.pi * (step - warm_up) / (steps - warm_up)))


def validation_loss(task: Task, model: DistributedDataParallel, data: DataSet, options: Options) -> float:
    """Mean loss on what is held out, shared out over the ranks."""

    def score(chosen: Tensor) -> dict[str, Tensor]:
        batch: Batch = data[chosen]
        return {"loss": task.loss(model.module, batch)}

    indices = evenly_spaced(len(data), options.samples)
    with evaluation_mode(model, options.seed):
        return mean_scores(score, indices, options.batch, dist.get_rank(), dist.get_world_size(), torch.device("cpu"))[
            "loss"
        ]


def note(loss: float, curve: Path) -> None:
    """A line for whoever started this."""
    if dist.get_rank() == 0:
        with curve.open("a") as lines:
            lines.write(json.dumps([time(), loss]) + "\n")


if __name__ == "__main__":
    main(Options(**json.loads(sys.argv[1])))
