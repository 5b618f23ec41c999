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
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import torch

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
    """Seconds to the first token after 4096: all of them computed, or their keys and values from memory or disk."""
    torch.set_num_threads(1)
    model, prompt = _model(quick), _requests(1, 1, CONTEXT)[0]
    with TemporaryDirectory() as folder:
        tiers = {PREFILL: None, MEMORY: Tiers(GIGABYTE), DISK: Tiers(0, Path(folder), GIGABYTE)}
        engines = {name: Engine(model, CONTEXT, 1, token_bytes=_bytes_of, tiers=each) for name, each in tiers.items()}
        asked = {name: replace(prompt, conversation=name if each else None) for name, each in tiers.items()}
        seconds: dict[str, list[float]] = {name: [] for name in engines}
        for _ in range(2 if quick else 4):
            for name, engine in engines.items():
                seconds[name].append(_seconds(engine, asked[name]))
        for each in filter(None, tiers.values()):
            each.close()
    return [
        _row("kv resume", name, seconds=seconds[name][1:], equal=_same_cache(engine, engines[PREFILL]))
        for name, engine in engines.items()  # a conversation's first turn is what the second goes on from
    ]


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


def _same_cache(one: Engine, other: Engine) -> float:
    """1 if keys and values of all tokens but the last, which is always computed, are the same to the bit."""
    pools = [
        (engine._cache.keys[:, :, : CONTEXT - 1], engine._cache.values[:, :, : CONTEXT - 1]) for engine in (one, other)
    ]
    return float(all(torch.equal(*pair) for pair in zip(*pools, strict=True)))


def _ratio(row: Row, other: Row) -> float:
    """Median over rounds of the first one's tokens a second over the second one's."""
    pairs = zip(row["tokens_per_second"], other["tokens_per_second"], strict=True)
    return median(mine / theirs for mine, theirs in pairs)


def _row(kind: str, arm: str, **measured: Any) -> Row:
    empty: Row = {"tokens_per_second": None, "seconds": None}
    return {"kind": kind, "arm": arm, **empty, **measured, "load": round(os.getloadavg()[0], 1)}
