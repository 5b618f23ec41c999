"""Batch generation: passes formed ahead, formed afterwards, and one sequence at a time; turns that go on from a tier.

The model is SmolLM2, in the quick form two layers of its shape with random weights. It runs in one thread; what is
formed ahead has another core.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from statistics import fmean, median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import torch
from torch import Tensor

from trainers.generation.engine import Engine
from trainers.generation.requests import Request
from trainers.generation.throughput import Serve, by_turns
from trainers.generation.tiers.tiers import Tiers
from trainers.models.gguf import load_gguf
from trainers.models.transformer import Transformer

Row = dict[str, Any]

AHEAD, AFTERWARDS, KEPT, ALONE = "formed ahead", "formed afterwards", "formed ahead and kept", "one at a time"
PREFILL, MEMORY, DISK = "prefill", "from memory", "from disk"
BATCH, PROMPT, CONTEXT = 16, 48, 4096
GIGABYTE = 1 << 30


def generation_rows(quick: bool) -> list[Row]:
    """Tokens a second of each way, by turns; beside each the share of requests with the same greedy tokens."""
    torch.set_num_threads(1)
    model, new_tokens = _model(quick), 8 if quick else 32
    ahead, afterwards, kept = (
        Engine(model, PROMPT + new_tokens, BATCH, token_bytes=_bytes_of, formation=formation, tiers=tiers)
        for formation, tiers in (("asynchronous", None), ("synchronous", None), ("asynchronous", Tiers(GIGABYTE)))
    )
    alone = Engine(model, PROMPT + new_tokens, 1, token_bytes=_bytes_of, formation="synchronous")
    requests = _requests(2 * BATCH, new_tokens)
    return [
        *_compared("formation", {AHEAD: ahead, AFTERWARDS: afterwards}, requests, 5 if quick else 15),
        *_compared("offload", {KEPT: kept, AHEAD: ahead}, requests, 2 if quick else 5),
        *_compared("batch", {AHEAD: ahead, ALONE: alone}, requests[:BATCH], 1 if quick else 3),
    ]


def kv_rows(quick: bool) -> list[Row]:
    """Seconds to the first token after 4096: all of them computed, or their keys and values from memory or disk.

    equal: the share of turns after which they are in the cache as they were computed, to the bit.
    """
    torch.set_num_threads(1)
    model, prompt = _model(quick), _requests(1, 1, CONTEXT)[0]
    seconds: dict[str, list[float]] = {PREFILL: [], MEMORY: [], DISK: []}
    equal: dict[str, list[bool]] = {PREFILL: [], MEMORY: [], DISK: []}
    with TemporaryDirectory() as folder, Tiers(GIGABYTE, Path(folder), GIGABYTE) as tiers:
        engine = Engine(model, CONTEXT, batch=1, token_bytes=_bytes_of, tiers=tiers)
        engine.generate([replace(prompt, prompt=prompt.prompt[:8])])
        for number in range(1 if quick else 3):
            conversation = replace(prompt, conversation=f"number {number}")
            computed: list[Tensor] = []
            for name in (PREFILL, MEMORY, DISK):
                if name == DISK:
                    tiers.close()
                seconds[name].append(_seconds(engine, conversation))
                computed = computed or _stored(engine)
                equal[name].append(_emptied(engine, computed))
    return [_row("kv resume", name, seconds=seconds[name], equal=fmean(equal[name])) for name in seconds]


def generation_summary(rows: Sequence[Row]) -> dict[str, float]:
    """The ratios asked for; a tier's by the slower one."""
    arms = {(row["kind"], row["arm"]): row for row in rows}
    resumed = max(median(arms["kv resume", name]["seconds"]) for name in (MEMORY, DISK))
    return {
        "generation_over_synchronous": _ratio(arms["formation", AHEAD], arms["formation", AFTERWARDS]),
        "generation_over_one_at_a_time": _ratio(arms["batch", AHEAD], arms["batch", ALONE]),
        "kv_resume_over_prefill": median(arms["kv resume", PREFILL]["seconds"]) / resumed,
    }


def _compared(kind: str, engines: dict[str, Engine], requests: Sequence[Request], rounds: int) -> list[Row]:
    ways = {name: _new_conversations(engine) if name == KEPT else engine.generate for name, engine in engines.items()}
    served = by_turns(ways, requests, rounds)
    first = next(iter(served.values()))
    return [
        _row(kind, name, tokens_per_second=each.tokens_per_second, equal=each.agreeing(first))
        for name, each in served.items()
    ]


def _new_conversations(engine: Engine) -> Serve:
    """Each request begins one."""
    names = count()
    return lambda requests: engine.generate([replace(each, conversation=f"{next(names)}") for each in requests])


def _model(quick: bool) -> Transformer:
    if not quick:
        return load_gguf("smollm2").model
    torch.manual_seed(0)
    return Transformer(49_152, width=576, layers=2, heads=9, key_value_heads=3, inner=1536).eval()


def _requests(many: int, new_tokens: int, prompt: int = PROMPT) -> list[Request]:
    """Random prompts with stop strings to look out for; from one to the next lengths go down by a token, to a half."""
    random = torch.Generator().manual_seed(0)
    prompts = [torch.randint(49_152, (prompt,), generator=random).tolist() for _ in range(many)]
    lengths = [new_tokens - number % max(1, new_tokens // 2) for number in range(many)]
    stop = (b"\n\nUser:", b"</answer>")
    return [Request(tuple(each), length, stop_strings=stop) for each, length in zip(prompts, lengths, strict=True)]


def _bytes_of(token: int) -> bytes:
    return chr(token).encode()


def _seconds(engine: Engine, request: Request) -> float:
    begun = perf_counter()
    engine.generate([request])
    return perf_counter() - begun


def _stored(engine: Engine) -> list[Tensor]:
    """A copy of keys and values of all tokens but the last, which is computed in every turn."""
    return [pool[:, :, : CONTEXT - 1].clone() for pool in (engine._cache.keys, engine._cache.values)]


def _emptied(engine: Engine, expected: list[Tensor]) -> bool:
    """Whether the cache held these; it holds nothing of them afterwards."""
    equal = all(torch.equal(*pair) for pair in zip(_stored(engine), expected, strict=True))
    for pool in (engine._cache.keys, engine._cache.values):
        pool.zero_()
    return equal


def _ratio(row: Row, other: Row) -> float:
    """Median over rounds of the first one's tokens a second over the second one's."""
    pairs = zip(row["tokens_per_second"], other["tokens_per_second"], strict=True)
    return median(mine / theirs for mine, theirs in pairs)


def _row(kind: str, arm: str, **measured: Any) -> Row:
    empty: Row = {"tokens_per_second": None, "seconds": None}
    return {"kind": kind, "arm": arm, **empty, **measured, "load": round(os.getloadavg()[0], 1)}
