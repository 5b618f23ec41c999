"""What a rank does for the training rows: a transformer's steps, serial, by DDP and along a searched pipeline."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from time import perf_counter
from typing import Any

import torch
import torch.distributed as dist

from trainers import Trainer, TrainerOptions
from trainers.communication import InTurn
from trainers.models.transformer import Transformer
from trainers.overlap.training.blocks import Blocks
from trainers.overlap.training.layout import serial
from trainers.overlap.training.recording import trainable
from trainers.tasks.language_model import LanguageModel

RANKS, CONTEXT = 2, 128
SIZES: dict[str, dict[str, int]] = {
    "9.5M": {"width": 384, "layers": 6, "heads": 6, "key_value_heads": 2},
    "0.8M": {"width": 128, "layers": 4, "heads": 4, "key_value_heads": 2},
}
ADAMW = partial(torch.optim.AdamW, fused=True)
NO_OVERLAP, DDP, PLANNED = "no overlap", "DDP 25 MiB", "planned"


def compute_seconds(rank: int, size: str, batch: int, repeats: int) -> list[float]:
    """Of steps of which no gradient travels, on all ranks at once."""
    with _group():
        trainer = _trainer(rank, size, batch)
        trainer._stepper.parallel = InTurn(trainer.model)
        _seconds_a_step(trainer, 2)
        return [_seconds_a_step(trainer, 1) for _ in range(repeats)]


def sum_seconds(rank: int, elements: int, repeats: int) -> list[float]:
    """Of an all_reduce of so many floats."""
    samples = []
    with _group():
        vector = torch.zeros(elements)
        for _ in range(repeats + 1):
            dist.barrier()
            begun = perf_counter()
            dist.all_reduce(vector)
            samples.append(perf_counter() - begun)
    return samples[1:]


def step_seconds(rank: int, size: str, batch: int, rounds: int, steps: int) -> dict[str, Any]:
    """Seconds of a step by arm, in turn again and again; and what planning decided."""
    with _group():
        arms = {name: _trainer(rank, size, batch) for name in (NO_OVERLAP, DDP, PLANNED)}
        sizes = {name: each.nbytes for name, each in trainable(arms[DDP].model).items()}
        arms[NO_OVERLAP].follow(serial(Blocks(arms[NO_OVERLAP].trials.recorded(), sizes).all))
        begun = perf_counter()
        decision = arms[PLANNED].plan_overlap()
        planning = perf_counter() - begun
        samples: dict[str, list[float]] = {name: [] for name in arms}
        for _ in range(rounds):
            for name, trainer in arms.items():
                samples[name].append(_seconds_a_step(trainer, steps))
        return {"samples": samples, "decision": decision.to_json(), "planning_seconds": planning}


def model_elements(size: str) -> int:
    """Parameters of the model."""
    return sum(parameter.numel() for parameter in Transformer(256, **SIZES[size]).parameters())


def _trainer(rank: int, size: str, batch: int) -> Trainer:
    task = LanguageModel(partial(Transformer, **SIZES[size]), "kjv", CONTEXT)
    return Trainer(task, ADAMW, TrainerOptions(batch, threads=1), rank, RANKS)


def _seconds_a_step(trainer: Trainer, steps: int) -> float:
    dist.barrier()
    begun = perf_counter()
    trainer.train([1e-4] * steps)
    return (perf_counter() - begun) / steps


@contextmanager
def _group() -> Iterator[None]:
    os.environ["TORCH_CPP_LOG_LEVEL"] = "ERROR"  # hosts of the lab have no names, which c10d remarks on
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(seconds=300))
    try:
        yield
    finally:
        dist.destroy_process_group()
