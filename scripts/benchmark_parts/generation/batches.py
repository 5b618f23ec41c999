"""The engine's continuous batches against one sequence at a time."""

from __future__ import annotations

from collections.abc import Iterator

from benchmark_parts.generation.prompts import TEXTS
from benchmark_parts.generation.rows import Row, row

from trainers.generation.requests import Request
from trainers.generation.throughput import throughput
from trainers.models.gguf import LoadedModel

BATCH, PROMPT = 16, 64


def batch_rows(model: LoadedModel, new_tokens: int, rounds: int) -> Iterator[Row]:
    """Tokens a second of both, and the share of requests with equal greedy output."""
    tokens = model.tokenizer.encode(TEXTS["manual"]())
    prompts = [tuple(tokens[number * 997 : number * 997 + PROMPT]) for number in range(BATCH)]
    found = throughput(model.model, PROMPT + new_tokens, [Request(each, new_tokens) for each in prompts], BATCH, rounds)
    for name, samples in ((f"batch of {BATCH}", found.batched), ("one at a time", found.one_at_a_time)):
        yield row(
            part="engine", text="manual", context=PROMPT, method=name, steps=new_tokens, tokens_per_second=samples,
            note=f"{found.agreeing:.0%} of outputs equal",
        )  # fmt: skip
