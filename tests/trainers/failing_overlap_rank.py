"""One rank of a group in which the last one fails: python failing_overlap_rank.py RANK RANKS FOLDER HOW

HOW: killed and raised: in an overlapped step; voted: it has another model; recorded: it raises while planning.
What the other ranks say of it, and after how many seconds, goes to the folder.
"""

import json
import os
import signal
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import torch
from rank import meet
from torch import Tensor, nn

from trainers import Splits, Task, Trainer, TrainerOptions
from trainers.communication import process_group
from trainers.overlap.training.blocks import Blocks
from trainers.overlap.training.layout import Layout
from trainers.overlap.training.recording import trainable

TIMEOUT = 60.0  # of the group, in seconds


class Layers(nn.Module):
    """Eight layers, called from the first or from the last on."""

    def __init__(self, backwards: bool) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(64, 64) for _ in range(8))
        self._backwards = backwards

    def forward(self, batch: Tensor) -> Tensor:
        for layer in reversed(self.layers) if self._backwards else self.layers:
            batch = layer(batch)
        return batch


class Deep(Task):
    """A loss that can be made to fail."""

    def __init__(self, backwards: bool) -> None:
        self._backwards, self.fails = backwards, False

    def build_model(self) -> nn.Module:
        return Layers(self._backwards)

    def build_data(self) -> Splits:
        ones = torch.ones(60, 64)
        return Splits(ones, ones, ones)

    def loss(self, model: nn.Module, batch: Tensor) -> Tensor:
        if self.fails:
            raise ArithmeticError("there is no loss")
        return model(batch).square().mean()


class Breaks(torch.optim.SGD):
    """Another optimizer under SGD's name, which fails, or ends its process, in its third bucket."""

    def __init__(self, parameters: Any, how: str) -> None:
        super().__init__(parameters, lr=0.1)
        self.how, self.steps = how, 0

    def step(self, closure: Any = None) -> Any:
        self.steps += 1
        if self.steps == 3 and self.how == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.steps == 3 and self.how == "raised":
            raise ArithmeticError("the step went wrong")
        return super().step(closure)


Breaks.__name__, Breaks.__module__ = "SGD", "torch.optim.sgd"


def act(rank: int, ranks: int, how: str) -> None:
    guilty = rank == ranks - 1
    task = Deep(backwards=guilty and how == "voted")
    trainer = Trainer(task, partial(Breaks, how=how if guilty else ""), TrainerOptions(4), rank, ranks)
    if how in ("voted", "recorded"):
        task.fails = guilty and how == "recorded"
        trainer.plan_overlap()
        return
    sizes = {name: each.nbytes for name, each in trainable(trainer.model).items()}
    blocks = Blocks(trainer.trials.recorded(), sizes).all
    trainer.follow(Layout("overlapped", blocks, tuple(range(len(blocks)))))
    trainer.train([0.1] * 5)


def main(rank: int, ranks: int, folder: Path, how: str) -> None:
    with process_group(meet(rank, ranks, folder), rank, ranks, timeout=TIMEOUT):
        begun = time.monotonic()
        try:
            act(rank, ranks, how)
            said = "nothing went wrong"
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
        (folder / f"said-{rank}.json").write_text(json.dumps([said, time.monotonic() - begun]))
        time.sleep(2)  # nobody is to learn of it by a connection that is closed


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), sys.argv[4])
