"""Plain data-parallel PyTorch, as one writes it without this project: the yardstick of the orchestration benchmark.

Every rank is started with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, as torchrun does, and takes as many steps as
each line of its standard input says; rank 0 prints the seconds they took.

    export WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500
    for rank in 0 1; do echo 100 | RANK=$rank python scripts/benchmarks/plain_ddp.py & done; wait
"""

import sys
from time import perf_counter

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils import clip_grad_norm_

from trainers.data.text import read_text
from trainers.models.transformer import Transformer

BATCH = 8
CONTEXT = 128
RATE = 1e-3


def main() -> None:
    """Train as many steps as asked for, until standard input ends."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    text = torch.frombuffer(bytearray(read_text("kjv").tobytes()), dtype=torch.uint8)
    model = DistributedDataParallel(Transformer(vocabulary=256), gradient_as_bucket_view=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.95), weight_decay=0.01)
    order = torch.Generator().manual_seed(rank)
    for line in sys.stdin:
        dist.barrier()
        begin = perf_counter()
        losses = [step(model, optimizer, batch(text, order)) for _ in range(int(line))]
        last = float(losses[-1])
        if rank == 0:
            print(perf_counter() - begin, last, flush=True)
    dist.destroy_process_group()


def batch(text: Tensor, order: torch.Generator) -> Tensor:
    """Windows at random places of the text."""
    starts = torch.randint(len(text) - CONTEXT - 1, (BATCH, 1), generator=order)
    return text[starts + torch.arange(CONTEXT + 1)].long()


def step(model: DistributedDataParallel, optimizer: torch.optim.Optimizer, tokens: Tensor) -> Tensor:
    """One optimizer step; returns its loss."""
    logits = model(tokens[:, :-1])
    loss = cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
    loss.backward()
    clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    return loss.detach()


if __name__ == "__main__":
    main()
