"""What was published on NanoFlow, as data: times, pipelines and figures, each with where it comes from.

Recalled figures could not be checked against the paper itself: they feed the simulator, no test takes them for true.
"""

from __future__ import annotations

from trainers.overlap.cost_model import optimal_tokens_per_second
from trainers.overlap.hardware import A100_ATTAINED_FLOPS
from trainers.overlap.serving import Pipeline
from trainers.overlap.transformer_sizes import MODELS

LAYERS, DEVICES, TOKENS, PROMPTS_FROM = 80, 8, 2048, 1408
"""LLaMA-2-70B on eight A100; chunks of prompts are taken to be the last piece of the shipped pipeline."""

_ITERATION_MS = {
    "KQV": 16.08,
    "O": 16.01,
    "up+gate": 69.92,
    "down": 34.96,
    "decode attention": 35.60,
    "prefill attention": 4.56,
}
_COLLECTIVES_MS = 47.92
"""Measured kernel times of an iteration of 80 layers, one after another, in milliseconds: 225.05 in sum (recalled)."""

LAYER_SECONDS = {name: ms / 1e3 / LAYERS for name, ms in _ITERATION_MS.items()} | {
    name: _COLLECTIVES_MS * part / 1e3 / LAYERS
    for name, part in {"sum O": 1 / 2, "sum down": 1 / 2, "gather attention": 1 / 4, "gather O": 1 / 4}.items()
}
"""Seconds a layer; an all-reduce carries twice the bytes of an all-gather, and a layer four all-gathers' worth."""

NANO_ONLY_LOSS = 0.132
"""Throughput that cutting without overlap costs (notes on the paper's ablation)."""

PUBLISHED_FRACTION = 0.685
"""Of the optimum, on the ShareGPT trace (figure in the public repository)."""

OPTIMUM = optimal_tokens_per_second(A100_ATTAINED_FLOPS, 70e9)
"""Tokens a second a device: 1857 (constant in the public repository, recomputed)."""

PIPELINES = {
    "70B, 2048 tokens": Pipeline(2048, 640, (256, 1408), gather=(0,), sums=(1408,)),
    "70B, 1024 tokens": Pipeline(1024, 384, (256, 640), gather=(0,), sums=(640,)),
    "8B, 1024 tokens": Pipeline(1024, 384, ()),
    "Mixtral, 4096 tokens": Pipeline(4096, 2048, (1024, 3072), gather=(0,), sums=(3072,)),
}
"""As the public repository ships them."""


def fraction(layer_seconds: float) -> float:
    """Part of the optimum that an iteration of layers of so many seconds attains."""
    return TOKENS / (layer_seconds * LAYERS) / DEVICES / OPTIMUM


def offload_seconds(link_rate: float = 25e9) -> float:
    """Seconds in which one device copies a layer's new keys and values to the host (the rate is our assumption)."""
    return MODELS["LLaMA-2-70B"].token_bytes / LAYERS * TOKENS / DEVICES / link_rate
