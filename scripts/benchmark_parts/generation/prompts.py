"""Long texts of three kinds, and SmolLM2's keys and values of them, which a folder named by BENCH_CACHE keeps."""

from __future__ import annotations

import inspect
import os
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, thread_time

import numpy as np
import torch

from trainers.data.text import read_text
from trainers.generation.evaluation.prefilled import Prefilled, prefill
from trainers.models.gguf import LoadedModel

TRAINED = 8192  # tokens that SmolLM2 looks back on


def _topics() -> str:
    from pydoc_data import topics

    return "\n".join(topics.topics.values())


def _sources() -> str:
    import argparse
    import subprocess
    import typing

    return "".join(map(inspect.getsource, (argparse, subprocess, typing)))


TEXTS = {"scripture": lambda: read_text("kjv").tobytes().decode(), "manual": _topics, "source code": _sources}


@dataclass(frozen=True)
class Stored:
    """A prompt's keys and values, rounded to half precision as they are kept, and what follows it in the text.

    seconds: of this thread to store it.
    """

    text: str
    prompt: Prefilled
    following: list[int]
    seconds: float


def extended(model: LoadedModel, context: int) -> float:
    """By how much the base of rotary positions is to grow for a context beyond the trained one (NTK-aware scaling)."""
    width = model.model.head_width
    return max(1.0, context / TRAINED) ** (width / (width - 2))


def stored(model: LoadedModel, text: str, context: int, following: int) -> Stored:
    """The first `context` tokens of a text as keys and values, and so many tokens after them and one more."""
    folder = os.environ.get("BENCH_CACHE")
    file = Path(folder) / f"smollm2-{text.replace(' ', '-')}-{context}.npz" if folder else None
    tokens = model.tokenizer.encode(TEXTS[text]())[: context + following + 1]
    if len(tokens) < context + following + 1:
        raise SystemExit(f"The text {text!r} has {len(tokens)} tokens only.")
    if file and file.exists():
        return _read(file, text, tokens[context:])
    begun, wall = thread_time(), perf_counter()
    prompt = prefill(model.model, tokens[:context])
    halves = [each.half() for each in (prompt.keys, prompt.values, prompt.windows)]
    seconds = thread_time() - begun
    print(f"{text}: {context} tokens stored in {perf_counter() - wall:.0f} s", flush=True)
    if file:
        file.parent.mkdir(parents=True, exist_ok=True)
        np.savez(file, *(each.numpy() for each in halves), seconds=seconds)
    return Stored(text, Prefilled(*(each.float() for each in halves)), tokens[context:], seconds)


def _read(file: Path, text: str, following: list[int]) -> Stored:
    with np.load(file) as kept:
        halves = [torch.from_numpy(kept[f"arr_{number}"]).float() for number in range(3)]
        return Stored(text, Prefilled(*halves), following, float(kept["seconds"]))
