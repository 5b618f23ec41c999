"""Long-context decoding of SmolLM2: what Tactic attains with how many tokens, beside its rivals, and how fast it is.

    BENCH_CACHE=folder python scripts/bench.py generation --json FILE
    python scripts/generation_figures.py FILE docs/images

Prompts of 8k tokens of three texts, 176 steps each; one layer at 32k; whole steps at 8k and, with extended rotary
positions, at 32k; batches of 16; an ablation. Times are those of one thread, both sides interleaved. It takes about an
hour of one core and 9 GB; with BENCH_CACHE stored prompts are used again (1.3 GB), which saves half of it. Quick:
contexts of 1k and 2k, few steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from benchmark_parts.generation.ablation import ablation_rows, print_ablation
from benchmark_parts.generation.accuracy import accuracy_rows
from benchmark_parts.generation.batches import batch_rows
from benchmark_parts.generation.end_to_end import end_to_end_rows
from benchmark_parts.generation.one_layer import one_layer_rows
from benchmark_parts.generation.rows import Row
from benchmark_parts.generation.summary import summarise

from trainers.models.gguf import LoadedModel, load_gguf


def run(quick: bool) -> tuple[list[Row], dict[str, Any]]:
    """A row a text, method and target, or a way and context, and the summary."""
    torch.set_num_threads(1)
    rows = list((_quick if quick else _full)(load_gguf("smollm2")))
    return rows, summarise(rows)


def _ablation(model: LoadedModel, context: int, steps: int, seeds: Sequence[int]) -> list[Row]:
    rows = list(ablation_rows(model, context, steps, seeds))
    print_ablation(rows)
    return rows


def _full(model: LoadedModel) -> Iterator[Row]:
    yield from accuracy_rows(model, 7936, steps=176)
    yield from _ablation(model, 7936, steps=8, seeds=(0, 1))
    for context in (4096, 8192, 16_384, 32_768):
        yield from one_layer_rows(context, steps=100)
    yield from end_to_end_rows(model, 7936, steps=40)
    yield from end_to_end_rows(model, 32_768, steps=20)
    yield from batch_rows(model, new_tokens=32, rounds=3)


def _quick(model: LoadedModel) -> Iterator[Row]:
    yield from accuracy_rows(model, 1024, steps=4, curve_steps=2)
    yield from _ablation(model, 1024, steps=2, seeds=(0,))
    for context in (2048, 8192):
        yield from one_layer_rows(context, steps=32)
    yield from end_to_end_rows(model, 1024, steps=8)
    yield from end_to_end_rows(model, 2048, steps=8)
    yield from batch_rows(model, new_tokens=8, rounds=1)
