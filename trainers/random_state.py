"""The process's random generators (torch, CUDA, numpy, Python) as one state that can be kept, set and guarded."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor

Json = dict[str, Any]


def seed_all(seed: int, rank: int = 0) -> None:
    """Seed every generator of the process from (seed, rank)."""
    words = np.random.SeedSequence([seed, rank]).generate_state(3)
    torch.manual_seed(int(words[0]))  # CUDA's too
    np.random.seed(int(words[1]))
    random.seed(int(words[2]))


def random_state() -> tuple[dict[str, Tensor], Json]:
    """The state of every generator: large parts as tensors, the rest as JSON values."""
    name, words, position, has_gauss, gauss = np.random.get_state()
    version, python_words, python_gauss = random.getstate()
    tensors = {"torch": torch.get_rng_state(), "numpy": torch.from_numpy(np.asarray(words, dtype=np.int64))}
    if torch.cuda.is_initialized():
        tensors["cuda"] = torch.cuda.get_rng_state()
    values: Json = {
        "numpy": [name, int(position), int(has_gauss), float(gauss)],
        "python": [version, list(python_words), python_gauss],
    }
    return tensors, values


def set_random_state(tensors: dict[str, Tensor], values: Json) -> None:
    """Put every generator into a state that `random_state` gave, possibly after a trip through files."""
    torch.set_rng_state(tensors["torch"])
    if "cuda" in tensors and torch.cuda.is_initialized():
        torch.cuda.set_rng_state(tensors["cuda"])
    name, position, has_gauss, gauss = values["numpy"]
    np.random.set_state((name, tensors["numpy"].numpy().astype(np.uint32), position, has_gauss, gauss))
    version, words, python_gauss = values["python"]
    random.setstate((version, tuple(words), python_gauss))


@contextmanager
def separate_randomness(seed: int) -> Iterator[None]:
    """Run a block on generators seeded afresh, and leave the process's own as they were."""
    before = random_state()
    seed_all(seed)
    try:
        yield
    finally:
        set_random_state(*before)
