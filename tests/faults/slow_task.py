"""A task that takes its time and obeys orders left in a file: what faults are injected into.

A step takes `pause` seconds longer than it would, so that there is time to hit it. An order is a line "RANK WORD" in
the file `orders`; the rank that it is for carries it out in its next training step, once. Beside it each rank leaves
its process id, as RANK.pid, with its first loss.
"""

import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.utils.data import TensorDataset

from trainers import Splits, Task


class SlowTask(Task):
    """A regression by a small network with batch norm and dropout, whose state is more than its weights."""

    def __init__(self, orders: str, pause: float = 0.01, size: int = 16, explodes_after: int | None = None) -> None:
        self._orders, self._pause, self._size = Path(orders), pause, size
        self._left = explodes_after  # steps of this process
        self._seen = False

    def build_model(self) -> nn.Module:
        size = self._size
        return nn.Sequential(nn.Linear(8, size), nn.BatchNorm1d(size), nn.Dropout(0.1), nn.Linear(size, 1))

    def build_data(self) -> Splits:
        inputs = torch.randn(600, 8, generator=torch.Generator().manual_seed(1))
        targets = inputs.sum(1, keepdim=True).sin()
        return Splits(*(TensorDataset(inputs[part::3], targets[part::3]) for part in range(3)))

    def loss(self, model: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
        self._be_seen()
        inputs, targets = batch
        loss = nn.functional.mse_loss(model(inputs), targets)
        if not torch.is_grad_enabled():
            return loss
        time.sleep(self._pause)
        return loss * self._factor()

    def _be_seen(self) -> None:
        if not self._seen:
            self._seen = True
            self._orders.with_name(f"{_rank()}.pid").write_text(str(os.getpid()))

    def _factor(self) -> float:
        """1, unless there is an order for this rank."""
        if self._left is not None:
            self._left -= 1
            if self._left < 0:
                return float("nan")
        try:
            asked, word = self._orders.read_text().split()
        except (OSError, ValueError):
            return 1.0
        if int(asked) != _rank():
            return 1.0
        self._orders.unlink()
        return ORDERS[word]()


def _rank() -> int:
    return dist.get_rank() if dist.is_initialized() else 0


def _raise() -> float:
    raise ValueError("the batch is cursed")


def _crash() -> float:
    print("about to crash", file=sys.stderr, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
    return 1.0


def _hang() -> float:
    time.sleep(3600)
    return 1.0


def _limit(size: int) -> float:
    """Let no file of this process grow beyond a size: a disk that fills up while it is written to."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    return 1.0


ORDERS: dict[str, Callable[[], float]] = {
    "nan": lambda: float("nan"),
    "inf": lambda: float("inf"),
    "huge": lambda: 1e30,
    "raise": _raise,
    "crash": _crash,
    "hang": _hang,
    "full": lambda: _limit(1000),
    "free": lambda: _limit(resource.RLIM_INFINITY),
}
